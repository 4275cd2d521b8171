import { type Schema, type Writing, documentedRequired, written } from "../contract.ts";
import { requiredFields } from "./required-fields.ts";
import {
  anything,
  boolean,
  bytes,
  integer,
  intOrString,
  long,
  microTime,
  objectMeta,
  quantity,
  string,
  stringMap,
  time,
} from "../schema-parts.ts";

/**
 * The types of the built-in kinds, one on a line: `field`, or `field:type`. A field without type is a string. Types:
 * `int long bool time micro bytes quantity intOrString any meta`, `map` (of strings), `{}T` (map of T), `[]T` (list
 * that is replaced as a whole), `[set]T`, `[key,…]T` (list whose items are told apart by those fields), `T@` (owned as
 * a whole). Associative lists merge in strategic patches unless marked `~none`; `~strategy/key` names something else.
 * A field that is empty is left out, as Go does; one marked `!` is written all the same, one marked `*` if it was
 * given; one marked `=` is null, which counts as being there.
 * Facts from kubernetes/api (master): core/v1, apps/v1, … types.go.
 */
const table = `
AWSElasticBlockStoreVolumeSource: volumeID! fsType partition:int readOnly:bool
Affinity: nodeAffinity*:NodeAffinity podAffinity*:PodAffinity podAntiAffinity*:PodAntiAffinity
AggregationRule: clusterRoleSelectors:[]LabelSelector
AppArmorProfile: type! localhostProfile*
AttachedVolume: name! devicePath!
AuditAnnotation: key! valueExpression!
AzureDiskVolumeSource: diskName! diskURI! cachingMode*:string fsType* readOnly*:bool kind*:string
AzureFileVolumeSource: secretName! shareName! readOnly:bool
Binding: metadata!:meta target!:ObjectReference
BoundObjectReference: kind apiVersion name uid
CSIVolumeSource: driver! readOnly*:bool fsType* volumeAttributes:map nodePublishSecretRef*:LocalObjectReference
Capabilities: add:[] drop:[]
CephFSVolumeSource: monitors=:[] path user secretFile secretRef*:LocalObjectReference readOnly:bool
CertificateSigningRequest: metadata!:meta spec!:CertificateSigningRequestSpec status!:CertificateSigningRequestStatus
CertificateSigningRequestCondition: type! status! reason message lastUpdateTime!:time lastTransitionTime!:time
CertificateSigningRequestSpec: request=:bytes signerName! expirationSeconds*:int usages:[] username uid groups:[] extra:{}[]
CertificateSigningRequestStatus: conditions:[type]CertificateSigningRequestCondition~none certificate:bytes
CinderVolumeSource: volumeID! fsType readOnly:bool secretRef*:LocalObjectReference
ClientIPConfig: timeoutSeconds*:int
ClusterRole: metadata!:meta rules=:[]PolicyRule aggregationRule*:AggregationRule
ClusterRoleBinding: metadata!:meta subjects:[]Subject roleRef!:RoleRef
ClusterTrustBundleProjection: name* signerName* labelSelector*:LabelSelector optional*:bool path! user:long
Condition: type! status! observedGeneration:long lastTransitionTime!:time reason! message!
ConfigMap: metadata!:meta immutable*:bool data:map binaryData:{}bytes
ConfigMapEnvSource: name optional*:bool
ConfigMapKeySelector: name key! optional*:bool
ConfigMapNodeConfigSource: namespace! name! uid resourceVersion kubeletConfigKey!
ConfigMapProjection: name items:[]KeyToPath optional*:bool
ConfigMapVolumeSource: name items:[]KeyToPath defaultMode*:int optional*:bool defaultUser:long
Container: name! image command:[] args:[] workingDir ports:[containerPort,protocol]ContainerPort envFrom:[]EnvFromSource env:[name]EnvVar resources!:ResourceRequirements resizePolicy:[]ContainerResizePolicy restartPolicy* restartPolicyRules:[]ContainerRestartRule volumeMounts:[mountPath]VolumeMount volumeDevices:[devicePath]VolumeDevice livenessProbe*:Probe readinessProbe*:Probe startupProbe*:Probe lifecycle*:Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext*:SecurityContext stdin:bool stdinOnce:bool tty:bool
ContainerExtendedResourceRequest: containerName! resourceName! requestName!
ContainerImage: names=:[] sizeBytes:long
ContainerPort: name hostPort:int containerPort!:int protocol hostIP
ContainerResizePolicy: resourceName! restartPolicy!
ContainerRestartRule: action exitCodes*:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator values:[set]int~none
ContainerState: waiting*:ContainerStateWaiting running*:ContainerStateRunning terminated*:ContainerStateTerminated
ContainerStateRunning: startedAt!:time
ContainerStateTerminated: exitCode!:int signal:int reason message startedAt!:time finishedAt!:time containerID
ContainerStateWaiting: reason message
ContainerStatus: name! state!:ContainerState lastState!:ContainerState ready!:bool restartCount!:int image! imageID! containerID started*:bool allocatedResources:{}quantity resources*:ResourceRequirements volumeMounts:[mountPath]VolumeMountStatus user*:ContainerUser allocatedResourcesStatus:[name]ResourceStatus stopSignal*
ContainerUser: linux*:LinuxContainerUser
ControllerRevision: metadata!:meta data!:any revision!:long
CronJob: metadata!:meta spec!:CronJobSpec status!:CronJobStatus
CronJobSpec: schedule! timeZone* startingDeadlineSeconds*:long concurrencyPolicy suspend*:bool jobTemplate!:JobTemplateSpec successfulJobsHistoryLimit*:int failedJobsHistoryLimit*:int
CronJobStatus: active:[]ObjectReference lastScheduleTime*:time lastSuccessfulTime*:time
CustomResourceColumnDefinition: name! type! format description priority:int jsonPath!
CustomResourceConversion: strategy! webhook*:WebhookConversion
CustomResourceDefinition: metadata!:meta spec!:CustomResourceDefinitionSpec status!:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: type! status! lastTransitionTime!:time observedGeneration:long reason message
CustomResourceDefinitionNames: plural! singular shortNames:[] kind! listKind categories:[]
CustomResourceDefinitionSpec: group! names!:CustomResourceDefinitionNames scope! versions=:[]CustomResourceDefinitionVersion conversion*:CustomResourceConversion preserveUnknownFields:bool
CustomResourceDefinitionStatus: conditions=:[type]CustomResourceDefinitionCondition~none acceptedNames!:CustomResourceDefinitionNames storedVersions=:[] observedGeneration:long
CustomResourceDefinitionVersion: name! served!:bool storage!:bool deprecated:bool deprecationWarning* schema*:CustomResourceValidation subresources*:CustomResourceSubresources additionalPrinterColumns:[]CustomResourceColumnDefinition selectableFields:[]SelectableField
CustomResourceSubresourceScale: specReplicasPath! statusReplicasPath! labelSelectorPath*
CustomResourceSubresources: status*:any scale*:CustomResourceSubresourceScale
CustomResourceValidation: openAPIV3Schema*:any
DaemonEndpoint: Port!:int
DaemonSet: metadata!:meta spec!:DaemonSetSpec status!:DaemonSetStatus
DaemonSetCondition: type! status! lastTransitionTime!:time reason message
DaemonSetSpec: selector=:LabelSelector template!:PodTemplateSpec updateStrategy!:DaemonSetUpdateStrategy minReadySeconds:int revisionHistoryLimit*:int
DaemonSetStatus: currentNumberScheduled!:int numberMisscheduled!:int desiredNumberScheduled!:int numberReady!:int observedGeneration:long updatedNumberScheduled:int numberAvailable:int numberUnavailable:int collisionCount*:int conditions:[type]DaemonSetCondition
DaemonSetUpdateStrategy: type rollingUpdate*:RollingUpdateDaemonSet
Deployment: metadata!:meta spec!:DeploymentSpec status!:DeploymentStatus
DeploymentCondition: type! status! lastUpdateTime!:time lastTransitionTime!:time reason message
DeploymentSpec: replicas*:int selector=:LabelSelector template!:PodTemplateSpec strategy!:DeploymentStrategy~retainKeys minReadySeconds:int revisionHistoryLimit*:int paused:bool progressDeadlineSeconds*:int
DeploymentStatus: observedGeneration:long replicas:int updatedReplicas:int readyReplicas:int availableReplicas:int unavailableReplicas:int terminatingReplicas*:int conditions:[type]DeploymentCondition collisionCount*:int
DeploymentStrategy: type rollingUpdate*:RollingUpdateDeployment
DownwardAPIProjection: items:[]DownwardAPIVolumeFile
DownwardAPIVolumeFile: path! fieldRef*:ObjectFieldSelector resourceFieldRef*:ResourceFieldSelector mode*:int user:long
DownwardAPIVolumeSource: items:[]DownwardAPIVolumeFile defaultMode*:int defaultUser:long
EmptyDirVolumeSource: medium sizeLimit*:quantity mode:int
EndpointAddress: ip! hostname nodeName* targetRef*:ObjectReference
EndpointPort: name port!:int protocol appProtocol*
EndpointSubset: addresses:[]EndpointAddress notReadyAddresses:[]EndpointAddress ports:[]EndpointPort
Endpoints: metadata!:meta subsets:[]EndpointSubset
EnvFromSource: prefix configMapRef*:ConfigMapEnvSource secretRef*:SecretEnvSource
EnvVar: name! value valueFrom*:EnvVarSource
EnvVarSource: fieldRef*:ObjectFieldSelector resourceFieldRef*:ResourceFieldSelector configMapKeyRef*:ConfigMapKeySelector secretKeyRef*:SecretKeySelector fileKeyRef*:FileKeySelector
EphemeralContainer: name! image command:[] args:[] workingDir ports:[containerPort,protocol]ContainerPort envFrom:[]EnvFromSource env:[name]EnvVar resources!:ResourceRequirements resizePolicy:[]ContainerResizePolicy restartPolicy* restartPolicyRules:[]ContainerRestartRule volumeMounts:[mountPath]VolumeMount volumeDevices:[devicePath]VolumeDevice livenessProbe*:Probe readinessProbe*:Probe startupProbe*:Probe lifecycle*:Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext*:SecurityContext stdin:bool stdinOnce:bool tty:bool targetContainerName
EphemeralVolumeSource: volumeClaimTemplate*:PersistentVolumeClaimTemplate
Event: metadata!:meta involvedObject!:ObjectReference reason message source!:EventSource firstTimestamp!:time lastTimestamp!:time count:int type eventTime!:micro series*:EventSeries action related*:ObjectReference reportingComponent! reportingInstance!
EventSeries: count:int lastObservedTime!:micro
EventSource: component host
EventsEvent: metadata!:meta eventTime!:micro series*:EventsEventSeries reportingController reportingInstance action reason regarding!:ObjectReference related*:ObjectReference note type deprecatedSource!:EventSource deprecatedFirstTimestamp!:time deprecatedLastTimestamp!:time deprecatedCount:int
EventsEventSeries: count!:int lastObservedTime!:micro
Eviction: metadata!:meta deleteOptions*:any
EvictionResponder: name priority:int
ExecAction: command:[]
ExpressionWarning: fieldRef! warning!
FCVolumeSource: targetWWNs:[] lun*:int fsType readOnly:bool wwids:[]
FieldSelectorAttributes: rawSelector requirements:[]FieldSelectorRequirement
FieldSelectorRequirement: key! operator! values:[]
FileKeySelector: volumeName! path! key! optional*:bool
FlexVolumeSource: driver! fsType secretRef*:LocalObjectReference readOnly:bool options:map
FlockerVolumeSource: datasetName datasetUUID
GCEPersistentDiskVolumeSource: pdName! fsType partition:int readOnly:bool
GRPCAction: port!:int service= mode
GitRepoVolumeSource: repository! revision directory
GlusterfsVolumeSource: endpoints! path! readOnly:bool
HTTPGetAction: path port!:intOrString host scheme httpHeaders:[]HTTPHeader protocol
HTTPHeader: name! value!
HostAlias: ip! hostnames:[]
HostIP: ip!
HostPathVolumeSource: path! type*
IPBlock: cidr! except:[]
ISCSIVolumeSource: targetPortal! iqn! lun!:int iscsiInterface fsType readOnly:bool portals:[] chapAuthDiscovery:bool chapAuthSession:bool secretRef*:LocalObjectReference initiatorName*
ImageVolumeSource: reference pullPolicy
ImageVolumeStatus: imageRef
Job: metadata!:meta spec!:JobSpec status!:JobStatus
JobCondition: type! status! lastProbeTime!:time lastTransitionTime!:time reason message
JobSchedulingConfiguration: schedulingPolicy:any schedulingConstraints:any disruptionMode:any resourceClaims:[name]any
JobSpec: parallelism*:int completions*:int activeDeadlineSeconds*:long podFailurePolicy*:PodFailurePolicy successPolicy*:SuccessPolicy backoffLimit*:int backoffLimitPerIndex*:int maxFailedIndexes*:int selector*:LabelSelector manualSelector*:bool template!:PodTemplateSpec ttlSecondsAfterFinished*:int completionMode* suspend*:bool podReplacementPolicy* managedBy* scheduling:JobSchedulingConfiguration
JobStatus: conditions:[]JobCondition~merge/type startTime*:time completionTime*:time active:int succeeded:int failed:int terminating*:int completedIndexes failedIndexes* uncountedTerminatedPods*:UncountedTerminatedPods ready*:int
JobTemplateSpec: metadata!:meta spec!:JobSpec
KeyToPath: key! path! mode*:int user:long
LabelSelector: matchLabels:map matchExpressions:[]LabelSelectorRequirement
LabelSelectorAttributes: rawSelector requirements:[]LabelSelectorRequirement
LabelSelectorRequirement: key! operator! values:[]
Lease: metadata!:meta spec!:LeaseSpec
LeaseSpec: holderIdentity* leaseDurationSeconds*:int acquireTime*:micro renewTime*:micro leaseTransitions*:int strategy* preferredHolder*
Lifecycle: postStart*:LifecycleHandler preStop*:LifecycleHandler stopSignal*
LifecycleHandler: exec*:ExecAction httpGet*:HTTPGetAction tcpSocket*:TCPSocketAction sleep*:SleepAction
LimitRange: metadata!:meta spec!:LimitRangeSpec
LimitRangeItem: type! max:{}quantity min:{}quantity default:{}quantity defaultRequest:{}quantity maxLimitRequestRatio:{}quantity
LimitRangeSpec: limits=:[]LimitRangeItem
LinuxContainerUser: uid!:long gid!:long supplementalGroups:[]long
LoadBalancerIngress: ip hostname ipMode* ports:[]PortStatus
LoadBalancerStatus: ingress:[]LoadBalancerIngress
LocalObjectReference: name
LocalSubjectAccessReview: metadata!:meta spec!:SubjectAccessReviewSpec status!:SubjectAccessReviewStatus
MatchCondition: name! expression!
MatchResources: namespaceSelector*:LabelSelector objectSelector*:LabelSelector resourceRules:[]NamedRuleWithOperations excludeResourceRules:[]NamedRuleWithOperations matchPolicy*
MutatingWebhook: name! clientConfig!:WebhookClientConfig rules:[]RuleWithOperations failurePolicy* matchPolicy* namespaceSelector*:LabelSelector objectSelector*:LabelSelector sideEffects= timeoutSeconds*:int admissionReviewVersions=:[] reinvocationPolicy* matchConditions:[name]MatchCondition
MutatingWebhookConfiguration: metadata!:meta webhooks:[name]MutatingWebhook
NFSVolumeSource: server! path! readOnly:bool
NamedRuleWithOperations: resourceNames:[] operations:[] apiGroups:[] apiVersions:[] resources:[] scope
Namespace: metadata!:meta spec!:NamespaceSpec status!:NamespaceStatus
NamespaceCondition: type! status! lastTransitionTime!:time reason message
NamespaceSpec: finalizers:[]
NamespaceStatus: phase conditions:[type]NamespaceCondition
NetworkPolicy: metadata!:meta spec!:NetworkPolicySpec
NetworkPolicyEgressRule: ports:[]NetworkPolicyPort to:[]NetworkPolicyPeer
NetworkPolicyIngressRule: ports:[]NetworkPolicyPort from:[]NetworkPolicyPeer
NetworkPolicyPeer: podSelector*:LabelSelector namespaceSelector*:LabelSelector ipBlock*:IPBlock
NetworkPolicyPort: protocol* port*:intOrString endPort*:int
NetworkPolicySpec: podSelector!:LabelSelector ingress:[]NetworkPolicyIngressRule egress:[]NetworkPolicyEgressRule policyTypes:[]
Node: metadata!:meta spec!:NodeSpec status!:NodeStatus
NodeAddress: type! address!
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution*:NodeSelector preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
NodeAllocatableMappedResources: name quantity:quantity
NodeAllocatableOverheadResources: name perPod:quantity perContainer:quantity
NodeAllocatableResourceClaimStatus: resourceClaimName containers:[set]~none mapping:[name]NodeAllocatableMappedResources overhead:[name]NodeAllocatableOverheadResources
NodeCondition: type! status! lastHeartbeatTime!:time lastTransitionTime!:time reason message
NodeConfigSource: configMap*:ConfigMapNodeConfigSource
NodeConfigStatus: assigned*:NodeConfigSource active*:NodeConfigSource lastKnownGood*:NodeConfigSource error
NodeDaemonEndpoints: kubeletEndpoint!:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy*:bool
NodePodPreemptionPolicy: disableResizePreemption:[set]~none
NodeRuntimeHandler: name! features*:NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts*:bool userNamespaces*:bool
NodeSelector: nodeSelectorTerms=:[]NodeSelectorTerm
NodeSelectorRequirement: key! operator! values:[]
NodeSelectorTerm: matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement
NodeSpec: podCIDR podCIDRs:[set] providerID unschedulable:bool taints:[]Taint configSource*:NodeConfigSource externalID podPreemptionPolicy:NodePodPreemptionPolicy
NodeStatus: capacity:{}quantity allocatable:{}quantity phase conditions:[type]NodeCondition addresses:[type]NodeAddress daemonEndpoints!:NodeDaemonEndpoints nodeInfo!:NodeSystemInfo images:[]ContainerImage volumesInUse:[] volumesAttached:[]AttachedVolume config*:NodeConfigStatus runtimeHandlers:[]NodeRuntimeHandler features*:NodeFeatures declaredFeatures:[]
NodeSwapStatus: capacity*:long
NodeSystemInfo: machineID! systemUUID! bootID! kernelVersion! osImage! containerRuntimeVersion! kubeletVersion! kubeProxyVersion! operatingSystem! architecture! swap*:NodeSwapStatus
NonResourceAttributes: path verb
NonResourceRule: verbs=:[] nonResourceURLs:[]
ObjectFieldSelector: apiVersion fieldPath!
ObjectReference: kind namespace name uid apiVersion resourceVersion fieldPath
ParamKind: apiVersion kind
ParamRef: name namespace selector*:LabelSelector parameterNotFoundAction*
PersistentVolumeClaimSpec: accessModes:[] selector*:LabelSelector resources!:VolumeResourceRequirements volumeName storageClassName* volumeMode* dataSource*:TypedLocalObjectReference dataSourceRef*:TypedObjectReference volumeAttributesClassName*
PersistentVolumeClaimTemplate: metadata!:meta spec!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName! readOnly:bool
PhotonPersistentDiskVolumeSource: pdID! fsType
Pod: metadata!:meta spec!:PodSpec status!:PodStatus
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAffinityTerm: labelSelector*:LabelSelector namespaces:[] topologyKey! namespaceSelector*:LabelSelector matchLabelKeys:[] mismatchLabelKeys:[]
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodCertificateProjection: signerName keyType maxExpirationSeconds*:int credentialBundlePath keyPath certificateChainPath userAnnotations:map user:long
PodCondition: type! observedGeneration:long status! lastProbeTime!:time lastTransitionTime!:time reason message
PodDNSConfig: nameservers:[] searches:[] options:[]PodDNSConfigOption
PodDNSConfigOption: name value*
PodDisruptionBudget: metadata!:meta spec!:PodDisruptionBudgetSpec status!:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: minAvailable*:intOrString selector*:LabelSelector~replace maxUnavailable*:intOrString unhealthyPodEvictionPolicy*
PodDisruptionBudgetStatus: observedGeneration:long disruptedPods:{}time disruptionsAllowed!:int currentHealthy!:int desiredHealthy!:int expectedPods!:int conditions:[type]Condition
PodExtendedResourceClaimStatus: requestMappings=:[]ContainerExtendedResourceRequest resourceClaimName!
PodFailurePolicy: rules=:[]PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement: containerName* operator! values=:[set]int~none
PodFailurePolicyOnPodConditionsPattern: type! status!
PodFailurePolicyRule: action! onExitCodes*:PodFailurePolicyOnExitCodesRequirement onPodConditions:[]PodFailurePolicyOnPodConditionsPattern
PodIP: ip!
PodOS: name!
PodReadinessGate: conditionType!
PodResourceClaim: name! resourceClaimName* resourceClaimTemplateName*
PodResourceClaimStatus: name! resourceClaimName*
PodSchedulingGate: name!
PodSchedulingGroup: podGroupName
PodSecurityContext: seLinuxOptions*:SELinuxOptions windowsOptions*:WindowsSecurityContextOptions runAsUser*:long runAsGroup*:long runAsNonRoot*:bool supplementalGroups:[]long supplementalGroupsPolicy* fsGroup*:long sysctls:[]Sysctl fsGroupChangePolicy* seccompProfile*:SeccompProfile appArmorProfile*:AppArmorProfile seLinuxChangePolicy*
PodSpec: volumes:[name]Volume~merge,retainKeys initContainers:[name]Container containers=:[name]Container ephemeralContainers:[name]EphemeralContainer restartPolicy terminationGracePeriodSeconds*:long activeDeadlineSeconds*:long dnsPolicy nodeSelector:map@ serviceAccountName serviceAccount automountServiceAccountToken*:bool nodeName hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace*:bool securityContext*:PodSecurityContext imagePullSecrets:[name]LocalObjectReference hostname subdomain affinity*:Affinity schedulerName tolerations:[]Toleration hostAliases:[ip]HostAlias priorityClassName priority*:int dnsConfig*:PodDNSConfig readinessGates:[]PodReadinessGate runtimeClassName* enableServiceLinks*:bool preemptionPolicy* overhead:{}quantity topologySpreadConstraints:[topologyKey,whenUnsatisfiable]TopologySpreadConstraint setHostnameAsFQDN*:bool os*:PodOS hostUsers*:bool schedulingGates:[name]PodSchedulingGate resourceClaims:[name]PodResourceClaim~merge,retainKeys resources*:ResourceRequirements hostnameOverride* schedulingGroup:PodSchedulingGroup evictionResponders:[name]EvictionResponder
PodStatus: observedGeneration:long phase conditions:[type]PodCondition message reason nominatedNodeName hostIP hostIPs:[]HostIP~merge/ip podIP podIPs:[ip]PodIP startTime*:time initContainerStatuses:[]ContainerStatus containerStatuses:[]ContainerStatus qosClass ephemeralContainerStatuses:[]ContainerStatus resize resourceClaimStatuses:[name]PodResourceClaimStatus~merge,retainKeys extendedResourceClaimStatus*:PodExtendedResourceClaimStatus allocatedResources:{}quantity resources:ResourceRequirements nodeAllocatableResourceClaimStatuses:[resourceClaimName]NodeAllocatableResourceClaimStatus volumeHealth:[name]PodVolumeHealth~none
PodTemplate: metadata!:meta template!:PodTemplateSpec
PodTemplateSpec: metadata!:meta spec!:PodSpec
PodVolumeHealth: name healthConditions:[status,reason]any lastTransitionTime:time
PolicyRule: verbs=:[] apiGroups:[] resources:[] resourceNames:[] nonResourceURLs:[]
PortStatus: port!:int protocol! error*
PortworxVolumeSource: volumeID! fsType readOnly:bool
PreferredSchedulingTerm: weight!:int preference!:NodeSelectorTerm
PriorityClass: metadata!:meta value!:int globalDefault:bool description preemptionPolicy*
Probe: exec*:ExecAction httpGet*:HTTPGetAction tcpSocket*:TCPSocketAction grpc*:GRPCAction initialDelaySeconds:int timeoutSeconds:int periodSeconds:int successThreshold:int failureThreshold:int terminationGracePeriodSeconds*:long
ProjectedVolumeSource: sources=:[]VolumeProjection defaultMode*:int defaultUser:long
QuobyteVolumeSource: registry! volume! readOnly:bool user group tenant
RBDVolumeSource: monitors=:[] image! fsType pool user keyring secretRef*:LocalObjectReference readOnly:bool
ReplicaSet: metadata!:meta spec!:ReplicaSetSpec status!:ReplicaSetStatus
ReplicaSetCondition: type! status! lastTransitionTime!:time reason message
ReplicaSetSpec: replicas*:int minReadySeconds:int selector=:LabelSelector template!:PodTemplateSpec
ReplicaSetStatus: replicas!:int fullyLabeledReplicas:int readyReplicas:int availableReplicas:int terminatingReplicas*:int observedGeneration:long conditions:[type]ReplicaSetCondition
ResourceAttributes: namespace verb group version resource subresource name fieldSelector*:FieldSelectorAttributes labelSelector*:LabelSelectorAttributes
ResourceClaim: name! request
ResourceFieldSelector: containerName resource! divisor!:quantity
ResourceHealth: resourceID! health message
ResourceQuota: metadata!:meta spec!:ResourceQuotaSpec status!:ResourceQuotaStatus
ResourceQuotaSpec: hard:{}quantity scopes:[] scopeSelector*:ScopeSelector
ResourceQuotaStatus: hard:{}quantity used:{}quantity
ResourceRequirements: limits:{}quantity requests:{}quantity claims:[name]ResourceClaim~none
ResourceRule: verbs=:[] apiGroups:[] resources:[] resourceNames:[]
ResourceStatus: name! resources:[resourceID]ResourceHealth~none
Role: metadata!:meta rules=:[]PolicyRule
RoleBinding: metadata!:meta subjects:[]Subject roleRef!:RoleRef
RoleRef: apiGroup! kind! name!
RollingUpdateDaemonSet: maxUnavailable*:intOrString maxSurge*:intOrString
RollingUpdateDeployment: maxUnavailable*:intOrString maxSurge*:intOrString
RollingUpdateStatefulSetStrategy: partition*:int maxUnavailable*:intOrString
RuleWithOperations: operations:[] apiGroups:[] apiVersions:[] resources:[] scope*
SELinuxOptions: user role type level
Scale: metadata!:meta spec!:ScaleSpec status!:ScaleStatus
ScaleIOVolumeSource: gateway! system! secretRef=:LocalObjectReference sslEnabled:bool protectionDomain storagePool storageMode volumeName fsType readOnly:bool
ScaleSpec: replicas:int
ScaleStatus: replicas!:int selector
ScopeSelector: matchExpressions:[]ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: scopeName! operator! values:[]
SeccompProfile: type! localhostProfile*
Secret: metadata!:meta immutable*:bool data:{}bytes stringData:map type
SecretEnvSource: name optional*:bool
SecretKeySelector: name key! optional*:bool
SecretProjection: name items:[]KeyToPath optional*:bool
SecretVolumeSource: secretName items:[]KeyToPath defaultMode*:int optional*:bool defaultUser:long
SecurityContext: capabilities*:Capabilities privileged*:bool seLinuxOptions*:SELinuxOptions windowsOptions*:WindowsSecurityContextOptions runAsUser*:long runAsGroup*:long runAsNonRoot*:bool readOnlyRootFilesystem*:bool allowPrivilegeEscalation*:bool procMount* seccompProfile*:SeccompProfile appArmorProfile*:AppArmorProfile
SelectableField: jsonPath!
SelfSubjectAccessReview: metadata!:meta spec!:SelfSubjectAccessReviewSpec status!:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: resourceAttributes*:ResourceAttributes nonResourceAttributes*:NonResourceAttributes
SelfSubjectReview: metadata!:meta status!:SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo!:UserInfo
SelfSubjectRulesReview: metadata!:meta spec!:SelfSubjectRulesReviewSpec status!:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace
Service: metadata!:meta spec!:ServiceSpec status!:ServiceStatus
ServiceAccount: metadata!:meta secrets:[name]ObjectReference imagePullSecrets:[]LocalObjectReference automountServiceAccountToken*:bool
ServiceAccountTokenProjection: audience expirationSeconds*:long path! user:long
ServicePort: name protocol appProtocol* port!:int targetPort!:intOrString nodePort:int
ServiceReference: namespace! name! path* port*:int
ServiceSpec: ports:[port,protocol]ServicePort selector:map@ clusterIP clusterIPs:[] type externalIPs:[] sessionAffinity loadBalancerIP loadBalancerSourceRanges:[] externalName externalTrafficPolicy healthCheckNodePort:int publishNotReadyAddresses:bool sessionAffinityConfig*:SessionAffinityConfig ipFamilies:[] ipFamilyPolicy* allocateLoadBalancerNodePorts*:bool loadBalancerClass* internalTrafficPolicy* trafficDistribution*
ServiceStatus: loadBalancer!:LoadBalancerStatus conditions:[type]Condition
SessionAffinityConfig: clientIP*:ClientIPConfig
SleepAction: seconds!:long
StatefulSet: metadata!:meta spec!:StatefulSetSpec status!:StatefulSetStatus
StatefulSetCondition: type! status! lastTransitionTime!:time reason message
StatefulSetOrdinals: start!:int
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted whenScaled
StatefulSetSpec: replicas*:int selector=:LabelSelector template!:PodTemplateSpec volumeClaimTemplates:[]any serviceName! podManagementPolicy updateStrategy!:StatefulSetUpdateStrategy revisionHistoryLimit*:int minReadySeconds:int persistentVolumeClaimRetentionPolicy*:StatefulSetPersistentVolumeClaimRetentionPolicy ordinals*:StatefulSetOrdinals
StatefulSetStatus: observedGeneration:long replicas!:int readyReplicas:int currentReplicas:int updatedReplicas:int currentRevision updateRevision collisionCount*:int conditions:[type]StatefulSetCondition availableReplicas!:int
StatefulSetUpdateStrategy: type rollingUpdate*:RollingUpdateStatefulSetStrategy
StorageOSVolumeSource: volumeName volumeNamespace fsType readOnly:bool secretRef*:LocalObjectReference
Subject: kind! apiGroup name! namespace
SubjectAccessReview: metadata!:meta spec!:SubjectAccessReviewSpec status!:SubjectAccessReviewStatus
SubjectAccessReviewSpec: resourceAttributes*:ResourceAttributes nonResourceAttributes*:NonResourceAttributes user groups:[] extra:{}[] uid
SubjectAccessReviewStatus: allowed!:bool denied:bool reason evaluationError
SubjectRulesReviewStatus: resourceRules=:[]ResourceRule nonResourceRules=:[]NonResourceRule incomplete!:bool evaluationError
SuccessPolicy: rules=:[]SuccessPolicyRule
SuccessPolicyRule: succeededIndexes* succeededCount*:int
Sysctl: name! value!
TCPSocketAction: port!:intOrString host
Taint: key! value effect! timeAdded*:time
TokenRequest: metadata!:meta spec!:TokenRequestSpec status!:TokenRequestStatus
TokenRequestSpec: audiences=:[] expirationSeconds=:long boundObjectRef=:BoundObjectReference attestations:{}[]
TokenRequestStatus: token! expirationTimestamp!:time
TokenReview: metadata!:meta spec!:TokenReviewSpec status!:TokenReviewStatus
TokenReviewSpec: token audiences:[]
TokenReviewStatus: authenticated:bool user!:UserInfo audiences:[] error
Toleration: key operator value effect tolerationSeconds*:long
TopologySpreadConstraint: maxSkew!:int topologyKey! whenUnsatisfiable! labelSelector*:LabelSelector minDomains*:int nodeAffinityPolicy* nodeTaintsPolicy* matchLabelKeys:[]
TypeChecking: expressionWarnings:[]ExpressionWarning
TypedLocalObjectReference: apiGroup= kind! name!
TypedObjectReference: apiGroup= kind! name! namespace*
UncountedTerminatedPods: succeeded:[set]~none failed:[set]~none
UserInfo: username uid groups:[] extra:{}[]
ValidatingAdmissionPolicy: metadata!:meta spec!:ValidatingAdmissionPolicySpec status!:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding: metadata!:meta spec!:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec: policyName paramRef*:ParamRef matchResources*:MatchResources validationActions:[set]~none
ValidatingAdmissionPolicySpec: paramKind*:ParamKind matchConstraints*:MatchResources validations:[]Validation failurePolicy* auditAnnotations:[]AuditAnnotation matchConditions:[name]MatchCondition variables:[name]Variable
ValidatingAdmissionPolicyStatus: observedGeneration:long typeChecking*:TypeChecking conditions:[type]Condition~none
ValidatingWebhook: name! clientConfig!:WebhookClientConfig rules:[]RuleWithOperations failurePolicy* matchPolicy* namespaceSelector*:LabelSelector objectSelector*:LabelSelector sideEffects= timeoutSeconds*:int admissionReviewVersions=:[] matchConditions:[name]MatchCondition
ValidatingWebhookConfiguration: metadata!:meta webhooks:[name]ValidatingWebhook
Validation: expression! message reason* messageExpression
Variable: name! expression!
Volume: name! hostPath*:HostPathVolumeSource emptyDir*:EmptyDirVolumeSource gcePersistentDisk*:GCEPersistentDiskVolumeSource awsElasticBlockStore*:AWSElasticBlockStoreVolumeSource gitRepo*:GitRepoVolumeSource secret*:SecretVolumeSource nfs*:NFSVolumeSource iscsi*:ISCSIVolumeSource glusterfs*:GlusterfsVolumeSource persistentVolumeClaim*:PersistentVolumeClaimVolumeSource rbd*:RBDVolumeSource flexVolume*:FlexVolumeSource cinder*:CinderVolumeSource cephfs*:CephFSVolumeSource flocker*:FlockerVolumeSource downwardAPI*:DownwardAPIVolumeSource fc*:FCVolumeSource azureFile*:AzureFileVolumeSource configMap*:ConfigMapVolumeSource vsphereVolume*:VsphereVirtualDiskVolumeSource quobyte*:QuobyteVolumeSource azureDisk*:AzureDiskVolumeSource photonPersistentDisk*:PhotonPersistentDiskVolumeSource projected*:ProjectedVolumeSource portworxVolume*:PortworxVolumeSource scaleIO*:ScaleIOVolumeSource storageos*:StorageOSVolumeSource csi*:CSIVolumeSource ephemeral*:EphemeralVolumeSource image*:ImageVolumeSource
VolumeDevice: name! devicePath!
VolumeHealthCondition: status reason message
VolumeMount: name! readOnly:bool recursiveReadOnly* mountPath! subPath mountPropagation* subPathExpr bindMountOptions:[set]~none
VolumeMountStatus: name! mountPath! readOnly:bool recursiveReadOnly* volumeStatus:VolumeStatus
VolumeProjection: secret*:SecretProjection downwardAPI*:DownwardAPIProjection configMap*:ConfigMapProjection serviceAccountToken*:ServiceAccountTokenProjection clusterTrustBundle*:ClusterTrustBundleProjection podCertificate*:PodCertificateProjection
VolumeResourceRequirements: limits:{}quantity requests:{}quantity
VolumeStatus: image:ImageVolumeStatus
VsphereVirtualDiskVolumeSource: volumePath! fsType storagePolicyName storagePolicyID
WebhookClientConfig: url* service*:ServiceReference caBundle:bytes
WebhookConversion: clientConfig*:WebhookClientConfig conversionReviewVersions=:[]
WeightedPodAffinityTerm: weight!:int podAffinityTerm!:PodAffinityTerm
WindowsSecurityContextOptions: gmsaCredentialSpecName* gmsaCredentialSpec* runAsUserName* hostProcess*:bool
`;

