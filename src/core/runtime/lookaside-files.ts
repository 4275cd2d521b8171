import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { heldText } from "../../ignition/held-contents.ts";
import { type Problem, pathTo } from "../../ignition/problem.ts";
import type { File } from "../../ignition/types.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import { clipText } from "../text/clip-text.ts";
import { kubernetesYaml } from "../text/kubernetes-yaml.ts";

/** Where container engines read the places of signatures. */
export const lookasideFolder = "/etc/containers/registries.d/";

/** Characters of such files in one MachineConfig: each is small, and what goes beyond is not read. */
const mostInObject = 32 * 1024;

/** Compressed files of one MachineConfig that are decoded, and turn out to be too large, broken or no text. */
const mostDecodedInVain = 3;

/** Files of one MachineConfig that warnings name. */
const mostWarnings = 100;

/** Engines read no folders below it. */
export const isLookasideFile = (path: string): boolean =>
  path.startsWith(lookasideFolder) && path.endsWith(".yaml") && !path.includes("/", lookasideFolder.length);

export const remedies = {
  yaml: "write it as plain YAML, as containers-registries.d(5) shows",
  contents: "give the contents as a data URL",
  before: "correct those, or give the contents uncompressed",
  link: "write the file itself there instead of a link",
  size: "take out what is no definition of a place, or give registries that are alike one place: their host",
} as const;

/** The text of one such file, or why it is not read: nothing of the text is in that. */
export type LookasideText =
  | { readonly verdict: "text"; readonly file: File; readonly text: string }
  | { readonly verdict: "unread"; readonly file: File; readonly reason: string; readonly remedy: string };

/**
 * The texts of a MachineConfig's files, as far as they are read: each is decoded up to the limit, and no compressed one is
 * after a few that were decoded in vain.
 */
export function lookasideTexts(files: readonly File[]): readonly LookasideText[] {
  let left = mostInObject;
  let decodedInVain = 0;
  return files.map((file): LookasideText => {
    const unread = (reason: string, remedy: string) => ({ verdict: "unread" as const, file, reason, remedy });
    const tooLarge = unread(`with those before it, it has more than ${mostInObject} characters`, remedies.size);
    // Percent-encoded, a character takes nine.
    if (left <= 0 || (file.contents?.source?.length ?? 0) > 10 * mostInObject) return tooLarge;
    const isCompressed = (file.contents?.compression ?? "") !== "";
    if (isCompressed && decodedInVain === mostDecodedInVain)
      return unread(`${mostDecodedInVain} compressed files before it are not read`, remedies.before);
    const held = heldText(file.contents, left);
    if (held.verdict === "text") {
      left -= held.text.length;
      return { verdict: "text", file, text: held.text };
    }
    if (isCompressed) decodedInVain += 1;
    switch (held.because) {
      case "tooLarge":
        return tooLarge;
      case "notText":
        return unread("it is no text in UTF-8", remedies.yaml);
      case "remote":
      case "invalid":
        return unread("its contents cannot be decoded", remedies.contents);
    }
  });
}

/** What one file defines. */
export interface Lookaside {
  readonly places: readonly string[];
  readonly hasDefault: boolean;
  /** Why it may define other places to a container engine; nothing of the text is in it. */
  readonly uncertain?: string;
  /** Why engines refuse it, and then all files of the folder. */
  readonly fault?: string;
}

