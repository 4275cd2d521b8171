import { base64OfText } from "../text/base64-of-text.ts";
import { listText } from "../text/list-text.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { ConfigMap } from "../../api/foreign/kubernetes.ts";
import { annotations, controllerConfigConditions as types, namespace } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, type KubeObject, conditionOf } from "../../api/schema/object.ts";
import type { Dns, ImageConfig, Infrastructure, Network, Proxy } from "../../api/foreign/openshift.ts";
import { textOfBase64 } from "./base-configs.ts";
import { bundleProblem, certificatesOf, readBundle } from "../certificates/certificate-facts.ts";
import { isRegistry } from "../certificates/machine-certificates.ts";
import type { ReleaseImages } from "./release-of.ts";
import { type ClusterIdentity, inputNamespace, isOpenShift, openshiftNamespaces } from "./openshift-inputs.ts";
import { pullSecretKey } from "./pull-secret.ts";
import { dnsAddressIn, ipFamiliesOf } from "./service-network.ts";

type Spec = ControllerConfig["spec"];

/** Kinds of config.openshift.io that are sources of ControllerConfig. */
export const sourceKinds = ["Infrastructure", "Network", "DNS", "Proxy", "Image", "ClusterVersion"] as const;
export type SourceKind = (typeof sourceKinds)[number];

/** Everything in a cluster that determines its ControllerConfig. */
export interface ClusterSources {
  /**
   * The kinds that the API server serves: the operator waits for a missing object of a served kind, and never treats it
   * as unset.
   */
  readonly kinds: ReadonlySet<SourceKind>;
  readonly infrastructure?: Infrastructure | undefined;
  /** Says, with the Infrastructure, whose the cluster is. */
  readonly clusterVersion?: KubeObject | undefined;
  readonly isInstallers?: boolean;
  readonly network?: Network | undefined;
  readonly dns?: Dns | undefined;
  readonly proxy?: Proxy | undefined;
  readonly image?: ImageConfig | undefined;
  /** Addresses of the Service kube-system/kube-dns, which locate the DNS of clusters other than OpenShift. */
  readonly dnsServiceAddresses: readonly string[];
  /** By namespace and name. */
  readonly configMaps: ReadonlyMap<string, Pick<ConfigMap, "data" | "binaryData">>;
  /** The cluster has not completed any version yet: machines still have the configuration of their installation. */
  readonly bringUp: boolean;
  /** Merged docker configuration; `undefined` where the cluster has no registry of its own. */
  readonly internalRegistryPullSecret?: string | undefined;
  readonly release: ReleaseImages;
  /** Image of the suite. */
  readonly suiteImage: string;
  readonly releaseImage: string;
}

export type ControllerConfigOf =
  | { readonly verdict: "waiting"; readonly message: string }
  /** `problems`: unreadable sources, in sentences without contents; their fields stay unchanged. */
  | { readonly verdict: "known"; readonly spec: Spec; readonly problems: readonly string[] };

/**
 * Tenth address of OpenShift's default service network: openshift/installer pkg/types/defaults/installconfig.go (main).
 */
const defaultDnsIP = "172.30.0.10";
/**
 * The subject of the certificate that kubelets know the API server by: openshift/machine-config-operator
 * pkg/operator/sync.go (main).
 */
const kubeletSigner = "kube-apiserver-to-kubelet-signer";
/** Platforms on which machines require a cloud.conf: the same file. */
const needCloudConf: ReadonlySet<string> = new Set(["Azure", "GCP", "OpenStack", "VSphere"]);

const { config, managed, apiServerOperator } = openshiftNamespaces;

/**
 * ConfigMaps of administrators, by namespace and name. Those of OpenShift are called as
 * openshift/machine-config-operator pkg/operator/sync.go (main) reads them; elsewhere they lie in the suite's namespace.
 */