/** Types that are owned and replaced as a whole (`+structType=atomic` in the same files). */
const atomicTypes = new Set([
  "ConfigMapKeySelector",
  "FileKeySelector",
  "LabelSelector",
  "LocalObjectReference",
  "NodeSelector",
  "NodeSelectorTerm",
  "ObjectFieldSelector",
  "ObjectReference",
  "ResourceFieldSelector",
  "RoleRef",
  "SecretKeySelector",
  "Subject",
  "TypedLocalObjectReference",
]);

/** Lists in which Kubernetes tolerates two items with the same keys. */
const tolerant = new Set([
  "Container.env",
  "Container.ports",
  "EphemeralContainer.env",
  "EphemeralContainer.ports",
  "ServiceSpec.ports",
  "ServiceStatus.conditions",
  "NodeStatus.addresses",
]);

/** kubernetes/kubernetes pkg/apis/*\/v1/defaults.go (master), as far as a default depends on nothing else. */
const defaults: Readonly<Record<string, unknown>> = {
  "ConfigMapVolumeSource.defaultMode": 420,
  "Container.resources": {},
  "Container.terminationMessagePath": "/dev/termination-log",
  "Container.terminationMessagePolicy": "File",
  "ContainerPort.protocol": "TCP",
  "CronJobSpec.concurrencyPolicy": "Allow",
  "CronJobSpec.failedJobsHistoryLimit": 1,
  "CronJobSpec.successfulJobsHistoryLimit": 3,
  "CronJobSpec.suspend": false,
  "CustomResourceDefinitionSpec.conversion": { strategy: "None" },
  "DaemonSetSpec.revisionHistoryLimit": 10,
  "DaemonSetSpec.updateStrategy": { type: "RollingUpdate" },
  "DaemonSetUpdateStrategy.type": "RollingUpdate",
  "DeploymentSpec.progressDeadlineSeconds": 600,
  "DeploymentSpec.replicas": 1,
  "DeploymentSpec.revisionHistoryLimit": 10,
  "DeploymentSpec.strategy": { type: "RollingUpdate" },
  "DeploymentStrategy.type": "RollingUpdate",
  "DownwardAPIVolumeSource.defaultMode": 420,
  "EndpointPort.protocol": "TCP",
  "HTTPGetAction.path": "/",
  "HTTPGetAction.scheme": "HTTP",
  "HostPathVolumeSource.type": "",
  "JobSpec.backoffLimit": 6,
  "JobSpec.completionMode": "NonIndexed",
  "JobSpec.manualSelector": false,
  "JobSpec.podReplacementPolicy": "TerminatingOrFailed",
  "JobSpec.suspend": false,
  "MatchResources.matchPolicy": "Equivalent",
  "MatchResources.namespaceSelector": {},
  "MatchResources.objectSelector": {},
  "MutatingWebhook.failurePolicy": "Fail",
  "MutatingWebhook.matchPolicy": "Equivalent",
  "MutatingWebhook.namespaceSelector": {},
  "MutatingWebhook.objectSelector": {},
  "MutatingWebhook.reinvocationPolicy": "Never",
  "MutatingWebhook.timeoutSeconds": 10,
  "NetworkPolicyPort.protocol": "TCP",
  "ObjectFieldSelector.apiVersion": "v1",
  "PodSpec.dnsPolicy": "ClusterFirst",
  "PodSpec.restartPolicy": "Always",
  "PodSpec.schedulerName": "default-scheduler",
  "PodSpec.securityContext": {},
  "PodSpec.terminationGracePeriodSeconds": 30,
  "Probe.failureThreshold": 3,
  "Probe.periodSeconds": 10,
  "Probe.successThreshold": 1,
  "Probe.timeoutSeconds": 1,
  "ProjectedVolumeSource.defaultMode": 420,
  "ReplicaSetSpec.replicas": 1,
  "NamedRuleWithOperations.scope": "*",
  "RuleWithOperations.scope": "*",
  "SecretVolumeSource.defaultMode": 420,
  "ServiceAccountTokenProjection.expirationSeconds": 3600,
  "ServicePort.protocol": "TCP",
  "ServiceReference.port": 443,
  "ServiceSpec.internalTrafficPolicy": "Cluster",
  "ServiceSpec.sessionAffinity": "None",
  "ServiceSpec.type": "ClusterIP",
  "StatefulSetSpec.podManagementPolicy": "OrderedReady",
  "StatefulSetSpec.replicas": 1,
  "StatefulSetSpec.revisionHistoryLimit": 10,
  "StatefulSetSpec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  "TokenRequestSpec.expirationSeconds": 3600,
  "ValidatingAdmissionPolicySpec.failurePolicy": "Fail",
  "ValidatingWebhook.failurePolicy": "Fail",
  "ValidatingWebhook.matchPolicy": "Equivalent",
  "ValidatingWebhook.namespaceSelector": {},
  "ValidatingWebhook.objectSelector": {},
  "ValidatingWebhook.timeoutSeconds": 10,
};