/** Reads a file as container engines do. Source: containers/image docker/registries_d.go (main). */
export function readLookaside(text: string): Lookaside {
  const nothing = { places: [], hasDefault: false };
  if (text.trim() === "") return nothing;
  const document = kubernetesYaml(text);
  const [error] = document.errors;
  if (error !== undefined) {
    const line = error.linePos?.[0].line;
    return {
      ...nothing,
      uncertain: "it is no plain YAML",
      fault: `${line === undefined ? "" : `line ${line}: `}${error.message}`,
    };
  }
  const root: unknown = document.toJS({ maxAliasCount: -1 }) ?? {};
  if (!isObject(root)) return { ...nothing, uncertain: "it is no object", fault: "it is no object" };
  // Engines of earlier releases do not tell upper from lower case.
  const sections = Object.entries(root).filter(([key]) => key.toLowerCase() === "docker");
  const wrong = sections.find(([, section]) => section !== null && !isObject(section));
  const fault = faultIn(root);
  return {
    places: sections.flatMap(([, section]) => (isObject(section) ? Object.keys(section) : [])),
    hasDefault: (root["default-docker"] ?? null) !== null,
    ...(wrong === undefined ? {} : { uncertain: `${wrong[0]} is no object` }),
    ...(fault === undefined ? {} : { fault }),
  };
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const texts = ["lookaside", "lookaside-staging", "sigstore", "sigstore-staging"] as const;

/** A field that has another type than engines read; a field that is null counts as absent. */
function faultIn({ docker = null, "default-docker": fallback = null }: Fields): string | undefined {
  if (docker !== null && !isObject(docker)) return "docker is no object";
  const places = Object.entries(docker ?? {}).map(([name, place]) => [`docker[${clipped(name)}]`, place] as const);
  for (const [at, place] of [["default-docker", fallback] as const, ...places]) {
    if (place === null) continue;
    if (!isObject(place)) return `${at} is no object`;
    const field = texts.find((name) => typeof (place[name] ?? "") === "object");
    if (field !== undefined) return `${at}.${field} is no text`;
    if (typeof (place["use-sigstore-attachments"] ?? true) !== "boolean")
      return `${at}.use-sigstore-attachments is neither true nor false`;
  }
  return undefined;
}

const clipped = (name: string): string => clipText(JSON.stringify(name), 100);

/** What is wrong with the files of a MachineConfig that define places of signatures, each named once. */
export function problemsOfLookaside(config: MachineConfig): readonly Problem[] {
  const ignition = ignitionOf(config);
  if (ignition?.verdict !== "valid") return [];
  const all = ignition.config.storage?.files ?? [];
  const files = all.filter(({ path }) => isLookasideFile(path));
  if (files.length === 0) return [];
  const at = new Map(all.map((file, i) => [file, pathTo("spec.config.storage.files", i)]));
  const problems: Problem[] = [];
  const definedIn = new Map<string, string>();
  for (const one of lookasideTexts(files)) {
    if (problems.length === mostWarnings) break;
    const finding = findingOf(one, definedIn);
    if (finding !== undefined)
      problems.push({ severity: "warning", path: pathTo(at.get(one.file) ?? "", "contents"), ...finding });
  }
  return problems;
}

/** @param definedIn names → files before this one that define them; what this one defines is added. */
function findingOf(one: LookasideText, definedIn: Map<string, string>): Pick<Problem, "reason" | "remedy"> | undefined {
  // What cannot be decoded is a problem of every file.
  if (one.verdict === "unread")
    return one.remedy === remedies.contents
      ? undefined
      : {
          reason: `${one.file.path} is not read: ${one.reason}; no ImagePolicy is written for machines that have it`,
          remedy: one.remedy,
        };
  const { places, hasDefault, uncertain, fault } = readLookaside(one.text);
  const why = fault ?? uncertain;
  if (why !== undefined)
    return {
      reason: `no container engine is certain to read ${one.file.path} (${clipText(why, 300)}): with a file that it cannot read, it pulls no image at all`,
      remedy: remedies.yaml,
    };
  const names = [
    ...places.map((place) => `docker[${JSON.stringify(place)}]`),
    ...(hasDefault ? ["default-docker"] : []),
  ];
  const twice = names.find((name) => definedIn.has(name));
  if (twice !== undefined)
    return {
      reason: `${one.file.path} defines ${clipText(twice, 100)}, as ${definedIn.get(twice) ?? ""} does: where two files define one place, container engines pull no image at all`,
      remedy: "take it out of one of the files",
    };
  for (const name of names) definedIn.set(name, one.file.path);
  return undefined;
}
