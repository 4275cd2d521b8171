import { LineCounter } from "yaml";
import { McoError } from "../api/errors.ts";
import { defined } from "../api/schema/defined.ts";
import { kubernetesYaml } from "../core/text/kubernetes-yaml.ts";
import type { Files } from "../ports/files.ts";

/** Address and credentials of one API server. PEM texts, not paths. */
export interface Connection {
  /** `https://host:port`, without a path. */
  readonly server: string;
  readonly ca?: string;
  readonly certificate?: string;
  readonly key?: string;
  readonly token?: string;
  /** A file, because bound tokens are replaced on disk. */
  readonly tokenFile?: string;
  readonly exec?: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly apiVersion: string;
  };
  readonly insecureSkipTlsVerify?: boolean;
  readonly tlsServerName?: string;
  /** The context of the kubeconfig. */
  readonly context?: string;
  /** Namespace of the context. */
  readonly namespace?: string;
  /** Whom requests act as, in place of the user of the credentials. */
  readonly impersonate?: Impersonated;
}

/** Another user, as `kubectl --as` and the fields of a kubeconfig that begin with `as` name it. */
export interface Impersonated {
  readonly user: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

interface Kubeconfig {
  "current-context"?: string;
  clusters?: { name: string; cluster?: Record<string, unknown> }[];
  users?: { name: string; user?: Record<string, unknown> }[];
  contexts?: { name: string; context: { cluster: string; user?: string; namespace?: string } }[];
}

/** One or more files; an entry keeps the folder of its file, which its paths begin at. */
interface MergedConfig {
  readonly currentContext: string | undefined;
  readonly clusters: readonly {
    readonly name: string;
    readonly cluster: Record<string, unknown>;
    readonly folder: string;
  }[];
  readonly users: readonly { readonly name: string; readonly user: Record<string, unknown>; readonly folder: string }[];
  readonly contexts: NonNullable<Kubeconfig["contexts"]>;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** The lists of a kubeconfig: what an entry holds, and which of its fields are texts or booleans. */
const lists = {
  contexts: { item: "context", texts: ["namespace", "cluster", "user"], booleans: [] },
  clusters: {
    item: "cluster",
    texts: ["server", "certificate-authority-data", "certificate-authority", "tls-server-name"],
    booleans: ["insecure-skip-tls-verify"],
  },
  users: {
    item: "user",
    texts: [
      "token",
      "tokenFile",
      "client-certificate-data",
      "client-certificate",
      "client-key-data",
      "client-key",
      "as",
      "as-uid",
    ],
    booleans: [],
  },
} as const;

/**
 * Which field has a value of another type, also in entries that nothing names: kubectl refuses such a file, and a reader
 * that dropped a number in place of a text would connect as another user.
 */
function problemOfFields(config: Readonly<Record<string, unknown>>): string | undefined {
  const isA = (value: unknown, type: "string" | "boolean") =>
    (value ?? undefined) === undefined || typeof value === type;
  if (!isA(config["current-context"], "string")) return "current-context is no text";
  for (const [list, { item, texts, booleans }] of Object.entries(lists)) {
    const entries: unknown = config[list] ?? [];
    if (!Array.isArray(entries)) return `${list} is no list of objects`;
    const names = new Set<unknown>();
    for (const entry of entries as readonly unknown[]) {
      const held = isRecord(entry) ? (entry[item] ?? {}) : undefined;
      if (!isRecord(entry) || !isRecord(held)) return `${list} is no list of objects`;
      if (typeof entry["name"] !== "string") return `a name in ${list} is no text`;
      if (names.has(entry["name"])) return `${list} has two entries of one name`;
      names.add(entry["name"]);
      for (const name of texts) if (!isA(held[name], "string")) return `${name} is no text`;
      for (const name of booleans) if (!isA(held[name], "boolean")) return `${name} is not true or false`;
    }
  }
  return undefined;
}

/** `undefined`: it is none. */
function fromBase64(value: string): string | undefined {
  const compact = value.replaceAll(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(compact)) return undefined;
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(
    Uint8Array.from(atob(compact), (character) => character.charCodeAt(0)),
  );
}

const nobody: MergedConfig["users"][number] = { name: "", user: {}, folder: "." };

async function readFiles(files: Pick<Files, "readText">, paths: readonly string[]): Promise<MergedConfig> {
  const read: { readonly folder: string; readonly config: Kubeconfig }[] = [];
  for (const one of paths) {
    const source = await files.readText(one);
    if (source === undefined) continue;
    const folder = one.includes("/") ? one.slice(0, one.lastIndexOf("/")) : ".";
    read.push({ folder, config: parseKubeconfig(source, one) });
  }
  if (read.length === 0)
    throw new McoError("MCO_KUBECONFIG_INVALID", {
      path: paths.join(":"),
      problem: paths.length > 1 ? "there is none of these files" : "there is no such file",
    });
  return {
    currentContext: read.map(({ config }) => text(config["current-context"])).find((one) => one !== undefined),
    clusters: read.flatMap(({ config, folder }) =>
      (config.clusters ?? []).map(({ name, cluster }) => ({ name, cluster: cluster ?? {}, folder })),
    ),
    users: read.flatMap(({ config, folder }) =>
      (config.users ?? []).map(({ name, user }) => ({ name, user: user ?? {}, folder })),
    ),
    contexts: read.flatMap(({ config }) => config.contexts ?? []),
  };
}

function parseKubeconfig(source: string, path: string): Kubeconfig {
  let config: unknown;
  try {
    const document = kubernetesYaml(source, new LineCounter());
    const [error] = document.errors;
    if (error !== undefined) throw error;
    config = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (cause) {
    // The parser's message may quote the file, which holds credentials: report the position only.
    const { linePos } = cause as { linePos?: readonly { line: number }[] };
    throw new McoError("MCO_KUBECONFIG_INVALID", { path, problem: "it is not valid YAML", line: linePos?.[0]?.line });
  }
  const problem = isRecord(config) ? problemOfFields(config) : "it is no object";
  if (problem !== undefined) throw new McoError("MCO_KUBECONFIG_INVALID", { path, problem });
  return config as Kubeconfig;
}

const areTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/**
 * Whom the entry of a user acts as; `undefined`: nobody else. Each part that the command line names replaces that one part of
 * the entry, as kubectl has it.
 */
function impersonatedBy(
  user: Readonly<Record<string, unknown>>,
  named: Partial<Impersonated>,
  fail: (problem: string) => never,
): Impersonated | undefined {
  const [name, uid] = [named.user ?? text(user["as"]), named.uid ?? text(user["as-uid"])];
  const groups = named.groups ?? user["as-groups"] ?? [];
  const extra = user["as-user-extra"] ?? {};
  if (!areTexts(groups)) return fail("as-groups is no list of texts");
  if (!isRecord(extra) || !Object.values(extra).every(areTexts))
    return fail("as-user-extra is no map of lists of texts");
  const hasMore = uid !== undefined || groups.length > 0 || Object.keys(extra).length > 0;
  if (name === undefined) return hasMore ? fail("as-uid, as-groups and as-user-extra need as, or --as") : undefined;
  return {
    user: name,
    ...defined({ uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra: extra as Readonly<Record<string, readonly string[]>> }),
  };
}

/**
 * Reads a kubeconfig: certificates and keys inline or as files (relative to the kubeconfig), token, token file, exec
 * plug-in, and whom the user acts as. Several files count as one, as `$KUBECONFIG` names them: of entries of one name
 * the first counts, and so does the first current context; files that do not exist are left out, unless all are.
 * Source of the rule: kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig
 *
 * @param path of the file, or of several.
 * @param named whom the command line acts as.
 * @throws McoError `MCO_KUBECONFIG_INVALID`, which names the missing part.
 */
export async function readKubeconfig(
  files: Pick<Files, "readText">,
  path: string | readonly string[],
  context?: string,
  named: Partial<Impersonated> = {},
): Promise<Connection> {
  const paths = typeof path === "string" ? [path] : path;
  const config = await readFiles(files, paths);
  const fail = (problem: string): never => {
    throw new McoError("MCO_KUBECONFIG_INVALID", { path: paths.join(":"), problem });
  };
  const wanted = context ?? config.currentContext ?? fail("it names no current-context");
  const chosen = config.contexts.find(({ name }) => name === wanted)?.context ?? fail(`it has no context "${wanted}"`);
  const { cluster, folder: clusterFolder } =
    config.clusters.find(({ name }) => name === chosen.cluster) ?? fail(`it has no cluster "${chosen.cluster}"`);
  const { user, folder: userFolder } = config.users.find(({ name }) => name === chosen.user) ?? nobody;
  const server = text(cluster["server"]) ?? fail(`cluster "${chosen.cluster}" has no server`);

  const absolute = (file: string, folder: string) => (file.startsWith("/") ? file : `${folder}/${file}`);
  async function pem(
    holder: Record<string, unknown>,
    folder: string,
    inline: string,
    file: string,
  ): Promise<string | undefined> {
    const data = text(holder[inline]);
    if (data !== undefined) return fromBase64(data) ?? fail(`${inline} is not base64`);
    const name = text(holder[file]);
    if (name === undefined) return undefined;
    return (await files.readText(absolute(name, folder))) ?? fail(`${file} names ${name}, which does not exist`);
  }

  const exec = user["exec"] as
    | { command?: string; args?: string[]; env?: { name: string; value: string }[]; apiVersion?: string }
    | undefined;
  const optional = {
    context: wanted,
    ca: await pem(cluster, clusterFolder, "certificate-authority-data", "certificate-authority"),
    certificate: await pem(user, userFolder, "client-certificate-data", "client-certificate"),
    key: await pem(user, userFolder, "client-key-data", "client-key"),
    token: text(user["token"]),
    tokenFile: text(user["tokenFile"]) === undefined ? undefined : absolute(String(user["tokenFile"]), userFolder),
    tlsServerName: text(cluster["tls-server-name"]),
    insecureSkipTlsVerify: cluster["insecure-skip-tls-verify"] === true ? true : undefined,
    namespace: text(chosen.namespace),
    impersonate: impersonatedBy(user, named, fail),
    exec:
      exec?.command === undefined
        ? undefined
        : {
            command: exec.command,
            args: exec.args ?? [],
            env: Object.fromEntries((exec.env ?? []).map(({ name, value }) => [name, value])),
            apiVersion: exec.apiVersion ?? "client.authentication.k8s.io/v1",
          },
  };
  return {
    server: server.replace(/\/+$/, ""),
    ...(Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)) as Omit<
      Connection,
      "server"
    >),
  };
}

/** Where Kubernetes mounts a pod's credentials. */
export const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The connection of a pod: its mounted service-account token and CA, and the address in its environment.
 *
 * @param folder where the credentials are mounted; differs from {@link serviceAccountFolder} where pods have no mount
 * namespace.
 */
export async function inClusterConnection(
  files: Pick<Files, "readText">,
  environment: Readonly<Record<string, string | undefined>>,
  folder: string = serviceAccountFolder,
): Promise<Connection> {
  const host = environment["KUBERNETES_SERVICE_HOST"];
  const port = environment["KUBERNETES_SERVICE_PORT"];
  const ca = await files.readText(`${folder}/ca.crt`);
  if (host === undefined || port === undefined || ca === undefined) {
    throw new McoError("MCO_KUBECONFIG_INVALID", {
      problem:
        "not in a pod: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT or the mounted CA is missing; give --kubeconfig",
    });
  }
  const namespace = await files.readText(`${folder}/namespace`);
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ca,
    tokenFile: `${folder}/token`,
    ...defined({ namespace }),
  };
}