const words: Readonly<Record<string, Schema>> = {
  int: integer,
  long,
  bool: boolean,
  time,
  micro: microTime,
  bytes,
  quantity,
  intOrString,
  any: anything,
  meta: objectMeta,
  map: stringMap,
  "": string,
  string,
};

const writings: Readonly<Record<string, Writing>> = { "!": "always", "*": "pointer", "=": "null" };

let rows: ReadonlyMap<string, string> | undefined;
const built = new Map<string, Schema>();

/** Names of all types of the table. */
export function typeNames(): readonly string[] {
  return [...tableRows().keys()];
}

/** The schema of a type of the table. Parts that several kinds share are one object. */
export function typeSchema(name: string): Schema {
  const known = built.get(name);
  if (known !== undefined) return known;
  const row = tableRows().get(name);
  if (row === undefined) throw new Error(`bug: no type ${name}`);
  const properties: Record<string, Schema> = {};
  const marks = new Map<string, Writing>();
  for (const field of row.split(" ")) {
    const colon = field.indexOf(":");
    const marked = colon === -1 ? field : field.slice(0, colon);
    const key = marked.replace(/[!*=]$/, "");
    const writing = writings[marked.slice(key.length)];
    if (writing !== undefined) marks.set(key, writing);
    let schema = readType(colon === -1 ? "" : field.slice(colon + 1), `${name}.${key}`);
    const fallback = defaults[`${name}.${key}`];
    if (fallback !== undefined) schema = { ...schema, default: fallback };
    properties[key] = schema;
  }
  const schema: Schema = {
    type: "object",
    properties,
    [written]: marks,
    [documentedRequired]: requiredFields(name),
    ...(atomicTypes.has(name) ? { "x-kubernetes-map-type": "atomic" as const } : {}),
  };
  built.set(name, schema);
  return schema;
}

