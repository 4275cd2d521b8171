import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig, MachineConfigPool, type Node, kubernetes, names } from "../../src/api/index.ts";
import { version } from "../../src/cli/version.ts";
import { pauseImage } from "../../src/standin/cluster/host/pod-worker.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations } = names;
let cluster: TestCluster;

const workers = ["worker-0", "worker-1"];
let serial = 0;

/** Changes one file and returns its text and the target before. */
async function change(): Promise<{ text: string; before: string }> {
  const before = await cluster.target("worker");
  const text = `generation ${(serial += 1)}\n`;
  await cluster.kube.apply(
    MachineConfig,
    machineConfig("99-worker-crash", {
      "/etc/crash/a.conf": text,
      "/etc/crash/b.conf": text,
      "/etc/crash/c.conf": text,
    }) as never,
    { owner: "test" },
  );
  return { text, before };
}

const untilSomeoneWorks = (before: string) =>
  Promise.any(
    workers.map((worker) =>
      cluster
        .untilNode(
          worker,
          (node) =>
            annotation(node, annotations.desiredConfig) !== before && annotation(node, annotations.state) === "Working",
          `${worker} works`,
        )
        .then(() => worker),
    ),
  );

async function expectAll(text: string): Promise<void> {
  for (const worker of workers) {
    for (const name of ["a", "b", "c"]) expect(cluster.hostFile(worker, `/etc/crash/${name}.conf`)).toBe(text);
    expect(cluster.hostFile(worker, "/var/lib/machine-config-daemon/ledger.json")).toBeUndefined();
  }
}

