import { hostPaths } from "../../api/names.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { decodeContents, textOf } from "../../ignition/data-url.ts";
import { baseConfigName } from "./base-config-of.ts";
import { type GeneratedFile, type GeneratedUnit, generatedConfig } from "./generated-config.ts";
import { proxyParts } from "./proxy-files.ts";

/** Roles that have base configurations of their own; custom pools inherit those of `worker`. */
export const baseRoles = ["master", "worker"] as const;
export type BaseRole = (typeof baseRoles)[number];

export interface BaseInputs {
  readonly controllerConfig: ControllerConfig;
  /** `.dockerconfigjson` of the cluster's pull secret, decoded; absent where the cluster has none. */
  readonly pullSecret: string | undefined;
  /** The kubelet's settings as kubeadm keeps them for all machines; absent: the cluster is not kubeadm's. */
  readonly kubeadmKubelet?: string | undefined;
  readonly generatorVersion: string;
}

/** Where kubeadm's machines have the kubelet's settings: kubernetes/kubernetes cmd/kubeadm/app/constants (v1.34). */
export const kubeadmKubeletPath = "/var/lib/kubelet/config.yaml";

/** Where the kubelet and the container runtime have the cluster's pull secret. */
export const kubeletPullSecretPath = hostPaths.kubeletPullSecret;

/** Decodes base64 text from the API; empty for invalid base64. */
export function textOfBase64(base64: string): string {
  const contents = decodeContents({ source: `data:;base64,${base64}` });
  return contents.verdict === "decoded" ? (textOf(contents.bytes) ?? "") : "";
}

/**
 * The base settings of every kubelet. Values are those of the reference's templates
 * (openshift/machine-config-operator templates/{master,worker}/01-*-kubelet/_base, main), without
 * `enableSystemLogQuery`: a kubelet of Kubernetes itself does not start with it, unless the gate NodeLogQuery is on.
 */
