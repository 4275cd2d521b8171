import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import {
  type ConfigMap,
  type CustomResourceDefinition,
  type EndpointSlice,
  type Secret,
  kubernetes,
} from "../api/foreign/kubernetes.ts";
import { configGroup, joinNamespace, labels, machineNamespace, namespace, objects } from "../api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../api/schema/object.ts";
import { type FeatureGate, openshift } from "../api/foreign/openshift.ts";
import { InternalReleaseImage } from "../api/kinds/internal-release-image.ts";
import { OSImageStream } from "../api/kinds/os-image-stream.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import {
  type ClusterSources,
  type SourceKind,
  inputMapsOf,
  mergedRegistryCa,
  namedMapsOf,
  placesElsewhere,
  sourceMaps,
} from "../core/render/controller-config-of.ts";
import type { MachineApi } from "../core/operator/boot-image-managers.ts";
import { isAddress } from "../core/join/canonical-host.ts";
import {
  type ClusterIdentity,
  inputNamespace,
  isOpenShift,
  openshiftNamespaces,
} from "../core/render/openshift-inputs.ts";
import { pullSecretKey, pullSecretSelection } from "../core/render/pull-secret.ts";
import type { TlsSecurityProfile } from "../core/certificates/tls-profile.ts";
import { type MergedPullSecret, mergedPullSecret } from "../core/build/internal-pull-secret.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Context, type Watch, watching } from "../kube/controller.ts";
import type { GuardNeeds } from "./admission-guard.ts";

/** There is one object of each, and its name is the same everywhere. */
const one = "cluster";
const sources: Readonly<Record<Exclude<SourceKind, "ClusterVersion">, Resource>> = {
  Infrastructure: openshift.Infrastructure,
  Network: openshift.Network,
  DNS: openshift.Dns,
  Proxy: openshift.Proxy,
  Image: openshift.Image,
};

/** The objects in the suite's own namespace. */
export const ours = { namespace } as const;
/** The suite's own namespace, and the one of the machine API, which not every cluster has. */
export const ownNamespaceObject = { fieldSelector: `metadata.name=${namespace}` } as const;
export const machineApi = { fieldSelector: `metadata.name=${machineNamespace}` } as const;
const dnsService = { namespace: "kube-system", fieldSelector: "metadata.name=kube-dns" } as const;
/**
 * Where API servers write their own addresses: kubernetes/kubernetes pkg/controlplane/reconcilers (v1.34). A cluster that runs on
 * one machine alone has none.
 */
const apiServerEndpoints = { namespace: "default", fieldSelector: "metadata.name=kubernetes" } as const;
const puller = { namespace, fieldSelector: `metadata.name=${objects.puller}` } as const;
/** Accounts that machines which join ask for their certificates as. */
export const nodeBootstrappers = { namespace: joinNamespace, labelSelector: labels.nodeBootstrapper } as const;
/**
 * Where kubeadm publishes how its cluster is reached: kubernetes/kubernetes
 * cmd/kubeadm/app/phases/bootstraptoken/clusterinfo (v1.34).
 */
const clusterInfoKey = { namespace: "kube-public", name: "cluster-info" } as const;
/** Other namespaces with ConfigMaps that are read. In the first, administrators choose the names of some. */
const mapNamespaces = [
  openshiftNamespaces.config,
  openshiftNamespaces.managed,
  openshiftNamespaces.apiServerOperator,
  "kube-system",
  clusterInfoKey.namespace,
] as const;
const mapsRead: ReadonlySet<string> = new Set<string>([
  ...Object.values(sourceMaps),
  keyOf({ metadata: mergedRegistryCa }),
  keyOf({ metadata: clusterInfoKey }),
]);

/**
 * Of ConfigMaps that the operator does not read, the cache holds only the names: some namespaces are full of large
 * ones.
 */
const keepMap = (map: ConfigMap): ConfigMap => {
  const { managedFields: _, ...metadata } = map.metadata;
  if (mapsRead.has(keyOf(map))) return { ...map, metadata };
  const { name, namespace: where = "", uid = "", resourceVersion = "" } = metadata;
  return { apiVersion: map.apiVersion, kind: map.kind, metadata: { name, namespace: where, uid, resourceVersion } };
};

/**
 * The cache holds only the parts of definitions that identify their owner: the schemas of a whole cluster are large.
 */
const keepDefinition = ({
  apiVersion,
  kind,
  metadata: { managedFields: _, annotations: __, ...metadata },
}: CustomResourceDefinition): CustomResourceDefinition => ({ apiVersion, kind, metadata, spec: {} });

