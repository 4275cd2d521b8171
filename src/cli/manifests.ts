import { closeSync, constants, fstatSync, openSync, readSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { type Document, LineCounter, isNode } from "yaml";
import { McoError } from "../api/errors.ts";
import { type KubeObject, type Resource, resource } from "../api/schema/object.ts";
import { kubernetesYamlDocuments } from "../core/text/kubernetes-yaml.ts";
import { isRecord } from "../ignition/shape.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { processIo } from "./io.ts";
import { whyUnread } from "./why-unread.ts";

/** A manifest with where it was read, for messages. */
export interface Manifest extends KubeObject {
  readonly spec?: unknown;
}

/** Where something stands in a file. */
export interface Place {
  readonly file: string;
  /** Counted from 1, within the file; 0: the file as a whole. */
  readonly document: number;
}

/** Where something begins in a file; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export type ReadDocument =
  | {
      readonly verdict: "read";
      readonly place: Place;
      readonly manifest: Manifest;
      /** Where the value of a field (`spec.config.storage.files[2].mode`) begins, or that of the nearest field around it. */
      positionOf(path: string): Position | undefined;
    }
  /** No manifest, and no mistake: the commands do without it. */
  | { readonly verdict: "leftAside"; readonly place: Place; readonly reason: string; readonly remedy: string }
  | {
      readonly verdict: "refused";
      readonly place: Place;
      readonly reason: string;
      readonly remedy?: string;
      readonly position?: Position;
    };

/** No API server accepts an object of this size. */
export const maxFileBytes = 16 * 1024 * 1024;
/** Documents of one file. */
const maxDocuments = 10_000;
/** Deeper than any kind of Kubernetes; a deeper document is hostile. */
const maxDepth = 100;
/** How often aliases may repeat other nodes, as `yaml` counts it. */
const maxAliases = 100;

