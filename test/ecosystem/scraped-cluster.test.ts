import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig, MachineConfigPool, MachineOSConfig, kubernetes, names } from "../../src/api/index.ts";
import { endScenario } from "../support/end-scenario.ts";
import { askPrometheusTool, prometheusFolder } from "../support/prometheus.ts";
import { type Prometheus, scrapeCluster } from "../support/scrape-cluster.ts";
import { TestCluster, annotation, hasKubectl, machineConfig } from "../support/test-cluster.ts";

/** Names that the reference gave, and that dashboards know: promtool would give them another end. */
const ofReference = new Set([
  "mco_machine_count",
  "mco_updated_machine_count",
  "mco_degraded_machine_count",
  "mco_unavailable_machine_count",
  "mco_mosc_count",
  "mcd_pivot_errors_total",
]);

describe.skipIf(prometheusFolder() === undefined || !hasKubectl)("a Prometheus that scrapes a cluster", () => {
  let cluster: TestCluster;
  let prometheus: Prometheus;

  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
    await startBuilder();
    prometheus = await scrapeCluster(cluster);
  }, 600_000);
  afterAll(async () => {
    // Its pool is degraded: no Secret, no image.
    await cluster.kube.delete(MachineOSConfig, { name: "spare" });
    await cluster.until(
      MachineConfigPool,
      "spare",
      ({ status }) => status?.conditions?.find(({ type }) => type === "Degraded")?.status === "False",
      "the pool is well again",
    );
    await prometheus?.end();
    await endScenario(cluster);
  });

  /** A pool without machines opts in to images: the builder runs, and has nothing to build from. */
  async function startBuilder(): Promise<void> {
    const { items } = await cluster.kube.list(MachineConfigPool);
    const worker = items.find(({ metadata }) => metadata.name === "worker");
    await cluster.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: "spare" },
      spec: {
        machineConfigSelector: worker?.spec.machineConfigSelector ?? {},
        nodeSelector: { matchLabels: { "node-role.kubernetes.io/spare": "" } },
      },
    });
    await cluster.kube.create(MachineOSConfig, {
      apiVersion: MachineOSConfig.apiVersion,
      kind: "MachineOSConfig",
      metadata: { name: "spare" },
      spec: {
        machineConfigPool: { name: "spare" },
        imageBuilder: { imageBuilderType: "Job" },
        renderedImagePushSecret: { name: "absent" },
        renderedImagePushSpec: "registry.example.com/os/spare:latest",
      },
    });
    await cluster.until(
      kubernetes.Deployment,
      names.objects.osBuilder,
      ({ status }) => (status?.readyReplicas ?? 0) > 0,
      "the builder runs",
      { namespace: names.namespace },
    );
  }

  const firing = async () =>
    (await prometheus.alerts())
      .filter(({ state }) => state === "firing")
      .map(({ labels }) => [labels["alertname"], labels["pool"] ?? labels["instance"] ?? ""].join(" ").trim())
      .toSorted();
  const daemonOf = async (nodeName: string) => {
    const pods = await cluster.kube.list(kubernetes.Pod, {
      namespace: names.namespace,
      labelSelector: `k8s-app=${names.objects.daemon}`,
    });
    return pods.items.find(({ spec }) => spec?.nodeName === nodeName)?.status ?? {};
  };
  const untilFiring = (expected: readonly string[]) =>
    expect.poll(firing, { timeout: 300_000, interval: 500 }).toEqual(expected);

  test("reaches every process with the rights and certificates of install/monitoring [ecosystem-scrape-1]", async () => {
    await expect
      .poll(
        async () =>
          (await prometheus.targets())
            .map(({ labels, health, lastError }) => `${labels["job"]} ${health} ${lastError}`.trim())
            .toSorted(),
        { timeout: 300_000, interval: 500 },
      )
      .toEqual([
        "machine-config-controller up",
        "machine-config-daemon up",
        "machine-config-daemon up",
        "machine-config-server up",
        "machine-os-builder up",
        "machine-state-controller up",
      ]);
  });

  test("reads metrics of which promtool has nothing to say [ecosystem-scrape-4]", async () => {
    const texts = await prometheus.texts();
    expect(texts.map(({ job }) => job)).toContain("machine-config-daemon");
    for (const { job, text } of texts) {
      const { text: remarks } = await askPrometheusTool("promtool", ["check", "metrics"], text);
      const own = remarks.split("\n").filter((line) => line !== "" && !ofReference.has(line.split(" ")[0] ?? ""));
      expect({ job, own }).toEqual({ job, own: [] });
    }
  });

  test("has no alert about a cluster that is well [ecosystem-scrape-2]", async () => {
    await expect
      .poll(() => prometheus.query('mco_updated_machine_count{pool="worker"}'), { timeout: 300_000, interval: 500 })
      .toMatchObject([{ value: "1" }]);
    // Before the first scrape, nothing had reported any pool.
    await untilFiring([]);
  });

  test("sees drift of a machine, and its end [ecosystem-scrape-3]", async () => {
    const before = await cluster.target("worker");
    await cluster.kube.create(
      MachineConfig,
      machineConfig("99-worker-watched", { "/etc/watched.conf": "ours\n" }) as MachineConfig,
    );
    await cluster.untilRolledOut("worker", before);
    const file = "/etc/watched.conf";
    cluster.writeHostFile("worker-0", file, "theirs\n");
    await cluster.untilNode("worker-0", (node) => annotation(node, names.annotations.state) === "Degraded", "degraded");
    const { podIP } = await daemonOf("worker-0");
    await untilFiring([`MCDConfigDrift ${podIP}:8797`, "MCOMachineDegraded worker"]);
    cluster.writeHostFile("worker-0", file, "ours\n");
    await untilFiring([]);
  });
});
