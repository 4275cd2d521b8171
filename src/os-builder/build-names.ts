import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { buildNamespace, labels } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import type { BuildPart } from "../core/build/image-build.ts";
import type { BuildRequest, HostContent, RunRef } from "./backend.ts";

const maxNameLength = 63;
const shortened = (text: string, rest = ""): string => {
  if (text.length + rest.length <= maxNameLength) return `${text}${rest}`;
  const hash = bytesToHex(sha256(utf8ToBytes(text))).slice(0, 10);
  return `${text.slice(0, maxNameLength - hash.length - 1 - rest.length).replace(/[^a-z0-9]+$/, "")}-${hash}${rest}`;
};

/**
 * Name of a run's Job. A pool's name may be longer than the space left for it; pods carry the Job's name as a label.
 */
export const jobNameOf = ({ build, attempt }: Pick<RunRef, "build" | "attempt">): string =>
  shortened(`build-${build}`, `-${attempt}`);

/** Value of the label by which everything of a build is found. */
const buildLabelOf = (build: string): string => shortened(build);

/** Its full name; the label may be too short for it. */
export const buildAnnotation = labels.machineOSBuild;

/** Selects everything of a build, and of another one whose name is shortened to the same label. */
export const selectionOfBuild = (build: string): { readonly namespace: string; readonly labelSelector: string } => ({
  namespace: buildNamespace,
  labelSelector: `${labels.machineOSBuild}=${buildLabelOf(build)}`,
});

/** Whether an object belongs to a build. Shortened names and labels differ by a few digits of a hash only. */
export const belongsToBuild = (build: string, { metadata }: KubeObject): boolean =>
  metadata.annotations?.[buildAnnotation] === build;

/** The containers of a build by what they do. */
export const containerNames: Readonly<Record<BuildPart, string>> = {
  pull: "image-pull",
  steps: "image-build",
  push: "image-push",
};

/** The labels of everything of a build. */
export function labelsOf({ build, pool }: Pick<BuildRequest, "build" | "pool">): Record<string, string> {
  return {
    [labels.ephemeralBuildObject]: "",
    [labels.onClusterLayering]: "",
    [labels.machineOSBuild]: buildLabelOf(build.metadata.name),
    [labels.machineOSConfig]: shortened(build.spec.machineOSConfig.name),
    [labels.targetPool]: shortened(pool),
    [labels.renderedConfig]: shortened(build.spec.machineConfig.name),
  };
}

/** Name of a ConfigMap that carries the content. */
export const contentName = (build: string, index: number, count: number): string =>
  count === 1 ? `mc-${build}` : `mc-${build}-${index}`;

/** Name of the copy of what steps see. */
export const mountName = (kind: HostContent["kind"], build: string): string => `${kind.toLowerCase()}-${build}`;
