import { configGroup, operatorGroup } from "../names.ts";
import { type Condition, type KubeObject, resource } from "../schema/object.ts";

/**
 * OpenShift kinds that the suite reads if the cluster has them, limited to the fields that it reads: openshift/api
 * config/v1 types_*.go and operator/v1alpha1 types_image_content_source_policy.go (master).
 */
export interface Infrastructure extends KubeObject {
  readonly spec?: { readonly cloudConfig?: { readonly name?: string; readonly key?: string } };
  readonly status?: {
    readonly platform?: string;
    readonly platformStatus?: { readonly type?: string };
    readonly controlPlaneTopology?: string;
    readonly infrastructureTopology?: string;
    readonly apiServerInternalURI?: string;
  };
}

interface Mtu {
  readonly from?: number;
  readonly to?: number;
}

export interface Network extends KubeObject {
  readonly spec?: { readonly serviceNetwork?: readonly string[]; readonly networkType?: string };
  readonly status?: {
    readonly serviceNetwork?: readonly string[];
    readonly networkType?: string;
    readonly migration?: {
      readonly networkType?: string;
      readonly mtu?: { readonly network?: Mtu; readonly machine?: Mtu };
    };
  };
}

export interface Dns extends KubeObject {
  readonly spec?: { readonly baseDomain?: string };
}

export interface Proxy extends KubeObject {
  readonly spec?: { readonly trustedCA?: { readonly name?: string } };
  readonly status?: { readonly httpProxy?: string; readonly httpsProxy?: string; readonly noProxy?: string };
}

/** Which registries machines pull from, and how. */
export interface RegistrySources {
  readonly insecureRegistries?: readonly string[];
  readonly blockedRegistries?: readonly string[];
  readonly allowedRegistries?: readonly string[];
  readonly containerRuntimeSearchRegistries?: readonly string[];
}

export interface ImageConfig extends KubeObject {
  readonly spec?: {
    readonly additionalTrustedCA?: { readonly name?: string };
    readonly registrySources?: RegistrySources;
  };
}

/** Where else the images of a source are, in the order in which machines ask. */
export interface ImageMirrors {
  readonly source: string;
  readonly mirrors?: readonly string[];
  /** `NeverContactSource`: an image that no mirror has is not pulled. */
  readonly mirrorSourcePolicy?: "AllowContactingSource" | "NeverContactSource";
}

export interface ImageDigestMirrorSet extends KubeObject {
  readonly spec?: { readonly imageDigestMirrors?: readonly ImageMirrors[] };
}

export interface ImageTagMirrorSet extends KubeObject {
  readonly spec?: { readonly imageTagMirrors?: readonly ImageMirrors[] };
}

/** The older form of {@link ImageDigestMirrorSet}, of group operator.openshift.io. */
export interface ImageContentSourcePolicy extends KubeObject {
  readonly spec?: { readonly repositoryDigestMirrors?: readonly Omit<ImageMirrors, "mirrorSourcePolicy">[] };
}

/** What the signature of an image must satisfy. */
export interface ImagePolicySpec {
  readonly scopes?: readonly string[];
  readonly policy?: {
    readonly rootOfTrust?: {
      readonly policyType?: string;
      readonly publicKey?: { readonly keyData?: string; readonly rekorKeyData?: string };
      readonly fulcioCAWithRekor?: {
        readonly fulcioCAData?: string;
        readonly rekorKeyData?: string;
        readonly fulcioSubject?: { readonly oidcIssuer?: string; readonly signedEmail?: string };
      };
      readonly pki?: {
        readonly caRootsData?: string;
        readonly caIntermediatesData?: string;
        readonly pkiCertificateSubject?: { readonly email?: string; readonly hostname?: string };
      };
    };
    readonly signedIdentity?: {
      readonly matchPolicy?: string;
      readonly exactRepository?: { readonly repository?: string };
      readonly remapIdentity?: { readonly prefix?: string; readonly signedPrefix?: string };
    };
  };
}

/** A ClusterImagePolicy holds for all namespaces, an ImagePolicy for its own. */
export interface ImagePolicy extends KubeObject {
  readonly spec?: ImagePolicySpec;
  readonly status?: { readonly conditions?: readonly Condition[] };
}

