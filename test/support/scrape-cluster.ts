import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseAllDocuments, stringify } from "yaml";
import { kubernetes } from "../../src/api/index.ts";
import { prometheusRule } from "../../src/core/metrics/alerts.ts";
import { admissionService, builderService, configServerService, stateService } from "../../src/operator/manifests.ts";
import { prometheusFolder } from "./prometheus.ts";
import type { TestCluster } from "./test-cluster.ts";
import { untilSeen } from "./until-seen.ts";

const monitoring = join(import.meta.dirname, "../../install/monitoring");

interface ServiceMonitor {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly endpoints: readonly {
      readonly port: string;
      readonly path: string;
      readonly scheme: string;
      readonly tlsConfig: {
        readonly serverName: string;
        readonly ca: Readonly<
          Record<"secret" | "configMap", { readonly name: string; readonly key: string } | undefined>
        >;
      };
    }[];
  };
}

interface ServiceLike {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>>; readonly namespace?: string };
  readonly spec: {
    readonly selector: Readonly<Record<string, string>>;
    readonly ports: readonly { readonly name: string; readonly targetPort: number }[];
  };
}

const servicesOfSuite = [admissionService(), stateService(), builderService(), configServerService()].map(
  (service) => service as unknown as ServiceLike,
);

/** A target as Prometheus shows it. */
export interface Target {
  readonly labels: Readonly<Record<string, string>>;
  readonly health: "up" | "down" | "unknown";
  readonly lastError: string;
}

/** An alert as Prometheus shows it. */
export interface ActiveAlert {
  readonly state: "pending" | "firing";
  readonly labels: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** The text that each job reads of its first target. */
  texts(): Promise<readonly { readonly job: string; readonly text: string }[]>;
  /** Answers of its HTTP API. */
  targets(): Promise<readonly Target[]>;
  alerts(): Promise<readonly ActiveAlert[]>;
  query(
    expression: string,
  ): Promise<readonly { readonly metric: Readonly<Record<string, string>>; readonly value: string }[]>;
  end(): Promise<void>;
}

/**
 * A Prometheus that scrapes a cluster as the objects of `install/monitoring` say: each ServiceMonitor becomes a job, with
 * its account's rights, its authority and its server name. Addresses come from the pods that the Service selects, because a
 * cluster on loopback has no Endpoints. Daemons are scraped on their machine, without TLS. An alert waits two seconds where
 * its rule has it wait for minutes.
 */
export async function scrapeCluster(cluster: TestCluster): Promise<Prometheus> {
  const folder = join(cluster.directory, "prometheus");
  await mkdir(folder, { mode: 0o700 });
  const token = await readerToken(cluster);
  await writeFile(join(folder, "token"), token, { mode: 0o600 });
  const documents = parseAllDocuments(await readFile(join(monitoring, "service-monitor.yaml"), "utf8"));
  const monitors = documents.map((document) => document.toJS() as ServiceMonitor);
  const jobs = [
    ...(await Promise.all(monitors.map((monitor) => jobOf(monitor, cluster, folder)))),
    await jobOfDaemons(cluster),
  ];
  const { spec } = prometheusRule() as {
    readonly spec: { readonly groups: readonly { readonly rules: readonly object[] }[] };
  };
  const groups = spec.groups.map((group) => ({
    ...group,
    interval: "1s",
    rules: group.rules.map((rule) => ("for" in rule ? { ...rule, for: "2s" } : rule)),
  }));
  await writeFile(join(folder, "rules.yaml"), stringify({ groups }));
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: ["rules.yaml"],
    scrape_configs: jobs,
  };
  await writeFile(join(folder, "prometheus.yaml"), stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    join(prometheusFolder() ?? "", "prometheus"),
    [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=${address}`,
      "--log.level=warn",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  const ask = async <T>(path: string): Promise<T> => {
    if (child.exitCode !== null) throw new Error(`Prometheus has ended: ${said}`);
    const answer = await fetch(`http://${address}/api/v1/${path}`);
    return ((await answer.json()) as { readonly data: T }).data;
  };
  await untilSeen(
    "Prometheus answers",
    () =>
      fetch(`http://${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    (isReady): isReady is true => isReady || child.exitCode !== null,
    { everyMs: 100 },
  );
  return {
    texts: () =>
      Promise.all(
        jobs
          .filter(({ static_configs: [group] }) => (group?.targets.length ?? 0) > 0)
          .map(async (job) => ({ job: job.job_name, text: await textOf(job, token) })),
      ),
    targets: async () =>
      (await ask<{ readonly activeTargets: readonly Target[] }>("targets?state=active")).activeTargets,
    alerts: async () => (await ask<{ readonly alerts: readonly ActiveAlert[] }>("alerts")).alerts,
    query: async (expression) => {
      const { result } = await ask<{
        readonly result: readonly {
          readonly metric: Readonly<Record<string, string>>;
          readonly value: readonly [number, string];
        }[];
      }>(`query?query=${encodeURIComponent(expression)}`);
      return result.map(({ metric, value: [, value] }) => ({ metric, value }));
    },
    end: () => endOf(child),
  };
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

/** The token of the account that `metrics-reader.yaml` names. */
async function readerToken(cluster: TestCluster): Promise<string> {
  const run = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await cluster.kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stdout}${stderr}`);
    return stdout.trim();
  };
  await run("create", "namespace", "openshift-monitoring");
  await run("create", "serviceaccount", "prometheus-k8s", "-n", "openshift-monitoring");
  await run("apply", "-f", join(monitoring, "metrics-reader.yaml"));
  return run("create", "token", "prometheus-k8s", "-n", "openshift-monitoring");
}

