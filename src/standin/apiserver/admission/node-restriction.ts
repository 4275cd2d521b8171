import { kubeletMaySet } from "../../../core/pool/node-fields.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import type { Authorizer } from "../access/authorization.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { KubeObject, UserInfo } from "../schema/contract.ts";
import { equalJson, isObject, listAt, objectAt, textAt } from "../schema/json-values.ts";
import { forbidden } from "../schema/status.ts";
import { askedBy, kubeletSigners, signingRequests } from "../access/signing-requests.ts";
import { nodeNameOf, boundTo, leaseNamespace } from "../access/node-authorizer.ts";

/** Content rules for kubelets, as `k8s.io/kubernetes plugin/pkg/admission/noderestriction (master)`. */
export function nodeRestriction(live: LiveObjects, access: Authorizer): AdmissionPlugin {
  return {
    approach(request, { user }) {
      const node = nodeNameOf(user);
      const why = node === undefined ? undefined : ofAnotherNode(request, node, live);
      return why === undefined ? undefined : forbidden(request.served.definition, request.name, why);
    },
    validate(request, { user }) {
      const { operation, served, subresource, namespace, name, object, before } = request;
      const node = nodeNameOf(user);
      if (node === undefined) return undefined;
      const refuse = (why: string) => forbidden(served.definition, name, why);
      const other = ofAnotherNode(request, node, live);
      if (other !== undefined) return refuse(other);
      switch (served.stored) {
        case "nodes": {
          const changed = labelsChanged(before, object).filter((label) => !kubeletMaySet(label));
          if (operation === "CREATE")
            return changed.length === 0
              ? undefined
              : refuse(`is not allowed to set the following labels: ${changed.join(", ")}`);
          if (!equalJson(before?.metadata.ownerReferences ?? [], object?.metadata.ownerReferences ?? []))
            return refuse(`node ${JSON.stringify(node)} is not allowed to modify ownerReferences`);
          if (changed.length > 0) return refuse(`is not allowed to modify labels: ${changed.join(", ")}`);
          if (subresource === "" && !equalJson(specPart(before, "taints"), specPart(object, "taints"))) {
            return refuse(`node ${JSON.stringify(node)} is not allowed to modify taints`);
          }
          return undefined;
        }
        case "pods": {
          if (operation === "CREATE" && subresource === "") {
            const annotations = object?.metadata.annotations ?? {};
            if (!("kubernetes.io/config.mirror" in annotations))
              return refuse(
                `pod does not have "kubernetes.io/config.mirror" annotation, node ${JSON.stringify(node)} can only create mirror pods`,
              );
            if (object !== undefined && boundTo(object) !== node)
              return refuse(`node ${JSON.stringify(node)} can only create pods with spec.nodeName set to itself`);
            const why = object === undefined ? undefined : mirrorPodProblem(object, node, live);
            return why === undefined ? undefined : refuse(`node ${JSON.stringify(node)} ${why}`);
          }
          if (subresource === "status" && !equalJson(before?.metadata.labels ?? {}, object?.metadata.labels ?? {}))
            return refuse(`node ${JSON.stringify(node)} cannot update labels through pod status`);
          return undefined;
        }
        case signingRequests: {
          if (operation !== "CREATE" || subresource !== "" || !kubeletSigners.has(textAt(object, "spec", "signerName")))
            return undefined;
          // Stricter than Kubernetes, where the last of several common names counts: other readers take the first.
          return equalJson(askedBy(object)?.commonNames, [user.name])
            ? undefined
            : refuse(`can only create a node CSR with CN=${user.name}`);
        }
        case "serviceaccounts": {
          if (subresource !== "token") return undefined;
          const spec = object?.["spec"];
          const bound = isObject(spec) && isObject(spec["boundObjectRef"]) ? spec["boundObjectRef"] : {};
          if (bound["kind"] !== "Pod" || typeof bound["name"] !== "string")
            return refuse("node requested token not bound to a pod");
          if (typeof bound["uid"] !== "string" || bound["uid"] === "")
            return refuse("node requested token with a pod binding without a uid");
          const pod = live.get({ resource: "pods", namespace, name: bound["name"] })?.object;
          if (pod === undefined || boundTo(pod) !== node)
            return refuse("node requested token bound to a pod scheduled on a different node");
          const why = audienceProblem(listAt(spec, "audiences").map(String), pod, live, (audience) =>
            mayRequest(audience, { user, namespace, name }, access),
          );
          return why === undefined ? undefined : refuse(why);
        }
        default:
          return undefined;
      }
    },
  };
}