const inputMaps = (onOpenShift: boolean) =>
  ({
    userCa: `${inputNamespace(config, onOpenShift)}/user-ca-bundle`,
    registryCa: `${inputNamespace(managed, onOpenShift)}/image-registry-ca`,
    cloudConfig: `${inputNamespace(managed, onOpenShift)}/kube-cloud-config`,
    /** Authorities of the API server's serving certificates. */
    serverProof: `${inputNamespace(managed, onOpenShift)}/kube-apiserver-server-ca`,
  }) as const;

/** ConfigMaps that OpenShift's own operators write. Other clusters have none of them. */
export const openshiftMaps = {
  initialServingCa: `${config}/initial-kube-apiserver-server-ca`,
  clientCa: `${managed}/kube-apiserver-client-ca`,
  kubeletSigner: `${apiServerOperator}/kube-apiserver-to-kubelet-client-ca`,
} as const;

/** ConfigMaps of every cluster, in namespaces that no tenant can have. */
export const clusterMaps = {
  bootstrapped: "kube-system/bootstrap",
  rootCa: "kube-system/root-ca",
  /**
   * Published by every Kubernetes API server: kubernetes/kubernetes
   * pkg/controlplane/controller/clusterauthenticationtrust (v1.34).
   */
  authentication: "kube-system/extension-apiserver-authentication",
  serverCa: `${namespace}/machine-config-server-ca`,
  publishedRoot: `${namespace}/kube-root-ca.crt`,
} as const;

/** Where the ConfigMaps lie on OpenShift that ControllerConfig has its values from. */
export const sourceMaps = { ...inputMaps(true), ...openshiftMaps, ...clusterMaps } as const;

/** Where the ConfigMaps of administrators lie on a cluster. */
export const inputMapsOf = (identity: ClusterIdentity): ReturnType<typeof inputMaps> =>
  inputMaps(isOpenShift(identity));

/** ConfigMaps that count on OpenShift alone, and in whose place others count elsewhere; empty: none do. */
export const placesElsewhere: ReadonlyMap<string, string> = new Map([
  ...Object.values(openshiftMaps).map((map) => [map, ""] as const),
  ...Object.entries(inputMaps(true)).map(
    ([input, map]) => [map, inputMaps(false)[input as keyof ReturnType<typeof inputMaps>]] as const,
  ),
]);

/** Where the operator publishes the union of all registries' certificates. */
export const mergedRegistryCa = { namespace: managed, name: "merged-trusted-image-registry-ca" } as const;

/** The bytes of a key, in base64: values of `data` may be text, or base64 already. */
function bytesAt(map: Pick<ConfigMap, "data" | "binaryData"> | undefined, key: string): string | undefined {
  const binary = map?.binaryData?.[key];
  if (binary !== undefined) return binary;
  const text = map?.data?.[key];
  return text === undefined ? undefined : asBytes(text);
}

function asBytes(text: string): string {
  const packed = text.replaceAll(/[\r\n]/g, "");
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed) ? packed : base64OfText(text);
}

/**
 * The spec that the operator writes into ControllerConfig. Its sources are the objects of config.openshift.io where the
 * cluster serves these kinds, else objects of plain Kubernetes; a field without a source keeps its default. A field
 * with an unreadable source keeps its value: a broken bundle must neither hold back a rotation of certificates nor roll
 * machines.
 *
 * @param before the present spec of ControllerConfig.
 */
