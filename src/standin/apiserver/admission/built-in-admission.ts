import { nodeTaints } from "../../../api/names.ts";
import type { AdmissionPlugin } from "./admission.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import { isObject } from "../schema/json-values.ts";
import { forbidden, notFound, namespaceTerminating } from "../schema/status.ts";
import type { Random } from "../../../ports/random.ts";
import { nameSuffix } from "../schema/name-suffix.ts";
import { own } from "../../../api/schema/own.ts";

/** Namespaces that a cluster cannot be without. */
const immortal = new Set(["default", "kube-system", "kube-public"]);

/**
 * Nothing is made in a namespace that is not there or going away: `k8s.io/apiserver
 * pkg/admission/plugin/namespace/lifecycle (master)`.
 */
export function namespaceLifecycle(live: LiveObjects): AdmissionPlugin {
  return {
    mutate({ operation, served, subresource, namespace, name }) {
      if (operation !== "CREATE" || !served.definition.namespaced || subresource !== "") return undefined;
      const home = live.get({ resource: "namespaces", namespace: "", name: namespace })?.object;
      if (home === undefined) return notFound({ group: "", plural: "namespaces" }, namespace);
      return home.metadata.deletionTimestamp === undefined ? undefined : namespaceTerminating(served, name, namespace);
    },
    validate({ operation, served, name }) {
      if (operation !== "DELETE" || served.stored !== "namespaces" || !immortal.has(name)) return undefined;
      return forbidden(served.definition, name, "this namespace may not be deleted");
    },
  };
}

/**
 * Seconds that a pod's token lives: `k8s.io/kubernetes pkg/serviceaccount (master)` WarnOnlyBoundTokenExpirationPeriod.
 */
export const podTokenSeconds = 3_607;
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Every pod has a service account and, unless it declines, a token of it: `k8s.io/kubernetes
 * plugin/pkg/admission/serviceaccount (master)`.
 */
export function podServiceAccount(live: LiveObjects, random: Random): AdmissionPlugin {
  return {
    mutate({ operation, served, subresource, namespace, name, object }) {
      if (operation !== "CREATE" || served.stored !== "pods" || subresource !== "" || object === undefined)
        return undefined;
      const spec = isObject(object["spec"]) ? object["spec"] : {};
      // Static pods come from files on the node and have no account.
      if ("kubernetes.io/config.mirror" in (object.metadata.annotations ?? {})) {
        return spec["serviceAccountName"] === undefined || spec["serviceAccountName"] === ""
          ? undefined
          : forbidden(served.definition, name, "a mirror pod may not reference service accounts");
      }
      const accountName =
        typeof spec["serviceAccountName"] === "string" && spec["serviceAccountName"] !== ""
          ? spec["serviceAccountName"]
          : "default";
      const account = live.get({ resource: "serviceaccounts", namespace, name: accountName })?.object;
      if (account === undefined) {
        return forbidden(
          served.definition,
          name,
          `error looking up service account ${namespace}/${accountName}: serviceaccount ${JSON.stringify(accountName)} not found`,
        );
      }
      const changed: Record<string, unknown> = {
        ...spec,
        serviceAccountName: accountName,
        serviceAccount: accountName,
      };
      if (!Array.isArray(spec["imagePullSecrets"]) && Array.isArray(account["imagePullSecrets"]))
        changed["imagePullSecrets"] = structuredClone(account["imagePullSecrets"]);
      const wanted = spec["automountServiceAccountToken"] ?? account["automountServiceAccountToken"] ?? true;
      if (wanted !== false) mountToken(changed, random);
      return { ...object, spec: changed };
    },
  };
}

function mountToken(spec: Record<string, unknown>, random: Random): void {
  const volumes = Array.isArray(spec["volumes"]) ? spec["volumes"].filter(isObject) : [];
  const existing = volumes.find((volume) => String(volume["name"]).startsWith("kube-api-access-"));
  const name = existing === undefined ? `kube-api-access-${nameSuffix(random)}` : String(existing["name"]);
  let mounted = false;
  for (const field of ["initContainers", "containers"]) {
    const containers = spec[field];
    if (!Array.isArray(containers)) continue;
    spec[field] = containers.map((container: unknown) => {
      if (!isObject(container)) return container;
      const mounts = Array.isArray(container["volumeMounts"]) ? container["volumeMounts"] : [];
      if (mounts.some((mount) => isObject(mount) && mount["mountPath"] === tokenFolder)) return container;
      mounted = true;
      return { ...container, volumeMounts: [...mounts, { name, readOnly: true, mountPath: tokenFolder }] };
    });
  }
  if (!mounted || existing !== undefined) return;
  const sources = [
    { serviceAccountToken: { expirationSeconds: podTokenSeconds, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    {
      downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] },
    },
  ];
  spec["volumes"] = [...volumes, { name, projected: { sources, defaultMode: 420 } }];
}

