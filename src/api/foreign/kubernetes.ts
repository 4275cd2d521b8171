import type * as admission from "kubernetes-types/admissionregistration/v1.d.ts";
import type * as apps from "kubernetes-types/apps/v1.d.ts";
import type * as batch from "kubernetes-types/batch/v1.d.ts";
import type * as certificates from "kubernetes-types/certificates/v1.d.ts";
import type * as coordination from "kubernetes-types/coordination/v1.d.ts";
import type * as core from "kubernetes-types/core/v1.d.ts";
import type * as policy from "kubernetes-types/policy/v1.d.ts";
import type * as rbac from "kubernetes-types/rbac/v1.d.ts";
import type { CustomResourceManifest } from "../schema/define-resource.ts";
import { type KubeObject, resource } from "../schema/object.ts";

type Kube<T> = Omit<T, "apiVersion" | "kind" | "metadata"> & KubeObject;

export type Namespace = Kube<core.Namespace>;
export type Node = Kube<core.Node>;
export type NodeCondition = core.NodeCondition;
export type Taint = core.Taint;
export type Pod = Kube<core.Pod>;
export type PodSpec = core.PodSpec;
export type PodTemplateSpec = core.PodTemplateSpec;
export type Container = core.Container;
export type ContainerStatus = core.ContainerStatus;
export type Volume = core.Volume;
export type ConfigMap = Kube<core.ConfigMap>;
export type Secret = Kube<core.Secret>;
export type Service = Kube<core.Service>;
export type ServiceAccount = Kube<core.ServiceAccount>;
export type Event = Kube<core.Event>;
export type Deployment = Kube<apps.Deployment>;
export type ReplicaSet = Kube<apps.ReplicaSet>;
export type DaemonSet = Kube<apps.DaemonSet>;
export type ControllerRevision = Kube<apps.ControllerRevision>;
export type EndpointSlice = KubeObject & {
  readonly endpoints?: readonly { readonly addresses: readonly string[] }[] | null;
};
export type Job = Kube<batch.Job>;
export type PodDisruptionBudget = Kube<policy.PodDisruptionBudget>;
export type Lease = Kube<coordination.Lease>;
export type CertificateSigningRequest = Kube<certificates.CertificateSigningRequest>;
export type Role = Kube<rbac.Role>;
export type RoleBinding = Kube<rbac.RoleBinding>;
export type ClusterRole = Kube<rbac.ClusterRole>;
export type ClusterRoleBinding = Kube<rbac.ClusterRoleBinding>;
export type PolicyRule = rbac.PolicyRule;
export type ValidatingWebhookConfiguration = Kube<admission.ValidatingWebhookConfiguration>;
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
