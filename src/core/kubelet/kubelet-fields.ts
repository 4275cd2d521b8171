/**
 * A type of Go's: what JSON it takes, and what its zero value is. `*` before it: a pointer, so absent and zero differ.
 */
export type GoType = ScalarType | `*${ScalarType}` | GoList | GoMap | GoStruct;
export type ScalarType =
  | "bool"
  | "int32"
  | "int64"
  | "uint32"
  | "float64"
  | "string"
  /** `metav1.Duration`: a text as Go writes durations. */
  | "duration"
  /** A duration, or a number of nanoseconds. */
  | "timeOrDuration"
  | "quantity"
  | "time";
export interface GoList {
  readonly list: GoType;
}
export interface GoMap {
  readonly map: GoType;
}
export interface GoStruct {
  readonly struct: Readonly<Record<string, GoType>>;
  /** A pointer to a struct. */
  readonly isPointer?: true;
  /** Members that Go writes with their zero value as well. */
  readonly always?: readonly string[];
}

const outputRouting: GoStruct = { struct: { splitStream: "bool", infoBufferSize: "quantity" } };
const strings: GoList = { list: "string" };
const stringMap: GoMap = { map: "string" };

/**
 * The fields of KubeletConfiguration v1beta1, by the names that they have in a file. Source: k8s.io/kubelet v0.34
 * config/v1beta1/types.go, component-base logs/api/v1 and tracing/api/v1.
 */
