import { utf8ToBytes } from "@noble/hashes/utils.js";
import { imageLabels } from "../../api/names.ts";
import { isRecord } from "../../ignition/shape.ts";
import { type BuildFailure, boundedFailure, isFailureClass } from "./build-failures.ts";
import { readVersionOne } from "../text/versioned-document.ts";
import type { ContentMode } from "../config/node-config.ts";

/** Container paths of the input and the output of the program that builds an image. */
export const buildPaths = {
  context: "/run/mco-build/context",
  /** Followed by `-<n>` if the content needs several volumes. */
  content: "/run/mco-build/content",
  pull: "/run/mco-build/pull",
  push: "/run/mco-build/push",
  trust: "/run/mco-build/trust",
  policy: "/run/mco-build/policy",
  registries: "/run/mco-build/registries",
  proxy: "/run/mco-build/proxy",
  /** Followed by the kind of the content. */
  mounts: "/run/mco-build/mounts",
  cache: "/run/mco-build/cache",
  work: "/run/mco-build/work",
  /** As `work`, of the container that pulls: what it writes there is out of the reach of steps. */
  pullWork: "/run/mco-build/pull-work",
  /** The image as the steps left it, an OCI layout. */
  result: "/run/mco-build/result",
  terminationMessage: "/dev/termination-log",
} as const;

/**
 * A build with steps runs in three containers, one after the other: `pull` reads the images that the steps stand on, and
 * has the credential for that; `steps` runs the steps, and has none; `push` pushes what they left, and runs no program.
 * A build without steps is a `push` alone.
 */
export const buildParts = ["pull", "steps", "push"] as const;

export type BuildPart = (typeof buildParts)[number];

export const isBuildPart = (text: string): text is BuildPart => (buildParts as readonly string[]).includes(text);

/** Names of files in these folders. */
export const buildFiles = {
  containerfile: "Containerfile",
  request: "build.json",
  configLayer: "config-layer.tar.gz",
  buildVisible: "build-visible.tar.gz",
  auth: ".dockerconfigjson",
  trust: "openshift-config-user-ca-bundle.crt",
  policy: "policy.json",
  registries: "registries.conf",
  /** {@link BuildProxy} */
  proxy: "proxy.json",
  /** Folder of the result. */
  layout: "layout",
} as const;

/**
 * Where Containerfile steps find content of the cluster. Source: openshift/machine-config-operator
 * pkg/controller/build/buildrequest/assets/buildah-build.sh (main).
 */
export const mountTargets = {
  entitlement: "/etc/pki/entitlement",
  rpmGpg: "/etc/pki/rpm-gpg",
  yumRepos: "/etc/yum.repos.d",
} as const;

export type MountKind = keyof typeof mountTargets;

/** The cluster's proxy, whose addresses may hold a password: only Secrets carry it. */
export interface BuildProxy {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
}

/** Reads what a build was told of the proxy. The problem quotes nothing of it. */
export function readBuildProxy(text: string): BuildProxy | { readonly problem: string } {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return { problem: "it is no JSON" };
  }
  if (!isRecord(read)) return { problem: "it is no object" };
  const wrong = ["httpProxy", "httpsProxy", "noProxy"].find(
    (name) => !["string", "undefined"].includes(typeof read[name]),
  );
  return wrong === undefined ? (read as BuildProxy) : { problem: `${wrong} is no text` };
}

/** The inputs of one build attempt, without secrets. */
export interface BuildFile {
  readonly v: 1;
  /** Of the attempt. */
  readonly id: string;
  readonly attempt: number;
  readonly mode: ContentMode;
  readonly architecture: string;
  /** Pullspec by digest. */
  readonly base: string;
  readonly extensions?: string;
  /** The expected joined file; absent if the image contains no configuration. */
  readonly configLayer?: { readonly digest: string; readonly diffId: string };
  /** The number of pieces of each large file. */
  readonly pieces: { readonly configLayer: number; readonly buildVisible: number };
  /** Files of the context: name of the key that holds each, and its mode. */
  readonly files: readonly { readonly path: string; readonly key: string; readonly mode: number }[];
  readonly mounts: readonly MountKind[];
  /** PEM texts by host. */
  readonly certificates: Readonly<Record<string, readonly string[]>>;
  readonly target: { readonly repository: string; readonly tag: string };
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly noCache: boolean;
  readonly pushSeconds: number;
  readonly labels: Readonly<Record<string, string>>;
}

