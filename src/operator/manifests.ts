import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { type KubeObject, longestObjectName } from "../api/schema/object.ts";
import {
  annotations,
  configGroup,
  group,
  joinNamespace,
  journals,
  labels,
  machineTokens,
  namespace,
  objects,
  operatorGroup,
} from "../api/names.ts";
import type { ConfigServerAccess } from "../core/join/config-server.ts";
import type { TlsSettings } from "../core/certificates/tls-profile.ts";
import { resourcesOf, restrictedContainer } from "../core/operator/pod-security.ts";
import { made } from "./rights.ts";

export interface ManifestInputs {
  /** Pullspec of the suite. */
  readonly image: string;
  /** Pullspec of the suite with buildah: what the builder and its builds run from. */
  readonly builderImage: string;
  readonly version: string;
  /** Changes when the certificate does that the component serves with, so that its pod is replaced. */
  readonly certificateHash: string;
  /** Of the components. */
  readonly logLevel: "info" | "debug";
}

/** Where the controller listens for admission reviews, and the Secret with what it proves itself with. */
export const admission = {
  port: 9443,
  path: "/validate",
  secret: "machine-config-controller-tls",
  configuration: made.webhook,
} as const;

/** Where the state process serves its metrics. On one machine it shares the controller's address. */
export const stateMetrics = { port: 9444, secret: "machine-state-controller-tls" } as const;

const everywhere = [{ operator: "Exists" }] as const;
/**
 * On a control-plane machine, by whichever of its two labels it has: older clusters know only the first, newer ones
 * only the second.
 */