/** Why a node may not touch an object, whatever it makes of it: the object is not its own. */
function ofAnotherNode(
  { operation, served, subresource, namespace, name, before }: AdmissionRequest,
  node: string,
  live: LiveObjects,
): string | undefined {
  switch (served.stored) {
    case "nodes":
      if (operation === "DELETE")
        return `node ${JSON.stringify(node)} is not allowed to delete node ${JSON.stringify(name)}`;
      return name === node
        ? undefined
        : `node ${JSON.stringify(node)} is not allowed to modify node ${JSON.stringify(name)}`;
    case "pods": {
      if (operation === "CREATE" && subresource === "") return undefined;
      const pod = before ?? live.get({ resource: "pods", namespace, name })?.object;
      if (pod === undefined || boundTo(pod) === node) return undefined;
      const verb = operation === "DELETE" ? "delete" : subresource === "eviction" ? "evict" : "update status for";
      return `node ${JSON.stringify(node)} can only ${verb} pods with spec.nodeName set to itself`;
    }
    case "leases.coordination.k8s.io":
      if (namespace !== leaseNamespace)
        return `can only access leases in the ${JSON.stringify(leaseNamespace)} system namespace`;
      return name === node ? undefined : "can only access node lease with the same name as the requesting node";
    default:
      return undefined;
  }
}

/** Whether a role lets a node request tokens of a service account for an audience: the audience is the resource. */
const mayRequest = (
  audience: string,
  account: { readonly user: UserInfo; readonly namespace: string; readonly name: string },
  access: Authorizer,
): boolean =>
  access.allows({
    ...account,
    verb: "request-serviceaccounts-token-audience",
    group: "",
    resource: audience,
    subresource: "",
  });

/**
 * Why a node gets no token for these audiences: none of the pod's volumes has one, and no role allows it.
 * ServiceAccountNodeAudienceRestriction, on in Kubernetes 1.33 and newer. Empty: the API server's own audience.
 */
function audienceProblem(
  audiences: readonly string[],
  pod: KubeObject,
  live: LiveObjects,
  may: (audience: string) => boolean,
): string | undefined {
  const [audience = "", ...more] = audiences;
  if (more.length > 0) return "node may only request 0 or 1 audiences";
  if (mountedAudiences(pod, live).has(audience) || may(audience)) return undefined;
  return `audience ${JSON.stringify(audience)} not found in pod spec volume, and the node is not authorized to request tokens for this audience`;
}

/** The audiences of the tokens that a pod's volumes hold, or that the drivers of its volumes request. */
function mountedAudiences(pod: KubeObject, live: LiveObjects): ReadonlySet<string> {
  const found = new Set<string>();
  const ofDriver = (driver: string) => {
    const object = live.get({ resource: "csidrivers.storage.k8s.io", namespace: "", name: driver })?.object;
    for (const request of listAt(object, "spec", "tokenRequests")) found.add(textAt(request, "audience"));
  };
  for (const volume of listAt(pod, "spec", "volumes")) {
    for (const source of listAt(volume, "projected", "sources"))
      if (isObject(source) && isObject(source["serviceAccountToken"]))
        found.add(textAt(source, "serviceAccountToken", "audience"));
    if (textAt(volume, "csi", "driver") !== "") ofDriver(textAt(volume, "csi", "driver"));
    const claim = textAt(volume, "persistentVolumeClaim", "claimName");
    if (claim === "") continue;
    const namespace = pod.metadata.namespace ?? "";
    const bound = live.get({ resource: "persistentvolumeclaims", namespace, name: claim })?.object;
    const name = textAt(bound, "spec", "volumeName");
    const csi = objectAt(live.get({ resource: "persistentvolumes", namespace: "", name })?.object, "spec", "csi");
    if (textAt(csi, "driver") !== "") ofDriver(textAt(csi, "driver"));
  }
  return found;
}

