import type { AdmissionPlugin } from "./admission.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { KubeObject } from "../schema/contract.ts";
import { equalJson, isObject, textAt } from "../schema/json-values.ts";
import { forbidden } from "../schema/status.ts";
import { askedBy, kubeletSigners, signingRequests } from "../access/signing-requests.ts";
import { nodeNameOf, boundTo, leaseNamespace } from "../access/node-authorizer.ts";

/**
 * Labels that a kubelet may set on its node: `k8s.io/kubernetes pkg/apis/... kubeletapis well_known_labels.go
 * (master)`.
 */
const ownLabels = [
  /^kubernetes\.io\/(hostname|os|arch)$/,
  /^beta\.kubernetes\.io\/(os|arch|instance-type)$/,
  /^node\.kubernetes\.io\/instance-type$/,
  /^(failure-domain\.beta|topology)\.kubernetes\.io\/(zone|region)$/,
  /(^|\.)(kubelet|node)\.kubernetes\.io\//,
];

/** Content rules for kubelets, as `k8s.io/kubernetes plugin/pkg/admission/noderestriction (master)`. */
export function nodeRestriction(live: LiveObjects): AdmissionPlugin {
  return {
    validate({ operation, served, subresource, namespace, name, object, before }, { user }) {
      const node = nodeNameOf(user);
      if (node === undefined) return undefined;
      const refuse = (why: string) => forbidden(served.definition, name, why);
      switch (served.stored) {
        case "nodes": {
          if (operation === "DELETE")
            return refuse(`node ${JSON.stringify(node)} is not allowed to delete node ${JSON.stringify(name)}`);
          if (name !== node)
            return refuse(`node ${JSON.stringify(node)} is not allowed to modify node ${JSON.stringify(name)}`);
          const changed = labelsChanged(before, object).filter(
            (label) => /(^|[./])(kubernetes|k8s)\.io\//.test(label) && !ownLabels.some((own) => own.test(label)),
          );
          if (operation === "CREATE")
            return changed.length === 0
              ? undefined
              : refuse(`is not allowed to set the following labels: ${changed.join(", ")}`);
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
            return undefined;
          }
          const pod = before ?? live.get({ resource: "pods", namespace, name })?.object;
          if (pod !== undefined && boundTo(pod) !== node) {
            const verb = operation === "DELETE" ? "delete" : subresource === "eviction" ? "evict" : "update status for";
            return refuse(`node ${JSON.stringify(node)} can only ${verb} pods with spec.nodeName set to itself`);
          }
          if (subresource === "status" && !equalJson(before?.metadata.labels ?? {}, object?.metadata.labels ?? {}))
            return refuse(`node ${JSON.stringify(node)} cannot update labels through pod status`);
          return undefined;
        }
        case signingRequests: {
          if (operation !== "CREATE" || subresource !== "" || !kubeletSigners.has(textAt(object, "spec", "signerName")))
            return undefined;
          // As Go reads a subject: of several common names the last one counts.
          return askedBy(object)?.commonNames.at(-1) === user.name
            ? undefined
            : refuse(`can only create a node CSR with CN=${user.name}`);
        }
        case "leases.coordination.k8s.io":
          if (namespace !== leaseNamespace)
            return refuse(`can only access leases in the ${JSON.stringify(leaseNamespace)} system namespace`);
          return name === node
            ? undefined
            : refuse(`can only access node lease with the same name as the requesting node`);
        case "serviceaccounts": {
          if (subresource !== "token") return undefined;
          const spec = object?.["spec"];
          const bound = isObject(spec) && isObject(spec["boundObjectRef"]) ? spec["boundObjectRef"] : {};
          if (bound["kind"] !== "Pod" || typeof bound["name"] !== "string")
            return refuse("node requested token not bound to a pod");
          if (typeof bound["uid"] !== "string" || bound["uid"] === "")
            return refuse("node requested token with a pod binding without a uid");
          const pod = live.get({ resource: "pods", namespace, name: bound["name"] })?.object;
          return pod !== undefined && boundTo(pod) === node
            ? undefined
            : refuse("node requested token bound to a pod scheduled on a different node");
        }
        default:
          return undefined;
      }
    },
  };
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
