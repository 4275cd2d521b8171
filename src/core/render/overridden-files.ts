import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations } from "../../api/names.ts";
import { membersOf } from "../config/is-rendered.ts";
import { inMergeOrder } from "../config/merge-fields.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import { generatedFiles } from "./generated-config.ts";
import { mergeMembers } from "./render-pool.ts";
import { tooLargeTogether } from "./too-large-together.ts";

/** A file of a generated MachineConfig that a pool's machines do not get: another MachineConfig has other contents. */
export interface OverriddenFile {
  readonly pool: string;
  readonly path: string;
  /** The MachineConfig whose contents the machines get; no controller made it. */
  readonly by: string;
}

/**
 * The files of a generated MachineConfig, stored or about to be, that MachineConfigs of people replace, in each pool that selects it. Files that
 * another generated one replaces are left out: its controller has taken up what it replaces, or says so. A pool whose
 * MachineConfigs are too large to be merged is left out, too: its machines keep what they have.
 */
export function overriddenFiles(
  generated: MachineConfig,
  {
    pools,
    machineConfigs: stored,
  }: { readonly pools: readonly MachineConfigPool[]; readonly machineConfigs: readonly MachineConfig[] },
): readonly OverriddenFile[] {
  const { name } = generated.metadata;
  const machineConfigs = [...stored.filter(({ metadata }) => metadata.name !== name), generated];
  const paths = new Set(generatedFiles(generated).map(({ path }) => path));
  return pools.flatMap((pool) => {
    const members = membersOf(pool, pools, machineConfigs);
    if (!members.some(({ metadata }) => metadata.name === name) || tooLargeTogether(members) !== undefined) return [];
    // Merging costs much more than this look, and hardly any pool has such a MachineConfig.
    const rivals = new Set(members.filter((member) => mayReplace(member, paths)).map(({ metadata }) => metadata.name));
    if (rivals.size === 0) return [];
    return mergeMembers(inMergeOrder(members)).origins.flatMap(({ name: path, from, fields, overrode }) => {
      // A folder or a link has no contents.
      const by = fields["contents"] ?? from;
      if (by === name || !paths.has(path) || !rivals.has(by)) return [];
      return overrode.some(({ member, field }) => member === name && (field === "contents" || field === "kind"))
        ? [{ pool: pool.metadata.name, path, by }]
        : [];
    });
  });
}

/** Whether no controller made a MachineConfig. */
export const isOfPeople = ({ metadata }: Pick<MachineConfig, "metadata">): boolean =>
  metadata.annotations?.[annotations.generatedByController] === undefined;

/** Whether a MachineConfig that no controller made names one of the paths, so that it could replace a generated file. */
export function mayReplace(config: MachineConfig, paths: ReadonlySet<string>): boolean {
  if (!isOfPeople(config)) return false;
  const ignition = ignitionOf(config);
  if (ignition?.verdict !== "valid") return false;
  const { files = [], directories = [], links = [] } = ignition.config.storage ?? {};
  return [...files, ...directories, ...links].some(({ path }) => paths.has(path));
}

/** As a sentence without its full stop: what machines do not follow, and because of which MachineConfig. */
export const overriddenText = ({ pool, path, by }: OverriddenFile): string =>
  `machines of pool ${pool} get ${path} from ${by}, which replaces it whole`;

/** What an administrator does about it. */
export const overriddenRemedy = ({ path, by }: OverriddenFile): string => `take ${path} out of the MachineConfig ${by}`;
