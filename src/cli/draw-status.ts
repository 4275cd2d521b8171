import { pushAll } from "../api/schema/push-all.ts";
import type { ClusterStatus, NodeStatus, PoolStatus } from "../core/preview/cluster-status.ts";
import { listText } from "../core/text/list-text.ts";
import { type Paint, paintOf } from "../core/text/paint.ts";

export interface DrawOptions {
  readonly colours: boolean | Paint;
  /** Columns of the terminal. */
  readonly width: number;
}

const codes = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2, bold: 1 } as const;
type Colour = keyof typeof codes;

const colourOf: Readonly<Record<NodeStatus["phase"], Colour>> = {
  Lost: "red",
  Unassigned: "yellow",
  Degraded: "red",
  Unreconcilable: "red",
  Rebooting: "yellow",
  PostAction: "yellow",
  ApplyingOS: "yellow",
  ApplyingFiles: "yellow",
  PullingImage: "yellow",
  Draining: "yellow",
  Cordoning: "yellow",
  Preparing: "yellow",
  Uncordoning: "yellow",
  Resuming: "yellow",
  NeedsUpdate: "cyan",
  Updated: "green",
  Joining: "cyan",
  Unknown: "dim",
};

/** Kinds that one line names. */
const shownKinds = 3;

/** The name without the pool, shortened: enough to distinguish two rendered configurations. */
const short = (rendered: string) =>
  rendered === "" ? "-" : rendered.replace(/^rendered-/, "").replace(/([0-9a-f]{8})[0-9a-f]{24}$/, "$1");

/** Draws pools and machines as lines of text. */
export function drawStatus(status: ClusterStatus, options: DrawOptions): readonly string[] {
  const inColour = paintOf(options.colours);
  const paint = (text: string, colour: Colour) => inColour(text, codes[colour]);
  const clip = (text: string, width: number) =>
    text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
  const lines: string[] = [];
  const { operator } = status;
  if (operator === undefined) lines.push(paint("operator  not there yet", "dim"));
  else {
    const word = operator.degraded
      ? paint("degraded", "red")
      : operator.available
        ? paint("available", "green")
        : paint("starting", "yellow");
    lines.push(`operator  ${word}  ${paint(clip(operator.message, options.width - 24), "dim")}`);
  }
  // A bootstrap that was never handed over stays so, and is no problem.
  const parts = status.parts.filter(({ part }) => part !== "BootstrapComplete");
  const troubled = parts.filter(({ is }) => is !== "True");
  if (parts.length > 0 && troubled.length === 0)
    lines.push(`suite     ${paint("well", "green")}       ${paint(parts.map(({ part }) => part).join(", "), "dim")}`);
  for (const { part, is, reason, message } of troubled)
    lines.push(
      `suite     ${paint(`${part}: ${reason}`, is === "False" ? "red" : "yellow")}  ${paint(clip(message, Math.max(20, options.width - part.length - reason.length - 16)), "dim")}`,
    );
  const { url, access } = status.configServer;
  const joining = {
    required: "machines show a token or a certificate",
    insecure: "every client gets configurations with their secrets",
  } as const;
  if (access === "insecure")
    lines.push(
      `joining   ${paint("insecure", "red")}   ${paint(clip(url === "" ? joining[access] : `${url}  ${joining[access]}`, Math.max(20, options.width - 22)), "dim")}`,
    );
  else if (url !== "")
    lines.push(
      `joining   ${url}  ${paint(clip(joining[access], Math.max(20, options.width - url.length - 14)), "dim")}`,
    );
  if (status.absentKinds.length > 0)
    lines.push(
      `settings  ${paint(clip(`the cluster has no ${listText(status.absentKinds, shownKinds)}: none is needed`, Math.max(20, options.width - 10)), "dim")}`,
    );
  for (const pool of status.pools) {
    const word = pool.degraded
      ? paint("degraded", "red")
      : pool.paused
        ? paint("paused", "cyan")
        : pool.updated
          ? paint("updated", "green")
          : pool.updating
            ? paint("updating", "yellow")
            : paint("waiting", "cyan");
    const done = pool.machines === 0 ? 0 : Math.round((10 * pool.updatedMachines) / pool.machines);
    const bar = `${"█".repeat(done)}${"░".repeat(10 - done)}`;
    lines.push(
      "",
      `${paint(`pool ${pool.name}`, "bold")}  ${bar} ${pool.updatedMachines}/${pool.machines}  ${word}  ${paint(short(pool.target), "dim")}`,
    );
    if (!pool.updated && pool.message !== "") lines.push(`  ${paint(clip(pool.message, options.width - 4), "dim")}`);
    if (pool.pinned !== undefined) lines.push(pinnedLine(pool.pinned));
    for (const node of status.nodes) if (node.pool === pool.name) lines.push(nodeLine(node));
  }
  const others = status.nodes.filter((node) => !status.pools.some((pool) => pool.name === node.pool));
  if (others.length > 0) pushAll(lines, ["", paint("in no pool", "bold"), ...others.map(nodeLine)]);
  return lines;

  function pinnedLine({ have, of, problem }: NonNullable<PoolStatus["pinned"]>): string {
    const words = `pinned images on ${have} of ${of} machines`;
    return problem === ""
      ? `  ${paint(words, have === of ? "dim" : "yellow")}`
      : `  ${paint(words, "red")}  ${clip(problem, Math.max(20, options.width - words.length - 6))}`;
  }

  function nodeLine(node: NodeStatus): string {
    const flags = [node.ready ? "" : "not ready", node.cordoned ? "cordoned" : ""]
      .filter((flag) => flag !== "")
      .join(", ");
    const configs =
      node.current === node.desired || node.desired === ""
        ? short(node.current)
        : `${short(node.current)} → ${short(node.desired)}`;
    const head = `  ${node.name.padEnd(12)} ${paint(node.phase.padEnd(14), colourOf[node.phase])} ${paint(configs, "dim")}${flags === "" ? "" : `  ${paint(flags, "yellow")}`}`;
    return node.reason === "" ? head : `${head}  ${clip(node.reason, Math.max(20, options.width - 60))}`;
  }
}
