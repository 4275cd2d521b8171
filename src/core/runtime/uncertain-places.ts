import { clipText } from "../text/clip-text.ts";
import { shortList } from "../text/list-text.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";
import { isOfNamespace } from "./tenant-policies.ts";

/** A MachineConfig whose files of registries.d are not read, so that they may define any place. */
export interface UnreadPlaces {
  readonly config: string;
  /** What is read no further, and why. */
  readonly reason: string;
  readonly remedy: string;
}

/** Places that other files of registries.d than ours define on machines of a pool. */
export interface TakenPlaces {
  readonly places: ReadonlySet<string>;
  /** Not empty: no further place is certain to be free. */
  readonly unread: readonly UnreadPlaces[];
}

/** All scopes that have a requirement, and the policies that name each; the cluster's own names are theirs alone. */
export type ScopesOfPolicies = ReadonlyMap<string, readonly string[]>;

/** Nothing that machines have is known, as where there is no cluster. */
export const noneTaken: TakenPlaces = { places: new Set(), unread: [] };

/** MachineConfigs with files that are not read, of which a problem tells. */
const mostUnread = 3;

/**
 * What is wrong with each policy of a namespace while any place may be taken: none of them gets one.
 *
 * @returns what is wrong, and the scopes that get their places all the same.
 */
export function uncertainPlaces(
  scopes: ScopesOfPolicies,
  unread: readonly UnreadPlaces[],
): { readonly problems: readonly ObjectProblem[]; readonly ofCluster: ScopesOfPolicies } {
  const isOfCluster = (objects: readonly string[]) => objects.some((object) => !isOfNamespace(object));
  const [first] = unread;
  if (first === undefined) return { problems: [], ofCluster: scopes };
  const named = shortList(unread, mostUnread, ({ config, reason }) => clipText(`${config} (${reason})`, 400));
  const problem = {
    path: "spec.scopes",
    reason: `has no place that is certain to be free, because machines have files of /etc/containers/registries.d that are not read, of MachineConfig ${named.join(", ")}: no engine would pull anything if two files defined one place`,
    remedy: `mend MachineConfig ${first.config}: ${first.remedy}`,
  };
  const objects = new Set([...scopes.values()].filter((own) => !isOfCluster(own)).flat());
  return {
    problems: [...objects].map((object) => ({ object, ...problem })),
    ofCluster: new Map([...scopes].filter(([, own]) => isOfCluster(own))),
  };
}