const keepName = ({
  apiVersion,
  kind,
  metadata: { name, uid = "", resourceVersion = "" },
}: KubeObject): KubeObject => ({ apiVersion, kind, metadata: { name, uid, resourceVersion } });

/** Inputs of ControllerConfig, in addition to the objects that the operator watches anyway. */
export function sourceWatches(everything: () => readonly string[]): readonly Watch[] {
  return [
    watching({
      resource: kubernetes.CustomResourceDefinition,
      keep: keepDefinition,
      concerns: ({ before, after }) => (before === undefined || after === undefined ? everything() : []),
    }),
    ...Object.values(sources).map((resource) => watching({ resource, optional: true, concerns: everything })),
    // The rights of earlier releases lack these.
    ...[openshift.APIServer, openshift.FeatureGate].map((resource) =>
      watching<KubeObject>({ resource, optional: true, mayBeForbidden: true, concerns: everything }),
    ),
    // Of these only what there is counts, and of these few.
    ...[OSImageStream, InternalReleaseImage, openshift.ClusterVersion].map((resource) =>
      watching<KubeObject>({
        resource,
        optional: true,
        keep: keepName,
        concerns: ({ before, after }) => (before === undefined || after === undefined ? everything() : []),
      }),
    ),
    watching({ resource: kubernetes.ConfigMap, selection: ours, concerns: everything }),
    ...mapNamespaces.map((where) =>
      watching({
        resource: kubernetes.ConfigMap,
        selection: { namespace: where },
        keep: keepMap,
        concerns: ({ key, before, after }) =>
          where === mapNamespaces[0] || mapsRead.has(key) || before === undefined || after === undefined
            ? everything()
            : [],
      }),
    ),
    watching({ resource: kubernetes.Service, selection: dnsService, concerns: everything }),
    watching<EndpointSlice>({
      resource: kubernetes.EndpointSlice,
      optional: true,
      selection: apiServerEndpoints,
      // API servers renew their entries.
      concerns: ({ before, after }) =>
        equalValues(before?.endpoints ?? [], after?.endpoints ?? []) ? [] : everything(),
    }),
    // Where the cluster is not OpenShift's, it is one of the suite's own Secrets.
    watching({ resource: kubernetes.Secret, selection: pullSecretSelection(true), concerns: everything }),
    watching({ resource: kubernetes.ServiceAccount, selection: puller, concerns: everything }),
    watching({
      resource: kubernetes.ServiceAccount,
      selection: nodeBootstrappers,
      concerns: ({ before, after }) => (before === undefined || after === undefined ? everything() : []),
    }),
  ];
}

const isDefined = ({ caches }: Context, { plural, group }: Resource): boolean =>
  caches.of(kubernetes.CustomResourceDefinition).get(`${plural}.${group}`) !== undefined;

/**
 * Whether the cluster has the machine API and its namespace, and keeps it. On a cluster without that API, the namespace may be
 * anybody's.
 */
export const hasMachineApi = (context: Context): boolean => {
  const found = context.caches.of(kubernetes.Namespace, machineApi).get(machineNamespace);
  return (
    found !== undefined &&
    found.metadata.deletionTimestamp === undefined &&
    [openshift.MachineSet, openshift.Machine].some((kind) => isDefined(context, kind))
  );
};

/** What MachineSets the cluster can have, and on which platform. */
export function observeMachineApi(context: Context): MachineApi {
  const status = context.caches.of(openshift.Infrastructure).get(one)?.status;
  return {
    platform: status?.platformStatus?.type ?? status?.platform,
    hasMachineSets: isDefined(context, openshift.MachineSet),
  };
}

/** ConfigMaps of the suite's own namespace. */
export const ownMap = (name: string, { caches }: Context): ConfigMap | undefined =>
  caches.of(kubernetes.ConfigMap, ours).get(`${namespace}/${name}`);

/** The objects that say whose the cluster is. */
const observeIdentity = ({ caches }: Context): ClusterIdentity => ({
  infrastructure: caches.of(openshift.Infrastructure).get(one),
  clusterVersion: caches.of(openshift.ClusterVersion).get("version"),
});

/**
 * Inputs that lie in namespaces of OpenShift's, on a cluster that is not OpenShift's: a sentence for each, with the place
 * where it would count.
 */
