import { existsSync } from "node:fs";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { type DescribedChange, describeDiff } from "../../core/config/describe-diff.ts";
import { diffConfigs } from "../../core/config/diff-configs.ts";
import { type ClusterObjects, renderInputsOf } from "../../core/preview/plan-cluster.ts";
import { countText } from "../../core/text/count-text.ts";
import { type RenderRefusal, renderPool } from "../../core/render/render-pool.ts";
import { absentError, outputFormat, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { objectsFrom, objectsInCluster, objectsInManifests, overlaid } from "../cluster-objects.ts";
import { exitCodes } from "../exit-codes.ts";
import { readSoundManifests } from "../judge-manifest.ts";
import { processIo } from "../io.ts";
import { markdownComment } from "../markdown.ts";
import { withoutPipelineCommands } from "../../core/text/pipeline-commands.ts";

/** One side of a comparison. */
type Side =
  | { readonly kind: "config"; readonly config: MachineConfig }
  | { readonly kind: "pools"; readonly objects: ClusterObjects };

type Comparison =
  | {
      readonly pool?: string;
      readonly verdict: "compared";
      readonly from: string;
      readonly to: string;
      readonly changes: readonly DescribedChange[];
    }
  | { readonly pool: string; readonly verdict: "refused"; readonly refusals: readonly RenderRefusal[] };

function compareConfigs(from: MachineConfig | undefined, to: MachineConfig | undefined, pool?: string): Comparison {
  return {
    ...(pool === undefined ? {} : { pool }),
    verdict: "compared",
    from: from?.metadata.name ?? "",
    to: to?.metadata.name ?? "",
    changes: describeDiff(diffConfigs(from, to)),
  };
}

function comparePools(before: ClusterObjects, after: ClusterObjects, only: readonly string[]): readonly Comparison[] {
  const names = [...new Set([...before.pools, ...after.pools].map(({ metadata }) => metadata.name))];
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) throw usageError(`neither side has a pool "${unknown}"`);
  return names
    .filter((name) => only.length === 0 || only.includes(name))
    .map((name): Comparison => {
      const sides = [before, after].map((objects) => {
        const pool = objects.pools.find(({ metadata }) => metadata.name === name);
        return pool === undefined ? undefined : renderPool(renderInputsOf(pool, objects));
      });
      const refusals = sides.flatMap((side) => (side?.verdict === "refused" ? side.refusals : []));
      if (refusals.length > 0) return { pool: name, verdict: "refused", refusals };
      const [from, to] = sides.map((side) => (side?.verdict === "rendered" ? side.config : undefined));
      return compareConfigs(from, to, name);
    });
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.diff, { positionals: true });
  const format = outputFormat(values, ["text", "json", "markdown"]);
  const [first, second, ...more] = positionals;
  if (first === undefined || more.length > 0)
    throw usageError("name two configurations or two folders, or one folder to compare with the cluster");
  const only = values.pool;
  let known: ClusterObjects | undefined;
  const sideOf = async (name: string): Promise<Side> => {
    if (name === "-" || existsSync(name)) {
      const manifests = readSoundManifests([name]);
      const [config] = manifests;
      return manifests.length === 1 && config?.kind === "MachineConfig"
        ? { kind: "config", config: config as MachineConfig }
        : { kind: "pools", objects: objectsInManifests(manifests) };
    }
    known ??= await objectsFrom(values, "diff");
    const config = known.machineConfigs.find(({ metadata }) => metadata.name === name);
    if (config === undefined)
      throw absentError(
        `"${name}" is neither a file nor a MachineConfig ${values.filename.length === 0 ? "of the cluster" : "of the manifests"}`,
      );
    return { kind: "config", config };
  };
  /**
   * A file with one MachineConfig counts as that config if the other side is a config, and as a folder with one file if
   * it is a folder.
   */
  const asPools = (side: Side): ClusterObjects =>
    side.kind === "pools" ? side.objects : objectsInManifests([side.config]);

  let comparisons: readonly Comparison[];
  if (second === undefined) {
    if (first !== "-" && !existsSync(first)) throw absentError(`file or folder "${first}" does not exist`);
    const before =
      values.filename.length === 0
        ? await objectsInCluster({ kubeconfig: values.kubeconfig, directory: values.dir, component: "diff" })
        : objectsInManifests(readSoundManifests(values.filename));
    comparisons = comparePools(before, overlaid(before, readSoundManifests([first]), []).after, only);
  } else {
    const from = await sideOf(first);
    const to = await sideOf(second);
    comparisons =
      from.kind === "config" && to.kind === "config"
        ? [compareConfigs(from.config, to.config)]
        : comparePools(asPools(from), asPools(to), only);
  }

  processIo().out(withoutPipelineCommands({ text: textOf, json: jsonOf, markdown: commentOf }[format](comparisons)));
  if (comparisons.some(({ verdict }) => verdict === "refused")) return exitCodes.failed;
  return comparisons.some((one) => one.verdict === "compared" && one.changes.length > 0)
    ? exitCodes.change
    : exitCodes.ok;
}

function jsonOf(comparisons: readonly Comparison[]): string {
  const shown = comparisons.map((one) =>
    one.verdict === "refused"
      ? one
      : { ...one, changes: one.changes.map(({ change, lines }) => ({ ...change, lines })) },
  );
  return `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Diff", comparisons: shown })}\n`;
}

/** Nothing for equal sides, as diff(1). */
function textOf(comparisons: readonly Comparison[]): string {
  const texts = comparisons.flatMap((one) => {
    if (one.verdict === "refused") return refusalLines(one);
    return one.changes.length === 0 ? [] : [sidesOf(one), ...one.changes.map((change) => linesOf(change).join("\n"))];
  });
  return texts.length === 0 ? "" : `${texts.join("\n\n")}\n`;
}

/** The comparison as a comment: pools in a table, and below it the changes of each. */
function commentOf(comparisons: readonly Comparison[]): string {
  const changed = comparisons.filter((one) => one.verdict === "refused" || one.changes.length > 0);
  return markdownComment({
    title: titleOf(changed),
    columns: ["configuration", "changes"],
    rows: changed.map((one) =>
      one.verdict === "refused"
        ? [{ code: `pool ${one.pool}` }, "would not render"]
        : [{ code: sidesOf(one) }, String(one.changes.length)],
    ),
    language: "diff",
    parts: changed.map((one) =>
      one.verdict === "refused"
        ? { title: `pool ${one.pool}`, lines: refusalLines(one) }
        : { title: sidesOf(one), lines: one.changes.flatMap(linesOf) },
    ),
  });
}

function titleOf(changed: readonly Comparison[]): string {
  const refused = changed.filter(({ verdict }) => verdict === "refused").length;
  if (refused > 0) return `${countText(refused, "pool")} would not render`;
  return changed.length === 0 ? "Both sides are equal" : `${countText(changed.length, "configuration")} changed`;
}

const refusalLines = ({ pool, refusals }: Extract<Comparison, { readonly verdict: "refused" }>): readonly string[] =>
  refusals.map(
    ({ reason, remedy }) => `pool ${pool}: would not render: ${reason}${remedy === undefined ? "" : `; ${remedy}`}`,
  );

type Compared = Extract<Comparison, { readonly verdict: "compared" }>;

const sidesOf = ({ pool, from, to }: Compared): string =>
  `${pool === undefined ? "" : `pool ${pool}: `}${from === "" ? "nothing" : from} → ${to === "" ? "nothing" : to}`;

const linesOf = ({ title, lines }: DescribedChange): readonly string[] => [title, ...lines];