export function controllerConfigOf(sources: ClusterSources, before: Spec | undefined): ControllerConfigOf {
  const required = requiredFields(sources, before);
  if (required.verdict === "waiting") return required;
  const trust = trustBundle(sources, before);
  const cloud = cloudOf(sources, before);
  const registries = registryBundles(sources, before);
  const proxy = proxyOf(sources, before);
  const spec: Spec = {
    ...required.fields,
    ...cloud.fields,
    ...clusterFields(sources),
    proxy: proxy.data,
    additionalTrustBundle: trust.data,
    ...registries.fields,
    // From it others know whose the cluster is: openshift-inputs.ts.
    pullSecret: { kind: "Secret", ...pullSecretKey(isOpenShift(sources)) },
    ...(sources.internalRegistryPullSecret === undefined
      ? {}
      : { internalRegistryPullSecret: base64OfText(sources.internalRegistryPullSecret) }),
    ...imageFields(sources),
  };
  return {
    verdict: "known",
    spec,
    problems: [
      ...required.problems,
      ...trust.problems,
      ...cloud.problems,
      ...registries.problems,
      ...proxy.problems,
      ...(servingCa(sources) === undefined
        ? [`the ConfigMap ${sourceMaps.clientCa} has no ca-bundle.crt: kubelets keep the authority that they have`]
        : []),
    ],
  };
}

/** Authorities and the network: the fields without which no machine can join; waits while a source is missing. */
function requiredFields(
  sources: ClusterSources,
  before: Spec | undefined,
):
  | {
      readonly verdict: "known";
      readonly fields: NetworkFields & Pick<Spec, "kubeAPIServerServingCAData" | "rootCAData">;
      readonly problems: readonly string[];
    }
  | Extract<ControllerConfigOf, { readonly verdict: "waiting" }> {
  const { infrastructure, network, dns, proxy, image, clusterVersion } = sources;
  const present: Readonly<Record<SourceKind, KubeObject | undefined>> = {
    Infrastructure: infrastructure,
    Network: network,
    DNS: dns,
    Proxy: proxy,
    Image: image,
    ClusterVersion: clusterVersion,
  };
  const awaited = sourceKinds.filter(
    (kind) =>
      sources.kinds.has(kind) &&
      present[kind] === undefined &&
      // Other clusters have these kinds for their mirrors, and need no object of them.
      ((kind !== "Image" && kind !== "ClusterVersion") || sources.kinds.has("Infrastructure")),
  );
  if (awaited.length > 0) return { verdict: "waiting", message: `waiting for ${awaited.map(namedSource).join(", ")}` };
  const rootNow = lastGood("the authority of the config server", rootCa(sources), before?.rootCAData);
  const servingNow = lastGood(
    "the authorities by which kubelets know the API server",
    servingCa(sources),
    before?.kubeAPIServerServingCAData,
  );
  const [root, serving] = [rootNow.data, servingNow.data ?? before?.kubeAPIServerServingCAData];
  if (root === undefined || (serving === undefined && !isOpenShift(sources)))
    return { verdict: "waiting", message: `waiting for the ConfigMap kube-root-ca.crt in ${namespace}` };
  if (serving === undefined)
    return { verdict: "waiting", message: `waiting for the ConfigMap ${openshiftMaps.initialServingCa}` };
  const networkPart = network === undefined ? plainNetwork(sources, before) : networkOf(network, before);
  if (networkPart === undefined)
    return { verdict: "waiting", message: "waiting for a service network in Network/cluster" };
  return {
    verdict: "known",
    fields: { ...networkPart, kubeAPIServerServingCAData: serving, rootCAData: root },
    problems: [...rootNow.problems, ...servingNow.problems, ...networkProblems(network, networkPart)],
  };
}

const namedSource = (kind: SourceKind): string => `${kind}/${kind === "ClusterVersion" ? "version" : "cluster"}`;

/** A value that can be used, and why it is not the present one of its source. */
interface Kept<T> {
  readonly data: T;
  readonly problems: readonly string[];
}

/**
 * A bundle of certificates; the last one that can be read in place of one that cannot. Without such a one the value is
 * what the source says: no machine could join without any, and machines that run keep the files that they have.
 */
function lastGood<T extends string | null | undefined>(
  what: string,
  now: T,
  before: string | null | undefined,
): Kept<T | string> {
  if (now === undefined || now === null || before === undefined || before === null) return { data: now, problems: [] };
  const problem = bundleProblem(textOfBase64(now));
  return problem === undefined || bundleProblem(textOfBase64(before)) !== undefined
    ? { data: now, problems: [] }
    : { data: before, problems: [`${what} ${problem}; machines keep what they have until it is fixed`] };
}