/** The files that a path means: itself, or a folder's `*.yaml`, `*.yml` and `*.json` in order of name. */
export function filesOf(path: string): readonly string[] {
  if (path === "-" || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
  return readdirSync(path)
    .filter((name) => /\.(ya?ml|json)$/.test(name))
    .sort()
    .map((name) => join(path, name));
}

/** Reads documents from files and folders, good ones and bad ones; `-` is standard input. */
export function readDocuments(paths: readonly string[]): readonly ReadDocument[] {
  return paths.flatMap((path) => {
    const files = filesOf(path);
    return files.flatMap((file): readonly ReadDocument[] => {
      const refused = (reason: string): readonly ReadDocument[] => [
        { verdict: "refused", place: { file, document: 0 }, reason },
      ];
      let bytes: Uint8Array | string;
      try {
        bytes = file === "-" ? bytesOf(0) : file === path ? bytesOfNamed(file) : bytesOfFound(file, path);
      } catch (error) {
        return refused(whyUnread(error));
      }
      if (typeof bytes === "string") return refused(bytes);
      let text: string;
      try {
        text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      } catch {
        return refused("it is not UTF-8");
      }
      return parseDocuments(text, file);
    });
  });
}

/** All that a descriptor gives, or why that is not read. */
function bytesOf(descriptor: number): Uint8Array | string {
  const { size } = fstatSync(descriptor);
  if (size > maxFileBytes) return `it has ${size} bytes, more than ${maxFileBytes}`;
  const parts: Buffer[] = [];
  for (let length = 0; ;) {
    const part = Buffer.allocUnsafe(64 * 1024);
    const read = readSync(descriptor, part);
    if (read === 0) return Buffer.concat(parts);
    parts.push(part.subarray(0, read));
    length += read;
    if (length > maxFileBytes) return `it has more than ${maxFileBytes} bytes`;
  }
}

/** A file that the command line names: it may be a pipe. */
const bytesOfNamed = (file: string) => withDescriptor(file, constants.O_RDONLY, bytesOf);

/** A file of a folder, which somebody else may have made: only a regular file within it is read. */
function bytesOfFound(file: string, folder: string): Uint8Array | string {
  const real = realpathSync(file);
  if (!real.startsWith(`${realpathSync(folder)}${sep}`)) return `it is a link to ${real}, which is not in ${folder}`;
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  return withDescriptor(real, flags, (descriptor) =>
    fstatSync(descriptor).isFile() ? bytesOf(descriptor) : "it is no regular file",
  );
}

function withDescriptor<Result>(file: string, flags: number, use: (descriptor: number) => Result): Result {
  const descriptor = openSync(file, flags);
  try {
    return use(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Reads the documents of a text as kubectl does: YAML 1.1, in which 0644 is octal; Lists are taken apart. Size, depth
 * and aliases are limited: a text that exceeds a limit is refused.
 */
export function parseDocuments(text: string, file: string): readonly ReadDocument[] {
  const refusal = (
    document: number,
    reason: string,
    at?: { readonly line: number; readonly col: number },
  ): ReadDocument => ({
    verdict: "refused",
    place: { file, document },
    reason,
    ...positionField(at === undefined ? undefined : { line: at.line, column: at.col }),
  });
  const tooDeep = `it nests deeper than ${maxDepth} levels`;
  // Brackets nest in a text as long as it is deep: the parser would recurse before the depth can be checked.
  if (nestsTooDeep(text)) return [refusal(1, tooDeep)];
  const lines = new LineCounter();
  let documents: readonly Document.Parsed[];
  try {
    documents = kubernetesYamlDocuments(text, lines);
  } catch (error) {
    return [
      refusal(
        1,
        error instanceof RangeError
          ? tooDeep
          : `it is no YAML: ${error instanceof Error ? error.message : String(error)}`,
      ),
    ];
  }
  if (documents.length > maxDocuments)
    return [refusal(1, `it holds ${documents.length} documents, more than ${maxDocuments}`)];
  return documents.flatMap((document, index): readonly ReadDocument[] => {
    const at = index + 1;
    const [error] = document.errors;
    // The parser reports the end of its own stack as an error of the text.
    if (error !== undefined)
      return [
        refusal(
          at,
          error.message.includes("call stack") ? tooDeep : (error.message.split("\n")[0] ?? ""),
          error.linePos?.[0],
        ),
      ];
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: maxAliases });
    } catch (cause) {
      return [
        refusal(
          at,
          cause instanceof RangeError
            ? tooDeep
            : cause instanceof ReferenceError && cause.message.includes("Excessive")
              ? "its aliases repeat too much"
              : cause instanceof Error
                ? cause.message
                : String(cause),
        ),
      ];
    }
    if (value === null || value === undefined) return [];
    if (depthOf(value) > maxDepth) return [refusal(at, tooDeep)];
    const place = { file, document: at };
    return objectsIn(value).map((found): ReadDocument => {
      const base = found.path;
      if ("refused" in found) {
        const { refused: reason, remedy } = found;
        return { verdict: "refused", place, reason, remedy, ...positionField(positionIn(document, lines, base)) };
      }
      const { object } = found;
      const positionOf = (path: string) => positionIn(document, lines, [...base, ...stepsOf(path)]);
      if (isKustomization(object, file))
        return {
          verdict: "leftAside",
          place,
          reason: "it is a Kustomization and was not looked at: what it changes in other files does not count here",
          remedy: "give the output of kustomize build by standard input",
        };
      if (!isManifest(object))
        return {
          verdict: "refused",
          place,
          reason: "apiVersion, kind and metadata.name are required",
          ...positionField(positionIn(document, lines, base)),
        };
      return { verdict: "read", place, manifest: object, positionOf };
    });
  });
}

const positionField = (position: Position | undefined) => (position === undefined ? {} : { position });

function nestsTooDeep(text: string): boolean {
  let [depth, quote] = [0, ""];
  for (let i = 0; i < text.length; i++) {
    const char = text[i] ?? "";
    if (quote !== "") {
      if (char === "\\" && quote === '"') i += 1;
      else if (char === quote || char === "\n") quote = "";
    } else if (char === "[" || char === "{") {
      depth += 1;
      // Texts of files and units hold brackets that do not close; the count is a bound, not a judgement.
      if (depth > 10 * maxDepth) return true;
    } else if (char === "]" || char === "}") depth = Math.max(0, depth - 1);
    else if (char === '"' || char === "'") quote = char;
    else if (char === "\n" && /^(---|\.\.\.)/.test(text.slice(i + 1, i + 4))) depth = 0;
  }
  return false;
}

function depthOf(value: unknown): number {
  let level: readonly unknown[] = [value];
  for (let depth = 0; depth <= maxDepth; depth++) {
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
    if (level.length === 0) return depth;
  }
  return maxDepth + 1;
}

const isManifest = (value: unknown): value is Manifest =>
  isRecord(value) &&
  isText(value["apiVersion"]) &&
  isText(value["kind"]) &&
  isRecord(value["metadata"]) &&
  isText(value["metadata"]["name"]);

/** The names by which kustomize finds its file, which needs no kind. Source: kubernetes-sigs/kustomize konfig (master). */
const kustomizationFile = /(?:^|\/)kustomization\.ya?ml$/;
const isKustomization = (value: unknown, file: string): boolean =>
  isRecord(value) &&
  (typeof value["apiVersion"] === "string"
    ? value["apiVersion"].startsWith("kustomize.config.k8s.io/")
    : value["kind"] === undefined && kustomizationFile.test(file));

type ObjectInDocument =
  | { readonly object: unknown; readonly path: readonly (string | number)[] }
  | { readonly refused: string; readonly remedy: string; readonly path: readonly (string | number)[] };

/**
 * The objects of a document. `kubectl get -o yaml` writes a List, whose items count like documents. kubectl takes everything
 * with items for a list, whatever its kind: of anything but a List that is refused. Source: k8s.io/apimachinery
 * pkg/apis/meta/v1/unstructured/helpers.go (v0.34).
 */
function objectsIn(value: unknown): readonly ObjectInDocument[] {
  if (!isRecord(value) || !Object.hasOwn(value, "items")) return [{ object: value, path: [] }];
  const { apiVersion, kind, items } = value;
  if (typeof kind !== "string" || !kind.endsWith("List")) return [itemsOfNoList([])];
  if (!Array.isArray(items))
    return [{ refused: "items is no list", remedy: "give a list of objects", path: ["items"] }];
  const itemKind = kind.slice(0, -"List".length);
  return items.map((item: unknown, index): ObjectInDocument => {
    const path = ["items", index];
    if (!isRecord(item)) return { object: item, path };
    if (Object.hasOwn(item, "items"))
      return typeof item["kind"] === "string" && item["kind"].endsWith("List")
        ? { refused: "it is a List within a List", remedy: "give its items in one list", path }
        : itemsOfNoList(path);
    const isBare = itemKind !== "" && !isText(item["apiVersion"]) && !isText(item["kind"]);
    return { object: isBare ? { ...item, apiVersion, kind: itemKind } : item, path };
  });
}

const itemsOfNoList = (path: readonly (string | number)[]): ObjectInDocument => ({
  refused: "it has items, and kubectl applies these instead of the object itself, whose kind does not end in List",
  remedy: "take items out, or give a List",
  path: [...path, "items"],
});

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** `a.b[0].c` → a, b, 0, c */
export const stepsOf = (path: string): readonly (string | number)[] =>
  [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name]) =>
    index === undefined ? (name ?? "") : Number(index),
  );

