/**
 * Fields of built-in types that the API calls required: `type: field …`, one type on a line. Documents say so, and
 * `kubectl explain` shows it; what a server refuses is decided by the rules of each kind.
 * Facts from the OpenAPI documents of kube-apiserver 1.34.
 */
const table = `
AWSElasticBlockStoreVolumeSource: volumeID
AppArmorProfile: type
AttachedVolume: devicePath name
AuditAnnotation: key valueExpression
AzureDiskVolumeSource: diskName diskURI
AzureFileVolumeSource: secretName shareName
Binding: target
CSIVolumeSource: driver
CephFSVolumeSource: monitors
CertificateSigningRequest: spec
CertificateSigningRequestCondition: status type
CertificateSigningRequestSpec: request signerName
CinderVolumeSource: volumeID
ClusterRoleBinding: roleRef
ClusterTrustBundleProjection: path
Condition: lastTransitionTime message reason status type
ConfigMapKeySelector: key
ConfigMapNodeConfigSource: kubeletConfigKey name namespace
Container: name
ContainerExtendedResourceRequest: containerName requestName resourceName
ContainerPort: containerPort
ContainerResizePolicy: resourceName restartPolicy
ContainerRestartRule: action
ContainerRestartRuleOnExitCodes: operator
ContainerStateTerminated: exitCode
ContainerStatus: image imageID name ready restartCount
ControllerRevision: revision
CronJobSpec: jobTemplate schedule
CustomResourceColumnDefinition: jsonPath name type
CustomResourceConversion: strategy
CustomResourceDefinition: spec
CustomResourceDefinitionCondition: status type
CustomResourceDefinitionNames: kind plural
CustomResourceDefinitionSpec: group names scope versions
CustomResourceDefinitionVersion: name served storage
CustomResourceSubresourceScale: specReplicasPath statusReplicasPath
DaemonEndpoint: Port
DaemonSetCondition: status type
DaemonSetSpec: selector template
DaemonSetStatus: currentNumberScheduled desiredNumberScheduled numberMisscheduled numberReady
DeploymentCondition: status type
DeploymentSpec: selector template
DownwardAPIVolumeFile: path
EndpointAddress: ip
EndpointPort: port
EnvVar: name
EphemeralContainer: name
Event: involvedObject metadata
ExpressionWarning: fieldRef warning
FieldSelectorRequirement: key operator
FileKeySelector: key path volumeName
FlexVolumeSource: driver
GCEPersistentDiskVolumeSource: pdName
GRPCAction: port
GitRepoVolumeSource: repository
GlusterfsVolumeSource: endpoints path
HTTPGetAction: port
HTTPHeader: name value
HostAlias: ip
HostIP: ip
HostPathVolumeSource: path
IPBlock: cidr
ISCSIVolumeSource: iqn lun targetPortal
JobCondition: status type
JobSpec: template
KeyToPath: key path
LabelSelectorRequirement: key operator
LimitRangeItem: type
LimitRangeSpec: limits
LinuxContainerUser: gid uid
LocalSubjectAccessReview: spec
MatchCondition: expression name
MutatingWebhook: admissionReviewVersions clientConfig name sideEffects
NFSVolumeSource: path server
NamespaceCondition: status type
NodeAddress: address type
NodeCondition: status type
NodeSelector: nodeSelectorTerms
NodeSelectorRequirement: key operator
NodeSystemInfo: architecture bootID containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion machineID operatingSystem osImage systemUUID
NonResourceRule: verbs
ObjectFieldSelector: fieldPath
PersistentVolumeClaimTemplate: spec
PersistentVolumeClaimVolumeSource: claimName
PhotonPersistentDiskVolumeSource: pdID
PodAffinityTerm: topologyKey
PodCertificateProjection: keyType signerName
PodCondition: status type
PodDisruptionBudgetStatus: currentHealthy desiredHealthy disruptionsAllowed expectedPods
PodExtendedResourceClaimStatus: requestMappings resourceClaimName
PodFailurePolicy: rules
PodFailurePolicyOnExitCodesRequirement: operator values
PodFailurePolicyOnPodConditionsPattern: status type
PodFailurePolicyRule: action
PodIP: ip
PodOS: name
PodReadinessGate: conditionType
PodResourceClaim: name
PodResourceClaimStatus: name
PodSchedulingGate: name
PodSpec: containers
PolicyRule: verbs
PortStatus: port protocol
PortworxVolumeSource: volumeID
PreferredSchedulingTerm: preference weight
PriorityClass: value
QuobyteVolumeSource: registry volume
RBDVolumeSource: image monitors
ReplicaSetCondition: status type
ReplicaSetSpec: selector
ReplicaSetStatus: replicas
ResourceClaim: name
ResourceFieldSelector: resource
ResourceHealth: resourceID
ResourceRule: verbs
ResourceStatus: name
RoleBinding: roleRef
RoleRef: apiGroup kind name
ScaleIOVolumeSource: gateway secretRef system
ScaleStatus: replicas
ScopedResourceSelectorRequirement: operator scopeName
SeccompProfile: type
SecretKeySelector: key
SelectableField: jsonPath
SelfSubjectAccessReview: spec
SelfSubjectRulesReview: spec
ServiceAccountTokenProjection: path
ServicePort: port
ServiceReference: name namespace
SleepAction: seconds
StatefulSetCondition: status type
StatefulSetSpec: selector template
StatefulSetStatus: replicas
Subject: kind name
SubjectAccessReview: spec
SubjectAccessReviewStatus: allowed
SubjectRulesReviewStatus: incomplete nonResourceRules resourceRules
SuccessPolicy: rules
Sysctl: name value
TCPSocketAction: port
Taint: effect key
TokenRequest: spec
TokenRequestSpec: audiences
TokenRequestStatus: expirationTimestamp token
TokenReview: spec
TopologySpreadConstraint: maxSkew topologyKey whenUnsatisfiable
TypedLocalObjectReference: kind name
TypedObjectReference: kind name
ValidatingWebhook: admissionReviewVersions clientConfig name sideEffects
Validation: expression
Variable: expression name
Volume: name
VolumeDevice: devicePath name
VolumeMount: mountPath name
VolumeMountStatus: mountPath name
VsphereVirtualDiskVolumeSource: volumePath
WebhookConversion: conversionReviewVersions
WeightedPodAffinityTerm: podAffinityTerm weight
EventsEvent: eventTime
`;

let rows: ReadonlyMap<string, readonly string[]> | undefined;

/** The required fields of a type of `builtin-types.ts`. */
export function requiredFields(type: string): readonly string[] {
  rows ??= new Map(
    table
      .trim()
      .split("\n")
      .map((line) => {
        const [name = "", fields = ""] = line.split(": ");
        return [name, fields.split(" ")];
      }),
  );
  return rows.get(type) ?? [];
}
