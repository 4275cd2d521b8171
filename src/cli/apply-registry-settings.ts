import { type ConfigMap, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import type { KubeObject } from "../api/schema/object.ts";
import type { ClusterRegistry } from "../standin/cluster.ts";
import { stockOsRepository } from "../standin/stock-os.ts";
import { type KubeClient, updateObject } from "../kube/kube-client.ts";
import { isConflict, isInvalid } from "../kube/kube-error.ts";
import { readRegistrySecret } from "../os-builder/registry-secret.ts";
import { credentialsFor, parseAuthFile, credentialScopeOf } from "../registry/auth-file.ts";
import { type DeriveKey, passwordCheck, type RegistryRight } from "../standin/registry.ts";
import { pullSecretKey } from "../core/render/pull-secret.ts";
import { imageModeManifests, imageRepository, pushSecretName } from "./image-mode.ts";

/** How the settings of the registry are applied to a cluster that may have them. */
interface Applying {
  readonly kube: KubeClient;
  readonly owner: string;
  readonly registry: ClusterRegistry;
  readonly deriveKey: DeriveKey;
  readonly signal: AbortSignal;
}

/** The writer of what is put back. */
const putBackOwner = "mco-up-credentials";
/** The key of the text of an auth file in a Secret. */
const authKey = ".dockerconfigjson";

/**
 * Applies the credentials and settings of the cluster's registry. What a user has changed of them stays, as long as machines
 * and builds get images with it; what they would not work with is put back.
 *
 * @returns what was put back or has to be, each as a sentence.
 */
export async function applyRegistrySettings(applying: Applying): Promise<readonly string[]> {
  const notices: string[] = [];
  for (const manifest of imageModeManifests(applying.registry)) {
    applying.signal.throwIfAborted();
    const notice = await applySetting(manifest, applying);
    if (notice !== undefined) notices.push(notice);
  }
  return notices;
}

/** Applies one of the settings; what is immutable is only reported: nobody can correct it but who made it so. */
async function applySetting(manifest: KubeObject, applying: Applying): Promise<string | undefined> {
  try {
    return await applyOrSettle(manifest, applying);
  } catch (error) {
    if (!isInvalid(error) || manifest.kind === "Namespace") throw error;
    return `${namedOf(manifest)} was left as it is, but the API server takes no change of it: ${error.message}; to have it made again, delete it and start the cluster again`;
  }
}

/** Another writer owns a field only if it has changed it since: the API server refuses to apply another value. */
async function applyOrSettle(manifest: KubeObject, applying: Applying): Promise<string | undefined> {
  try {
    await apply(manifest, applying);
    return undefined;
  } catch (error) {
    if (!isConflict(error)) throw error;
    if (manifest.kind === "Secret") return settleSecret(manifest as Secret, applying);
    if (manifest.kind === "ConfigMap") return settleConfigMap(manifest as ConfigMap, applying);
    throw error;
  }
}

async function apply(
  manifest: KubeObject,
  { kube, owner, signal }: Applying,
  { force = false }: { readonly force?: boolean } = {},
): Promise<void> {
  const resource = [kubernetes.Namespace, kubernetes.Secret, kubernetes.ConfigMap].find(
    ({ kind }) => kind === manifest.kind,
  );
  if (resource === undefined) throw new Error(`${manifest.kind} is no setting of a registry`);
  await kube.apply<KubeObject>(resource, manifest, { owner, force, signal });
}

/**
 * Leaves a Secret that the registry accepts as it is. Into any other the cluster's own entry is put back beside those for other
 * registries.
 */
async function settleSecret(wanted: Secret, applying: Applying): Promise<string | undefined> {
  const { kube, registry, signal } = applying;
  const has = await kube.get(kubernetes.Secret, wanted.metadata, { signal });
  // Deleted since.
  if (has === undefined) return applySetting(wanted, applying);
  const named = namedOf(wanted);
  const right = wanted.metadata.name === pushSecretName ? "push" : "pull";
  const problem = await problemOf(has, right, applying);
  if (problem === undefined) return undefined;
  if (has.immutable === true || has.type !== wanted.type)
    return `${named} was left as it is, but ${problem}; to have it made again, delete it and start the cluster again`;
  const own = JSON.parse(atob(wanted.data?.[authKey] ?? "")) as { readonly auths: object };
  const change = (secret: Secret): Partial<Secret> => {
    const auths = { ...entriesOfOthers(secret, registry.host), ...own.auths };
    const text = JSON.stringify({ ...documentOf(secret), auths });
    return { data: { [authKey]: Buffer.from(text, "utf8").toString("base64") } };
  };
  // Not applied: that would make the user's entries the cluster's own, which the next start would replace.
  await updateObject(kube, kubernetes.Secret, wanted.metadata, change, { cached: has, owner: putBackOwner, signal });
  return `the entry for the cluster's registry in ${named} was put back, because ${problem}; entries for other registries stay`;
}

/** Why the registry does not accept a Secret for what it is there for; `undefined`: it does. */
async function problemOf(
  secret: Secret,
  right: RegistryRight,
  { registry: { host, users }, deriveKey }: Applying,
): Promise<string | undefined> {
  // Builds read the older form, too.
  if (secret.metadata.name === pullSecretKey(false).name && secret.type !== "kubernetes.io/dockerconfigjson")
    return `it is of type ${secret.type ?? "Opaque"}`;
  const reading = readRegistrySecret(secret);
  if (reading.verdict === "refused") return reading.problem;
  const auth = parseAuthFile(reading.text);
  const check = passwordCheck(users, deriveKey);
  for (const path of right === "push" ? [imageRepository] : [stockOsRepository, imageRepository]) {
    const credentials = credentialsFor(auth, { host, path });
    if (credentials === undefined) return `it has no credentials for ${host}`;
    if (credentials.kind !== "password") return `it has no user and password for ${host}`;
    const checked = await check(credentials.user, credentials.password);
    if (checked.verdict !== "user") return `${host} has no user with this name and password`;
    if (!checked.user.may.includes(right)) return `${host} does not let its user ${checked.user.name} ${right}`;
  }
  return undefined;
}

const namedOf = ({ kind, metadata: { namespace, name } }: KubeObject): string => `${kind} ${namespace ?? ""}/${name}`;

/** The fields of a Secret's auth file, whatever they are; none of what is no JSON object. */
function documentOf(secret: Secret): object {
  try {
    const document: unknown = JSON.parse(Buffer.from(secret.data?.[authKey] ?? "", "base64").toString("utf8"));
    return typeof document === "object" && document !== null && !Array.isArray(document) ? document : {};
  } catch {
    return {};
  }
}

/** The entries of a Secret that are not for a registry or its repositories. */
function entriesOfOthers(secret: Secret, host: string): Readonly<Record<string, unknown>> {
  const reading = readRegistrySecret(secret);
  if (reading.verdict === "refused") return {};
  const { auths } = JSON.parse(reading.text) as { readonly auths: Readonly<Record<string, unknown>> };
  return Object.fromEntries(Object.entries(auths).filter(([key]) => credentialScopeOf(key).split("/")[0] !== host));
}

/** Keeps values that a user has changed; but a registry whose authority nobody trusts would be useless. */
async function settleConfigMap(wanted: ConfigMap, applying: Applying): Promise<string | undefined> {
  const has = await applying.kube.get(kubernetes.ConfigMap, wanted.metadata, { signal: applying.signal });
  const { authority } = applying.registry;
  const data: Record<string, string> = {};
  let isPutBack = false;
  for (const [key, value] of Object.entries(wanted.data ?? {})) {
    const present = has?.data?.[key] ?? value;
    const isUseless = value === authority && !present.includes(authority.trim());
    data[key] = isUseless ? value : present;
    isPutBack ||= isUseless;
  }
  await apply({ ...wanted, data } as KubeObject, applying, { force: isPutBack });
  return isPutBack
    ? `the certificate of the cluster's registry in ConfigMap ${wanted.metadata.namespace}/${wanted.metadata.name} was put back, because the registry has no other`
    : undefined;
}