/** Fields about the cluster as a whole, from config.openshift.io; null or absent on plain Kubernetes. */
function clusterFields({ infrastructure, dns }: ClusterSources): Pick<Spec, "platform" | "infra" | "dns"> {
  const platform = infrastructure === undefined ? undefined : platformOf(infrastructure);
  return {
    ...(platform === undefined ? {} : { platform: platform.toLowerCase() }),
    infra:
      infrastructure === undefined
        ? null
        : embedded(infrastructure, {
            status: {
              ...infrastructure.status,
              platformStatus: { ...infrastructure.status?.platformStatus, type: platform },
            },
          }),
    dns: dns === undefined ? null : embedded(dns, {}),
  };
}

function imageFields({ release, suiteImage, releaseImage }: ClusterSources) {
  const extensions = release.baseOSExtensionsContainerImage;
  return {
    images: { machineConfigOperator: suiteImage },
    baseOSContainerImage: release.baseOSContainerImage,
    ...(extensions === "" ? {} : { baseOSExtensionsContainerImage: extensions }),
    releaseImage,
  };
}

/** The proxy of the cluster, which machines fetch images through; an address that is none takes no images from them. */
function proxyOf({ proxy }: ClusterSources, before: Spec | undefined): Kept<Spec["proxy"]> {
  const status = proxy?.status ?? {};
  const wrong = Object.entries(status).find(([field, value]) =>
    field === "noProxy" ? /[\0\r\n]/.test(value) : value !== "" && !/^https?:\/\/[^\s\0]+$/i.test(value),
  );
  if (wrong !== undefined)
    return {
      data: before?.proxy ?? null,
      // An address may hold a password.
      problems: [
        `status.${wrong[0]} of Proxy/cluster is no ${wrong[0] === "noProxy" ? "list of hosts" : "URL of a proxy, as http://proxy.example:3128"}; machines keep the proxy that they have`,
      ],
    };
  return { data: Object.values(status).some((value) => value !== "") ? { ...status } : null, problems: [] };
}

/**
 * An object to embed in another one: without metadata that changes with every write, which would only increase
 * generations.
 */
function embedded(object: KubeObject, more: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { metadata, ...rest } = object;
  return { ...rest, ...more, metadata: { name: metadata.name } };
}

/** Older clusters have their platform outside of `platformStatus`; `None` where it is not set. */
function platformOf({ status }: Infrastructure): string {
  const type = status?.platformStatus?.type ?? "";
  return type !== "" ? type : (status?.platform ?? "") !== "" ? (status?.platform ?? "") : "None";
}

/** The authority of the config server; the cluster's until the config server has one of its own. */
function rootCa({ configMaps }: ClusterSources): string | undefined {
  return (
    bytesAt(configMaps.get(sourceMaps.serverCa), "ca-bundle.crt") ??
    bytesAt(configMaps.get(sourceMaps.rootCa), "ca.crt") ??
    bytesAt(configMaps.get(sourceMaps.publishedRoot), "ca.crt")
  );
}

/**
 * The authorities by which kubelets verify the API server. During bring-up these are the ones that the installer gave
 * the first machines: otherwise the first rendered configuration would have another name than theirs. On other clusters they
 * are those by which the API server knows its clients.
 */
function servingCa(sources: ClusterSources): string | undefined {
  const { configMaps, bringUp } = sources;
  if (!isOpenShift(sources))
    return (
      bytesAt(configMaps.get(sourceMaps.authentication), "client-ca-file") ??
      bytesAt(configMaps.get(sourceMaps.publishedRoot), "ca.crt")
    );
  const key = "ca-bundle.crt";
  const initial = bytesAt(configMaps.get(sourceMaps.initialServingCa), key);
  const current = bytesAt(configMaps.get(sourceMaps.clientCa), key);
  if (configMaps.has(sourceMaps.bootstrapped) && !bringUp) return current;
  if (initial === undefined) return current;
  const signer = bytesAt(configMaps.get(sourceMaps.kubeletSigner), key);
  return signer === undefined ? initial : base64OfText(withSigner(textOfBase64(initial), textOfBase64(signer)));
}

