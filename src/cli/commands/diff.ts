import { existsSync } from "node:fs";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { type DescribedChange, describeDiff } from "../../core/config/describe-diff.ts";
import { diffConfigs } from "../../core/config/diff-configs.ts";
import { type ClusterObjects, renderInputsOf } from "../../core/preview/plan-cluster.ts";
import { type RenderRefusal, renderPool } from "../../core/render/render-pool.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { objectsFrom, objectsInCluster, objectsInManifests, overlaid } from "../cluster-objects.ts";
import { exitCodes } from "../exit-codes.ts";
import { readSoundManifests } from "../judge-manifest.ts";
import { processIo } from "../io.ts";

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
      throw usageError(
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
    if (first !== "-" && !existsSync(first)) throw usageError(`file or folder "${first}" does not exist`);
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

  if (values.json) {
    const shown = comparisons.map((one) =>
      one.verdict === "refused"
        ? one
        : { ...one, changes: one.changes.map(({ change, lines }) => ({ ...change, lines })) },
    );
    processIo().out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Diff", comparisons: shown })}\n`);
  } else {
    const texts = comparisons.flatMap((one) => describe(one));
    if (texts.length > 0) processIo().out(`${texts.join("\n\n")}\n`);
  }
  if (comparisons.some(({ verdict }) => verdict === "refused")) return exitCodes.failed;
  return comparisons.some((one) => one.verdict === "compared" && one.changes.length > 0)
    ? exitCodes.change
    : exitCodes.ok;
}

/** Nothing for equal sides, as diff(1). */
function describe(one: Comparison): readonly string[] {
  if (one.verdict === "refused")
    return one.refusals.map(
      ({ reason, remedy }) =>
        `pool ${one.pool}: would not render: ${reason}${remedy === undefined ? "" : `; ${remedy}`}`,
    );
  if (one.changes.length === 0) return [];
  const head = `${one.pool === undefined ? "" : `pool ${one.pool}: `}${one.from === "" ? "nothing" : one.from} → ${one.to === "" ? "nothing" : one.to}`;
  return [head, ...one.changes.map(({ title, lines }) => [title, ...lines].join("\n"))];
}