describe.skipIf(!hasApiServer)("in the middle of an update", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 2 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("a killed daemon restarts and finishes", async () => {
    const { text, before } = await change();
    const worker = await untilSomeoneWorks(before);
    expect(await cluster.kill("SIGKILL", "daemon", "start")).toBeGreaterThan(0);
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
    expect(worker).toMatch(/^worker-/);
  });

  test("a killed controller loses the lead, and the roll-out continues under another", async () => {
    const { text, before } = await change();
    await untilSomeoneWorks(before);
    expect(await cluster.kill("SIGKILL", "controller", "start")).toBe(1);
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
  });

  test("a killed API server loses no acknowledged write, and every client resumes", async () => {
    const { text, before } = await change();
    await untilSomeoneWorks(before);
    const pool = await cluster.kube.get(MachineConfigPool, { name: "worker" });
    expect(await cluster.killApiServer("SIGKILL")).toBe(1);
    const after = await cluster.until(MachineConfigPool, "worker", () => true, "the API server is back");
    expect(Number(after.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(pool?.metadata.resourceVersion));
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
  });

  test("a machine that loses power has wholly the old or the new configuration, and reaches the new one", async () => {
    const { text, before } = await change();
    const worker = await untilSomeoneWorks(before);
    expect((await cluster.mco(["host", "power-cut", worker])).code).toBe(0);
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
  });

  test("a machine that a bad configuration took down is repaired first, and no other is disrupted [scenario-roll-out-5]", async () => {
    // A pod on each machine that no drain may take away: the machine that is chosen stays in its update until it goes
    // down.
    const labels = { app: "held" };
    const affinity = {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" },
        ],
      },
    };
    const items = [
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "held", namespace: "default" },
        spec: {
          replicas: 2,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "c", image: pauseImage(version) }], affinity },
          },
        },
      },
      {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "held", namespace: "default" },
        spec: { maxUnavailable: 0, selector: { matchLabels: labels } },
      },
    ];
    await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
    expect(await cluster.kubectl(["rollout", "status", "deployment/held", "--timeout=400s"])).toMatchObject({
      code: 0,
    });
    await cluster.until(
      kubernetes.PodDisruptionBudget,
      "held",
      ({ status }) => status?.currentHealthy === 2,
      "the budget counts two pods",
      { namespace: "default" },
    );
    const before = await cluster.target("worker");
    const boots = new Map(workers.map((worker) => [worker, cluster.machineState(worker).bootId]));
    await cluster.kube.create(MachineConfig, machineConfig("99-worker-bad", { "/etc/bad.conf": "x" }) as never);
    const { spec } = await cluster.until(
      MachineConfigPool,
      "worker",
      (pool) => (pool.spec.configuration?.name ?? before) !== before,
      "the bad target",
    );
    const bad = spec.configuration?.name ?? "";
    const { metadata } = await Promise.any(
      workers.map((worker) =>
        cluster.untilNode(
          worker,
          (node) => annotation(node, annotations.desiredConfig) === bad,
          `${worker} is given it`,
        ),
      ),
    );
    const first = metadata.name;
    expect((await cluster.mco(["host", "fail", first])).code).toBe(0);
    const isDown = (node: Node) => node.status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True";
    await cluster.untilNode(first, isDown, `${first} is down`);
    const others = workers.filter((worker) => worker !== first);
    for (const other of others)
      expect(
        annotation(
          (await cluster.kube.get(kubernetes.Node, { name: other })) ?? expect.fail(),
          annotations.desiredConfig,
        ),
      ).toBe(before);
    const told = await cluster.mco(["explain", "pool/worker", `node/${first}`]);
    expect(told.stdout).toContain(`Out of reach:\n  ${first}: Lost`);
    expect(told.stdout).toContain(`bring ${first} back, or delete its Node`);

    await cluster.kube.delete(MachineConfig, { name: "99-worker-bad" });
    const fixed = await cluster.untilNode(
      first,
      (node) => annotation(node, annotations.desiredConfig) === before,
      "the fix",
    );
    expect(isDown(fixed)).toBe(true);
    expect((await cluster.mco(["host", "recover", first])).code).toBe(0);
    await cluster.untilNode(
      first,
      (node) =>
        !isDown(node) &&
        annotation(node, annotations.currentConfig) === before &&
        annotation(node, annotations.state) === "Done" &&
        node.spec?.unschedulable !== true,
      "it is back in service",
    );
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) => status?.updatedMachineCount === workers.length && status.unavailableMachineCount === 0,
      "the pool is well again",
    );
    expect(cluster.hostFile(first, "/etc/bad.conf")).toBeUndefined();
    for (const other of others) expect(cluster.machineState(other).bootId).toBe(boots.get(other));
    await cluster.kubectl(["delete", "deployment/held", "pdb/held", "-n", "default", "--wait=false"]);
  }, 600_000);

  test("an added machine joins its pool and gets its configuration", async () => {
    const target = await cluster.target("worker");
    const { stdout, code } = await cluster.mco(["host", "add", "worker", "--json"]);
    expect(code).toBe(0);
    const { name } = JSON.parse(stdout) as { name: string };
    expect(name).toBe("worker-2");
    await cluster.untilNode(
      name,
      (node) =>
        annotation(node, annotations.currentConfig) === target && annotation(node, annotations.state) === "Done",
      `${name} has joined`,
    );
    expect(cluster.hostFile(name, "/etc/crash/a.conf")).toBe(cluster.hostFile("worker-0", "/etc/crash/a.conf"));
    const list = JSON.parse((await cluster.mco(["host", "list", "--json"])).stdout) as {
      hosts: { name: string; power: string }[];
    };
    expect(list.hosts.map((host) => `${host.name} ${host.power}`)).toContain("worker-2 on");
  });

  test("a failing machine becomes not ready, and recovers", { timeout: 180_000 }, async () => {
    expect((await cluster.mco(["host", "fail", "worker-2"])).code).toBe(0);
    const isReady = (status: string) => (node: { status?: { conditions?: { type: string; status: string }[] } }) =>
      node.status?.conditions?.find(({ type }) => type === "Ready")?.status === status;
    await cluster.untilNode("worker-2", isReady("Unknown"), "worker-2 is taken for lost");
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) => status?.unavailableMachineCount === 1,
      "the pool counts it as unavailable",
    );
    expect((await cluster.mco(["host", "recover", "worker-2"])).code).toBe(0);
    await cluster.untilNode("worker-2", isReady("True"), "worker-2 is back");
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) => status?.unavailableMachineCount === 0,
      "the pool is whole again",
    );
  });
});
