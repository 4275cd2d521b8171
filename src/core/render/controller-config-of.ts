import { utf8ToBytes } from "@noble/hashes/utils.js";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { ConfigMap } from "../../api/foreign/kubernetes.ts";
import { annotations, controllerConfigConditions as types, namespace } from "../../api/names.ts";
import { withTransition } from "../../api/schema/conditions.ts";
import { type Condition, type KubeObject, conditionOf } from "../../api/schema/object.ts";
import type { Dns, ImageConfig, Infrastructure, Network, Proxy } from "../../api/foreign/openshift.ts";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { textOfBase64 } from "./base-configs.ts";
import { certificatesOf } from "../certificates/certificate-facts.ts";
import type { ReleaseImages } from "./release-of.ts";
import { dnsAddressIn, ipFamiliesOf } from "./service-network.ts";

type Spec = ControllerConfig["spec"];

/** Kinds of config.openshift.io that ControllerConfig is made from. */
export const sourceKinds = ["Infrastructure", "Network", "DNS", "Proxy", "Image"] as const;
export type SourceKind = (typeof sourceKinds)[number];

/** Everything in a cluster that says what ControllerConfig is to say. */
export interface ClusterSources {
  /**
   * Which of the kinds the API server has: where it has one, an object that is missing is waited for, never taken for
   * "nothing".
   */
  readonly kinds: ReadonlySet<SourceKind>;
  readonly infrastructure?: Infrastructure | undefined;
  readonly network?: Network | undefined;
  readonly dns?: Dns | undefined;
  readonly proxy?: Proxy | undefined;
  readonly image?: ImageConfig | undefined;
  /** Addresses of the Service kube-system/kube-dns, by which other clusters say where their DNS is. */
  readonly dnsServiceAddresses: readonly string[];
  /** By namespace and name. */
  readonly configMaps: ReadonlyMap<string, Pick<ConfigMap, "data" | "binaryData">>;
  /** The cluster has not arrived at any version yet: machines still have what they were installed with. */
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
  /** `problems`: what could not be read, in sentences without contents; its fields stay as they were. */
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
/** Platforms on which machines cannot do without a cloud.conf: the same file. */
const needCloudConf: ReadonlySet<string> = new Set(["Azure", "GCP", "OpenStack", "VSphere"]);

const config = "openshift-config";
const managed = "openshift-config-managed";
/** ConfigMaps by namespace and name, as openshift/machine-config-operator pkg/operator/sync.go (main) reads them. */
export const sourceMaps = {
  userCa: `${config}/user-ca-bundle`,
  initialServingCa: `${config}/initial-kube-apiserver-server-ca`,
  clientCa: `${managed}/kube-apiserver-client-ca`,
  registryCa: `${managed}/image-registry-ca`,
  cloudConfig: `${managed}/kube-cloud-config`,
  /** Authorities by which the API server proves itself. */
  serverProof: `${managed}/kube-apiserver-server-ca`,
  kubeletSigner: "openshift-kube-apiserver-operator/kube-apiserver-to-kubelet-client-ca",
  bootstrapped: "kube-system/bootstrap",
  rootCa: "kube-system/root-ca",
  /**
   * What every Kubernetes says of itself: kubernetes/kubernetes pkg/controlplane/controller/clusterauthenticationtrust
   * (v1.34).
   */
  authentication: "kube-system/extension-apiserver-authentication",
  serverCa: `${namespace}/machine-config-server-ca`,
  publishedRoot: `${namespace}/kube-root-ca.crt`,
} as const;

/** Where the union of all registries' certificates is published for others. */
export const mergedRegistryCa = { namespace: managed, name: "merged-trusted-image-registry-ca" } as const;

const base64 = (text: string) => encodeBase64(utf8ToBytes(text));

/** The bytes of a key, in base64: values of `data` may be text, or base64 already. */
function bytesAt(map: Pick<ConfigMap, "data" | "binaryData"> | undefined, key: string): string | undefined {
  const binary = map?.binaryData?.[key];
  if (binary !== undefined) return binary;
  const text = map?.data?.[key];
  return text === undefined ? undefined : asBytes(text);
}

function asBytes(text: string): string {
  const packed = text.replaceAll(/[\r\n]/g, "");
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed) ? packed : base64(text);
}