function tableRows(): ReadonlyMap<string, string> {
  rows ??= new Map(
    table
      .trim()
      .split("\n")
      .map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }),
  );
  return rows;
}

function readType(text: string, where: string): Schema {
  const [type = "", strategy] = text.split("~");
  if (type.endsWith("@")) return { ...readType(type.slice(0, -1), where), "x-kubernetes-map-type": "atomic" };
  if (type.startsWith("{}")) return { type: "object", additionalProperties: readType(type.slice(2), where) };
  const list = /^\[([^\]]*)\](.*)$/.exec(type);
  if (list === null) {
    const schema = words[type] ?? typeSchema(type);
    return strategy === undefined ? schema : { ...schema, "x-kubernetes-patch-strategy": strategy };
  }
  const [, keys = "", item = ""] = list;
  const items = readType(item, where);
  if (keys === "") {
    const [patchStrategy, patchKey] = (strategy ?? "").split("/");
    const merging: Schema =
      patchStrategy === undefined || patchStrategy === "" ? {} : { "x-kubernetes-patch-strategy": patchStrategy };
    return {
      type: "array",
      items,
      "x-kubernetes-list-type": "atomic",
      ...merging,
      ...(patchKey === undefined || patchKey === "" ? {} : { "x-kubernetes-patch-merge-key": patchKey }),
    };
  }
  const patch: Schema = strategy === "none" ? {} : { "x-kubernetes-patch-strategy": strategy ?? "merge" };
  if (keys === "set") return { type: "array", items, "x-kubernetes-list-type": "set", ...patch };
  const names = keys.split(",");
  return {
    type: "array",
    items,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": names,
    ...patch,
    ...(strategy === "none" ? {} : { "x-kubernetes-patch-merge-key": names[0] ?? "" }),
    ...(tolerant.has(where) ? { uniqueItems: false } : {}),
  };
}