function positionIn(
  document: Document.Parsed,
  lines: LineCounter,
  steps: readonly (string | number)[],
): Position | undefined {
  for (let length = steps.length; length >= 0; length--) {
    const node: unknown = length === 0 ? document.contents : document.getIn(steps.slice(0, length), true);
    if (!isNode(node) || node.range === undefined || node.range === null) continue;
    const { line, col: column } = lines.linePos(node.range[0]);
    return { line, column };
  }
  return undefined;
}

/**
 * Reads manifests from files and folders.
 *
 * @throws McoError `MCO_MANIFEST_INVALID` with file, document and reason.
 */
export function readManifests(paths: readonly string[]): readonly Manifest[] {
  return documentsToUse(paths).map(({ manifest }) => manifest);
}

/**
 * The documents that a command uses; it warns of those that it leaves aside.
 *
 * @throws McoError `MCO_MANIFEST_INVALID` with file, document and reason.
 */
export function documentsToUse(
  paths: readonly string[],
): readonly Extract<ReadDocument, { readonly verdict: "read" }>[] {
  return readDocuments(paths).flatMap((document) => {
    if (document.verdict === "read") return [document];
    if (document.verdict === "refused") throw invalidManifest(document);
    processIo().err(`warning: ${document.place.file}: ${document.reason}; ${document.remedy}\n`);
    return [];
  });
}

/** `file.yaml:3:5`, which editors open. */
export const placeText = ({ file }: Pick<Place, "file">, position: Position | undefined): string =>
  position === undefined ? file : `${file}:${position.line}:${position.column}`;

/** `document 2`; nothing where the file as a whole is meant. */
export const documentOf = ({ document }: Place): readonly string[] => (document === 0 ? [] : [`document ${document}`]);

/** The error that ends a command at a document that it cannot use. */
export const invalidManifest = ({
  place,
  reason,
  position,
}: {
  readonly place: Place;
  readonly reason: string;
  readonly position?: Position | undefined;
}): McoError =>
  new McoError(
    "MCO_MANIFEST_INVALID",
    { ...place, problem: reason },
    { message: `${[placeText(place, position), ...documentOf(place), reason].join(": ")}` },
  );

/** Kinds that a server offers, by `apiVersion/kind`. */
export type ServedResources = (apiVersion: string, kind: string) => Promise<Resource>;

/**
 * Asks discovery for kinds as they are needed, once for each group and version; a kind that does not exist yet is
 * requested again.
 */
export async function resourcesServed(kube: KubeClient): Promise<ServedResources> {
  const known = new Map<string, Resource>();
  return async (apiVersion, kind) => {
    const id = `${apiVersion}/${kind}`;
    const found = known.get(id);
    if (found !== undefined) return found;
    const list = (await kube.request({
      method: "GET",
      target: apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`,
      headers: {},
    })) as { resources: { name: string; kind: string; namespaced: boolean }[] };
    for (const each of list.resources)
      if (!each.name.includes("/"))
        known.set(
          `${apiVersion}/${each.kind}`,
          resource(apiVersion, each.kind, each.name, each.namespaced ? "Namespaced" : "Cluster"),
        );
    const now = known.get(id);
    if (now === undefined)
      throw new McoError("MCO_MANIFEST_INVALID", { problem: `the API server does not know ${kind} of ${apiVersion}` });
    return now;
  };
}

/** Server-side apply of a whole manifest. */
export async function applyWholeManifest(
  kube: KubeClient,
  served: ServedResources,
  manifest: Manifest,
  owner: string,
): Promise<KubeObject> {
  return kube.apply(await served(manifest.apiVersion, manifest.kind), manifest, { owner });
}