export function observeMisplaced(context: Context): readonly string[] {
  if (isOpenShift(observeIdentity(context))) return [];
  const { caches } = context;
  const found = [...placesElsewhere].flatMap(([map, elsewhere]) => {
    const [where = ""] = map.split("/");
    const isThere = caches.of(kubernetes.ConfigMap, { namespace: where }).get(map) !== undefined;
    return isThere ? [misplaced(`ConfigMap ${map}`, elsewhere)] : [];
  });
  const secret = pullSecretKey(true);
  return caches.of(kubernetes.Secret, pullSecretSelection(true)).size === 0
    ? found
    : [...found, misplaced(`Secret ${keyOf({ metadata: secret })}`, keyOf({ metadata: pullSecretKey(false) }))];
}

const misplaced = (what: string, elsewhere: string): string =>
  `${what} is not read, because only OpenShift keeps its namespace${elsewhere === "" ? "" : `: on this cluster ${elsewhere} is read in its place`}`;

/**
 * Where the union of the registries' certificates is published, as it is there; `"nowhere"` on clusters that have no
 * such place.
 */
export function publishedRegistryCa(context: Context): ConfigMap | "absent" | "nowhere" {
  const cache = context.caches.of(kubernetes.ConfigMap, { namespace: mergedRegistryCa.namespace });
  // Every namespace has ConfigMaps: that of the cluster's root certificate at the least.
  if (cache.size === 0 || !isOpenShift(observeIdentity(context))) return "nowhere";
  return cache.get(keyOf({ metadata: mergedRegistryCa })) ?? "absent";
}

/** The Secret with which machines of a subscription get packages, by its place on the cluster. */
export const entitlementKeyOf = (context: Context) => ({
  namespace: inputNamespace(openshiftNamespaces.managed, isOpenShift(observeIdentity(context))),
  name: "etc-pki-entitlement",
});

/** ConfigMaps that were read whole, by the object in the cache: a change brings another one. */
const wholeMaps = new WeakMap<ConfigMap, ConfigMap>();

/** A ConfigMap of which the cache has the name, or all. */
async function wholeMap(cached: ConfigMap, context: Context): Promise<ConfigMap> {
  const { namespace: where } = cached.metadata;
  if (where !== openshiftNamespaces.config || mapsRead.has(keyOf(cached))) return cached;
  const known = wholeMaps.get(cached);
  if (known !== undefined) return known;
  const whole = (await context.kube.get(kubernetes.ConfigMap, { ...cached.metadata }, context)) ?? cached;
  wholeMaps.set(cached, whole);
  return whole;
}

/** Reads all inputs of ControllerConfig. */
export async function observeSources(
  context: Context,
): Promise<Omit<ClusterSources, "bringUp" | "release" | "suiteImage" | "releaseImage" | "internalRegistryPullSecret">> {
  const { caches } = context;
  const definitions = caches.of(kubernetes.CustomResourceDefinition);
  const kinds = new Set<SourceKind>();
  const found = new Map<SourceKind, KubeObject>();
  if (isDefined(context, openshift.ClusterVersion)) kinds.add("ClusterVersion");
  for (const [kind, resource] of Object.entries(sources) as [SourceKind, Resource][]) {
    const cached = caches.of(resource).get(one);
    if (cached === undefined && definitions.get(`${resource.plural}.${configGroup}`) === undefined) continue;
    kinds.add(kind);
    // A newly installed kind is not watched yet.
    const object = cached ?? (await context.kube.get(resource, { name: one }, context));
    if (object !== undefined) found.set(kind, object);
  }
  const maps = [ours, ...mapNamespaces.map((where) => ({ namespace: where }))].flatMap((selection) =>
    caches.of(kubernetes.ConfigMap, selection).list(),
  );
  const identity = observeIdentity(context);
  const configMaps = new Map(maps.map((map) => [keyOf(map), map]));
  const named = { ...identity, proxy: found.get("Proxy"), image: found.get("Image") };
  for (const key of namedMapsOf(named)) {
    const map = configMaps.get(key);
    if (map !== undefined) configMaps.set(key, await wholeMap(map, context));
  }
  const { spec } = caches.of(kubernetes.Service, dnsService).list()[0] ?? {};
  return {
    kinds,
    infrastructure: found.get("Infrastructure"),
    clusterVersion: identity.clusterVersion,
    network: found.get("Network"),
    dns: found.get("DNS"),
    proxy: found.get("Proxy"),
    image: found.get("Image"),
    dnsServiceAddresses: spec?.clusterIPs ?? (spec?.clusterIP === undefined ? [] : [spec.clusterIP]),
    configMaps,
  };
}