/** The initial bundle with the present certificate of the signer, which is rotated every year. */
export function withSigner(initial: string, current: string): string {
  const bundle = readBundle(initial);
  // Machines leave the files alone that they cannot read, and say so.
  if (bundle.verdict === "unreadable") return initial;
  return bundle.certificates
    .map(({ commonName, pem }) => (commonName.includes(kubeletSigner) ? current : pem))
    .join("");
}

type NetworkFields = Pick<Spec, "clusterDNSIP" | "ipFamilies" | "networkType" | "network">;

function networkOf({ spec, status }: Network, before: Spec | undefined): NetworkFields | undefined {
  const services = spec?.serviceNetwork ?? [];
  const ownDns = dnsAddressIn(services[0] ?? "");
  const clusterDNSIP = ownDns ?? before?.clusterDNSIP;
  if (clusterDNSIP === undefined || services.length === 0) return undefined;
  const migration = status?.networkType === undefined || status.networkType === "" ? undefined : status.migration;
  // A requested network type counts only once the network operator has begun the migration.
  const networkType =
    [migration?.networkType, status?.networkType, spec?.networkType].find(
      (type) => type !== undefined && type !== "",
    ) ?? "";
  return {
    clusterDNSIP,
    ipFamilies: ownDns === undefined ? (before?.ipFamilies ?? ipFamiliesOf(services)) : ipFamiliesOf(services),
    networkType,
    ...(migration?.mtu === undefined ? {} : { network: { mtuMigration: migration.mtu } }),
  };
}

/** That machines keep the DNS address of an earlier service network, because the present one cannot be read. */
function networkProblems(network: Network | undefined, { clusterDNSIP }: NetworkFields): readonly string[] {
  const [first = ""] = network?.spec?.serviceNetwork ?? [];
  return network === undefined || dnsAddressIn(first) !== undefined
    ? []
    : [
        `spec.serviceNetwork[0] of Network/cluster, ${JSON.stringify(first.slice(0, 60))}, is no network with an address for the cluster's DNS; machines keep ${clusterDNSIP}`,
      ];
}

/** A Service that is absent for a short time changes no machine. */
function plainNetwork({ dnsServiceAddresses }: ClusterSources, before: Spec | undefined): NetworkFields {
  const addresses = dnsServiceAddresses.filter((address) => address !== "" && address !== "None");
  const [first = before?.clusterDNSIP ?? defaultDnsIP] = addresses;
  return {
    clusterDNSIP: first,
    ipFamilies: addresses.length === 0 ? (before?.ipFamilies ?? ipFamiliesOf([first])) : ipFamiliesOf(addresses),
    networkType: "",
  };
}

/** A ConfigMap that an object of config.openshift.io names, by namespace and name. */
const namedMap = (name: string, identity: ClusterIdentity): string =>
  `${inputNamespace(config, isOpenShift(identity))}/${name}`;

/** ConfigMaps that an administrator's objects name, by namespace and name: they may be called anything. */
export const namedMapsOf = (sources: Pick<ClusterSources, "proxy" | "image"> & ClusterIdentity): readonly string[] =>
  [sources.proxy?.spec?.trustedCA?.name, sources.image?.spec?.additionalTrustedCA?.name].flatMap((name = "") =>
    name === "" ? [] : [namedMap(name, sources)],
  );

