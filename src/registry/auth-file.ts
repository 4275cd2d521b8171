import { McoError } from "../api/errors.ts";
import { withoutEnd } from "../core/text/without-end.ts";

/** How a machine makes itself known to a registry. */
export type RegistryCredentials =
  | { readonly kind: "password"; readonly user: string; readonly password: string }
  /** Exchanged for a token by the registry's token service. */
  | { readonly kind: "identityToken"; readonly token: string }
  /** Shown as it is. */
  | { readonly kind: "registryToken"; readonly token: string };

/** Credentials by host, or by host and the beginning of a path. */
export type AuthFile = ReadonlyMap<string, RegistryCredentials>;

const dockerHub = /^(index\.docker\.io|registry-1\.docker\.io)(?=\/|$)/;

/**
 * Reads the text of a docker `auth.json`. Credential helpers are programs, and none is run for a text. An entry without
 * credentials is ignored. Source of the format: containers-auth.json(5).
 *
 * @param text `undefined` or blank: the machine has none. @throws McoError `MCO_IMAGE_UNAUTHORIZED`: the text cannot be
 * read. The error does not quote it.
 */
export function parseAuthFile(text: string | undefined): AuthFile {
  if (text === undefined || text.trim() === "") return new Map();
  // No cause: the message of a JSON error quotes the text.
  const unreadable = () =>
    new McoError("MCO_IMAGE_UNAUTHORIZED", {
      problem: "the auth file is no JSON object with the field auths",
      retryable: false,
    });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw unreadable();
  }
  if (!isObject(file) || (file["auths"] !== undefined && !isObject(file["auths"]))) throw unreadable();
  const found = new Map<string, RegistryCredentials>();
  for (const [key, entry] of Object.entries(file["auths"] ?? {})) {
    const credentials = isObject(entry) ? credentialsOf(entry) : undefined;
    if (credentials !== undefined) found.set(credentialScopeOf(key), credentials);
  }
  return found;
}

/** The entry with the longest key that is the repository or a part of its name up to a slash. */
export function credentialsFor(
  auth: AuthFile,
  repository: { readonly host: string; readonly path: string },
): RegistryCredentials | undefined {
  for (
    let name = `${repository.host}/${repository.path}`;
    name !== "";
    name = name.slice(0, Math.max(0, name.lastIndexOf("/")))
  ) {
    const credentials = auth.get(name);
    if (credentials !== undefined) return credentials;
  }
  return undefined;
}

/**
 * The registry, repository or part of its name that a key of an auth file is for. Old keys are addresses
 * (`https://index.docker.io/v1/`), of which only the host counts.
 */
export function credentialScopeOf(key: string): string {
  const address = /^https?:\/\/([^/]*)/.exec(key);
  return (address?.[1] ?? withoutEnd(key, "/")).replace(dockerHub, "docker.io");
}

function credentialsOf(entry: Readonly<Record<string, unknown>>): RegistryCredentials | undefined {
  const { auth, identitytoken, registrytoken, username, password } = entry;
  if (typeof registrytoken === "string" && registrytoken !== "") return { kind: "registryToken", token: registrytoken };
  if (typeof identitytoken === "string" && identitytoken !== "") return { kind: "identityToken", token: identitytoken };
  if (typeof auth === "string" && auth !== "") {
    const pair = Buffer.from(auth, "base64").toString("utf8");
    const colon = pair.indexOf(":");
    // Some tools pad the decoded text with NUL.
    return colon < 1
      ? undefined
      : { kind: "password", user: pair.slice(0, colon), password: withoutEnd(pair.slice(colon + 1), "\0") };
  }
  return typeof username === "string" && typeof password === "string" && username !== ""
    ? { kind: "password", user: username, password }
    : undefined;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
