import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import { decodeContents, encodeDataUrl, textOf } from "../../ignition/data-url.ts";
import { ignitionVersion } from "../../ignition/types.ts";

/** Roles that have base configurations of their own; custom pools inherit those of `worker`. */
export const baseRoles = ["master", "worker"] as const;
export type BaseRole = (typeof baseRoles)[number];

interface BaseFile {
  readonly path: string;
  readonly mode: number;
  readonly contents: string;
}

export interface BaseInputs {
  readonly controllerConfig: ControllerConfig;
  /** `.dockerconfigjson` of the cluster's pull secret, decoded; absent where the cluster has none. */
  readonly pullSecret: string | undefined;
  readonly generatorVersion: string;
}

/** Decodes base64 text from the API; empty for invalid base64. */
export function textOfBase64(base64: string): string {
  const contents = decodeContents({ source: `data:;base64,${base64}` });
  return contents.verdict === "decoded" ? (textOf(contents.bytes) ?? "") : "";
}

/**
 * The base settings of every kubelet. Values are those of the reference's templates
 * (openshift/machine-config-operator templates/{master,worker}/01-*-kubelet/_base, main).
 */
function kubeletConfiguration(role: BaseRole, clusterDns: string): object {
  return {
    kind: "KubeletConfiguration",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    authentication: { x509: { clientCAFile: "/etc/kubernetes/kubelet-ca.crt" }, anonymous: { enabled: false } },
    cgroupDriver: "systemd",
    cgroupRoot: "/",
    clusterDNS: [clusterDns],
    clusterDomain: "cluster.local",
    containerLogMaxSize: "50Mi",
    enableSystemLogQuery: true,
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

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

function commonFiles({ controllerConfig, pullSecret }: BaseInputs): readonly BaseFile[] {
  const { spec } = controllerConfig;
  const trust = spec.additionalTrustBundle ?? "";
  return [
    { path: "/etc/sysctl.d/arp.conf", mode: 0o644, contents: "net.ipv4.conf.all.arp_announce = 2\n" },
    {
      path: "/etc/sysctl.d/gc-thresh.conf",
      mode: 0o644,
      contents: ["ipv4", "ipv6"]
        .flatMap((family) =>
          [8192, 32768, 65536].map((value, index) => `net.${family}.neigh.default.gc_thresh${index + 1} = ${value}\n`),
        )
        .join(""),
    },
    {
      path: "/etc/sysctl.d/inotify.conf",
      mode: 0o644,
      contents: "fs.inotify.max_user_watches = 65536\nfs.inotify.max_user_instances = 8192\n",
    },
    { path: "/etc/sysctl.d/vm-max-map.conf", mode: 0o644, contents: "vm.max_map_count = 262144\n" },
    { path: "/etc/modules-load.d/iptables.conf", mode: 0o644, contents: "ip_tables\n" },
    ...(trust === ""
      ? []
      : [
          {
            path: "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
            mode: 0o600,
            contents: textOfBase64(trust),
          },
        ]),
    ...(pullSecret === undefined ? [] : [{ path: "/var/lib/kubelet/config.json", mode: 0o600, contents: pullSecret }]),
  ];
}

function roleFiles(role: BaseRole): readonly BaseFile[] {
  const sizing =
    role === "master"
      ? "NODE_SIZING_ENABLED=false\nSYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=1Gi\n"
      : "NODE_SIZING_ENABLED=true\nSYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=1Gi\n";
  return [
    { path: "/etc/node-sizing-enabled.env", mode: 0o644, contents: sizing },
    {
      path: "/etc/systemd/system.conf.d/kubelet-cgroups.conf",
      mode: 0o644,
      contents: "[Manager]\nDefaultCPUAccounting=yes\nDefaultMemoryAccounting=yes\nDefaultBlockIOAccounting=yes\n",
    },
  ];
}

function config(name: string, role: BaseRole, files: readonly BaseFile[], inputs: BaseInputs): MachineConfig {
  const { controllerConfig } = inputs;
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: {
      name,
      labels: { [labels.role]: role },
      annotations: { [annotations.generatedByController]: inputs.generatorVersion },
      ownerReferences: [
        {
          apiVersion: controllerConfig.apiVersion,
          kind: controllerConfig.kind,
          name: controllerConfig.metadata.name,
          uid: controllerConfig.metadata.uid ?? "",
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      config: {
        ignition: { version: ignitionVersion },
        storage: {
          files: files
            .toSorted((a, b) => (a.path < b.path ? -1 : 1))
            .map(({ path, mode, contents }) => ({
              path,
              mode,
              overwrite: true,
              contents: { source: encodeDataUrl(contents) },
            })),
        },
      },
    },
  };
}

/**
 * The MachineConfigs that every machine of a role starts from: required by the cluster, not written by a person.
 * Equal inputs give equal bytes.
 */
export function baseConfigs(inputs: BaseInputs): readonly MachineConfig[] {
  const { spec } = inputs.controllerConfig;
  return baseRoles.flatMap((role) => [
    config(`00-${role}`, role, [...commonFiles(inputs), ...roleFiles(role)], inputs),
    config(
      `01-${role}-container-runtime`,
      role,
      [
        {
          path: "/etc/crio/crio.conf.d/00-default",
          mode: 0o644,
          contents:
            '[crio.runtime]\ndefault_runtime = "crun"\n\n[crio.metrics]\nenable_metrics = true\nmetrics_host = "127.0.0.1"\nmetrics_port = 9537\n',
        },
        {
          path: "/etc/containers/policy.json",
          mode: 0o644,
          contents: json({
            default: [{ type: "insecureAcceptAnything" }],
            transports: { "docker-daemon": { "": [{ type: "insecureAcceptAnything" }] } },
          }),
        },
      ],
      inputs,
    ),
    config(
      `01-${role}-kubelet`,
      role,
      [
        {
          path: "/etc/kubernetes/kubelet.conf",
          mode: 0o644,
          contents: json(kubeletConfiguration(role, spec.clusterDNSIP)),
        },
      ],
      inputs,
    ),
  ]);
}
