import { clipText } from "../text/clip-text.ts";
import { shortList } from "../text/list-text.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";

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

/** Policies of namespaces that machines of a pool have: what they have needs no place that may be taken. */
export interface PoliciesInForce {
  /** Namespace → the scopes that are decided about in it. */
  readonly scopes: ReadonlyMap<string, ReadonlySet<string>>;
  /** The places of their signatures. */
  readonly places: ReadonlySet<string>;
}

/** Machines have no policies of namespaces. */
export const noneInForce: PoliciesInForce = { scopes: new Map(), places: new Set() };

/** What policies of namespaces get while any further place may be taken: what machines have already, and no more. */
export interface PlacesOfNamespaces {
  /** The policies of a scope that machines have. */
  kept(scope: string, objects: readonly string[]): readonly string[];
  /** Those of its places that machines have. */
  known(places: readonly string[]): readonly string[];
}

const namespaceOf = (object: string): string => object.split("/")[1] ?? "";

/** Without an unread file, every scope may have its places. */
export const placesOfNamespaces = (
  unread: readonly UnreadPlaces[],
  { scopes, places }: PoliciesInForce,
): PlacesOfNamespaces =>
  unread.length === 0
    ? { kept: (_, objects) => objects, known: (own) => own }
    : {
        kept: (scope, objects) => objects.filter((object) => scopes.get(namespaceOf(object))?.has(scope) === true),
        known: (own) => own.filter((place) => places.has(place)),
      };

/** What is wrong with policies of namespaces that wait for a place while any may be taken. */
export function uncertainPlaces(
  objects: ReadonlySet<string>,
  unread: readonly UnreadPlaces[],
): readonly ObjectProblem[] {
  const [first] = unread;
  if (first === undefined) return [];
  const named = shortList(unread, mostUnread, ({ config, reason }) => clipText(`${config} (${reason})`, 400));
  return [...objects].map((object) => ({
    object,
    path: "spec.scopes",
    reason: `has no place that is certain to be free, because machines have files of /etc/containers/registries.d that are not read, of MachineConfig ${named.join(", ")}: no engine would pull anything if two files defined one place. Scopes that machines have already stay as they are`,
    remedy: `correct MachineConfig ${first.config}: ${first.remedy}`,
  }));
}
