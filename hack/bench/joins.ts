import { spawn } from "node:child_process";
import { join } from "node:path";
import { MachineConfigPool, ProvisioningToken, kubernetes, names } from "../../src/api/index.ts";
import { addressesOf, ports } from "../../src/standin/cluster/layout.ts";
import { newToken } from "../../src/core/join/provisioning-token.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { TestCluster } from "../../test/support/test-cluster.ts";
import { type Summary, summary } from "./statistics.ts";

export interface JoinMetrics {
  readonly machines: number;
  /** From the start of all to the last one's… */
  readonly seconds: {
    readonly fetched: number;
    readonly certified: number;
    readonly registered: number;
    readonly inPool: number;
  };
  /** Of each machine, from the start of all. */
  readonly fetchedSeconds: Summary;
  readonly registeredSeconds: Summary;
  /** Machines that got `Retry-After` for their configuration. */
  readonly askedAgain: number;
  /** What the token says of its uses. */
  readonly uses: number;
}

interface Steps {
  readonly fetched: number;
  readonly certified: number;
  readonly registered: number;
  readonly fetches: number;
}

const { labels, namespace, objects } = names;
const pool = "worker";
const patienceMs = 600_000;

/**
 * Machines that boot at the same moment, on a cluster of one control-plane machine; each is a client of its own, over
 * TLS.
 */
export async function measureJoins(machines: number, tell: (line: string) => void): Promise<JoinMetrics> {
  const cluster = await TestCluster.start({ workers: 0 });
  try {
    const { kube } = cluster;
    const server = `https://${addressesOf(cluster.record().network).configServer}:${ports.configServer}`;
    const authority = await cluster.until(
      kubernetes.ConfigMap,
      objects.configServerCa,
      ({ data }) => data?.["ca-bundle.crt"] !== undefined,
      "the config server's authority",
      { namespace },
    );
    await cluster.until(
      kubernetes.DaemonSet,
      objects.configServer,
      ({ status }) => (status?.numberReady ?? 0) > 0,
      "the config server",
      { namespace },
    );
    const { text, object } = newToken(systemRandom, {
      pool,
      expiresAt: systemClock.now() + 3_600_000,
      maxUses: machines,
    });
    await kube.create(ProvisioningToken, object);
    tell(`${machines} machines boot`);
    const began = performance.now();
    const child = spawn(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        join(import.meta.dirname, "join-machines.ts"),
        server,
        authority.data?.["ca-bundle.crt"] ?? "",
        text,
        pool,
        String(machines),
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
    const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
    if (code !== 0) throw new Error(`the machines ended with ${code}`);
    const steps = JSON.parse(output) as readonly Steps[];
    const inPool = async () => (await kube.get(MachineConfigPool, { name: pool }))?.status?.machineCount ?? 0;
    while ((await inPool()) < machines) {
      if (performance.now() - began > patienceMs)
        throw new Error(`${await inPool()} of ${machines} machines are in the pool after ten minutes`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const seconds = (milliseconds: number) => Math.round(milliseconds / 10) / 100;
    const last = (key: "fetched" | "certified" | "registered") => seconds(Math.max(...steps.map((one) => one[key])));
    const labelled = (await kube.list(kubernetes.Node, { labelSelector: labels.workerRole })).items.length;
    if (labelled !== machines) throw new Error(`${labelled} of ${machines} nodes have the label of their pool`);
    const metrics = {
      machines,
      seconds: {
        fetched: last("fetched"),
        certified: last("certified"),
        registered: last("registered"),
        inPool: seconds(performance.now() - began),
      },
      fetchedSeconds: summary(steps.map(({ fetched }) => fetched / 1000)),
      registeredSeconds: summary(steps.map(({ registered }) => registered / 1000)),
      askedAgain: steps.filter(({ fetches }) => fetches > 1).length,
      uses: (await kube.get(ProvisioningToken, { name: object.metadata.name }))?.status?.uses ?? 0,
    };
    tell(
      `all fetched after ${metrics.seconds.fetched} s, all certified after ${metrics.seconds.certified} s, all in the pool after ${metrics.seconds.inPool} s`,
    );
    return metrics;
  } finally {
    await cluster.stop();
  }
}