export const onControlPlane = {
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [labels.masterRole, labels.controlPlaneRole].map((key) => ({
          matchExpressions: [{ key, operator: "Exists" }],
        })),
      },
    },
  },
  tolerations: [
    ...[labels.masterRole, labels.controlPlaneRole].map((key) => ({ key, operator: "Exists", effect: "NoSchedule" })),
    ...["not-ready", "unreachable"].map((reason) => ({
      key: `node.kubernetes.io/${reason}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 120,
    })),
  ],
} as const;
/** See src/cli/run-process.ts. */
const logLevel = (level: ManifestInputs["logLevel"]) =>
  level === "info" ? [] : [{ name: "MCO_LOG_LEVEL", value: level }];
const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
export const podName = field("POD_NAME", "metadata.name");
export const nodeName = field("NODE_NAME", "spec.nodeName");
const podIp = field("POD_IP", "status.podIP");
const hostIp = field("HOST_IP", "status.hostIP");
/**
 * Memory limits: several times what docs/benchmarks.md measures, since a process that reaches its limit in normal work
 * would never finish it. Processes that keep the whole cluster in memory grow with its machines; the config server with
 * the clients that it serves at once; the daemon with the configuration and the image layers that it unpacks.
 */
export const memoryLimits = { ofWholeCluster: "2Gi", configServer: "1Gi", daemon: "1Gi" } as const;
/** Where a daemon serves metrics and readiness, on its machine's loopback. */
const metricsPort = 8797;

/** The node-name claim of the token that a request comes with. */
const ownNode = "request.userInfo.extra['authentication.kubernetes.io/node-name'][0]";

/** Whether an Event is about the own machine of the daemon that writes it. */
const isAboutOwnNode = (event: string) =>
  `has(${event}.involvedObject.kind) && ${event}.involvedObject.kind in ['Node', '${MachineConfigNode.kind}'] && has(${event}.involvedObject.name) && ${event}.involvedObject.name == ${ownNode} && !has(${event}.related)`;

/** The record of the configurations that the controller gave a machine. */
const givenIn = (object: string) =>
  `(has(${object}.metadata.annotations) && '${annotations.givenConfigs}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${annotations.givenConfigs}'] : '')`;

/**
 * The own-node policy. It binds every daemon to its own machine: with its account, the node-name claim of the token must
 * name the Node, MachineConfigNode or journal that is written, or that an Event is about, and of a Node only annotations
 * may change.
 */
export function gate(): readonly KubeObject[] {
  const name = made.gate;
  const manifests = [
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicy",
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        matchConstraints: {
          resourceRules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["nodes"] },
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["events"] },
            {
              apiGroups: [group],
              apiVersions: ["*"],
              operations: ["CREATE", "UPDATE"],
              resources: ["machineconfignodes", "machineconfignodes/status", "machinestatejournals"],
            },
          ],
        },
        matchConditions: [
          {
            name: "by-a-daemon",
            expression: `request.userInfo.username == 'system:serviceaccount:${namespace}:${objects.daemon}'`,
          },
        ],
        validations: [
          {
            expression: `'authentication.kubernetes.io/node-name' in request.userInfo.extra && (request.resource.resource == 'events' || request.name == (request.resource.resource == 'machinestatejournals' ? '${journals.nodePrefix}' : '') + ${ownNode})`,
            message:
              "a daemon writes only about its own machine: the token's node-name claim must be the name of the object, or that of the node whose journal it is",
            reason: "Forbidden",
          },
          {
            expression: `request.resource.resource != 'events' || (${isAboutOwnNode("object")} && (oldObject == null || (${isAboutOwnNode("oldObject")})))`,
            message: "a daemon writes Events about its own Node and MachineConfigNode, and about nothing else",
            reason: "Forbidden",
          },
          {
            expression: `request.resource.resource != 'machineconfignodes' || (oldObject != null && object.spec == oldObject.spec && ${givenIn("object")} == ${givenIn("oldObject")})`,
            message: `a daemon writes what its machine reports, not the spec of its MachineConfigNode and not the annotation ${annotations.givenConfigs}, which say what it may read`,
            reason: "Forbidden",
          },
          // An owner that is gone has the garbage collector delete the object, and a finalizer keeps it: a Node that is
          // made again has no taints and labels that its kubelet may not set, and its MachineConfigNode no record.
          ...["metadata.ownerReferences", "metadata.finalizers"].map((field) => ({
            expression: `!(request.resource.resource in ['nodes', 'machineconfignodes']) || oldObject == null || (has(object.${field}) == has(oldObject.${field}) && (!has(object.${field}) || object.${field} == oldObject.${field}))`,
            message: `a daemon writes what its machine reports, not the ${field} of its Node and MachineConfigNode`,
            reason: "Forbidden",
          })),
          ...["spec", "metadata.labels"].map((field) => ({
            expression: `request.resource.resource != 'nodes' || (has(object.${field}) == has(oldObject.${field}) && (!has(object.${field}) || object.${field} == oldObject.${field}))`,
            message: `a daemon writes annotations of its node, not its ${field}`,
            reason: "Forbidden",
          })),
        ],
      },
    },
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"] },
    },
  ];
  return manifests as unknown as readonly KubeObject[];
}

interface Component {
  readonly name: string;
  readonly inputs: ManifestInputs;
  /** 0: it is switched off. */
  readonly replicas?: 0 | 1;
  /** Of its pods, beside the version. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Of its container, beside name, image and environment. */
  readonly container: object;
  readonly volumes?: readonly object[];
}

/** A component of the control plane: one pod, which runs this suite's program. */
function deployment({
  name,
  inputs,
  replicas = 1,
  annotations: notes = {},
  container,
  volumes,
}: Component): KubeObject {
  const selector = { "k8s-app": name };
  const manifest = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels: selector, annotations: { [annotations.releaseImageVersion]: inputs.version } },
    spec: {
      replicas,
      // A second process would only wait for the lease of the first.
      strategy: { type: "Recreate" },
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: selector, annotations: { ...notes, [annotations.releaseImageVersion]: inputs.version } },
        spec: {
          ...onControlPlane,
          serviceAccountName: name,
          priorityClassName: "system-cluster-critical",
          containers: [
            {
              name,
              image: inputs.image,
              env: [podName, nodeName, podIp, ...logLevel(inputs.logLevel)],
              securityContext: restrictedContainer,
              ...container,
            },
          ],
          ...(volumes === undefined ? {} : { volumes }),
        },
      },
    },
  };
  return manifest as unknown as KubeObject;
}

/** Who may ask for an admission review. */
export interface AdmissionClients {
  /** Changes when the authorities do, so that the pod is replaced. */
  readonly hash: string;
  /** Common names; empty: any. */
  readonly names: readonly string[];
}

/** @param clients `undefined`: every client may send a review, and gets a verdict without a plan. */
export function controllerDeployment(inputs: ManifestInputs, clients?: AdmissionClients): KubeObject {
  const folders = {
    tls: "/etc/machine-config-admission",
    clientCa: "/etc/machine-config-admission-client-ca",
  } as const;
  return deployment({
    name: objects.controller,
    inputs,
    annotations: {
      "machineconfiguration.openshift.io/admission-certificate": inputs.certificateHash,
      ...(clients === undefined ? {} : { "machineconfiguration.openshift.io/admission-client-ca": clients.hash }),
    },
    container: {
      args: [
        "controller",
        "start",
        "--admission-address",
        "$(POD_IP)",
        "--admission-port",
        String(admission.port),
        "--admission-tls",
        folders.tls,
        ...(clients === undefined ? [] : ["--admission-client-ca", `${folders.clientCa}/${clientCaKey}`]),
        ...(clients?.names ?? []).flatMap((name) => ["--admission-client-name", name]),
      ],
      ports: [{ name: "admission", containerPort: admission.port }],
      volumeMounts: [
        { name: "admission", mountPath: folders.tls, readOnly: true },
        ...(clients === undefined ? [] : [{ name: "client-ca", mountPath: folders.clientCa, readOnly: true }]),
      ],
      resources: resourcesOf("20m", "50Mi", memoryLimits.ofWholeCluster),
    },
    volumes: [
      { name: "admission", secret: { secretName: admission.secret } },
      ...(clients === undefined ? [] : [{ name: "client-ca", configMap: { name: objects.admissionClientCa } }]),
    ],
  });
}

/** The process that keeps the books. Nothing waits for it. @param replicas 0: it is switched off. */
export function stateDeployment(inputs: ManifestInputs, replicas: 0 | 1): KubeObject {
  return deployment({
    name: objects.state,
    inputs,
    replicas,
    annotations: { "machineconfiguration.openshift.io/metrics-certificate": inputs.certificateHash },
    container: {
      args: [
        "state",
        "start",
        "--metrics-address",
        "$(POD_IP)",
        "--metrics-port",
        String(stateMetrics.port),
        "--metrics-tls",
        "/etc/machine-state-controller",
      ],
      ports: [{ name: "metrics", containerPort: stateMetrics.port }],
      volumeMounts: [{ name: "metrics", mountPath: "/etc/machine-state-controller", readOnly: true }],
      resources: resourcesOf("10m", "50Mi", memoryLimits.ofWholeCluster),
    },
    volumes: [{ name: "metrics", secret: { secretName: stateMetrics.secret } }],
  });
}

/** Port on which the builder reports readiness. */
export const builderStatusPort = 9445;

/** Where the builder serves its metrics. */
export const builderMetrics = { port: 9446, secret: "machine-os-builder-tls" } as const;
const builderTlsFolder = "/etc/machine-os-builder";

/** The process that has images built; there while some pool boots them. It serves no metrics without a certificate. */
export function builderDeployment(inputs: ManifestInputs): KubeObject {
  const hasCertificate = inputs.certificateHash !== "";
  const metrics = ["--metrics-address", "$(POD_IP)", "--metrics-port", String(builderMetrics.port)];
  return deployment({
    name: objects.osBuilder,
    inputs,
    annotations: { "machineconfiguration.openshift.io/metrics-certificate": inputs.certificateHash },
    ...(hasCertificate ? { volumes: [{ name: "metrics", secret: { secretName: builderMetrics.secret } }] } : {}),
    container: {
      ...(hasCertificate
        ? {
            ports: [{ name: "metrics", containerPort: builderMetrics.port }],
            volumeMounts: [{ name: "metrics", mountPath: builderTlsFolder, readOnly: true }],
          }
        : {}),
      image: inputs.builderImage,
      args: [
        "os-builder",
        "start",
        "--image",
        inputs.builderImage,
        "--status-address",
        "$(POD_IP)",
        "--status-port",
        String(builderStatusPort),
        ...(hasCertificate ? [...metrics, "--metrics-tls", builderTlsFolder] : []),
      ],
      readinessProbe: {
        httpGet: { port: builderStatusPort, path: "/readyz", scheme: "HTTP" },
        periodSeconds: 10,
        timeoutSeconds: 5,
      },
      resources: resourcesOf("20m", "50Mi", memoryLimits.ofWholeCluster),
    },
  });
}

export function daemonSet(inputs: ManifestInputs): KubeObject {
  const selector = { "k8s-app": objects.daemon };
  const manifest = {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: {
      name: objects.daemon,
      namespace,
      labels: selector,
      annotations: { [annotations.releaseImageVersion]: inputs.version },
    },
    spec: {
      selector: { matchLabels: selector },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
      template: {
        metadata: { labels: selector, annotations: { [annotations.releaseImageVersion]: inputs.version } },
        spec: {
          hostNetwork: true,
          // No hostPID: every program of the machine is run by chroot(1), and talks to systemd and rpm-ostree by the
          // sockets below /run; nothing reads or signals the machine's processes.
          nodeSelector: { [labels.os]: "linux" },
          priorityClassName: "system-node-critical",
          serviceAccountName: objects.daemon,
          terminationGracePeriodSeconds: 600,
          tolerations: everywhere,
          containers: [
            {
              name: objects.daemon,
              image: inputs.image,
              args: ["daemon", "start", "--node-name", "$(NODE_NAME)", "--root-mount", "/rootfs"],
              env: [nodeName, hostIp, ...logLevel(inputs.logLevel)],
              // It stays ready through a long update, and is not while it cannot see its own node.
              readinessProbe: {
                httpGet: { host: "127.0.0.1", port: metricsPort, path: "/readyz", scheme: "HTTP" },
                periodSeconds: 30,
                timeoutSeconds: 5,
                failureThreshold: 4,
              },
              // Exception, see docs/pod-security.md: the daemon changes the machine itself (its files, units, kernel
              // arguments, boot), in the machine's namespaces and below its root. No profile allows that, and
              // privileges that it dropped here it would have through the machine's systemd.
              securityContext: { privileged: true, runAsUser: 0, readOnlyRootFilesystem: true },
              volumeMounts: [
                { name: "rootfs", mountPath: "/rootfs", mountPropagation: "HostToContainer" },
                { name: "machine-token", mountPath: machineTokens.folder, readOnly: true },
              ],
              resources: resourcesOf("20m", "50Mi", memoryLimits.daemon),
            },
          ],
          volumes: [
            { name: "rootfs", hostPath: { path: "/" } },
            {
              name: "machine-token",
              projected: {
                sources: [
                  {
                    serviceAccountToken: {
                      audience: machineTokens.audience,
                      path: machineTokens.file,
                      expirationSeconds: 3600,
                    },
                  },
                ],
              },
            },
          ],
        },
      },
    },
  };
  return manifest as unknown as KubeObject;
}

/** Arguments of the config server, besides those of every component. */
export interface ConfigServerInputs extends ManifestInputs {
  readonly access: ConfigServerAccess;
  /** Where machines that join reach the API server. */
  readonly apiServer: string;
  /** Flags that say how TLS is spoken. */
  readonly tls: readonly string[];
  /** Machines are reached on loopback, so that each listens on an address of its own. */
  readonly oneMachine: boolean;
  /** A ConfigMap names the authority whose client certificates may fetch configurations. */
  readonly hasClientCa: boolean;
}

const tlsFlagNames = { minVersion: "--tls-min-version", ciphers: "--tls-cipher-suites" } as const;

/** How TLS is spoken, as flags of the config server. */
export const tlsFlags = (minVersion: TlsSettings["minVersion"], ciphers: readonly string[]): readonly string[] => [
  tlsFlagNames.minVersion,
  minVersion === "TLSv1.3" ? "VersionTLS13" : "VersionTLS12",
  tlsFlagNames.ciphers,
  ciphers.join(","),
];

/** The same, as a config server has them that runs already. */
export function tlsFlagsIn(args: readonly string[]): readonly string[] {
  return args.flatMap((arg, index) =>
    arg === tlsFlagNames.minVersion || arg === tlsFlagNames.ciphers ? [arg, args[index + 1] ?? ""] : [],
  );
}

/**
 * Where the config server listens (openshift/machine-config-operator cmd/machine-config-server, main), where it serves its
 * metrics, and, on its machine's loopback, the kubelet's probes.
 */
export const configServerPorts = { config: 22623, metrics: 9447, probes: 9448 } as const;

const loopback = "127.0.0.1";

/** One on each machine of the control plane; on the network of its machine, since who joins has no other. */
export function configServerDaemonSet(inputs: ConfigServerInputs): KubeObject {
  const name = objects.configServer;
  const selector = { "k8s-app": name };
  // Who holds the connections of machines keeps the kubelet from none of these.
  const probe = (path: string) => ({ host: loopback, port: configServerPorts.probes, path, scheme: "HTTP" });
  const folders = { tls: "/etc/ssl/mcs", clientCa: "/etc/mcs/client-ca" } as const;
  const manifest = {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, namespace, labels: selector, annotations: { [annotations.releaseImageVersion]: inputs.version } },
    spec: {
      selector: { matchLabels: selector },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels: selector, annotations: { [annotations.releaseImageVersion]: inputs.version } },
        spec: {
          ...onControlPlane,
          tolerations: everywhere,
          // Exception, see docs/pod-security.md: a machine that joins reaches the addresses of machines only, so the
          // server listens on its machine's network. In everything else its container is restricted.
          hostNetwork: true,
          serviceAccountName: name,
          priorityClassName: "system-cluster-critical",
          terminationGracePeriodSeconds: 30,
          containers: [
            {
              name,
              image: inputs.image,
              args: [
                "server",
                "start",
                "--apiserver-url",
                inputs.apiServer,
                "--access",
                inputs.access,
                ...(inputs.oneMachine ? ["--address", "$(HOST_IP)"] : []),
                ...inputs.tls,
                ...(inputs.hasClientCa ? ["--client-ca", `${folders.clientCa}/${clientCaKey}`] : []),
                "--metrics-tls",
                folders.tls,
                "--metrics-address",
                "$(HOST_IP)",
                "--metrics-port",
                String(configServerPorts.metrics),
                "--probe-address",
                inputs.oneMachine ? "$(HOST_IP)" : loopback,
                "--probe-port",
                String(configServerPorts.probes),
              ],
              env: [podName, nodeName, hostIp, ...logLevel(inputs.logLevel)],
              ports: [
                {
                  name: "config",
                  containerPort: configServerPorts.config,
                  hostPort: configServerPorts.config,
                  protocol: "TCP",
                },
              ],
              readinessProbe: {
                httpGet: probe("/readyz"),
                periodSeconds: 10,
                timeoutSeconds: 5,
              },
              livenessProbe: {
                httpGet: probe("/healthz"),
                periodSeconds: 10,
                timeoutSeconds: 5,
                failureThreshold: 6,
                initialDelaySeconds: 30,
              },
              volumeMounts: [
                { name: "tls", mountPath: folders.tls, readOnly: true },
                ...(inputs.hasClientCa ? [{ name: "client-ca", mountPath: folders.clientCa, readOnly: true }] : []),
              ],
              securityContext: restrictedContainer,
              resources: resourcesOf("20m", "50Mi", memoryLimits.configServer),
            },
          ],
          volumes: [
            { name: "tls", secret: { secretName: objects.configServerTls } },
            ...(inputs.hasClientCa ? [{ name: "client-ca", configMap: { name: objects.configServerClientCa } }] : []),
          ],
        },
      },
    },
  };
  return manifest as unknown as KubeObject;
}

/** Key of the ConfigMap with the authorities of client certificates. */
export const clientCaKey = "ca-bundle.crt";

/**
 * The accounts that machines request their first certificate with: one for each pool. No account can be named after a pool
 * of a longer name; nor can its configurations, so that no machine joins it.
 */
export const bootstrapAccounts = (pools: readonly string[]): readonly KubeObject[] =>
  pools
    .map((pool) => `${objects.nodeBootstrapperPrefix}${pool}`)
    .filter((name) => name.length <= longestObjectName)
    .map((name) => ({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name, namespace: joinNamespace, labels: { [labels.nodeBootstrapper]: "" } },
    }));

/** The Service through which metrics readers find a process, by a name that its certificate holds. */
function metricsService(name: string, targetPort: number): KubeObject {
  const selector = { "k8s-app": name };
  const manifest = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace, labels: selector },
    spec: { selector, ports: [{ name: "metrics", port: 443, targetPort, protocol: "TCP" }] },
  };
  return manifest as unknown as KubeObject;
}
export const stateService = (): KubeObject => metricsService(objects.state, stateMetrics.port);
export const configServerService = (): KubeObject => metricsService(objects.configServer, configServerPorts.metrics);
export const builderService = (): KubeObject => metricsService(objects.osBuilder, builderMetrics.port);

/** How the API server of a cluster finds the controller by a name that its certificate holds. */
export function admissionService(): KubeObject {
  const selector = { "k8s-app": objects.controller };
  const manifest = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: objects.controller, namespace, labels: selector },
    spec: { selector, ports: [{ name: "admission", port: 443, targetPort: admission.port, protocol: "TCP" }] },
  };
  return manifest as unknown as KubeObject;
}

/**
 * Asks the controller before an object is stored that machines are configured by. An unavailable controller blocks no write.
 *
 * `address`: where the controller is reached without a Service, on one machine; `undefined`: by `admissionService`.
 */
export function admissionWebhook(inputs: { readonly address: string | undefined; readonly ca: string }): KubeObject {
  const { address } = inputs;
  const reached =
    address === undefined
      ? { service: { namespace, name: objects.controller, path: admission.path, port: 443 } }
      : { url: `https://${address.includes(":") ? `[${address}]` : address}:${admission.port}${admission.path}` };
  const manifest = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: admission.configuration },
    webhooks: [
      {
        name: `validate.${group}`,
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Ignore",
        timeoutSeconds: 5,
        clientConfig: { ...reached, caBundle: btoa(inputs.ca) },
        rules: [
          {
            apiGroups: [group],
            apiVersions: ["v1"],
            operations: ["CREATE", "UPDATE", "DELETE"],
            resources: ["machineconfigs", "machineconfigpools", "kubeletconfigs", "containerruntimeconfigs"],
            scope: "Cluster",
          },
          // Where machines pull images from: a rule for kinds that a cluster lacks asks nothing.
          {
            apiGroups: [configGroup],
            apiVersions: ["v1"],
            operations: ["CREATE", "UPDATE", "DELETE"],
            resources: ["images", "imagedigestmirrorsets", "imagetagmirrorsets", "clusterimagepolicies"],
            scope: "Cluster",
          },
          {
            apiGroups: [operatorGroup],
            apiVersions: ["v1alpha1"],
            operations: ["CREATE", "UPDATE", "DELETE"],
            resources: ["imagecontentsourcepolicies"],
            scope: "Cluster",
          },
        ],
      },
    ],
  };
  return manifest as unknown as KubeObject;
}

