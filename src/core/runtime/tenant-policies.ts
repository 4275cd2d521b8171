import type { ImagePolicyObject } from "./image-policies.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";

/**
 * Characters that the policies of all namespaces may take in a MachineConfig. API servers store 1.5 MiB in one object
 * (etcd's limit of a request), and a rendered config holds everything else of a machine, too.
 */
export const tenantRoom = 512 * 1024;

/** What a requirement takes in a file beside its keys, as it is encoded there: names of fields, quotes and indentation. */
const frame = 520;
/** The transports `docker` and `atomic`. */
const transports = 2;

const encoded = (text: string): number => encodeURIComponent(text.toWellFormed()).length;

/** Whether an object of a problem belongs to a tenant of the cluster. */
export const isOfNamespace = (object: string): boolean => object.startsWith("ImagePolicy/");

/** Characters that a policy takes at most: its file repeats the whole requirement for each scope. */
export function roomOf({ spec }: Pick<ImagePolicyObject, "spec">): number {
  const requirement = encoded(JSON.stringify(spec.policy ?? {})) + frame;
  // The place of its signatures counts like another requirement without keys.
  return (spec.scopes ?? []).reduce(
    (sum, scope) => sum + transports * requirement + (transports + 1) * encoded(scope) + 100,
    0,
  );
}

/**
 * Why policies of namespaces are left out that have no room. Those of the namespaces that need least are kept first, so
 * that no tenant takes the room of one who needs less.
 *
 * @param ofCluster characters of each namespace's file before its own policies: what the whole cluster says.
 */
export function withoutRoom(policies: readonly ImagePolicyObject[], ofCluster: number): readonly ObjectProblem[] {
  const rooms = policies
    .filter(({ namespace }) => namespace !== "")
    .map(({ object, namespace, spec, room }) => ({ object, namespace, room: room ?? roomOf({ spec }) }));
  const sum = (list: readonly { readonly room: number }[]) => list.reduce((all, { room }) => all + room, ofCluster);
  const namespaces = [...Map.groupBy(rooms, ({ namespace }) => namespace)]
    .map(([namespace, list]) => ({ namespace, list, room: sum(list) }))
    .toSorted((one, other) => one.room - other.room || (one.namespace < other.namespace ? -1 : 1));
  const problems: ObjectProblem[] = [];
  let left = tenantRoom;
  for (const { list } of namespaces) {
    let opening = ofCluster;
    for (const { object, room } of list.toSorted((one, other) => one.room - other.room)) {
      if (room + opening <= left) {
        left -= room + opening;
        opening = 0;
        continue;
      }
      problems.push({
        object,
        path: "spec.scopes",
        reason: `has no room in the configurations of machines: it takes ${room} characters there, a key for each scope, and all namespaces together have ${tenantRoom}`,
        remedy: "name fewer and wider scopes, or shorter keys; an administrator can write a ClusterImagePolicy",
      });
    }
  }
  return problems;
}
