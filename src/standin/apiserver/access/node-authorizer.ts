import type { LiveObjects } from "../storage/live-objects.ts";
import type { AccessAttributes, KubeObject, UserInfo } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";

const nodesGroup = "system:nodes";
const nodePrefix = "system:node:";
export const leaseNamespace = "kube-node-lease";

/** The node that a kubelet's identity stands for. */
export function nodeNameOf(user: UserInfo): string | undefined {
  if (!user.groups.includes(nodesGroup) || !user.name.startsWith(nodePrefix)) return undefined;
  return user.name.slice(nodePrefix.length);
}

/** What a kubelet may access: its own node and lease, its pods, and what these need. */
export interface NodeAuthorizer {
  /** `fieldSelectorNode`: the `spec.nodeName` that a list or watch of pods is narrowed to. */
  allows(node: string, attributes: AccessAttributes, fieldSelectorNode: string | undefined): boolean;
}

/**
 * In the simple form of `k8s.io/kubernetes plugin/pkg/auth/authorizer/node (master)`: what is not named here needs
 * RBAC. Follows pods as they are written, so that a question costs no walk over all of them.
 */
export function nodeAuthorizer(live: LiveObjects): NodeAuthorizer {
  const podsOf = new Map<string, Map<string, KubeObject>>();
  const put = (pod: KubeObject) => {
    const node = boundTo(pod);
    if (node === undefined) return;
    let pods = podsOf.get(node);
    if (pods === undefined) podsOf.set(node, (pods = new Map()));
    pods.set(`${pod.metadata.namespace ?? ""}/${pod.metadata.name ?? ""}`, pod);
  };
  const drop = (pod: KubeObject) => {
    const node = boundTo(pod);
    if (node !== undefined) podsOf.get(node)?.delete(`${pod.metadata.namespace ?? ""}/${pod.metadata.name ?? ""}`);
  };
  for (const { object } of live.list("pods")) put(object);
  live.subscribe({ resource: "pods" }, ({ type, live: { object }, previous }) => {
    if (previous !== undefined) drop(previous.object);
    if (type === "DELETED") drop(object);
    else put(object);
  });

  /** Of each pod read once: a node may have many large ones. A pod that changes is another object. */
  const known = { configMap: new WeakMap(), secret: new WeakMap(), serviceAccount: new WeakMap() } as Readonly<
    Record<Needed, WeakMap<KubeObject, ReadonlySet<string>>>
  >;
  function needsOf(pod: KubeObject, kind: Needed): ReadonlySet<string> {
    let names = known[kind].get(pod);
    if (names === undefined) known[kind].set(pod, (names = needs(pod, kind)));
    return names;
  }
  function needed(node: string, kind: Needed, namespace: string, name: string): boolean {
    for (const pod of podsOf.get(node)?.values() ?? []) {
      if (pod.metadata.namespace === namespace && needsOf(pod, kind).has(name)) return true;
    }
    return false;
  }

  return {
    allows(node, { verb, group, resource, subresource, namespace, name }, fieldSelectorNode) {
      // What is asked about without a name would be its own.
      if (node === "") return false;
      const what = `${group}/${resource}${subresource === "" ? "" : `/${subresource}`}`;
      const reads = verb === "get" || verb === "list" || verb === "watch";
      const changes = verb === "update" || verb === "patch";
      switch (what) {
        case "/nodes":
          // Whose node a write is about is decided by the admission below.
          return verb === "create" || ((reads || changes) && name === node);
        case "/nodes/status":
          return changes && name === node;
        case "/pods":
          if (verb === "list" || verb === "watch")
            return (
              fieldSelectorNode === node || (name !== "" && podsOf.get(node)?.has(`${namespace}/${name}`) === true)
            );
          // A pod that is gone answers 404, so that its kubelet learns of it.
          if (verb === "get")
            return (
              podsOf.get(node)?.has(`${namespace}/${name}`) === true ||
              live.get({ resource: "pods", namespace, name }) === undefined
            );
          // Whose pod it is, is decided by the admission below.
          return verb === "create" || verb === "delete";
        case "/pods/status":
          return changes;
        case "/pods/eviction":
          return verb === "create";
        case "/configmaps":
          return reads && name !== "" && needed(node, "configMap", namespace, name);
        case "/secrets":
          return reads && name !== "" && needed(node, "secret", namespace, name);
        case "/serviceaccounts":
          return verb === "get" && needed(node, "serviceAccount", namespace, name);
        case "/serviceaccounts/token":
          return verb === "create" && needed(node, "serviceAccount", namespace, name);
        case "/services":
          return reads;
        case "/events":
        case "events.k8s.io/events":
          return verb === "create" || changes;
        case "coordination.k8s.io/leases":
          if (namespace !== leaseNamespace) return false;
          return verb === "create" || ((verb === "get" || changes || verb === "delete") && name === node);
        case "certificates.k8s.io/certificatesigningrequests":
          return verb === "create" || reads;
        case "authentication.k8s.io/tokenreviews":
        case "authorization.k8s.io/subjectaccessreviews":
        case "authorization.k8s.io/localsubjectaccessreviews":
          return verb === "create";
        default:
          return false;
      }
    },
  };
}