/** A part of Prometheus' configuration. */
interface Job {
  readonly job_name: string;
  readonly scheme: string;
  readonly metrics_path?: string;
  readonly authorization?: object;
  readonly tls_config?: { readonly ca_file: string; readonly server_name: string };
  readonly static_configs: readonly { readonly targets: readonly string[] }[];
}

async function textOf({ scheme, tls_config: tls, static_configs: [group] }: Job, token: string): Promise<string> {
  const target = `${scheme}://${group?.targets[0]}/metrics`;
  if (tls === undefined) return (await fetch(target)).text();
  const ca = await readFile(tls.ca_file);
  const headers = { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const asked = request(target, { ca, servername: tls.server_name, headers }, (answer) => {
      text(answer).then(resolve, reject);
    });
    asked.once("error", reject);
    asked.end();
  });
}

/** The job that the Prometheus operator makes of a ServiceMonitor. */
async function jobOf({ metadata, spec }: ServiceMonitor, cluster: TestCluster, folder: string): Promise<Job> {
  const [endpoint] = spec.endpoints;
  const service = servicesOfSuite.find(({ metadata: { labels = {} } }) =>
    Object.entries(spec.selector.matchLabels).every(([label, value]) => labels[label] === value),
  );
  const port = service?.spec.ports.find(({ name }) => name === endpoint?.port)?.targetPort;
  if (endpoint === undefined || service === undefined || port === undefined)
    throw new Error(`${metadata.name} selects no port of a Service`);
  const { secret, configMap } = endpoint.tlsConfig.ca;
  const { namespace } = metadata;
  const authority =
    secret !== undefined
      ? atob((await cluster.kube.get(kubernetes.Secret, { name: secret.name, namespace }))?.data?.[secret.key] ?? "")
      : ((await cluster.kube.get(kubernetes.ConfigMap, { name: configMap?.name ?? "", namespace }))?.data?.[
          configMap?.key ?? ""
        ] ?? "");
  const authorityFile = join(folder, `${metadata.name}.crt`);
  await writeFile(authorityFile, authority);
  return {
    job_name: metadata.name,
    scheme: endpoint.scheme,
    metrics_path: endpoint.path,
    authorization: { credentials_file: join(folder, "token") },
    tls_config: { ca_file: authorityFile, server_name: endpoint.tlsConfig.serverName },
    static_configs: [{ targets: await addressesOf(cluster, service.spec.selector, port) }],
  };
}

async function jobOfDaemons(cluster: TestCluster): Promise<Job> {
  return {
    job_name: "machine-config-daemon",
    scheme: "http",
    static_configs: [{ targets: await addressesOf(cluster, { "k8s-app": "machine-config-daemon" }, 8797) }],
  };
}

async function addressesOf(
  cluster: TestCluster,
  selector: Readonly<Record<string, string>>,
  port: number,
): Promise<readonly string[]> {
  const { items } = await cluster.kube.list(kubernetes.Pod, {
    namespace: "openshift-machine-config-operator",
    labelSelector: Object.entries(selector)
      .map(([label, value]) => `${label}=${value}`)
      .join(","),
  });
  return items.map(({ status }) => `${status?.podIP}:${port}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
