import { expect, test } from "vitest";
import { group, objects } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/schema/object.ts";
import { guardNames } from "../../src/operator/admission-policies.ts";
import { machineApiRights, made, suiteRights } from "../../src/operator/rights.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** The fields that an account writes of a kind, and why it writes no others to the harm of another component. */
interface Written {
  readonly fields: string;
  /**
   * `policy`: an admission policy of that name refuses the others. `names`: the right is for objects that are the
   * account's own, by name. `nobody`: no component acts on the others, for the reason given. `master`: the account
   * controls the cluster by its task, as the threat model says.
   */
  readonly rest: { readonly policy: string } | "names" | { readonly nobody: string } | { readonly master: string };
}

const named = (fields: string): Written => ({ fields, rest: "names" });
const held = (policy: string, fields: string): Written => ({ fields, rest: { policy } });
const unread = (nobody: string, fields: string): Written => ({ fields, rest: { nobody } });
const ofMaster = (fields: string): Written => ({
  fields,
  rest: { master: "it creates MachineConfigs and approves certificates of nodes, or runs pods like the daemons" },
});
const finalizer = unread("the subresource has no fields: owner references that block deletion need the right", "none");
const lease = named("the holder and the times");
const journal = named("lines");
const events = unread("people read Events, and no component acts on one", "all of its own");

const table: Readonly<Record<string, Readonly<Record<string, Written>>>> = {
  [objects.operator]: {
    "clusteroperators.config.openshift.io": ofMaster("annotations and related objects of machine-config"),
    "clusteroperators/status.config.openshift.io": ofMaster("conditions and versions of machine-config"),
    configmaps: named("data"),
    [`controllerconfigs.${group}`]: ofMaster("spec"),
    "customresourcedefinitions.apiextensions.k8s.io": named("all of the suite's kinds"),
    "daemonsets.apps": ofMaster("all of the daemon and the config server"),
    "deployments.apps": ofMaster("all of the components"),
    events,
    "leases.coordination.k8s.io": lease,
    [`machineconfigpools.${group}`]: ofMaster("labels and the spec of master, worker and arbiter"),
    "machineconfigurations.operator.openshift.io": ofMaster("the spec of a missing one"),
    "machineconfigurations/status.operator.openshift.io": ofMaster("effective settings and conditions about them"),
    [`machinestatejournals.${group}`]: journal,
    "networkpolicies.networking.k8s.io": named("all of the suite's"),
    secrets: ofMaster("keys, certificates, user data, and copies of credentials for builds"),
    serviceaccounts: ofMaster("all of the accounts that machines join with"),
    services: named("ports and selectors"),
    "validatingadmissionpolicies.admissionregistration.k8s.io": named("all of the suite's"),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": named("all of the suite's"),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": named("all of the suite's"),
  },
  [objects.controller]: {
    "apiservers/finalizers.config.openshift.io": finalizer,
    "certificatesigningrequests/approval.certificates.k8s.io": ofMaster("the condition Approved or Denied"),
    "clusterimagepolicies/status.config.openshift.io": ofMaster("conditions"),
    configmaps: named("data"),
    [`containerruntimeconfigs.${group}`]: ofMaster("finalizers"),
    [`containerruntimeconfigs/finalizers.${group}`]: finalizer,
    [`containerruntimeconfigs/status.${group}`]: ofMaster("conditions"),
    [`controllerconfigs/finalizers.${group}`]: finalizer,
    [`controllerconfigs/status.${group}`]: ofMaster("conditions"),
    "criocredentialproviderconfigs/finalizers.config.openshift.io": finalizer,
    "criocredentialproviderconfigs/status.config.openshift.io": ofMaster("conditions"),
    events,
    "featuregates/finalizers.config.openshift.io": finalizer,
    "imagepolicies/status.config.openshift.io": ofMaster("conditions"),
    "images/finalizers.config.openshift.io": finalizer,
    [`joinplaces/status.${group}`]: ofMaster("the machine that took the place"),
    [`kubeletconfigs.${group}`]: ofMaster("finalizers"),
    [`kubeletconfigs/finalizers.${group}`]: finalizer,
    [`kubeletconfigs/status.${group}`]: ofMaster("conditions"),
    "leases.coordination.k8s.io": lease,
    [`machineconfignodes.${group}`]: ofMaster("the desired configuration"),
    [`machineconfignodes/status.${group}`]: ofMaster("conditions about drains"),
    [`machineconfigpools.${group}`]: ofMaster("the target configuration and annotations about it"),
    [`machineconfigpools/finalizers.${group}`]: finalizer,
    [`machineconfigpools/status.${group}`]: ofMaster("all but the conditions about builds"),
    [`machineconfigs.${group}`]: ofMaster("all of rendered and generated ones"),
    "machineconfigurations/status.operator.openshift.io": ofMaster("conditions about boot images"),
    "machinesets.machine.openshift.io": ofMaster("the boot image"),
    [`machinestatejournals.${group}`]: journal,
    [`nodebindings.${group}`]: ofMaster("all"),
    nodes: ofMaster("annotations, taints and whether pods are scheduled"),
    "nodes/finalizers.config.openshift.io": finalizer,
    [`osimagestreams.${group}`]: ofMaster("the spec of a missing one"),
    [`osimagestreams/status.${group}`]: ofMaster("the streams of the release"),
    secrets: named("user data that boot images of the release can read"),
  },
  [objects.daemon]: {
    events: held(made.gate, "all, about its own machine"),
    [`machineconfignodes.${group}`]: held(made.gate, "annotations of its own machine's"),
    [`machineconfignodes/status.${group}`]: held(made.gate, "the status of its own machine's"),
    [`machinestatejournals.${group}`]: held(made.gate, "lines of its own machine's"),
    nodes: held(made.gate, "annotations of its own machine's"),
  },
  [objects.state]: {
    "leases.coordination.k8s.io": lease,
    "machineconfigurations/status.operator.openshift.io": held("machine-state-conditions", "conditions about health"),
    [`machinestatebooks.${group}`]: unread("people read books, and the state process alone acts on them", "all"),
    [`machinestatechapters.${group}`]: unread("people read books, and the state process alone acts on them", "all"),
  },
  [objects.osBuilder]: {
    configmaps: unread("only its own Jobs mount those of the namespace of builds", "all of a build's"),
    events,
    "leases.coordination.k8s.io": lease,
    [`machineconfigpools.${group}`]: held("os-builder-pools", "annotations about builds"),
    [`machineconfigpools/finalizers.${group}`]: finalizer,
    [`machineconfigpools/status.${group}`]: held("os-builder-pool-status", "conditions about builds"),
    [`machineosbuilds.${group}`]: unread("which image a pool boots is its task", "all"),
    [`machineosbuilds/finalizers.${group}`]: finalizer,
    [`machineosbuilds/status.${group}`]: unread("which image a pool boots is its task", "all"),
    [`machineosconfigs.${group}`]: held("os-builder-machine-os-configs", "annotations, and the spec of its own"),
    [`machineosconfigs/finalizers.${group}`]: finalizer,
    [`machineosconfigs/status.${group}`]: unread("which image a pool boots is its task", "all"),
    [`machinestatejournals.${group}`]: journal,
    secrets: unread("only its own Jobs mount those of the namespace of builds", "data"),
  },
  [objects.configServer]: {
    [`machinestatejournals.${group}`]: journal,
    [`provisioningtokens/status.${group}`]: unread(
      "which token is used up is its task, and the controller deletes those that have ended",
      "who fetched a configuration by it",
    ),
  },
};