/**
 * What the operator writes into ControllerConfig. Where the cluster has the kinds of config.openshift.io they decide;
 * on plain Kubernetes its own objects do, and what has no source there stays at its default. A value whose source
 * cannot be read stays what it was: a rotation of certificates must not wait for a broken bundle, nor machines roll for
 * one.
 *
 * @param before what ControllerConfig says now.
 */
export function controllerConfigOf(sources: ClusterSources, before: Spec | undefined): ControllerConfigOf {
  const required = requiredFields(sources, before);
  if (required.verdict === "waiting") return required;
  const trust = trustBundle(sources, before);
  const cloud = cloudOf(sources, before);
  const registries = registryBundles(sources, before);
  const spec: Spec = {
    ...required.fields,
    ...cloud.fields,
    ...clusterFields(sources),
    additionalTrustBundle: trust.data,
    ...registries.fields,
    pullSecret: { kind: "Secret", namespace: config, name: "pull-secret" },
    ...(sources.internalRegistryPullSecret === undefined
      ? {}
      : { internalRegistryPullSecret: base64(sources.internalRegistryPullSecret) }),
    ...imageFields(sources),
  };
  return {
    verdict: "known",
    spec,
    problems: [
      ...trust.problems,
      ...cloud.problems,
      ...registries.problems,
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
    }
  | Extract<ControllerConfigOf, { readonly verdict: "waiting" }> {
  const { infrastructure, network, dns, proxy, image } = sources;
  const present: Readonly<Record<SourceKind, KubeObject | undefined>> = {
    Infrastructure: infrastructure,
    Network: network,
    DNS: dns,
    Proxy: proxy,
    Image: image,
  };
  const awaited = sourceKinds.filter((kind) => sources.kinds.has(kind) && present[kind] === undefined);
  if (awaited.length > 0)
    return { verdict: "waiting", message: `waiting for ${awaited.map((kind) => `${kind}/cluster`).join(", ")}` };
  const root = rootCa(sources);
  const serving = servingCa(sources) ?? before?.kubeAPIServerServingCAData;
  if (root === undefined || serving === undefined)
    return { verdict: "waiting", message: `waiting for the ConfigMap kube-root-ca.crt in ${namespace}` };
  const networkPart = network === undefined ? plainNetwork(sources, before) : networkOf(network, before);
  if (networkPart === undefined)
    return { verdict: "waiting", message: "waiting for a service network in Network/cluster" };
  return {
    verdict: "known",
    fields: { ...networkPart, kubeAPIServerServingCAData: serving, rootCAData: root },
  };
}

/** What the kinds of config.openshift.io say of the cluster as a whole; null or absent on plain Kubernetes. */
function clusterFields({
  infrastructure,
  dns,
  proxy,
}: ClusterSources): Pick<Spec, "platform" | "proxy" | "infra" | "dns"> {
  const platform = infrastructure === undefined ? undefined : platformOf(infrastructure);
  const status = proxy?.status ?? {};
  return {
    ...(platform === undefined ? {} : { platform: platform.toLowerCase() }),
    proxy: Object.values(status).some((value) => value !== "") ? { ...status } : null,
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

/**
 * An object inside another one: without what changes whenever anybody touches it, which would roll nothing but
 * generations.
 */
function embedded(object: KubeObject, more: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { metadata, ...rest } = object;
  return { ...rest, ...more, metadata: { name: metadata.name } };
}

/** Older clusters say their platform outside of `platformStatus`; `None` where they do not say it. */
function platformOf({ status }: Infrastructure): string {
  const type = status?.platformStatus?.type ?? "";
  return type !== "" ? type : (status?.platform ?? "") !== "" ? (status?.platform ?? "") : "None";
}

/** The authority of the config server, and before it has one of its own, the cluster's. */
function rootCa({ configMaps }: ClusterSources): string | undefined {
  return (
    bytesAt(configMaps.get(sourceMaps.serverCa), "ca-bundle.crt") ??
    bytesAt(configMaps.get(sourceMaps.rootCa), "ca.crt") ??
    bytesAt(configMaps.get(sourceMaps.publishedRoot), "ca.crt")
  );
}

/**
 * Whom kubelets believe to be the API server. During bring-up that is what the installer gave the first machines: else
 * the first rendered configuration would have another name than the one they are on.
 */
function servingCa({ configMaps, bringUp }: ClusterSources): string | undefined {
  const key = "ca-bundle.crt";
  const initial = bytesAt(configMaps.get(sourceMaps.initialServingCa), key);
  const current = bytesAt(configMaps.get(sourceMaps.clientCa), key);
  const isOpenShift = initial !== undefined || current !== undefined;
  if (!isOpenShift)
    return (
      bytesAt(configMaps.get(sourceMaps.authentication), "client-ca-file") ??
      bytesAt(configMaps.get(sourceMaps.publishedRoot), "ca.crt")
    );
  if (configMaps.has(sourceMaps.bootstrapped) && !bringUp) return current;
  if (initial === undefined) return current;
  const signer = bytesAt(configMaps.get(sourceMaps.kubeletSigner), key);
  return signer === undefined ? initial : base64(withSigner(textOfBase64(initial), textOfBase64(signer)));
}

/** The initial bundle with the certificate of the signer, which is rotated after a year, as it is now. */
export function withSigner(initial: string, current: string): string {
  return certificatesOf(initial)
    .map(({ commonName, pem }) => (commonName.includes(kubeletSigner) ? current : pem))
    .join("");
}

type NetworkFields = Pick<Spec, "clusterDNSIP" | "ipFamilies" | "networkType" | "network">;

function networkOf({ spec, status }: Network, before: Spec | undefined): NetworkFields | undefined {
  const services = spec?.serviceNetwork ?? [];
  const clusterDNSIP = dnsAddressIn(services[0] ?? "") ?? before?.clusterDNSIP;
  if (clusterDNSIP === undefined || services.length === 0) return undefined;
  const migration = status?.networkType === undefined || status.networkType === "" ? undefined : status.migration;
  // What somebody asked for counts only once the network operator has begun with it.
  const networkType =
    [migration?.networkType, status?.networkType, spec?.networkType].find(
      (type) => type !== undefined && type !== "",
    ) ?? "";
  return {
    clusterDNSIP,
    ipFamilies: ipFamiliesOf(services),
    networkType,
    ...(migration?.mtu === undefined ? {} : { network: { mtuMigration: migration.mtu } }),
  };
}

/** A Service that is gone for a moment changes no machine. */
function plainNetwork({ dnsServiceAddresses }: ClusterSources, before: Spec | undefined): NetworkFields {
  const addresses = dnsServiceAddresses.filter((address) => address !== "" && address !== "None");
  const [first = before?.clusterDNSIP ?? defaultDnsIP] = addresses;
  return {
    clusterDNSIP: first,
    ipFamilies: addresses.length === 0 ? (before?.ipFamilies ?? ipFamiliesOf([first])) : ipFamiliesOf(addresses),
    networkType: "",
  };
}

/** What further authorities machines are told to believe: the user's, and the proxy's where that is another one. */
function trustBundle(
  { configMaps, proxy }: ClusterSources,
  before: Spec | undefined,
): { readonly data: string | null; readonly problems: readonly string[] } {
  const ofProxy = proxy?.spec?.trustedCA?.name ?? "";
  const sources = [
    sourceMaps.userCa,
    ...(ofProxy === "" || `${config}/${ofProxy}` === sourceMaps.userCa ? [] : [`${config}/${ofProxy}`]),
  ];
  const problems: string[] = [];
  let whole = "";
  for (const source of sources) {
    const encoded = bytesAt(configMaps.get(source), "ca-bundle.crt");
    if (encoded === undefined && source !== sourceMaps.userCa)
      problems.push(`the ConfigMap ${source}, which Proxy/cluster names as its trusted CA, has no ca-bundle.crt`);
    if (encoded === undefined || encoded === "") continue;
    const text = textOfBase64(encoded);
    if (certificatesOf(text).length === 0)
      problems.push(`ca-bundle.crt of the ConfigMap ${source} holds no certificate that can be read: it must be PEM`);
    whole += `${whole === "" || whole.endsWith("\n") ? "" : "\n"}${text}`;
  }
  if (problems.length > 0) return { data: before?.additionalTrustBundle ?? null, problems };
  return { data: whole === "" ? null : base64(whole), problems };
}

function cloudOf(
  { configMaps, infrastructure }: ClusterSources,
  before: Spec | undefined,
): {
  readonly fields: Pick<Spec, "cloudProviderConfig" | "cloudProviderCAData">;
  readonly problems: readonly string[];
} {
  const map = configMaps.get(sourceMaps.cloudConfig);
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
        `the ConfigMap ${sourceMaps.cloudConfig}${map === undefined ? " is missing" : " has no cloud.conf"}, which machines on ${platform} need`,
      ],
    };
  return {
    fields: { cloudProviderConfig: conf ?? "", cloudProviderCAData: bytesAt(map, "ca-bundle.pem") ?? null },
    problems: [],
  };
}

type Bundles = NonNullable<Spec["imageRegistryBundleData"]>;

function bundlesOf(map: Pick<ConfigMap, "data" | "binaryData"> | undefined): Bundles {
  const keys = [...new Set([...Object.keys(map?.data ?? {}), ...Object.keys(map?.binaryData ?? {})])].sort();
  return keys.map((file) => ({ file, data: bytesAt(map, file) ?? "" }));
}

/** Certificates of registries, by file name `host..port`: the cluster's own, and those that the administrator names. */
function registryBundles(
  { configMaps, image }: ClusterSources,
  before: Spec | undefined,
): {
  readonly fields: Pick<Spec, "imageRegistryBundleData" | "imageRegistryBundleUserData">;
  readonly problems: readonly string[];
} {
  const named = image?.spec?.additionalTrustedCA?.name ?? "";
  const user = configMaps.get(`${config}/${named}`);
  const lacking = named !== "" && user === undefined;
  const ofUser = lacking ? (before?.imageRegistryBundleUserData ?? []) : named === "" ? [] : bundlesOf(user);
  return {
    fields: {
      imageRegistryBundleData: bundlesOf(configMaps.get(sourceMaps.registryCa)),
      imageRegistryBundleUserData: ofUser,
    },
    problems: lacking
      ? [`the ConfigMap ${config}/${named}, which Image/cluster names as its additional trusted CA, is missing`]
      : [],
  };
}

/** The union of all registries' certificates as others read it: file name → PEM. Empty when there is none. */
export function mergedRegistryCas(
  spec: Pick<Spec, "imageRegistryBundleData" | "imageRegistryBundleUserData">,
): Readonly<Record<string, string>> {
  const all = [...(spec.imageRegistryBundleData ?? []), ...(spec.imageRegistryBundleUserData ?? [])];
  return Object.fromEntries(all.map(({ file, data }) => [file, textOfBase64(data)]));
}

/** Why configurations may not be rendered from a ControllerConfig yet, or that they may. */
export type VersionGate =
  | { readonly verdict: "open" }
  | {
      readonly verdict: "closed";
      readonly reason: "ControllerConfigAbsent" | "ControllerConfigOfOtherVersion" | "ControllerConfigNotCompleted";
      readonly message: string;
    };

/**
 * Base configurations must be complete and from this very version before pools are rendered from them: else a pool
 * would roll out a mixture of two releases.
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

/** The template controller has worked off the newest generation. */
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
 * Why the template controller cannot make the base configurations of the newest generation; `undefined` when nothing
 * says so.
 */
export function failureOf(config: ControllerConfig): string | undefined {
  const { status } = config;
  const failing = conditionOf(
    status?.conditions as { type: string; status?: string; message?: string }[] | undefined,
    types.failing,
  );
  return failing?.status === "True" ? (failing.message ?? "") : undefined;
}

/** Where the template controller stands. */
export type TemplateProgress =
  | { readonly at: "running" }
  | { readonly at: "completed"; readonly version: string }
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
  ];
  return {
    ...config.status,
    observedGeneration: generation,
    conditions,
    controllerCertificates: certificatesIn(config),
  };
}

/**
 * Certificates that machines get, by the field that they come from; a registry's by its file. What cannot be read is
 * left out.
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

/** The certificates of machines that the API server is known by, and until when they are good, as pools show them. */
export function certificateExpiries(
  config: ControllerConfig | undefined,
): readonly { readonly bundle: string; readonly subject: string; readonly expiry: string }[] {
  return (config?.status?.controllerCertificates ?? []).flatMap(({ bundleFile, subject, notAfter }) =>
    bundleFile === "KubeAPIServerServingCAData" && notAfter !== undefined
      ? [{ bundle: bundleFile, subject, expiry: notAfter }]
      : [],
  );
}