/**
 * Why a kubelet was refused an object, for decisions by object, in the words of the real authorizer (`k8s.io/kubernetes
 * plugin/pkg/auth/authorizer/node/node_authorizer.go (v1.34)`); empty for everything else.
 */
export function nodeRefusal(
  node: string,
  { verb, group, resource, subresource, namespace, name }: AccessAttributes,
): string {
  const unrelated =
    name === "" ? "No Object name found" : `no relationship found between node '${node}' and this object`;
  const reads = verb === "get" || verb === "list" || verb === "watch";
  const readable = (): string => {
    if (!reads) return "can only read resources of this type";
    if (subresource !== "") return "cannot read subresource";
    return namespace === "" ? "can only read namespaced object of this type" : unrelated;
  };
  const gettable = (): string => {
    if (verb !== "get") return "can only get individual resources of this type";
    return subresource === "" ? unrelated : "cannot get subresource";
  };
  switch (`${group}/${resource}`) {
    case "/secrets":
    case "/configmaps":
      return readable();
    case "/persistentvolumes":
      return gettable();
    case "/persistentvolumeclaims":
      if (subresource !== "status") return gettable();
      return verb === "update" || verb === "patch" ? unrelated : "can only get/update/patch this type";
    case "/serviceaccounts":
      if (verb === "get" && subresource === "") return readable();
      if (verb !== "create" || name === "") return "can only create tokens for individual service accounts";
      return subresource === "token" ? unrelated : "can only create token subresource of serviceaccount";
    case "/pods":
      if (subresource !== "" || !reads) return "";
      return verb === "get" || name !== "" ? unrelated : "can only list/watch pods with spec.nodeName field selector";
    case "coordination.k8s.io/leases":
      if (reads && verb !== "get") return "can only get, create, update, patch, or delete a node lease";
      return namespace === leaseNamespace
        ? "can only access node lease with the same name as the requesting node"
        : `can only access leases in the "${leaseNamespace}" system namespace`;
    case "/nodes":
      if (subresource !== "" || !reads) return "";
      return name === ""
        ? `node '${node}' cannot read all nodes, only its own Node object`
        : `node '${node}' cannot read '${name}', only its own Node object`;
    default:
      return "";
  }
}

type Needed = "configMap" | "secret" | "serviceAccount";

export function boundTo(pod: KubeObject): string | undefined {
  const spec = pod["spec"];
  return isObject(spec) && typeof spec["nodeName"] === "string" && spec["nodeName"] !== ""
    ? spec["nodeName"]
    : undefined;
}

/** Names that a pod refers to. */
export function needs(pod: KubeObject, kind: Needed): ReadonlySet<string> {
  const names = new Set<string>();
  const spec = isObject(pod["spec"]) ? pod["spec"] : {};
  const add = (name: unknown) => {
    if (typeof name === "string" && name !== "") names.add(name);
  };
  if (kind === "serviceAccount") {
    add(spec["serviceAccountName"]);
    return names;
  }
  const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.filter(isObject) : []);
  if (kind === "secret") for (const reference of list(spec["imagePullSecrets"])) add(reference["name"]);
  const sources = list(spec["volumes"]).flatMap((volume) => [
    volume,
    ...(isObject(volume["projected"]) ? list(volume["projected"]["sources"]) : []),
  ]);
  for (const source of sources) {
    const reference = source[kind];
    // A volume has the field `secretName`, a projected source has `name`.
    if (isObject(reference)) for (const field of ["name", "secretName"]) add(reference[field]);
  }
  for (const container of [...list(spec["containers"]), ...list(spec["initContainers"])]) {
    for (const from of list(container["envFrom"])) {
      const reference = from[`${kind}Ref`];
      if (isObject(reference)) add(reference["name"]);
    }
    for (const variable of list(container["env"])) {
      const from = isObject(variable["valueFrom"]) ? variable["valueFrom"][`${kind}KeyRef`] : undefined;
      if (isObject(from)) add(from["name"]);
    }
  }
  return names;
}