/** The one object of one of OpenShift's kinds; `undefined` where the cluster has none. */
async function observeSingleton<T extends KubeObject>(resource: Resource<T>, context: Context): Promise<T | undefined> {
  const { caches, kube } = context;
  const { plural, group } = resource;
  const cached = caches.of(resource).get(one);
  if (cached === undefined && caches.of(kubernetes.CustomResourceDefinition).get(`${plural}.${group}`) === undefined)
    return undefined;
  // A newly installed kind is not watched yet.
  return cached ?? kube.get(resource, { name: one }, context);
}

/** The TLS settings of the cluster; `undefined` if it has none. */
export const observeTlsProfile = async (context: Context): Promise<TlsSecurityProfile | undefined> =>
  (await observeSingleton(openshift.APIServer, context))?.spec?.tlsSecurityProfile ?? undefined;

/** The features that the cluster chose; `undefined` where it could choose none. */
export const observeFeatureGate = (context: Context): Promise<FeatureGate | undefined> =>
  observeSingleton(openshift.FeatureGate, context);

/** How kubeadm's cluster is reached; `undefined` elsewhere. */
export const observeClusterInfo = ({ caches }: Context): ConfigMap | undefined =>
  caches.of(kubernetes.ConfigMap, { namespace: clusterInfoKey.namespace }).get(keyOf({ metadata: clusterInfoKey }));

/** A cluster has a few API servers; a slice has room for a hundred thousand addresses, and an annotation has not. */
const mostApiServers = 64;

/** Addresses that API servers note of themselves. Whoever may write EndpointSlices in the namespace can change them for a moment. */
export const observeApiServerAddresses = ({ caches }: Context): readonly string[] =>
  [
    ...new Set(
      caches
        .of(kubernetes.EndpointSlice, apiServerEndpoints)
        .list()
        .flatMap(({ endpoints }) => (endpoints ?? []).slice(0, mostApiServers))
        .flatMap(({ addresses }) => addresses.slice(0, mostApiServers).filter(isAddress)),
    ),
  ].slice(0, mostApiServers);

/** PEM of the authorities behind the API server's serving certificate; `undefined` if none are published. */
export function observeServerProof(context: Context): string | undefined {
  const { serverProof } = inputMapsOf(observeIdentity(context));
  const [where = ""] = serverProof.split("/");
  return context.caches.of(kubernetes.ConfigMap, { namespace: where }).get(serverProof)?.data?.["ca-bundle.crt"];
}

/** What admission policies need to make sense. */
export function observeGuardNeeds({ caches }: Context): GuardNeeds {
  const infrastructure = caches.of(openshift.Infrastructure).get(one) !== undefined;
  const osImageStreams =
    caches.of(kubernetes.CustomResourceDefinition).get(`${OSImageStream.plural}.${OSImageStream.group}`) !== undefined;
  return {
    infrastructure,
    osImageStreams,
    internalReleaseImage:
      caches.of(InternalReleaseImage).size > 0 && caches.of(openshift.ClusterVersion).get("version") !== undefined,
  };
}

/** The cluster's own pull secret, where it has one. */
export function clusterPullSecretOf(context: Context): Secret | undefined {
  const onOpenShift = isOpenShift(observeIdentity(context));
  const selection = onOpenShift ? pullSecretSelection(true) : ours;
  return context.caches.of(kubernetes.Secret, selection).get(keyOf({ metadata: pullSecretKey(onOpenShift) }));
}

/** Credentials for the cluster's own registry, where it has one. */
export function observePullSecret(context: Context, baseDomain: string | undefined): MergedPullSecret {
  const { caches } = context;
  if (caches.of(ClusterOperator).get("image-registry") === undefined) return { verdict: "merged", json: undefined };
  const account = caches.of(kubernetes.ServiceAccount, puller).list()[0];
  // During an upgrade the account may be created after its reader.
  if (account === undefined) return { verdict: "merged", json: undefined };
  const ofAccount: string[] = [];
  for (const { name = "" } of account.imagePullSecrets ?? []) {
    const secret = caches.of(kubernetes.Secret, ours).get(`${namespace}/${name}`);
    if (secret === undefined)
      return {
        verdict: "refused",
        problem: `the Secret ${namespace}/${name}, which the account ${objects.puller} names, is missing`,
      };
    ofAccount.push(textOfBase64(secret.data?.[".dockercfg"] ?? ""));
  }
  const ofCluster = clusterPullSecretOf(context)?.data?.[".dockerconfigjson"];
  return mergedPullSecret({
    ofAccount,
    ofCluster: ofCluster === undefined ? undefined : textOfBase64(ofCluster),
    baseDomain,
  });
}
