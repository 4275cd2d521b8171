import type * as types from "./kubernetes-types.ts";
import type { CustomResourceManifest } from "../schema/define-resource.ts";
import { type KubeObject, resource } from "../schema/object.ts";

type Kube<T> = Omit<T, "apiVersion" | "kind" | "metadata"> & KubeObject;

export type Namespace = Kube<types.Namespace>;
export type Node = Kube<types.Node>;
export type NodeCondition = types.NodeCondition;
export type Taint = types.Taint;
export type Pod = Kube<types.Pod>;
export type PodSpec = types.PodSpec;
export type PodTemplateSpec = types.PodTemplateSpec;
export type Container = types.Container;
export type ContainerStatus = types.ContainerStatus;
export type Volume = types.Volume;
export type ConfigMap = Kube<types.ConfigMap>;
export type Secret = Kube<types.Secret>;
export type Service = Kube<types.Service>;
export type ServiceAccount = Kube<types.ServiceAccount>;
export type Event = Kube<types.Event>;
export type Deployment = Kube<types.Deployment>;
export type ReplicaSet = Kube<types.ReplicaSet>;
export type DaemonSet = Kube<types.DaemonSet>;
export type ControllerRevision = Kube<types.ControllerRevision>;
export type EndpointSlice = KubeObject & {
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[] | null;
};
export type Job = Kube<types.Job>;
export type PodDisruptionBudget = Kube<types.PodDisruptionBudget>;
export type Lease = Kube<types.Lease>;
export type CertificateSigningRequest = Kube<types.CertificateSigningRequest>;
export type Role = Kube<types.Role>;
export type RoleBinding = Kube<types.RoleBinding>;
export type ClusterRole = Kube<types.ClusterRole>;
export type ClusterRoleBinding = Kube<types.ClusterRoleBinding>;
export type PolicyRule = types.PolicyRule;
export type ValidatingWebhookConfiguration = Kube<types.ValidatingWebhookConfiguration>;
export type CustomResourceDefinition = CustomResourceManifest & {
  status?: { conditions?: { type: string; status: string }[] };
};

/** Kubernetes' own kinds that this suite reads or writes. */
export const kubernetes = {
  Namespace: resource<Namespace>("v1", "Namespace", "namespaces", "Cluster"),
  Node: resource<Node>("v1", "Node", "nodes", "Cluster"),
  Pod: resource<Pod>("v1", "Pod", "pods", "Namespaced"),
  ConfigMap: resource<ConfigMap>("v1", "ConfigMap", "configmaps", "Namespaced"),
  Secret: resource<Secret>("v1", "Secret", "secrets", "Namespaced"),
  Service: resource<Service>("v1", "Service", "services", "Namespaced"),
  EndpointSlice: resource<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", "Namespaced"),
  ServiceAccount: resource<ServiceAccount>("v1", "ServiceAccount", "serviceaccounts", "Namespaced"),
  Event: resource<Event>("v1", "Event", "events", "Namespaced"),
  Deployment: resource<Deployment>("apps/v1", "Deployment", "deployments", "Namespaced"),
  ReplicaSet: resource<ReplicaSet>("apps/v1", "ReplicaSet", "replicasets", "Namespaced"),
  DaemonSet: resource<DaemonSet>("apps/v1", "DaemonSet", "daemonsets", "Namespaced"),
  ControllerRevision: resource<ControllerRevision>(
    "apps/v1",
    "ControllerRevision",
    "controllerrevisions",
    "Namespaced",
  ),
  Job: resource<Job>("batch/v1", "Job", "jobs", "Namespaced"),
  PodDisruptionBudget: resource<PodDisruptionBudget>(
    "policy/v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    "Namespaced",
  ),
  Lease: resource<Lease>("coordination.k8s.io/v1", "Lease", "leases", "Namespaced"),
  CertificateSigningRequest: resource<CertificateSigningRequest>(
    "certificates.k8s.io/v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    "Cluster",
  ),
  Role: resource<Role>("rbac.authorization.k8s.io/v1", "Role", "roles", "Namespaced"),
  RoleBinding: resource<RoleBinding>("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", "Namespaced"),
  ClusterRole: resource<ClusterRole>("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "Cluster"),
  ClusterRoleBinding: resource<ClusterRoleBinding>(
    "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
    "Cluster",
  ),
  NetworkPolicy: resource<KubeObject & { spec: unknown }>(
    "networking.k8s.io/v1",
    "NetworkPolicy",
    "networkpolicies",
    "Namespaced",
  ),
  ValidatingWebhookConfiguration: resource<ValidatingWebhookConfiguration>(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    "Cluster",
  ),
  ValidatingAdmissionPolicy: resource<KubeObject & { spec: unknown }>(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    "Cluster",
  ),
  ValidatingAdmissionPolicyBinding: resource<KubeObject & { spec: unknown }>(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    "Cluster",
  ),
  PriorityClass: resource<KubeObject & { readonly value: number }>(
    "scheduling.k8s.io/v1",
    "PriorityClass",
    "priorityclasses",
    "Cluster",
  ),
  CustomResourceDefinition: resource<CustomResourceDefinition>(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "Cluster",
  ),
} as const;
