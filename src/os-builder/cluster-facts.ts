import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { type ConfigMap, type Node, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, buildNamespace, labels, namespace, objects } from "../api/names.ts";
import { type BuildSettings, buildSettings } from "../core/build/build-settings.ts";
import { labelValue } from "../core/build/build-key.ts";
import type { InputFacts, IntentFacts, SecretFacts } from "../core/build/build-intent.ts";
import { isForBuildsOf, poolsOfSecret } from "../core/build/secret-pools.ts";
import { type RegistryAccess, registryAccessOf } from "../core/images/registry-access.ts";
import { pullspecsIn } from "../core/images/pullspecs-in.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import { trimMachineConfig, trimNode } from "../core/pool/trim.ts";
import { type Caches, type Watch, watching } from "../kube/controller.ts";
import { readRegistrySecret, typeOfSecret } from "./registry-secret.ts";

/** Objects of the suite's namespace, without those of single builds, which are large and not read here. */
export const ownNamespace = { namespace } as const;
const keepConfigMap = (object: ConfigMap): ConfigMap => {
  const { managedFields: _, ...metadata } = object.metadata;
  return metadata.labels?.[labels.ephemeralBuildObject] === undefined
    ? { ...object, metadata }
    : { apiVersion: object.apiVersion, kind: object.kind, metadata };
};
/** What the operator copies for the builder, which reads no Secret of the suite's namespace. */
const credentials = { namespace: buildNamespace, labelSelector: labels.buildCredential } as const;
const keepSecret = ({ metadata: { managedFields: _, ...metadata }, ...secret }: Secret): Secret => ({
  ...secret,
  metadata,
});

export const everyPool = (caches: Caches): readonly string[] => [
  ...new Set([
    ...caches
      .of(MachineConfigPool)
      .list()
      .map(({ metadata }) => metadata.name),
    ...caches
      .of(MachineOSConfig)
      .list()
      .map(({ spec }) => spec.machineConfigPool.name),
  ]),
];

/** Kinds that decisions about images are made from, each with the pools that a change of it concerns. */
export const poolWatches: readonly [Watch, ...Watch[]] = [
  watching({ resource: MachineConfigPool }),
  watching({
    resource: MachineConfig,
    keep: trimMachineConfig,
    concerns: ({ key }, caches) =>
      caches
        .of(MachineConfigPool)
        .list()
        .filter(({ spec }) => spec.configuration?.name === key)
        .map(({ metadata }) => metadata.name),
  }),
  watching({
    resource: MachineOSConfig,
    concerns: ({ before, after }) => [
      ...new Set([before, after].flatMap((config) => config?.spec.machineConfigPool.name ?? [])),
    ],
  }),
  watching({
    resource: MachineOSBuild,
    // One that waits for another pool's run has to hear of it.
    concerns: ({ before, after }, caches) => {
      const build = after ?? before;
      const waiting =
        build === undefined
          ? []
          : caches
              .of(MachineOSBuild)
              .list()
              .filter(({ metadata }) => metadata.annotations?.[annotations.reusedFrom] === build.metadata.name);
      return [...new Set([...(build === undefined ? [] : [build]), ...waiting].map(poolOfBuild))];
    },
  }),
  watching({ resource: ControllerConfig, concerns: (_, caches) => everyPool(caches) }),
  watching({
    resource: kubernetes.ConfigMap,
    selection: ownNamespace,
    keep: keepConfigMap,
    concerns: ({ before, after }, caches) => (isEphemeral(after ?? before) ? [] : everyPool(caches)),
  }),
  watching({
    resource: kubernetes.Secret,
    selection: credentials,
    keep: keepSecret,
    concerns: (_, caches) => everyPool(caches),
  }),
  // Architectures and images, without what a node reports each minute.
  watching({
    resource: kubernetes.Node,
    keep: trimNode,
    concerns: ({ before, after }, caches) => {
      const seen = (node: Node | undefined) =>
        JSON.stringify([
          node?.metadata.labels,
          node?.metadata.annotations?.[annotations.currentImage],
          node?.metadata.annotations?.[annotations.currentConfig],
        ]);
      if (seen(before) === seen(after)) return [];
      return [...new Set([before, after].flatMap((node) => (node === undefined ? [] : poolNameOf(node, caches))))];
    },
  }),
];

const isEphemeral = (object: ConfigMap | undefined) =>
  object?.metadata.labels?.[labels.ephemeralBuildObject] !== undefined;

/** The pool of a build; the label has no room for the longest names, which a MachineOSConfig shares with its pool. */
export function poolOfBuild({ metadata, spec }: MachineOSBuild): string {
  const label = metadata.labels?.[labels.targetPool];
  return label === undefined || labelValue(spec.machineOSConfig.name) === label ? spec.machineOSConfig.name : label;
}

function poolNameOf(node: Node, caches: Caches): readonly string[] {
  const membership = poolOfNode(node, caches.of(MachineConfigPool).list());
  return membership.verdict === "member" ? [membership.pool] : [];
}

