import { execFile } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { request } from "node:https";
import { join, relative } from "node:path";
import { type Pod, definedResources, kubernetes, names } from "../../src/api/index.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { addressesOf, layoutOf, ports } from "../../src/standin/cluster/layout.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { KubeError } from "../../src/kube/kube-error.ts";
import { admission, builderMetrics, configServerPorts, stateMetrics } from "../../src/operator/manifests.ts";
import { type Sink, canariesOf, leaksIn, secretsIn, sinksOfObject } from "./canary.ts";
import { type Planted, plantToken, probeConfig } from "./plant-canaries.ts";

/** What a search needs of a cluster. */
export interface Searched {
  readonly directory: string;
  readonly kube: KubeClient;
  readonly printed: readonly Sink[];
  record(): { readonly network: string; readonly hosts: readonly { readonly name: string; readonly index: number }[] };
}

const { namespace, objects } = names;

/** Every kind whose objects the suite, its builds or its machines write. */
const kinds: readonly Resource[] = [
  ...definedResources,
  kubernetes.Event,
  kubernetes.ConfigMap,
  kubernetes.Pod,
  kubernetes.Node,
  kubernetes.CertificateSigningRequest,
  kubernetes.Job,
  kubernetes.Deployment,
  kubernetes.DaemonSet,
  kubernetes.Lease,
  kubernetes.ServiceAccount,
];

/**
 * Looks for the planted secrets, and for keys and passwords that the suite made itself, in everything that a cluster
 * wrote: logs, objects, what commands printed and print, metrics, and the bundle. @returns leaks, as sentences.
 */
export async function searchCluster(cluster: Searched, { canaries, targets }: Planted): Promise<readonly string[]> {
  const { kube } = cluster;
  const presented = await presentToken(cluster, await plantToken(kube, canaries));
  const spoken = await commandOutputs(cluster, targets);
  const metrics = await metricsTexts(cluster);
  const secrets = await listed(kube, kubernetes.Secret);
  const written = (await Promise.all(kinds.map((kind) => listed(kube, kind)))).flat();
  const groups = {
    objects: written.flatMap(sinksOfObject),
    answers: presented,
    commands: spoken,
    metrics: metrics.filter(({ text }) => text.startsWith("200 ")),
    // Last, so that lines about all of this are in them.
    logs: logs(cluster),
    bundle: files(join(layoutOf(cluster.directory).bundle, ".."), cluster.directory),
  };
  for (const [group, sinks] of Object.entries(groups))
    if (!sinks.some(({ text }) => text.trim() !== "")) throw new Error(`no ${group} were read: the search is void`);
  return leaksIn(
    [...Object.values(groups).flat(), ...cluster.printed],
    canariesOf(canaries),
    secrets.flatMap(secretsIn),
  );
}

/** Objects of a kind; none where the kind is not installed. */
async function listed(kube: KubeClient, kind: Resource): Promise<readonly KubeObject[]> {
  try {
    // Items of a list carry no kind of their own.
    return (await kube.list(kind)).items.map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind }));
  } catch (error) {
    if (error instanceof KubeError && error.httpStatus === 404) return [];
    throw error;
  }
}

function files(folder: string, root: string): readonly Sink[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    return entry.isFile() ? [{ where: relative(root, path), text: readFileSync(path, "utf8") }] : [];
  });
}

/**
 * What processes wrote: those of the cluster, of the pods on its machines, and the daemons' journals. Other files of
 * pods and machines may hold secrets.
 */
function logs(cluster: Searched): readonly Sink[] {
  const { directory } = cluster;
  const layout = layoutOf(directory);
  const below = (folder: string, end: string) =>
    existing(folder)
      .filter((file) => file.endsWith(end))
      .map((file) => join(folder, file));
  const ofMachines = cluster.record().hosts.flatMap(({ name }) => {
    const pods = join(layout.host(name), "pods");
    return [
      ...existing(pods).flatMap((pod) => below(join(pods, pod), ".log")),
      ...below(join(layout.host(name), "sysroot", "var/lib/machine-config-daemon/books"), ".jsonl"),
    ];
  });
  return [
    ...files(layout.logs, directory),
    ...ofMachines.map((path) => ({ where: relative(directory, path), text: readFileSync(path, "utf8") })),
  ];
}

function existing(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // A machine without pods.
    return [];
  }
}

/** The commands that only read, each for people and, where it can, as JSON. */
function commandsFor(targets: Planted["targets"], node: string): readonly (readonly string[])[] {
  const both = [
    ["status"],
    ["explain", "pool/worker"],
    ["explain", `node/${node}`],
    ["explain", "clusteroperator/machine-config"],
    ["book", "pool/worker"],
    ["book", `node/${node}`],
    ["book", "cluster"],
    ["node", "list"],
    ["token", "list"],
    ["plan", "--delete", probeConfig("worker")],
    ...[...targets.values()].flatMap(({ before, after }) => (before === "" ? [] : [["diff", before, after]])),
  ];
  return [...both.flatMap((words) => [words, [...words, "--json"]]), ["timeline", "pool/worker"]];
}