export const kubeletConfiguration: GoStruct = {
  struct: {
    kind: "string",
    apiVersion: "string",
    enableServer: "*bool",
    staticPodPath: "string",
    podLogsDir: "string",
    syncFrequency: "duration",
    fileCheckFrequency: "duration",
    httpCheckFrequency: "duration",
    staticPodURL: "string",
    staticPodURLHeader: { map: strings },
    address: "string",
    port: "int32",
    readOnlyPort: "int32",
    tlsCertFile: "string",
    tlsPrivateKeyFile: "string",
    tlsCipherSuites: strings,
    tlsMinVersion: "string",
    rotateCertificates: "bool",
    serverTLSBootstrap: "bool",
    authentication: {
      struct: {
        x509: { struct: { clientCAFile: "string" } },
        webhook: { struct: { enabled: "*bool", cacheTTL: "duration" } },
        anonymous: { struct: { enabled: "*bool" } },
      },
    },
    authorization: {
      struct: {
        mode: "string",
        webhook: { struct: { cacheAuthorizedTTL: "duration", cacheUnauthorizedTTL: "duration" } },
      },
    },
    registryPullQPS: "*int32",
    registryBurst: "int32",
    imagePullCredentialsVerificationPolicy: "string",
    preloadedImagesVerificationAllowlist: strings,
    eventRecordQPS: "*int32",
    eventBurst: "int32",
    enableDebuggingHandlers: "*bool",
    enableContentionProfiling: "bool",
    healthzPort: "*int32",
    healthzBindAddress: "string",
    oomScoreAdj: "*int32",
    clusterDomain: "string",
    clusterDNS: strings,
    streamingConnectionIdleTimeout: "duration",
    nodeStatusUpdateFrequency: "duration",
    nodeStatusReportFrequency: "duration",
    nodeLeaseDurationSeconds: "int32",
    imageMinimumGCAge: "duration",
    imageMaximumGCAge: "duration",
    imageGCHighThresholdPercent: "*int32",
    imageGCLowThresholdPercent: "*int32",
    volumeStatsAggPeriod: "duration",
    kubeletCgroups: "string",
    systemCgroups: "string",
    cgroupRoot: "string",
    cgroupsPerQOS: "*bool",
    cgroupDriver: "string",
    cpuManagerPolicy: "string",
    singleProcessOOMKill: "*bool",
    cpuManagerPolicyOptions: stringMap,
    cpuManagerReconcilePeriod: "duration",
    memoryManagerPolicy: "string",
    topologyManagerPolicy: "string",
    topologyManagerScope: "string",
    topologyManagerPolicyOptions: stringMap,
    qosReserved: stringMap,
    runtimeRequestTimeout: "duration",
    hairpinMode: "string",
    maxPods: "int32",
    podCIDR: "string",
    podPidsLimit: "*int64",
    resolvConf: "*string",
    runOnce: "bool",
    cpuCFSQuota: "*bool",
    cpuCFSQuotaPeriod: "*duration",
    nodeStatusMaxImages: "*int32",
    maxOpenFiles: "int64",
    contentType: "string",
    kubeAPIQPS: "*int32",
    kubeAPIBurst: "int32",
    serializeImagePulls: "*bool",
    maxParallelImagePulls: "*int32",
    evictionHard: stringMap,
    evictionSoft: stringMap,
    evictionSoftGracePeriod: stringMap,
    evictionPressureTransitionPeriod: "duration",
    evictionMaxPodGracePeriod: "int32",
    evictionMinimumReclaim: stringMap,
    mergeDefaultEvictionSettings: "*bool",
    podsPerCore: "int32",
    enableControllerAttachDetach: "*bool",
    protectKernelDefaults: "bool",
    makeIPTablesUtilChains: "*bool",
    iptablesMasqueradeBit: "*int32",
    iptablesDropBit: "*int32",
    featureGates: { map: "bool" },
    failSwapOn: "*bool",
    memorySwap: { struct: { swapBehavior: "string" } },
    containerLogMaxSize: "string",
    containerLogMaxFiles: "*int32",
    containerLogMaxWorkers: "*int32",
    containerLogMonitorInterval: "*duration",
    configMapAndSecretChangeDetectionStrategy: "string",
    systemReserved: stringMap,
    kubeReserved: stringMap,
    reservedSystemCPUs: "string",
    showHiddenMetricsForVersion: "string",
    systemReservedCgroup: "string",
    kubeReservedCgroup: "string",
    enforceNodeAllocatable: strings,
    allowedUnsafeSysctls: strings,
    volumePluginDir: "string",
    providerID: "string",
    kernelMemcgNotification: "bool",
    logging: {
      struct: {
        format: "string",
        flushFrequency: "timeOrDuration",
        verbosity: "uint32",
        vmodule: {
          list: { struct: { filePattern: "string", verbosity: "uint32" }, always: ["filePattern", "verbosity"] },
        },
        options: { struct: { text: outputRouting, json: outputRouting } },
      },
      always: ["verbosity"],
    },
    enableSystemLogHandler: "*bool",
    enableSystemLogQuery: "*bool",
    shutdownGracePeriod: "duration",
    shutdownGracePeriodCriticalPods: "duration",
    shutdownGracePeriodByPodPriority: {
      list: {
        struct: { priority: "int32", shutdownGracePeriodSeconds: "int64" },
        always: ["priority", "shutdownGracePeriodSeconds"],
      },
    },
    crashLoopBackOff: { struct: { maxContainerRestartPeriod: "*duration" } },
    reservedMemory: {
      list: { struct: { numaNode: "int32", limits: { map: "quantity" } }, always: ["numaNode", "limits"] },
    },
    enableProfilingHandler: "*bool",
    enableDebugFlagsHandler: "*bool",
    seccompDefault: "*bool",
    memoryThrottlingFactor: "*float64",
    registerWithTaints: {
      list: {
        struct: { key: "string", value: "string", effect: "string", timeAdded: "*time" },
        always: ["key", "effect"],
      },
    },
    registerNode: "*bool",
    tracing: { struct: { endpoint: "*string", samplingRatePerMillion: "*int32" }, isPointer: true },
    localStorageCapacityIsolation: "*bool",
    containerRuntimeEndpoint: "string",
    imageServiceEndpoint: "string",
    failCgroupV1: "*bool",
    userNamespaces: { struct: { idsPerPod: "*int64" }, isPointer: true },
  },
  always: ["containerRuntimeEndpoint"],
};
