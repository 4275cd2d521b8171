/** The name of an image in full: every default is filled in. */
export interface ImageReference {
  /** With its port, if it has one: `quay.io`, `localhost:5000`, `[::1]:5000`. */
  readonly host: string;
  /** For example `library/busybox`. */
  readonly path: string;
  /** Absent where a digest is given. */
  readonly tag: string | undefined;
  /** `sha256:…` */
  readonly digest: string | undefined;
}

export type ReferenceReading =
  /** `exact`: the text itself has a tag or a digest. */
  | { readonly verdict: "reference"; readonly reference: ImageReference; readonly exact: boolean }
  | { readonly verdict: "refused"; readonly problem: string };

/** Longest name of a repository, host included. Source: distribution/reference reference.go (main). */
const maxNameLength = 255;

const label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const hostPattern = new RegExp(`^(?:${label}(?:\\.${label})*|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?$`);
/** Pattern of one part of a repository's path. No text fits it in two ways, so it is matched in linear time. */
export const pathSegment = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const segmentPattern = new RegExp(`^${pathSegment}$`);
const tagPattern = /^\w[\w.-]{0,127}$/;
export const digestPattern = /^sha256:[0-9a-f]{64}$/;

/**
 * Reads `[host[:port]/]path[:tag][@sha256:…]` as container engines do: the default host is docker.io, where a name of
 * one word lies below `library/`, and the default tag is `latest`. A tag beside a digest has no meaning and is dropped.
 */
export function parseImageReference(text: string): ReferenceReading {
  const refused = (problem: string): ReferenceReading => ({ verdict: "refused", problem });
  if (text === "") return refused("it is empty");
  // Source: distribution/reference normalize.go (main).
  if (/^[a-f0-9]{64}$/.test(text)) return refused("it is the id of an image, not a name");
  const at = text.indexOf("@");
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !digestPattern.test(digest))
    return refused(
      digest.startsWith("sha256:")
        ? "its digest is not 64 hexadecimal digits in lower case"
        : "its digest is not a sha256 digest",
    );
  const named = at < 0 ? text : text.slice(0, at);
  const colon = named.lastIndexOf(":");
  const hasTag = colon > named.lastIndexOf("/");
  const tag = hasTag ? named.slice(colon + 1) : undefined;
  if (tag !== undefined && !tagPattern.test(tag))
    return refused("its tag is not made of letters, digits, '_', '.' and '-'");
  const name = hasTag ? named.slice(0, colon) : named;
  const [first = "", ...others] = name.split("/");
  const hasHost = others.length > 0 && (/[.:]/.test(first) || first === "localhost" || first.toLowerCase() !== first);
  if (hasHost && !hostPattern.test(first)) return refused(`"${first}" is no host`);
  const host = !hasHost || first === "index.docker.io" ? "docker.io" : first;
  const segments = hasHost ? others : [first, ...others];
  const wrong = segments.find((segment) => !segmentPattern.test(segment));
  if (wrong !== undefined)
    return refused(
      wrong === ""
        ? "a part of its path is empty"
        : `"${wrong}" in its path is not made of lower case letters and digits with single '.', '_' or '-' between them`,
    );
  const path = host === "docker.io" && segments.length === 1 ? `library/${segments[0]}` : segments.join("/");
  if (host.length + 1 + path.length > maxNameLength)
    return refused(`its name is longer than ${maxNameLength} characters`);
  return {
    verdict: "reference",
    reference: { host, path, tag: digest === undefined ? (tag ?? "latest") : undefined, digest },
    exact: hasTag || digest !== undefined,
  };
}

/**
 * Where container engines look for an image whose name begins so, besides registries: folders, archives and stores of the
 * machine that they run on. Source: containers/image docs/containers-transports.5.md (main).
 */
const localTransports = [
  "atomic",
  "containers-storage",
  "dir",
  "docker-archive",
  "docker-daemon",
  "oci",
  "oci-archive",
  "ostree",
  "sif",
  "tarball",
] as const;

/**
 * Why a name that a user wrote is not given to a container engine, as a sentence with a remedy; `undefined` for one of an
 * image in a registry, with or without `docker://` before it.
 */
export function pulledNameProblem(name: string): string | undefined {
  const shown = JSON.stringify(name.slice(0, 100));
  const remedy = "name an image of a registry, as in registry.example.com/path:tag";
  if (name.startsWith("-")) return `${shown} would be an option of the program that pulls it; ${remedy}`;
  const transport = localTransports.find((each) => name.startsWith(`${each}:`));
  if (transport !== undefined)
    return `${shown} names a file or a store of the machine that builds (${transport}:); ${remedy}`;
  const reading = parseImageReference(name.replace(/^docker:\/\//, ""));
  return reading.verdict === "refused" ? `${shown} is no name of an image: ${reading.problem}; ${remedy}` : undefined;
}

/** The registry of an image or repository; the text itself, if it names none. */
export function hostOfPullspec(text: string): string {
  const reading = parseImageReference(text);
  return reading.verdict === "reference" ? reading.reference.host : text;
}

/** Host and path, without tag and digest. */
export const repositoryOf = ({ host, path }: Pick<ImageReference, "host" | "path">): string => `${host}/${path}`;

export function printImageReference(reference: ImageReference): string {
  const { tag, digest } = reference;
  return `${repositoryOf(reference)}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`;
}

/** Whether two texts name the same image once their defaults are filled in. Texts that are no names compare as they are. */
export function sameImage(a: string, b: string): boolean {
  const [one, other] = [a, b].map(parseImageReference);
  if (one?.verdict !== "reference" || other?.verdict !== "reference") return a === b;
  return printImageReference(one.reference) === printImageReference(other.reference);
}

/**
 * Where an image is: names of one image in one repository have one place, whichever way its host is written. A text that is no
 * name is its own.
 */
export function imagePlace(text: string): string {
  const reading = parseImageReference(text);
  if (reading.verdict === "refused") return text;
  const host = reading.reference.host.toLowerCase().replace(/:443$/, "");
  return printImageReference({ ...reading.reference, host });
}

/** Whether the host is a loopback name or address. */
export const isLoopbackHost = (host: string): boolean =>
  /^(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|\[::1\])(:[0-9]+)?$/.test(host);