/** Further authorities that machines trust: the user's, and the proxy's where it differs. */
function trustBundle(
  cluster: ClusterSources,
  before: Spec | undefined,
): { readonly data: string | null; readonly problems: readonly string[] } {
  const { configMaps, proxy } = cluster;
  const { userCa } = inputMapsOf(cluster);
  const named = proxy?.spec?.trustedCA?.name ?? "";
  const ofProxy = namedMap(named, cluster);
  const sources = [userCa, ...(named === "" || ofProxy === userCa ? [] : [ofProxy])];
  const problems: string[] = [];
  let whole = "";
  for (const source of sources) {
    const encoded = bytesAt(configMaps.get(source), "ca-bundle.crt");
    if (encoded === undefined && source !== userCa)
      problems.push(`the ConfigMap ${source}, which Proxy/cluster names as its trusted CA, has no ca-bundle.crt`);
    const others = bundlesOf(configMaps.get(source));
    if (encoded === undefined && source === userCa && others.length > 0)
      problems.push(
        `the ConfigMap ${source} has no ca-bundle.crt, but ${listText(
          others.map(({ file }) => file),
          3,
        )}: machines keep the authorities that they trust; rename the key, or delete the ConfigMap`,
      );
    if (encoded === undefined || encoded === "") continue;
    const text = textOfBase64(encoded);
    const problem = bundleProblem(text);
    if (problem !== undefined) problems.push(`ca-bundle.crt of the ConfigMap ${source} ${problem}`);
    whole += `${whole === "" || whole.endsWith("\n") ? "" : "\n"}${text}`;
  }
  if (problems.length > 0) return { data: before?.additionalTrustBundle ?? null, problems };
  return { data: whole === "" ? null : base64OfText(whole), problems };
}

function cloudOf(
  sources: ClusterSources,
  before: Spec | undefined,
): {
  readonly fields: Pick<Spec, "cloudProviderConfig" | "cloudProviderCAData">;
  readonly problems: readonly string[];
} {
  const { configMaps, infrastructure } = sources;
  const { cloudConfig } = inputMapsOf(sources);
  const map = configMaps.get(cloudConfig);
  const platform = infrastructure === undefined ? "None" : platformOf(infrastructure);
  const conf = map?.data?.["cloud.conf"];
  const asked = needCloudConf.has(platform)
    ? conf === undefined
    : (infrastructure?.spec?.cloudConfig?.name ?? "") !== "" && map === undefined;
  const kept = {
    cloudProviderConfig: before?.cloudProviderConfig ?? "",
    cloudProviderCAData: before?.cloudProviderCAData ?? null,
  };
  if (asked)
    return {
      fields: kept,
      problems: [
        `the ConfigMap ${cloudConfig}${map === undefined ? " is missing" : " has no cloud.conf"}, which machines on ${platform} need`,
      ],
    };
  const ca = bytesAt(map, "ca-bundle.pem") ?? null;
  const what = `ca-bundle.pem of the ConfigMap ${cloudConfig}`;
  const { data, problems } = lastGood(what, ca, before?.cloudProviderCAData);
  return { fields: { cloudProviderConfig: conf ?? "", cloudProviderCAData: data }, problems };
}

type Bundles = NonNullable<Spec["imageRegistryBundleData"]>;

/** The certificates of registries in a ConfigMap; of each that cannot be read, the last one that could. */
function judgedBundles(
  name: string,
  map: Pick<ConfigMap, "data" | "binaryData"> | undefined,
  before: Bundles,
): Kept<Bundles> {
  const judged = bundlesOf(map).map(({ file, data }) => {
    const last = before.find((one) => one.file === file)?.data;
    const what = `${file} of the ConfigMap ${name}`;
    const kept = lastGood(what, data, last);
    const problems = isRegistry(file)
      ? kept.problems
      : [`${what} is no name of a registry: it must be HOST or HOST..PORT`];
    return { entry: { file, data: kept.data }, problems };
  });
  return { data: judged.map(({ entry }) => entry), problems: judged.flatMap(({ problems }) => problems) };
}

function bundlesOf(map: Pick<ConfigMap, "data" | "binaryData"> | undefined): Bundles {
  const keys = [...new Set([...Object.keys(map?.data ?? {}), ...Object.keys(map?.binaryData ?? {})])].sort();
  return keys.map((file) => ({ file, data: bytesAt(map, file) ?? "" }));
}