/** For which images kubelets ask CRI-O for credentials. */
export interface CredentialProviderConfig extends KubeObject {
  readonly spec?: { readonly matchImages?: readonly string[] };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface ClusterVersion extends KubeObject {
  readonly status?: {
    readonly desired?: {
      readonly image?: string;
      readonly version?: string;
      /** `Multi` where machines of several architectures can run; else absent. */
      readonly architecture?: string;
    };
    /** The newest first. */
    readonly history?: readonly { readonly state?: string; readonly version?: string }[];
  };
}

interface NamedGate {
  readonly name: string;
}

export interface FeatureGate extends KubeObject {
  readonly spec?: {
    readonly featureSet?: string;
    readonly customNoUpgrade?: { readonly enabled?: readonly string[]; readonly disabled?: readonly string[] } | null;
  };
  /** What each version of the cluster makes of the spec. */
  readonly status?: {
    readonly featureGates?: readonly {
      readonly version: string;
      readonly enabled?: readonly NamedGate[];
      readonly disabled?: readonly NamedGate[];
    }[];
  };
}

/** Settings of all nodes; not the kind of Kubernetes. */
export interface ConfigNode extends KubeObject {
  readonly spec?: { readonly cgroupMode?: string; readonly workerLatencyProfile?: string };
}

export interface SchedulerConfig extends KubeObject {
  readonly spec?: { readonly mastersSchedulable?: boolean };
}

export interface ApiServerConfig extends KubeObject {
  readonly spec?: {
    readonly tlsSecurityProfile?: {
      readonly type?: string;
      readonly custom?: { readonly ciphers?: readonly string[]; readonly minTLSVersion?: string };
    } | null;
  };
}

/** A machine of the machine API: openshift/api machine/v1beta1/types_machine.go (master). */
export interface Machine extends KubeObject {
  readonly status?: {
    readonly nodeRef?: { readonly name?: string };
    readonly addresses?: readonly { readonly type?: string; readonly address?: string }[];
  };
}

/** Machines of one form: openshift/api machine/v1beta1/types_machineset.go (master). */
export interface MachineSet extends KubeObject {
  readonly spec?: {
    readonly template?: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      /** Its value is of the platform's own form. */
      readonly spec?: { readonly providerSpec?: { readonly value?: unknown } };
    };
  };
  readonly status?: {
    /** Which API the set is written by, where a cluster moves from one to another. */
    readonly authoritativeAPI?: string;
  };
}

/** Singletons of group config.openshift.io are named `cluster`. */
export const openshift = {
  Infrastructure: resource<Infrastructure>(`${configGroup}/v1`, "Infrastructure", "infrastructures", "Cluster"),
  Network: resource<Network>(`${configGroup}/v1`, "Network", "networks", "Cluster"),
  Dns: resource<Dns>(`${configGroup}/v1`, "DNS", "dnses", "Cluster"),
  Proxy: resource<Proxy>(`${configGroup}/v1`, "Proxy", "proxies", "Cluster"),
  Image: resource<ImageConfig>(`${configGroup}/v1`, "Image", "images", "Cluster"),
  Scheduler: resource<SchedulerConfig>(`${configGroup}/v1`, "Scheduler", "schedulers", "Cluster"),
  APIServer: resource<ApiServerConfig>(`${configGroup}/v1`, "APIServer", "apiservers", "Cluster"),
  FeatureGate: resource<FeatureGate>(`${configGroup}/v1`, "FeatureGate", "featuregates", "Cluster"),
  ConfigNode: resource<ConfigNode>(`${configGroup}/v1`, "Node", "nodes", "Cluster"),
  /** ClusterVersion is named `version`. */
  ClusterVersion: resource<ClusterVersion>(`${configGroup}/v1`, "ClusterVersion", "clusterversions", "Cluster"),
  ImageDigestMirrorSet: resource<ImageDigestMirrorSet>(
    `${configGroup}/v1`,
    "ImageDigestMirrorSet",
    "imagedigestmirrorsets",
    "Cluster",
  ),
  ImageTagMirrorSet: resource<ImageTagMirrorSet>(
    `${configGroup}/v1`,
    "ImageTagMirrorSet",
    "imagetagmirrorsets",
    "Cluster",
  ),
  ImageContentSourcePolicy: resource<ImageContentSourcePolicy>(
    `${operatorGroup}/v1alpha1`,
    "ImageContentSourcePolicy",
    "imagecontentsourcepolicies",
    "Cluster",
  ),
  ClusterImagePolicy: resource<ImagePolicy>(
    `${configGroup}/v1`,
    "ClusterImagePolicy",
    "clusterimagepolicies",
    "Cluster",
  ),
  ImagePolicy: resource<ImagePolicy>(`${configGroup}/v1`, "ImagePolicy", "imagepolicies", "Namespaced"),
  CRIOCredentialProviderConfig: resource<CredentialProviderConfig>(
    `${configGroup}/v1`,
    "CRIOCredentialProviderConfig",
    "criocredentialproviderconfigs",
    "Cluster",
  ),
  Machine: resource<Machine>("machine.openshift.io/v1beta1", "Machine", "machines", "Namespaced"),
  MachineSet: resource<MachineSet>("machine.openshift.io/v1beta1", "MachineSet", "machinesets", "Namespaced"),
} as const;
