import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig, MachineConfigPool, names } from "../../src/api/index.ts";
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
  }, 180_000);

  afterAll(() => endScenario(cluster));

  test("kill -9 of the daemon: it comes back and finishes", async () => {
    const { text, before } = await change();
    const worker = await untilSomeoneWorks(before);
    expect(await cluster.kill("SIGKILL", "daemon", "start")).toBeGreaterThan(0);
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
    expect(worker).toMatch(/^worker-/);
  });

  test("kill -9 of the controller: another leads and the roll-out goes on", async () => {
    const { text, before } = await change();
    await untilSomeoneWorks(before);
    expect(await cluster.kill("SIGKILL", "controller", "start")).toBe(1);
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
  });

  test("kill -9 of the API server: nothing acknowledged is lost, and everybody resumes", async () => {
    const { text, before } = await change();
    await untilSomeoneWorks(before);
    const pool = await cluster.kube.get(MachineConfigPool, { name: "worker" });
    expect(await cluster.killApiServer("SIGKILL")).toBe(1);
    const after = await cluster.until(MachineConfigPool, "worker", () => true, "the API server is back");
    expect(Number(after.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(pool?.metadata.resourceVersion));
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
  });

  test("a power cut of a machine: it is wholly on the old or the new configuration, and then on the new one", async () => {
    const { text, before } = await change();
    const worker = await untilSomeoneWorks(before);
    expect((await cluster.mco(["host", "power-cut", worker])).code).toBe(0);
    await cluster.untilRolledOut("worker", before);
    await expectAll(text);
  });

  test("a machine that is added joins its pool and gets its configuration", async () => {
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

  test("a machine that fails is no longer ready, and recovers", { timeout: 180_000 }, async () => {
    expect((await cluster.mco(["host", "fail", "worker-2"])).code).toBe(0);
    const isReady = (status: string) => (node: { status?: { conditions?: { type: string; status: string }[] } }) =>
      node.status?.conditions?.find(({ type }) => type === "Ready")?.status === status;
    await cluster.untilNode("worker-2", isReady("Unknown"), "worker-2 is taken for lost", 100);
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