/** Certificates of registries, by file name `host..port`: the cluster's own and the administrator's. */
function registryBundles(
  sources: ClusterSources,
  before: Spec | undefined,
): {
  readonly fields: Pick<Spec, "imageRegistryBundleData" | "imageRegistryBundleUserData">;
  readonly problems: readonly string[];
} {
  const { configMaps, image } = sources;
  const named = image?.spec?.additionalTrustedCA?.name ?? "";
  const userMap = namedMap(named, sources);
  const user = configMaps.get(userMap);
  const lacking = named !== "" && user === undefined;
  const lastOfUser = before?.imageRegistryBundleUserData ?? [];
  const ofUser: Kept<Bundles> = lacking
    ? {
        data: lastOfUser,
        problems: [`the ConfigMap ${userMap}, which Image/cluster names as its additional trusted CA, is missing`],
      }
    : judgedBundles(userMap, named === "" ? undefined : user, lastOfUser);
  const { registryCa } = inputMapsOf(sources);
  const ofCluster = judgedBundles(registryCa, configMaps.get(registryCa), before?.imageRegistryBundleData ?? []);
  return {
    fields: { imageRegistryBundleData: ofCluster.data, imageRegistryBundleUserData: ofUser.data },
    problems: [...ofCluster.problems, ...ofUser.problems],
  };
}

/** The published union of all registries' certificates: file name → PEM. */
export function mergedRegistryCas(
  spec: Pick<Spec, "imageRegistryBundleData" | "imageRegistryBundleUserData">,
): Readonly<Record<string, string>> {
  const all = [...(spec.imageRegistryBundleData ?? []), ...(spec.imageRegistryBundleUserData ?? [])];
  return Object.fromEntries(all.map(({ file, data }) => [file, textOfBase64(data)]));
}

/** Whether configurations may be rendered from a ControllerConfig, and if not, why. */
export type VersionGate =
  | { readonly verdict: "open" }
  | {
      readonly verdict: "closed";
      readonly reason: "ControllerConfigAbsent" | "ControllerConfigOfOtherVersion" | "ControllerConfigNotCompleted";
      readonly message: string;
    };

/**
 * Base configurations must be complete and of this version before pools are rendered from them: otherwise a pool would
 * roll out a mixture of two releases.
 */
export function versionGate(config: ControllerConfig | undefined, version: string): VersionGate {
  if (config === undefined)
    return {
      verdict: "closed",
      reason: "ControllerConfigAbsent",
      message: "the operator has not written the ControllerConfig yet",
    };
  const by = config.metadata.annotations?.[annotations.generatedByVersion] ?? "";
  if (by !== version)
    return {
      verdict: "closed",
      reason: "ControllerConfigOfOtherVersion",
      message: `the ControllerConfig is of version ${by === "" ? "unknown" : by}, and this controller is ${version}`,
    };
  if (!isCompleted(config))
    return {
      verdict: "closed",
      reason: "ControllerConfigNotCompleted",
      message: "the base configurations are not complete yet",
    };
  return { verdict: "open" };
}

/** Whether the template controller has processed the newest generation. */
export function isCompleted(config: ControllerConfig): boolean {
  const { status } = config;
  const is = (type: string) =>
    conditionOf(status?.conditions as { type: string; status?: string }[] | undefined, type)?.status;
  return (
    status?.observedGeneration === (config.metadata.generation ?? 1) &&
    is(types.completed) === "True" &&
    is(types.running) !== "True" &&
    is(types.failing) !== "True"
  );
}

/**
 * Why the template controller cannot generate the base configurations of the newest generation; `undefined`: it does
 * not report a failure.
 */
export function failureOf(config: ControllerConfig): string | undefined {
  const { status } = config;
  const failing = conditionOf(
    status?.conditions as { type: string; status?: string; message?: string }[] | undefined,
    types.failing,
  );
  return failing?.status === "True" ? (failing.message ?? "") : undefined;
}