/** Account → resource → whether every right to change it is for objects by name. */
function writtenBy(manifests: readonly KubeObject[]): ReadonlyMap<string, ReadonlyMap<string, boolean>> {
  const found = new Map<string, Map<string, boolean>>();
  for (const manifest of manifests) {
    const { rules = [] } = manifest as KubeObject & { readonly rules?: readonly Rule[] };
    for (const { apiGroups, resources, verbs, resourceNames } of rules) {
      if (!verbs.some((verb) => ["patch", "update"].includes(verb))) continue;
      const account = manifest.metadata.name;
      const own = found.get(account) ?? found.set(account, new Map()).get(account);
      for (const apiGroup of apiGroups)
        for (const resource of resources) {
          const key = apiGroup === "" ? resource : `${resource}.${apiGroup}`;
          own?.set(key, (own.get(key) ?? true) && resourceNames !== undefined);
        }
    }
  }
  return found;
}

/** The account and the resource of each right to change something that has no line, or of each line without a right. */
function differences(manifests: readonly KubeObject[]): readonly string[] {
  const found = writtenBy(manifests);
  const keysOf = (rows: Iterable<readonly [string, Iterable<string>]>) =>
    new Set([...rows].flatMap(([account, resources]) => [...resources].map((resource) => `${account}: ${resource}`)));
  const rights = keysOf([...found].map(([account, rows]) => [account, rows.keys()] as const));
  const lines = keysOf(Object.entries(table).map(([account, rows]) => [account, Object.keys(rows)] as const));
  return [
    ...[...rights].filter((key) => !lines.has(key)).map((key) => `${key} has no line`),
    ...[...lines].filter((key) => !rights.has(key)).map((key) => `${key} is no right`),
  ];
}

const manifests = [...suiteRights(), ...machineApiRights()];

test("each kind that an account may change has a line that says which fields, and what holds the rest [guards-written-fields-1]", () => {
  expect(differences(manifests)).toEqual([]);
});

test("each policy of the table exists, and each right by name has names [guards-written-fields-2]", () => {
  const found = writtenBy(manifests);
  const policies = new Set<string>([...guardNames, made.gate]);
  const wrong = Object.entries(table).flatMap(([account, rows]) =>
    Object.entries(rows)
      .filter(([resource, { rest }]) =>
        rest === "names"
          ? found.get(account)?.get(resource) !== true
          : "policy" in rest
            ? !policies.has(rest.policy)
            : "master" in rest && account !== objects.operator && account !== objects.controller,
      )
      .map(([resource]) => `${account}: ${resource}`),
  );
  expect(wrong).toEqual([]);
});

test("the rule finds a right without a line [guards-written-fields-3]", () => {
  const role = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: objects.state },
    rules: [{ apiGroups: [group], resources: ["machineconfigpools/status"], verbs: ["patch"] }],
  };
  expect(differences([...manifests, role as unknown as KubeObject])).toEqual([
    `${objects.state}: machineconfigpools/status.${group} has no line`,
  ]);
});
