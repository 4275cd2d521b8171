import { pushAll } from "../../api/schema/push-all.ts";
import { stringify } from "yaml";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations } from "../../api/names.ts";
import { renderInputsOf } from "../../core/preview/plan-cluster.ts";
import { renderForPool } from "../../core/render/render-for-pool.ts";
import type { RenderInputs } from "../../core/render/render-pool.ts";
import { absentError, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { objectsFrom, requestedPools } from "../cluster-objects.ts";
import { exitCodes } from "../exit-codes.ts";
import { printable, printableYaml } from "../../core/text/printable.ts";
import { processIo } from "../io.ts";

const forms = ["yaml", "json", "name"] as const;

/** The object as the cluster has it, except for fields that only a cluster can set. */
function asObject(config: MachineConfig, { members, pool }: RenderInputs): MachineConfig {
  const generatedBy = members
    .map(({ metadata }) => metadata.annotations?.[annotations.generatedByController] ?? "")
    .find((version) => version !== "");
  const { ownerReferences, ...metadata } = config.metadata;
  return {
    ...config,
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [annotations.generatedByController]: generatedBy ?? "" },
      ...(pool.metadata.uid === undefined || ownerReferences === undefined ? {} : { ownerReferences }),
    },
  };
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.render, { positionals: true });
  const form = forms.find((one) => one === values.output);
  if (values.output !== undefined && form === undefined) throw usageError(`-o must be one of ${forms.join(", ")}`);
  if (form !== undefined && values.json)
    throw usageError(
      "-o and --json cannot be combined: -o prints the rendered objects, --json their names and members",
    );
  const objects = await objectsFrom(values, "render");
  const pools = requestedPools(objects, [...positionals, ...values.pool]);
  if (pools.length === 0)
    throw absentError(
      "there is no MachineConfigPool, and no MachineConfig is labelled for the pools master and worker",
    );
  const results = pools.map((pool) => {
    const inputs = renderInputsOf(pool, objects);
    return { pool: pool.metadata.name, inputs, result: renderForPool(inputs, undefined) };
  });
  const refused = results.some(({ result }) => result.verdict === "refused");

  if (values.json) {
    const shown = results.map(({ pool, result }) =>
      result.verdict === "refused"
        ? { pool, verdict: result.verdict, refusals: result.refusals }
        : {
            pool,
            verdict: result.verdict,
            name: result.config.metadata.name,
            source: result.source.map(({ name }) => name),
            warnings: result.warnings,
          },
    );
    processIo().out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Render", pools: shown })}\n`);
    return refused ? exitCodes.failed : exitCodes.ok;
  }
  const notes: string[] = [];
  const rendered: MachineConfig[] = [];
  const lines: string[] = [];
  for (const { pool, inputs, result } of results) {
    if (result.verdict === "refused") {
      for (const { member, path, reason, remedy } of result.refusals)
        notes.push(
          `pool ${pool}: refused: ${member !== undefined && !reason.startsWith(member) ? `${member}: ` : ""}${path === undefined || reason.includes(path) ? "" : `${path} `}${reason}${remedy === undefined ? "" : `; ${remedy}`}`,
        );
      continue;
    }
    for (const { reason } of result.warnings) notes.push(`pool ${pool}: warning: ${reason}`);
    rendered.push(asObject(result.config, inputs));
    pushAll(lines, [`pool ${pool}: ${result.config.metadata.name}`, ...result.source.map(({ name }) => `  ${name}`)]);
  }
  if (form === "yaml") processIo().out(rendered.map(yamlText).join("---\n"));
  else if (form === "json")
    processIo().out(
      `${JSON.stringify(rendered.length === 1 ? rendered[0] : { apiVersion: "v1", kind: "List", items: rendered }, undefined, 2)}\n`,
    );
  else if (form === "name")
    processIo().out(
      rendered.map(({ metadata }) => `machineconfig.machineconfiguration.openshift.io/${metadata.name}\n`).join(""),
    );
  else if (lines.length > 0) processIo().out(`${lines.join("\n")}\n`);
  if (notes.length > 0) processIo().err(`${notes.join("\n")}\n`);
  return refused ? exitCodes.failed : exitCodes.ok;
}

/** A text that has to be escaped on its way out is in quotes, where YAML reads the escape as the character again. */
function yamlText(config: MachineConfig): string {
  const text = (quoted: object) =>
    stringify(config, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false, ...quoted });
  const plain = text({});
  return printable(plain) === plain
    ? plain
    : printableYaml(text({ defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE" }));
}