/** Which input the template controller has refused; `undefined`: none. */
export function inputRefusedIn({ status }: ControllerConfig): string | undefined {
  const refused = conditionOf(status?.conditions as readonly Condition[] | undefined, types.inputRefused);
  return refused?.status === "True" ? (refused.message ?? "") : undefined;
}

/** The progress of the template controller. */
export type TemplateProgress =
  | { readonly at: "running" }
  /** `problem`: of an input, in whose place the last good one was used. */
  | { readonly at: "completed"; readonly version: string; readonly problem?: string | undefined }
  | { readonly at: "failing"; readonly message: string };

/**
 * The status of a ControllerConfig; the same value when nothing changed. Texts: openshift/machine-config-operator
 * pkg/controller/template/status.go (main).
 */
export function templateStatus(
  config: ControllerConfig,
  progress: TemplateProgress,
  now: number,
): NonNullable<ControllerConfig["status"]> {
  const generation = config.metadata.generation ?? 1;
  const before = config.status?.conditions as readonly Condition[] | undefined;
  const refused = progress.at === "completed" ? (progress.problem ?? "") : (inputRefusedIn(config) ?? "");
  const condition = (type: string, is: boolean, message: string) => {
    const reason = is ? type.replace("TemplateController", "") : "AsExpected";
    return withTransition(conditionOf(before, type), { type, status: is ? "True" : "False", reason, message }, now);
  };
  const conditions = [
    condition(
      types.completed,
      progress.at === "completed",
      progress.at === "completed"
        ? `sync completed towards (${generation}) generation using controller version ${progress.version}`
        : "",
    ),
    condition(
      types.running,
      progress.at === "running",
      progress.at === "running" ? `syncing towards (${generation}) generation` : "",
    ),
    condition(types.failing, progress.at === "failing", progress.at === "failing" ? progress.message : ""),
    // The reference does not know this condition: a cluster that never refused an input does not have it.
    ...(refused === "" && conditionOf(before, types.inputRefused) === undefined
      ? []
      : [condition(types.inputRefused, refused !== "", refused)]),
  ];
  return {
    ...config.status,
    observedGeneration: generation,
    conditions,
    controllerCertificates: certificatesIn(config),
  };
}

/**
 * Certificates on machines, by the field that they come from; a registry's by its file. Unreadable ones are left out.
 */
function certificatesIn({
  spec,
}: ControllerConfig): NonNullable<NonNullable<ControllerConfig["status"]>["controllerCertificates"]> {
  const bundles: readonly (readonly [file: string, data: string | null | undefined])[] = [
    ["KubeAPIServerServingCAData", spec.kubeAPIServerServingCAData],
    ["CloudProviderCAData", spec.cloudProviderCAData],
    ["RootCAData", spec.rootCAData],
    ["AdditionalTrustBundle", spec.additionalTrustBundle],
    ...[...(spec.imageRegistryBundleData ?? []), ...(spec.imageRegistryBundleUserData ?? [])].map(
      ({ file, data }) => [file, data] as const,
    ),
  ];
  return bundles.flatMap(([bundleFile, data]) =>
    certificatesOf(data === null || data === undefined ? "" : textOfBase64(data)).map(
      ({ subject, signer, notBefore, notAfter }) => ({ subject, signer, bundleFile, notBefore, notAfter }),
    ),
  );
}

/** The certificates by which machines verify the API server, with their expiry, as pools show them. */
export function certificateExpiries(
  config: ControllerConfig | undefined,
): readonly { readonly bundle: string; readonly subject: string; readonly expiry: string }[] {
  return (config?.status?.controllerCertificates ?? []).flatMap(({ bundleFile, subject, notAfter }) =>
    bundleFile === "KubeAPIServerServingCAData" && notAfter !== undefined
      ? [{ bundle: bundleFile, subject, expiry: notAfter }]
      : [],
  );
}