/** Pod priority by class name: `k8s.io/kubernetes plugin/pkg/admission/priority (master)`. */
export function podPriority(live: LiveObjects): AdmissionPlugin {
  const builtIn: Readonly<Record<string, number>> = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
  };
  return {
    mutate({ operation, served, subresource, name, object }) {
      if (operation !== "CREATE" || served.stored !== "pods" || subresource !== "" || object === undefined)
        return undefined;
      const spec = isObject(object["spec"]) ? object["spec"] : {};
      const wanted = typeof spec["priorityClassName"] === "string" ? spec["priorityClassName"] : "";
      const given = spec["priority"];
      const refused = (computed: number) =>
        forbidden(
          served.definition,
          name,
          `the integer value of priority (${String(given)}) must not be provided in pod spec; priority admission controller computed ${computed} from the given PriorityClass name`,
        );
      if (wanted === "") {
        return given === undefined || given === 0
          ? { ...object, spec: { preemptionPolicy: "PreemptLowerPriority", ...spec, priority: 0 } }
          : refused(0);
      }
      const stored = live.get({ resource: "priorityclasses.scheduling.k8s.io", namespace: "", name: wanted })?.object[
        "value"
      ];
      const priority = typeof stored === "number" ? stored : own(builtIn, wanted);
      if (priority === undefined)
        return forbidden(served.definition, name, `no PriorityClass with name ${wanted} was found`);
      if (given !== undefined && given !== priority) return refused(priority);
      return { ...object, spec: { preemptionPolicy: "PreemptLowerPriority", ...spec, priority } };
    },
  };
}

/** Five minutes on a node that is lost: `k8s.io/kubernetes plugin/pkg/admission/defaulttolerationseconds (master)`. */
export function podTolerations(): AdmissionPlugin {
  return {
    mutate({ operation, served, subresource, object }) {
      if (
        (operation !== "CREATE" && operation !== "UPDATE") ||
        served.stored !== "pods" ||
        subresource !== "" ||
        object === undefined
      )
        return undefined;
      const spec = isObject(object["spec"]) ? object["spec"] : {};
      const tolerations: unknown[] = Array.isArray(spec["tolerations"])
        ? [...(spec["tolerations"] as readonly unknown[])]
        : [];
      for (const key of [nodeTaints.notReady, nodeTaints.unreachable]) {
        const covers = (one: unknown) =>
          isObject(one) &&
          [key, "", undefined].includes(one["key"] as string | undefined) &&
          ["NoExecute", "", undefined].includes(one["effect"] as string | undefined);
        if (!tolerations.some(covers))
          tolerations.push({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 });
      }
      const given = Array.isArray(spec["tolerations"]) ? spec["tolerations"].length : 0;
      return tolerations.length === given ? undefined : { ...object, spec: { ...spec, tolerations } };
    },
  };
}

/**
 * A new node takes no pods until it is ready: `k8s.io/kubernetes plugin/pkg/admission/nodetaint (master)`. The node
 * lifecycle controller removes the taint.
 */
export function nodeTaint(): AdmissionPlugin {
  return {
    mutate({ operation, served, subresource, object }) {
      if (operation !== "CREATE" || served.stored !== "nodes" || subresource !== "" || object === undefined)
        return undefined;
      const spec = isObject(object["spec"]) ? object["spec"] : {};
      const taints: readonly unknown[] = Array.isArray(spec["taints"]) ? spec["taints"] : [];
      if (
        taints.some(
          (taint) => isObject(taint) && taint["key"] === nodeTaints.notReady && taint["effect"] === "NoSchedule",
        )
      )
        return undefined;
      return { ...object, spec: { ...spec, taints: [...taints, { key: nodeTaints.notReady, effect: "NoSchedule" }] } };
    },
  };
}
