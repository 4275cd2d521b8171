import { sameMultiset, withoutMultiset } from "../text/multiset.ts";
import type { Change } from "../config/change.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { supportedExtensions } from "../config/validate-machine-config.ts";
import type { ObservedDeployment, ObservedNode } from "./observed-node.ts";

/**
 * Packages that extensions install: they are added and removed with the extensions; all others belong to other owners.
 */
const extensionPackages = new Set(Object.values(supportedExtensions).flat());

/** Packages of extensions, sorted, without duplicates. Unknown extensions yield none: they are refused elsewhere. */
export const packagesOf = (extensions: readonly string[]): readonly string[] =>
  [
    ...new Set(
      extensions.flatMap((name) => (Object.hasOwn(supportedExtensions, name) ? (supportedExtensions[name] ?? []) : [])),
    ),
  ].sort();

/**
 * The system that the machine should boot for `target`: the image; the provisioning command line with other owners'
 * additions and the target's arguments; the packages of its extensions beside those that others layered.
 */
export function wantedDeployment(
  node: Pick<ObservedNode, "booted" | "originals" | "previous" | "can">,
  target: NodeConfig,
): ObservedDeployment {
  const { booted, can } = node;
  const foreign = foreignPackages(booted.packages);
  return {
    image: target.osImage === "" || !can.images ? booted.image : target.osImage,
    kernelArguments: can.kernelArguments ? wantedKernelArguments(node, target) : booted.kernelArguments,
    packages: can.packages ? [...new Set([...foreign, ...packagesOf(target.extensions)])].sort() : booted.packages,
    kernelType: can.kernelTypes.includes(target.kernelType) ? target.kernelType : booted.kernelType,
  };
}

/** Remove only what a configuration of ours added. */
function wantedKernelArguments(
  { booted, originals, previous }: Pick<ObservedNode, "booted" | "originals" | "previous">,
  target: NodeConfig,
): readonly string[] {
  const own = new Set([
    ...(previous?.kernelArguments ?? []),
    ...originals.ownKernelArguments,
    ...target.kernelArguments,
  ]);
  const base = withoutMultiset(
    originals.kernelArguments,
    withoutMultiset(originals.kernelArguments, booted.kernelArguments),
  );
  const extras = withoutMultiset(booted.kernelArguments, base).filter((word) => !own.has(word));
  return [...base, ...extras, ...target.kernelArguments];
}

export const sameDeployment = (a: ObservedDeployment, b: ObservedDeployment): boolean =>
  a.image === b.image &&
  a.kernelType === b.kernelType &&
  sameMultiset(a.kernelArguments, b.kernelArguments) &&
  sameMultiset(a.packages, b.packages);

/** The difference between the running system and the desired one. */
export function deploymentChanges(booted: ObservedDeployment, wanted: ObservedDeployment): readonly Change[] {
  return [
    ...(wanted.image === booted.image ? [] : [{ kind: "osImage", from: booted.image, to: wanted.image } as const]),
    ...(sameMultiset(wanted.kernelArguments, booted.kernelArguments)
      ? []
      : [{ kind: "kernelArguments", from: booted.kernelArguments, to: wanted.kernelArguments } as const]),
    ...(sameMultiset(wanted.packages, booted.packages)
      ? []
      : [{ kind: "extensions", from: booted.packages, to: wanted.packages } as const]),
    ...(wanted.kernelType === booted.kernelType
      ? []
      : [{ kind: "kernelType", from: booted.kernelType, to: wanted.kernelType } as const]),
  ];
}

/** Packages that no extension installs. */
export const foreignPackages = (packages: readonly string[]): readonly string[] =>
  packages.filter((name) => !extensionPackages.has(name));

/** Packages that older releases of an extension did not need. */
const sinceLater: readonly string[] = ["openvswitch3.5-ipsec"];

/**
 * Extensions of which the machine lacks a package. Sets that an older release had count as whole.
 * Source: openshift/machine-config-operator pkg/daemon/update.go and pkg/controller/common/helpers.go (main).
 */
export function missingExtensions(extensions: readonly string[], installed: readonly string[]): readonly string[] {
  return extensions.filter((name) =>
    (supportedExtensions[name] ?? []).some((one) => !installed.includes(one) && !sinceLater.includes(one)),
  );
}
