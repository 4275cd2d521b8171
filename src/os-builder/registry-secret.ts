import { McoError } from "../api/errors.ts";
import { type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, buildNamespace, namespace } from "../api/names.ts";
import { isForBuildsOf } from "../core/build/secret-pools.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { own } from "../api/schema/own.ts";

export type SecretReading =
  /** Text of an auth file, with its hosts below `auths`. */
  | { readonly verdict: "auth"; readonly text: string; readonly hosts: readonly string[] }
  | { readonly verdict: "refused"; readonly code: "SecretType" | "SecretFormat"; readonly problem: string };

/**
 * The older form has its hosts at the top. Source of types and keys: k8s.io/api core/v1 SecretTypeDockercfg,
 * SecretTypeDockerConfigJson (master).
 */
const forms: Readonly<Record<string, { readonly key: string; readonly wrapped: boolean }>> = {
  "kubernetes.io/dockerconfigjson": { key: ".dockerconfigjson", wrapped: true },
  "kubernetes.io/dockercfg": { key: ".dockercfg", wrapped: false },
};

/** Type of the Secret that this one is a copy of. */
export const typeOfSecret = ({ metadata, type }: Pick<Secret, "metadata" | "type">): string =>
  metadata.annotations?.[annotations.secretType] ?? type ?? "Opaque";

/** Reads the credentials of a registry, in either form. No problem repeats anything of them. */
export function readRegistrySecret(secret: Pick<Secret, "metadata" | "type" | "data">): SecretReading {
  const form = own(forms, typeOfSecret(secret));
  if (form === undefined)
    return {
      verdict: "refused",
      code: "SecretType",
      problem: `it is of type ${typeOfSecret(secret)}, not kubernetes.io/dockerconfigjson`,
    };
  const refused = (problem: string): SecretReading => ({ verdict: "refused", code: "SecretFormat", problem });
  const data = secret.data?.[form.key];
  if (data === undefined) return refused(`it has no key ${form.key}`);
  let read: unknown;
  try {
    read = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(
        Uint8Array.from(atob(data), (character) => character.charCodeAt(0)),
      ),
    );
  } catch {
    return refused(`${form.key} is no JSON`);
  }
  const auths = form.wrapped && isRecord(read) ? read["auths"] : read;
  if (!isRecord(auths)) return refused(`${form.key} has no object with hosts`);
  return {
    verdict: "auth",
    text: JSON.stringify({ auths: Object.fromEntries(Object.entries(auths).sort(([a], [b]) => (a < b ? -1 : 1))) }),
    hosts: Object.keys(auths),
  };
}

/**
 * Text of the auth file that a Secret of the suite's namespace holds, by its copy beside the builds.
 *
 * @param use what it is for, in a build of which pool.
 * @throws McoError `MCO_BUILD_INPUT_MISSING`
 */
export async function readAuth(
  kube: KubeClient,
  name: string,
  { what, pool }: { readonly what: "pull" | "push"; readonly pool: string },
  signal: AbortSignal,
): Promise<string> {
  const secret = await kube.get(kubernetes.Secret, { name, namespace: buildNamespace }, { signal });
  const missing = (problem: string) =>
    new McoError("MCO_BUILD_INPUT_MISSING", { kind: "Secret", name, namespace, for: what, problem });
  if (secret === undefined) throw missing("there is no such Secret");
  if (!isForBuildsOf(secret, pool))
    throw missing(`its annotation ${annotations.secretPools} keeps it for builds of other pools`);
  const reading = readRegistrySecret(secret);
  if (reading.verdict === "refused") throw missing(reading.problem);
  return reading.text;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