export const printBuildFile = (file: BuildFile): string => JSON.stringify(file);

/** Reads the output of {@link printBuildFile}, possibly of another version of this program. */
export function readBuildFile(text: string): BuildFile | { readonly problem: string } {
  const document = readVersionOne(text);
  if ("problem" in document) return document;
  const { read } = document;
  const strings = ["id", "mode", "architecture", "base"].find((name) => typeof read[name] !== "string");
  if (strings !== undefined) return { problem: `${strings} is no text` };
  const numbers = ["attempt", "epoch", "pushSeconds"].find((name) => !Number.isSafeInteger(read[name]));
  if (numbers !== undefined) return { problem: `${numbers} is no whole number` };
  const records = ["pieces", "certificates", "target", "labels"].find((name) => !isRecord(read[name]));
  if (records !== undefined) return { problem: `${records} is no object` };
  const lists = ["files", "mounts"].find((name) => !Array.isArray(read[name]));
  return lists === undefined ? (read as unknown as BuildFile) : { problem: `${lists} is no list` };
}

/** Labels of an image: the caller's, and those that describe the image. */
export function labelsOfImage({
  labels,
  mode,
  base,
}: {
  readonly labels: Readonly<Record<string, string>>;
  readonly mode: ContentMode;
  readonly base: string;
}): Readonly<Record<string, string>> {
  return { ...labels, [imageLabels.content]: mode, [imageLabels.baseDigest]: base.slice(base.indexOf("@") + 1) };
}

/** Name of the n-th piece of a split file, from 0; the file's own name if it is whole. */
export const pieceName = (file: string, piece: number, pieces: number): string =>
  pieces === 1 ? file : `${file}.${String(piece).padStart(3, "0")}`;

/** The result of one part of an attempt, or of the whole attempt. */
export type PartOutcome = { readonly done: Exclude<BuildPart, "push"> } | BuildOutcome;

/** The result of an attempt, as the container's termination message. */
export type BuildOutcome = { readonly digest: string } | { readonly failure: BuildFailure };

/** Kubernetes cuts longer messages off (core/v1 ContainerStateTerminated). */
const maxMessageBytes = 4096;

/** JSON of at most 4 KiB: `{step, rc, digest?, class?, cause?, excerpt?}`. */
export function printOutcome(outcome: BuildOutcome): string {
  if ("digest" in outcome) return JSON.stringify({ step: "verify", rc: 0, digest: outcome.digest });
  const { class: failureClass, step, exitCode = 1, cause } = outcome.failure;
  let { excerpt } = outcome.failure;
  for (;;) {
    const text = JSON.stringify({ step, rc: exitCode, class: failureClass, cause, excerpt });
    const over = utf8ToBytes(text).length - maxMessageBytes;
    if (over <= 0) return text;
    // A character takes six bytes at most, as an escape.
    excerpt = excerpt.slice(Math.max(1, Math.ceil(over / 6)));
  }
}

/** Reads a termination message; `undefined` if it is not ours. */
export function readOutcome(text: string): BuildOutcome | undefined {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(read)) return undefined;
  const { step, rc, digest, class: failureClass, cause, excerpt } = read;
  if (rc === 0 && typeof digest === "string" && /^sha256:[0-9a-f]{64}$/.test(digest)) return { digest };
  if (typeof step !== "string" || typeof failureClass !== "string" || !isFailureClass(failureClass)) return undefined;
  return {
    failure: boundedFailure({
      class: failureClass,
      step,
      ...(typeof rc === "number" ? { exitCode: rc } : {}),
      cause: typeof cause === "string" ? cause : "",
      excerpt: typeof excerpt === "string" ? excerpt : "",
    }),
  };
}

/** A log line that reports the progress of a build. */
export const stepMarker = (step: string, state: "start" | "end", rc = 0): string =>
  `::mco step=${step} state=${state} rc=${rc}`;

const markerPattern = /^::mco step=(\S{1,64}) state=(start|end) rc=(-?\d{1,10})$/;

export function readStepMarker(
  line: string,
): { readonly step: string; readonly state: "start" | "end"; readonly rc: number } | undefined {
  const [, step, state, rc] = markerPattern.exec(line.trimEnd()) ?? [];
  return step === undefined ? undefined : { step, state: state === "start" ? "start" : "end", rc: Number(rc) };
}