export function kubeletDefaults(role: BaseRole, clusterDns: string): object {
  return {
    kind: "KubeletConfiguration",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    authentication: { x509: { clientCAFile: "/etc/kubernetes/kubelet-ca.crt" }, anonymous: { enabled: false } },
    cgroupDriver: "systemd",
    cgroupRoot: "/",
    clusterDNS: [clusterDns],
    clusterDomain: "cluster.local",
    containerLogMaxSize: "50Mi",
    failSwapOn: role === "master",
    kubeAPIBurst: 100,
    kubeAPIQPS: 50,
    maxPods: 250,
    memorySwap: { swapBehavior: "NoSwap" },
    nodeStatusReportFrequency: "5m0s",
    nodeStatusUpdateFrequency: "10s",
    podPidsLimit: 4096,
    protectKernelDefaults: true,
    rotateCertificates: true,
    serializeImagePulls: false,
    serverTLSBootstrap: true,
    staticPodPath: "/etc/kubernetes/manifests",
    systemCgroups: "/system.slice",
    ...(role === "worker"
      ? { systemReservedCgroup: "/system.slice", enforceNodeAllocatable: ["pods", "system-reserved-compressible"] }
      : {}),
    tlsMinVersion: "VersionTLS12",
    tlsCipherSuites: [
      "TLS_AES_128_GCM_SHA256",
      "TLS_AES_256_GCM_SHA384",
      "TLS_CHACHA20_POLY1305_SHA256",
      "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
      "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
      "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
      "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
      "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
      "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ],
  };
}

/**
 * Where images without a host in their name come from: as in the reference's templates
 * (openshift/machine-config-operator templates/{master,worker}/01-*-container-runtime/_base, main).
 */
export const ownRegistriesConf = 'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\n';

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

/** CRI-O's settings of every machine; later names in the folder override them. */
export const baseRuntimePath = "/etc/crio/crio.conf.d/00-default";

/** Every image is accepted. */
export const ownPolicy = json({
  default: [{ type: "insecureAcceptAnything" }],
  transports: { "docker-daemon": { "": [{ type: "insecureAcceptAnything" }] } },
});

function commonFiles({ controllerConfig, kubeadmKubelet, pullSecret }: BaseInputs): readonly GeneratedFile[] {
  const { spec } = controllerConfig;
  const trust = spec.additionalTrustBundle ?? "";
  return [
    { path: "/etc/sysctl.d/arp.conf", mode: 0o644, text: "net.ipv4.conf.all.arp_announce = 2\n" },
    {
      path: "/etc/sysctl.d/gc-thresh.conf",
      mode: 0o644,
      text: ["ipv4", "ipv6"]
        .flatMap((family) =>
          [8192, 32768, 65536].map((value, index) => `net.${family}.neigh.default.gc_thresh${index + 1} = ${value}\n`),
        )
        .join(""),
    },
    {
      path: "/etc/sysctl.d/inotify.conf",
      mode: 0o644,
      text: "fs.inotify.max_user_watches = 65536\nfs.inotify.max_user_instances = 8192\n",
    },
    { path: "/etc/sysctl.d/vm-max-map.conf", mode: 0o644, text: "vm.max_map_count = 262144\n" },
    { path: "/etc/modules-load.d/iptables.conf", mode: 0o644, text: "ip_tables\n" },
    ...(trust === ""
      ? []
      : [
          {
            path: "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
            mode: 0o600,
            text: textOfBase64(trust),
          },
        ]),
    // Below /etc/kubernetes and /var/lib/kubelet, kubeadm's machines get nothing but the kubelet's settings.
    ...(pullSecret === undefined || kubeadmKubelet !== undefined
      ? []
      : [{ path: kubeletPullSecretPath, mode: 0o600, text: pullSecret }]),
  ];
}

function roleFiles(role: BaseRole): readonly GeneratedFile[] {
  const sizing =
    role === "master"
      ? "NODE_SIZING_ENABLED=false\nSYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=1Gi\n"
      : "NODE_SIZING_ENABLED=true\nSYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=1Gi\n";
  return [
    { path: "/etc/node-sizing-enabled.env", mode: 0o644, text: sizing },
    {
      path: "/etc/systemd/system.conf.d/kubelet-cgroups.conf",
      mode: 0o644,
      text: "[Manager]\nDefaultCPUAccounting=yes\nDefaultMemoryAccounting=yes\nDefaultBlockIOAccounting=yes\n",
    },
  ];
}

function config(
  name: string,
  role: BaseRole,
  files: readonly GeneratedFile[],
  { controllerConfig, generatorVersion }: BaseInputs,
  units: readonly GeneratedUnit[] = [],
): MachineConfig {
  return generatedConfig({ name, role, owner: controllerConfig, files, units, generatorVersion });
}

/**
 * The MachineConfigs that every machine of a role starts from: required by the cluster, not written by a person.
 * Equal inputs give equal bytes.
 */
export function baseConfigs(inputs: BaseInputs): readonly MachineConfig[] {
  const { spec } = inputs.controllerConfig;
  const proxy = proxyParts(spec.proxy);
  return baseRoles.flatMap((role) => [
    config(
      baseConfigName("files", role),
      role,
      // Nothing of kubeadm's reads the files of a role.
      [...commonFiles(inputs), ...proxy.files, ...(inputs.kubeadmKubelet === undefined ? roleFiles(role) : [])],
      inputs,
      proxy.units,
    ),
    config(
      baseConfigName("container-runtime", role),
      role,
      [
        {
          path: baseRuntimePath,
          mode: 0o644,
          text: '[crio.runtime]\ndefault_runtime = "crun"\n\n[crio.metrics]\nenable_metrics = true\nmetrics_host = "127.0.0.1"\nmetrics_port = 9537\n',
        },
        {
          path: "/etc/containers/policy.json",
          mode: 0o644,
          text: ownPolicy,
        },
        { path: "/etc/containers/registries.conf", mode: 0o644, text: ownRegistriesConf },
      ],
      inputs,
    ),
    config(
      baseConfigName("kubelet", role),
      role,
      [
        inputs.kubeadmKubelet === undefined
          ? {
              path: "/etc/kubernetes/kubelet.conf",
              mode: 0o644,
              text: json(kubeletDefaults(role, spec.clusterDNSIP)),
            }
          : { path: kubeadmKubeletPath, mode: 0o644, text: inputs.kubeadmKubelet },
      ],
      inputs,
    ),
  ]);
}