const configMap = (caches: Caches, name: string): Readonly<Record<string, string>> | undefined => {
  const found = caches.of(kubernetes.ConfigMap, ownNamespace).get(`${namespace}/${name}`);
  return found === undefined ? undefined : (found.data ?? {});
};

const buildConfigIn = (caches: Caches): Readonly<Record<string, string>> | undefined =>
  configMap(caches, objects.buildConfig);
export const buildSettingsIn = (caches: Caches): BuildSettings => buildSettings(buildConfigIn(caches));
export const configMapIn = configMap;

export const secretIn = (caches: Caches, name: string): Secret | undefined =>
  caches.of(kubernetes.Secret, credentials).get(`${buildNamespace}/${name}`);

/** A Secret's data as text by key; what is no text counts by its encoding. */
export function secretDataIn(caches: Caches, name: string): Readonly<Record<string, string>> | undefined {
  const secret = secretIn(caches, name);
  return secret === undefined ? undefined : (secret.data ?? {});
}

export function intentFacts(pool: MachineConfigPool, caches: Caches): IntentFacts {
  return {
    pool,
    machineOSConfigs: caches.of(MachineOSConfig).list(),
    buildConfig: buildConfigIn(caches),
    customContainerfiles: configMap(caches, objects.customContainerfiles),
  };
}

export function secretFacts(caches: Caches, name: string): SecretFacts {
  const secret = secretIn(caches, name);
  if (secret === undefined) return { is: "absent" };
  const reading = readRegistrySecret(secret);
  return {
    is: "present",
    type: typeOfSecret(secret),
    hosts: reading.verdict === "auth" ? reading.hosts : undefined,
    pools: poolsOfSecret(secret),
  };
}

/** Text of an auth file; `undefined` where the Secret is missing, cannot be read, or is not for builds of this pool. */
export function authIn(caches: Caches, name: string | undefined, pool: string): string | undefined {
  const secret = name === undefined ? undefined : secretIn(caches, name);
  return secret === undefined || !isForBuildsOf(secret, pool) ? undefined : authOf(secret);
}

/** The same of the cluster's own pull secret, as its nodes have it. */
export function nodeAuthIn(caches: Caches): string | undefined {
  const secret = secretIn(caches, objects.globalPullSecret);
  return secret === undefined ? undefined : authOf(secret);
}

function authOf(secret: Secret): string | undefined {
  const reading = readRegistrySecret(secret);
  return reading.verdict === "auth" ? reading.text : undefined;
}

export type PoolNode = InputFacts["nodes"][number] & { readonly isControlPlane: boolean };

/**
 * Operating systems that images can be booted on, by the label that names one; a node without the label counts as one.
 * Source: node.openshift.io/os_id of the installer's machines.
 */
const imageBasedOs: ReadonlySet<string> = new Set([
  "rhcos",
  "rhel-coreos",
  "scos",
  "fcos",
  "fedora-coreos",
  "centos-bootc",
  "rhel-bootc",
  "fedora-bootc",
  "mco",
]);
const osLabel = "node.openshift.io/os_id";

export function nodesIn(caches: Caches): readonly (PoolNode & { readonly node: Node; readonly pool: string })[] {
  const pools = caches.of(MachineConfigPool).list();
  return caches
    .of(kubernetes.Node)
    .list()
    .map((node) => {
      const { name, labels: has = {} } = node.metadata;
      const membership = poolOfNode(node, pools);
      const os = has[osLabel];
      const isControlPlane = has[labels.controlPlaneRole] !== undefined || has[labels.masterRole] !== undefined;
      return {
        node,
        name,
        pool: membership.verdict === "member" ? membership.pool : "",
        architecture: has[labels.arch] ?? "",
        imageBased: (os === undefined || imageBasedOs.has(os)) && has[labels.os] !== "windows",
        isControlPlane,
      };
    });
}

/** How the cluster's registries are reached. */
export const surroundings = (caches: Caches): RegistryAccess =>
  registryAccessOf(caches.of(ControllerConfig).get(objects.controllerConfig)?.spec);

/** Every image that a node or its MachineConfigNode names: to run now, to run next, or to go back to. */
export function imagesOfNodes(caches: Caches): readonly string[] {
  const keys = [
    annotations.currentImage,
    annotations.desiredImage,
    annotations.currentOSImage,
    annotations.desiredOSImage,
  ];
  const onNodes = caches
    .of(kubernetes.Node)
    .list()
    .flatMap(({ metadata }) => keys.flatMap((key) => metadata.annotations?.[key] ?? []));
  const onMachineConfigNodes = caches
    .of(MachineConfigNode)
    .list()
    .flatMap((node) => namedIn([node.spec, node.status, node.metadata.annotations]));
  return [...onNodes, ...onMachineConfigNodes];
}

/** Finds the digest, whichever field of a deployment the daemon reports it in. */
const namedIn = (value: unknown): readonly string[] => pullspecsIn(JSON.stringify(value ?? null));