/**
 * What a mirror pod, which needs nothing of the API, may not have: what it names, its node could read; and a controller
 * could adopt it in the place of one of its own pods.
 */
function mirrorPodProblem(pod: KubeObject, node: string, live: LiveObjects): string | undefined {
  const [owner, ...more] = pod.metadata.ownerReferences ?? [];
  if (more.length > 0) return "can only create pods with a single owner reference set to itself";
  if (owner === undefined || owner.apiVersion !== "v1" || owner.kind !== "Node" || owner.name !== node)
    return "can only create pods with an owner reference set to itself";
  if (owner.controller !== true) return "can only create pods with a controller owner reference set to itself";
  if (owner.blockOwnerDeletion === true) return "must not set blockOwnerDeletion on an owner reference";
  const uid = live.get({ resource: "nodes", namespace: "", name: node })?.object.metadata.uid;
  if (owner.uid !== uid) return `UID mismatch: expected ${String(uid)} got ${owner.uid}`;

  const kind = referencedIn(pod["spec"]);
  return kind === undefined ? undefined : `can not create pods that reference ${kind}`;
}

/** Fields of a pod, of its containers and of every type of volume, that name other objects: core/v1 (v1.34). */
const references: Readonly<Record<string, string>> = {
  serviceAccountName: "a service account",
  serviceAccount: "a service account",
  serviceAccountToken: "a service account",
  imagePullSecrets: "secrets",
  secret: "secrets",
  secretName: "secrets",
  secretRef: "secrets",
  secretKeyRef: "secrets",
  nodePublishSecretRef: "secrets",
  configMap: "configmaps",
  configMapRef: "configmaps",
  configMapKeyRef: "configmaps",
  persistentVolumeClaim: "persistentvolumeclaims",
  ephemeral: "persistentvolumeclaims",
  clusterTrustBundle: "clustertrustbundles",
  podCertificate: "pod certificates",
  resourceClaims: "resourceclaims",
};
/** Parts of a pod whose own fields name objects. */
const referring: ReadonlySet<string> = new Set(["containers", "initContainers", "ephemeralContainers", "volumes"]);

/** What kind of objects a pod names first; `undefined`: none. */
function referencedIn(spec: unknown): string | undefined {
  const asked: unknown[] = [];
  const kindIn = (part: object): string | undefined => {
    for (const [key, value] of Object.entries(part) as [string, unknown][]) {
      const isThere = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== "";
      if (isThere && Object.hasOwn(references, key)) return references[key];
      if (part === spec ? referring.has(key) : true) asked.push(value);
    }
    return undefined;
  };
  asked.push(spec);
  for (let part = asked.pop(); part !== undefined || asked.length > 0; part = asked.pop()) {
    if (Array.isArray(part)) for (const item of part as unknown[]) asked.push(item);
    else if (isObject(part)) {
      const kind = kindIn(part);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

function specPart(object: KubeObject | undefined, field: string): unknown {
  const spec = object?.["spec"];
  return (isObject(spec) ? spec[field] : undefined) ?? [];
}

function labelsChanged(before: KubeObject | undefined, after: KubeObject | undefined): string[] {
  const old = before?.metadata.labels ?? {};
  const now = after?.metadata.labels ?? {};
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((label) => old[label] !== now[label]).sort();
}