/** Commands at the same time: each is a process. */
const atOnce = 3;

async function commandOutputs(cluster: Searched, targets: Planted["targets"]): Promise<readonly Sink[]> {
  const node = cluster.record().hosts.at(-1)?.name ?? "";
  const waiting = [...commandsFor(targets, node)];
  const found: Sink[] = [];
  const work = async () => {
    for (let words = waiting.shift(); words !== undefined; words = waiting.shift())
      found.push({ where: `the output of mco ${words.join(" ")}`, text: await output(cluster, words) });
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return found;
}

/** What a command prints, whatever it ends with: some scenarios leave a cluster in which it fails. */
function output({ directory }: Searched, words: readonly string[]): Promise<string> {
  const { bundle } = layoutOf(directory);
  const args = ["--disable-warning=ExperimentalWarning", bundle, ...words, "--dir", directory];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: 60_000, maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) =>
      resolve(`${stdout}\n${stderr}`),
    );
  });
}

interface Page {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly token?: string;
  readonly method?: string;
}

/** A page of a component as text; a component that does not run has none. */
function page({ host, port, path, token, method = "GET" }: Page): Promise<string> {
  const isPlain = token === undefined;
  const headers = isPlain ? {} : { authorization: `Bearer ${token}` };
  // What the page says is looked through, and nothing believed.
  const options = { host, port, path, method, headers, agent: false, rejectUnauthorized: false, timeout: 10_000 };
  return new Promise((resolve) => {
    const call = (isPlain ? plainRequest : request)(options, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
      answer.on("end", () => resolve(`${answer.statusCode} ${text}`));
      answer.on("error", () => resolve(text));
    });
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(""));
    call.end();
  });
}

const reader = "probe-reads-metrics";

/** A token of an account that may read metrics. */
async function metricsToken(kube: KubeClient): Promise<string> {
  const by = { owner: reader };
  await kube.apply(kubernetes.ServiceAccount, { metadata: { name: reader, namespace: "default" } }, by);
  const group = "rbac.authorization.k8s.io";
  await kube.apply(
    kubernetes.ClusterRole,
    {
      apiVersion: `${group}/v1`,
      kind: "ClusterRole",
      metadata: { name: reader },
      rules: [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }],
    } as never,
    by,
  );
  await kube.apply(
    kubernetes.ClusterRoleBinding,
    {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: reader },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: reader },
      subjects: [{ kind: "ServiceAccount", name: reader, namespace: "default" }],
    } as never,
    by,
  );
  const answer = (await kube.request({
    method: "POST",
    target: `/api/v1/namespaces/default/serviceaccounts/${reader}/token`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
  })) as { readonly status?: { readonly token?: string } };
  return answer.status?.token ?? "";
}

/** What every process of the suite, and every daemon, serves at /metrics. */
export async function metricsTexts(cluster: Searched): Promise<readonly Sink[]> {
  const { kube } = cluster;
  const token = await metricsToken(kube);
  const pods = (await kube.list(kubernetes.Pod, { namespace })).items;
  const portOf = new Map<string, number>([
    [objects.controller, admission.port],
    [objects.state, stateMetrics.port],
    [objects.configServer, configServerPorts.metrics],
    [objects.osBuilder, builderMetrics.port],
  ]);
  const pages = pods.flatMap((pod: Pod): readonly (Page & { readonly where: string })[] => {
    const port = portOf.get(pod.metadata.labels?.["k8s-app"] ?? "");
    const host = pod.status?.hostIP;
    return port === undefined || host === undefined
      ? []
      : [{ where: `the metrics of ${pod.metadata.name}`, host, port, path: "/metrics", token }];
  });
  const { network, hosts } = cluster.record();
  const daemons = hosts.map(({ name, index }) => ({
    where: `the metrics of the daemon of ${name}`,
    host: addressesOf(network).host(index),
    port: 8797,
    path: "/metrics",
  }));
  return Promise.all(
    [...pages, ...daemons].map(async ({ where, ...one }): Promise<Sink> => ({ where, text: await page(one) })),
  );
}

/** Shows the config server a good token, for its own pool and for another: what it says and logs of it is a sink. */
async function presentToken(cluster: Searched, token: string): Promise<readonly Sink[]> {
  const host = addressesOf(cluster.record().network).configServer;
  const texts = await Promise.all(
    ["HEAD /config/worker", "GET /config/master", "GET /nowhere"].map((line) => {
      const [method = "", path = ""] = line.split(" ");
      return page({ host, port: ports.configServer, path, method, token });
    }),
  );
  return texts.map((text) => ({ where: "an answer of the config server", text }));
}
