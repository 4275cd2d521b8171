import type { ControllerConfig } from "../api/controller-config.ts";
import { annotations, controllerConfigConditions as types } from "../api/names.ts";
import { type Condition, conditionOf } from "../api/object.ts";

export interface ClusterFactsForConfig {
  /** ClusterIP of the cluster's DNS service, when it has one. */
  readonly dnsServiceIP: string | undefined;
  /** PEM in base64; empty when it is not published. */
  readonly rootCa: string;
  /** `additionalTrustBundle` in base64. */
  readonly userCa: string | undefined;
  readonly osImage: string;
  readonly extensionsImage: string | undefined;
  /** Image of the suite. */
  readonly image: string;
  readonly releaseImage: string;
}

/** Tenth address of OpenShift's default service network: openshift/installer pkg/types/defaults/installconfig.go (main). */
const defaultDnsIP = "172.30.0.10";

/** What the operator writes into ControllerConfig. On plain Kubernetes most of what OpenShift's config kinds say has no source and stays at its default. */
export function controllerConfigOf(facts: ClusterFactsForConfig): ControllerConfig["spec"] {
  const dns = facts.dnsServiceIP ?? defaultDnsIP;
  return {
    clusterDNSIP: dns,
    cloudProviderConfig: "",
    kubeAPIServerServingCAData: facts.rootCa,
    rootCAData: facts.rootCa,
    cloudProviderCAData: null,
    additionalTrustBundle: facts.userCa ?? null,
    pullSecret: { kind: "Secret", namespace: "openshift-config", name: "pull-secret" },
    images: { machineConfigOperator: facts.image },
    baseOSContainerImage: facts.osImage,
    ...(facts.extensionsImage === undefined || facts.extensionsImage === "" ? {} : { baseOSExtensionsContainerImage: facts.extensionsImage }),
    releaseImage: facts.releaseImage,
    proxy: null,
    infra: null,
    dns: null,
    ipFamilies: dns.includes(":") ? "IPv6" : "IPv4",
    networkType: "",
  };
}

/** Why configurations may not be rendered from a ControllerConfig yet, or that they may. */
export type Fence = { readonly verdict: "open" } | { readonly verdict: "closed"; readonly reason: "ControllerConfigAbsent" | "ControllerConfigOfOtherVersion" | "ControllerConfigNotCompleted"; readonly message: string };

/**
 * Base configurations must be complete and from this very version before pools are rendered from them: else a pool would
 * roll out a mixture of two releases.
 */
export function renderFence(config: ControllerConfig | undefined, version: string): Fence {
  if (config === undefined) return { verdict: "closed", reason: "ControllerConfigAbsent", message: "the operator has not written the ControllerConfig yet" };
  const by = config.metadata.annotations?.[annotations.generatedByVersion] ?? "";
  if (by !== version) return { verdict: "closed", reason: "ControllerConfigOfOtherVersion", message: `the ControllerConfig is of version ${by === "" ? "unknown" : by}, and this controller is ${version}` };
  if (!isCompleted(config)) return { verdict: "closed", reason: "ControllerConfigNotCompleted", message: "the base configurations are not complete yet" };
  return { verdict: "open" };
}

/** The template controller has worked off the newest generation. */
export function isCompleted(config: ControllerConfig): boolean {
  const { status } = config;
  const is = (type: string) => conditionOf(status?.conditions as { type: string; status?: string }[] | undefined, type)?.status;
  return status?.observedGeneration === (config.metadata.generation ?? 1) && is(types.completed) === "True" && is(types.running) !== "True" && is(types.failing) !== "True";
}

/** Why the template controller cannot make the base configurations of the newest generation; `undefined` when nothing says so. */
export function failureOf(config: ControllerConfig): string | undefined {
  const { status } = config;
  const failing = conditionOf(status?.conditions as { type: string; status?: string; message?: string }[] | undefined, types.failing);
  return failing?.status === "True" ? (failing.message ?? "") : undefined;
}

/** Where the template controller stands. */
export type TemplateProgress = { readonly at: "running" } | { readonly at: "completed"; readonly version: string } | { readonly at: "failing"; readonly message: string };

/** The status of a ControllerConfig; the same value when nothing changed. Texts: openshift/machine-config-operator pkg/controller/template/status.go (main). */
export function templateStatus(config: ControllerConfig, progress: TemplateProgress, now: number): NonNullable<ControllerConfig["status"]> {
  const generation = config.metadata.generation ?? 1;
  const before = (config.status?.conditions ?? []) as readonly Partial<Condition>[];
  const stamp = `${new Date(now).toISOString().slice(0, 19)}Z`;
  const condition = (type: string, is: boolean, message: string) => {
    const status = is ? "True" : "False";
    const old = before.find((other) => other.type === type);
    return { type, status, reason: is ? type.replace("TemplateController", "") : "AsExpected", message, lastTransitionTime: old?.status === status ? (old.lastTransitionTime ?? stamp) : stamp };
  };
  const conditions = [
    condition(types.completed, progress.at === "completed", progress.at === "completed" ? `sync completed towards (${generation}) generation using controller version ${progress.version}` : ""),
    condition(types.running, progress.at === "running", progress.at === "running" ? `syncing towards (${generation}) generation` : ""),
    condition(types.failing, progress.at === "failing", progress.at === "failing" ? progress.message : ""),
  ];
  return { ...config.status, observedGeneration: generation, conditions };
}
