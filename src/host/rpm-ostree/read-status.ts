import { McoError } from "../../api/errors.ts";
import type { ObservedDeployment, KernelType } from "../host.ts";

/**
 * What of `rpm-ostree status --json` counts (coreos/rpm-ostree docs/administrator-handbook.md;
 * src/daemon/rpmostreed-deployment-utils.cxx (main)).
 */
interface StatusDeployment {
  readonly booted?: boolean;
  readonly staged?: boolean;
  readonly "container-image-reference"?: string;
  readonly "container-image-reference-digest"?: string;
  /** Where an older way of updating wrote the image (`pivot://…`). */
  readonly "custom-origin"?: readonly string[] | null;
  readonly "requested-packages"?: readonly string[];
  readonly "requested-base-removals"?: readonly string[];
  readonly "base-removals"?: readonly unknown[];
}

/** One deployment, and what undoing its kernel takes. */
export interface KnownDeployment {
  /** Its place in the list, which is how other commands name it. */
  readonly index: number;
  readonly image: string;
  readonly packages: readonly string[];
  readonly kernelType: KernelType;
  /** Packages of the kernel type that are layered, and base packages that make room for them. */
  readonly kernelPackages: readonly string[];
  readonly removedPackages: readonly string[];
}

/**
 * Packages that are taken out of the image for another kernel, and put in. Source: openshift/machine-config-operator
 * pkg/daemon/update.go (main).
 */
export const defaultKernel = [
  "kernel",
  "kernel-core",
  "kernel-modules",
  "kernel-modules-core",
  "kernel-modules-extra",
] as const;
export const otherKernels: Readonly<Record<Exclude<KernelType, "default">, readonly string[]>> = {
  realtime: ["kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra"],
  "64k-pages": ["kernel-64k-core", "kernel-64k-modules", "kernel-64k-modules-core", "kernel-64k-modules-extra"],
};

/**
 * Ways in which ostree names where an image comes from; the rest is its pullspec (coreos/rpm-ostree docs/container.md
 * (main)).
 */
const transports = [
  /^ostree-image-signed:/,
  /^ostree-unverified-image:/,
  /^ostree-unverified-registry:/,
  /^ostree-remote-(?:image|registry):[^:]+:/,
  /^registry:/,
  /^docker:\/\//,
  /^containers-storage:/,
];

export function pullspecOf(reference: string): string {
  let rest = reference;
  for (const transport of transports) rest = rest.replace(transport, "");
  return rest;
}

function imageOf(deployment: StatusDeployment): string {
  const reference = deployment["container-image-reference"];
  if (reference === undefined || reference === "")
    return deployment["custom-origin"]?.[0]?.replace(/^pivot:\/\//, "") ?? "";
  const image = pullspecOf(reference);
  const digest = deployment["container-image-reference-digest"];
  // Which image a tag was then is known; which it is now is of no interest.
  return image.includes("@") || digest === undefined || digest === ""
    ? image
    : `${image.replace(/:[^:/]+$/, "")}@${digest}`;
}

const kernelOf = (name: string): KernelType =>
  name.startsWith("kernel-rt-") ? "realtime" : name.startsWith("kernel-64k-") ? "64k-pages" : "default";

function known(deployment: StatusDeployment, index: number): KnownDeployment {
  const requested = deployment["requested-packages"] ?? [];
  const removals = deployment["requested-base-removals"] ?? [];
  const kernelPackages = requested.filter((name) => kernelOf(name) !== "default");
  const removedPackages = removals.filter((name) => (defaultKernel as readonly string[]).includes(name));
  return {
    index,
    image: imageOf(deployment),
    packages: requested.filter((name) => kernelOf(name) === "default").toSorted(),
    // Layered alone, beside the image's own kernel, is no other kernel.
    kernelType: removedPackages.length > 0 ? kernelOf(kernelPackages[0] ?? "") : "default",
    kernelPackages,
    removedPackages,
  };
}

export interface KnownStatus {
  readonly booted: KnownDeployment;
  readonly staged: KnownDeployment | undefined;
  /** What the machine can go back to: the list begins with what it boots next. */
  readonly rollback: KnownDeployment | undefined;
}

export function readStatus(json: string): KnownStatus {
  let deployments: readonly StatusDeployment[];
  try {
    deployments = (JSON.parse(json) as { readonly deployments?: readonly StatusDeployment[] }).deployments ?? [];
  } catch (error) {
    throw new McoError(
      "MCO_HOST_COMMAND_FAILED",
      { command: "rpm-ostree status --json", problem: "its answer is not JSON" },
      { cause: error },
    );
  }
  const booted = deployments.findIndex((deployment) => deployment.booted === true);
  const staged = deployments.findIndex((deployment) => deployment.staged === true);
  const rollback = deployments.findIndex((deployment) => deployment.booted !== true && deployment.staged !== true);
  const at = (index: number) => {
    const deployment = deployments[index];
    return deployment === undefined ? undefined : known(deployment, index);
  };
  const bootedDeployment = at(booted);
  if (bootedDeployment === undefined)
    throw new McoError("MCO_HOST_COMMAND_FAILED", {
      command: "rpm-ostree status --json",
      problem: "no deployment is booted",
    });
  return { booted: bootedDeployment, staged: at(staged), rollback: at(rollback) };
}

/**
 * Words of a kernel command line, split where the kernel does: at white space outside of double quotes. What ostree
 * adds by itself is left out.
 */
export const kernelWords = (line: string): readonly string[] =>
  (line.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []).filter((word) => !word.startsWith("ostree="));

export const deploymentOf = (
  { image, packages, kernelType }: KnownDeployment,
  kernelArguments: readonly string[],
): ObservedDeployment => ({ image, kernelArguments, packages, kernelType });