export interface PoolManifest extends KubeObject {
  readonly spec: object;
}

/** The pools that every cluster has. Only their labels are kept afterwards; their spec belongs to the administrator. */
export function builtInPools(): readonly PoolManifest[] {
  return ["master", "worker"].map((name) => ({
    apiVersion: `${group}/v1`,
    kind: "MachineConfigPool",
    metadata: {
      name,
      labels: {
        [labels.builtInPool]: "",
        [`${labels.poolPrefix}${name}`]: "",
        ...(name === "master" ? { [labels.requiredForUpgrade]: "" } : {}),
      },
    },
    spec: {
      machineConfigSelector: { matchLabels: { [labels.role]: name } },
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
      paused: false,
    },
  }));
}

/** What `oc adm inspect` and must-gather collect for this operator. */
export const relatedObjects = [
  { group: "", resource: "namespaces", name: namespace },
  { group, resource: "machineconfigpools", name: "" },
  { group, resource: "controllerconfigs", name: "" },
  { group, resource: "kubeletconfigs", name: "" },
  { group, resource: "containerruntimeconfigs", name: "" },
  { group, resource: "machineconfigs", name: "" },
  { group, resource: "machineconfignodes", name: "" },
  { group, resource: "machineosconfigs", name: "" },
  { group, resource: "machineosbuilds", name: "" },
  { group, resource: "provisioningtokens", name: "" },
  { group, resource: "joinplaces", name: "" },
  { group, resource: "nodebindings", name: "" },
  { group, resource: "machinestatejournals", name: "" },
  { group, resource: "machinestatebooks", name: "" },
  { group, resource: "machinestatechapters", name: "" },
  { group: operatorGroup, resource: "machineconfigurations", name: objects.machineConfiguration },
  { group: configGroup, resource: "clusteroperators", name: objects.clusterOperator },
  { group: "", resource: "nodes", name: "" },
] as const;
