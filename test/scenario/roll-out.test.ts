import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  ProvisioningToken,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { conditionOf, timestampOf } from "../../src/api/schema/object.ts";
import { version } from "../../src/cli/version.ts";
import { pauseImage } from "../../src/standin/cluster/host/pod-worker.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";
import { untilSeen } from "../support/until-seen.ts";

const { annotations, namespace } = names;
let cluster: TestCluster;

const workers = ["worker-0", "worker-1"];
const bootIds = () => workers.map((worker) => cluster.machineState(worker).bootId);

async function withWatch(resource: typeof kubernetes.Node, work: () => Promise<void>): Promise<number> {
  const stop = new AbortController();
  const list = await cluster.kube.list(resource);
  const away = new Set<string>();
  let most = 0;
  const watching = (async () => {
    for await (const event of cluster.kube.watch(
      resource,
      {},
      { resourceVersion: list.resourceVersion, timeoutSeconds: 600 },
      stop.signal,
    )) {
      if (event.type === "BOOKMARK" || !event.object.metadata.name.startsWith("worker")) continue;
      const { object } = event;
      const ready = object.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
      if (
        ready &&
        object.spec?.unschedulable !== true &&
        annotation(object, annotations.currentConfig) === annotation(object, annotations.desiredConfig)
      )
        away.delete(object.metadata.name);
      else away.add(object.metadata.name);
      most = Math.max(most, away.size);
    }
  })().catch(() => undefined);
  await work();
  stop.abort();
  await watching;
  return most;
}

describe.skipIf(!hasApiServer)("a cluster of real processes", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 2 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("runs operator, controller and daemons as pods, and reports Available", async () => {
    const pods = await cluster.kube.list(kubernetes.Pod, { namespace });
    const named = (prefix: string) => pods.items.filter(({ metadata }) => metadata.name.startsWith(prefix)).length;
    expect([
      named("machine-config-operator"),
      named("machine-config-controller"),
      named("machine-config-daemon"),
    ]).toEqual([1, 1, 3]);
    const { stdout } = await cluster.kubectl([
      "get",
      "clusteroperator",
      "machine-config",
      "-o",
      "jsonpath={.status.conditions[?(@.type=='Available')].status}",
    ]);
    expect(stdout).toBe("True");
  });

  test("rolls out a file without a policy with drain and reboot, one machine at a time", async () => {
    const before = await cluster.target("worker");
    const boots = bootIds();
    const most = await withWatch(kubernetes.Node, async () => {
      await cluster.kube.create(
        MachineConfig,
        machineConfig("99-worker-chrony", { "/etc/chrony.conf": "server one\n" }) as never,
      );
      await cluster.untilRolledOut("worker", before);
    });
    expect(most).toBe(1);
    for (const [index, worker] of workers.entries()) {
      expect(cluster.hostFile(worker, "/etc/chrony.conf")).toBe("server one\n");
      expect(cluster.machineState(worker).bootId).not.toBe(boots[index]);
      const node = await cluster.kube.get(MachineConfigNode, { name: worker });
      expect(conditionOf(node?.status?.conditions, "Updated")?.status).toBe("True");
    }
  });

  test("rolls out SSH keys without a reboot or drain", async () => {
    const before = await cluster.target("worker");
    const boots = bootIds();
    await cluster.kube.create(
      MachineConfig,
      machineConfig(
        "99-worker-ssh",
        {},
        { config: { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA test"] }] } } },
      ) as never,
    );
    await cluster.untilRolledOut("worker", before);
    expect(bootIds()).toEqual(boots);
    for (const worker of workers)
      expect(cluster.hostFile(worker, "/var/home/core/.ssh/authorized_keys.d/ignition")).toBe(
        "ssh-ed25519 AAAA test\n",
      );
  });

  test("restarts a service instead of rebooting where a policy says so, and reboots for kernel arguments", async () => {
    await cluster.kube.patch(
      MachineConfiguration,
      { name: "cluster" },
      {
        type: "merge",
        body: {
          spec: {
            nodeDisruptionPolicy: {
              files: [
                {
                  path: "/etc/chrony.conf",
                  actions: [{ type: "Restart", restart: { serviceName: "chronyd.service" } }],
                },
              ],
            },
          },
        },
      },
    );
    await cluster.until(
      MachineConfiguration,
      "cluster",
      ({ status }) =>
        (status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files ?? []).some(
          ({ path }) => path === "/etc/chrony.conf",
        ),
      "the policy is in force",
    );
    let before = await cluster.target("worker");
    let boots = bootIds();
    await cluster.kube.patch(
      MachineConfig,
      { name: "99-worker-chrony" },
      { type: "merge", body: { spec: machineConfig("x", { "/etc/chrony.conf": "server two\n" }).spec } },
    );
    await cluster.untilRolledOut("worker", before);
    expect(bootIds()).toEqual(boots);
    for (const worker of workers) expect(cluster.hostFile(worker, "/etc/chrony.conf")).toBe("server two\n");

    before = await cluster.target("worker");
    boots = bootIds();
    await cluster.kube.create(
      MachineConfig,
      machineConfig("99-worker-kargs", {}, { more: { kernelArguments: ["nosmt"] } }) as never,
    );
    await cluster.untilRolledOut("worker", before);
    for (const [index, worker] of workers.entries()) {
      const state = cluster.machineState(worker);
      expect(state.bootId).not.toBe(boots[index]);
      expect(state.deployments[state.booted]?.kernelArguments).toContain("nosmt");
    }
  });

  test("renders a paused pool without changing its machines, and continues after the pause [scenario-roll-out-4]", async () => {
    const before = await cluster.target("worker");
    await cluster.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { spec: { paused: true } } },
    );
    await cluster.kube.create(MachineConfig, machineConfig("99-worker-paused", { "/etc/paused.conf": "x" }) as never);
    const paused = await cluster.until(
      MachineConfigPool,
      "worker",
      ({ spec, status, metadata }) =>
        spec.configuration?.name !== before &&
        status?.observedGeneration === metadata.generation &&
        conditionOf(status?.conditions as never[], "Updated" as never) !== undefined &&
        (status?.conditions ?? []).find(({ type }) => type === "Updated")?.status === "False",
      "the paused pool has a new target",
    );
    expect((paused.status?.conditions ?? []).find(({ type }) => type === "Updating")?.message).toContain("paused");
    for (const worker of workers) {
      const node = await cluster.kube.get(kubernetes.Node, { name: worker });
      expect(node === undefined ? "" : annotation(node, annotations.desiredConfig)).toBe(before);
    }
    await cluster.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { spec: { paused: false } } },
    );
    await cluster.untilRolledOut("worker", before);
    for (const worker of workers) expect(cluster.hostFile(worker, "/etc/paused.conf")).toBe("x");
  });

  test("removes a deleted MachineConfig's file and restores the OS's own", async () => {
    const before = await cluster.target("worker");
    await cluster.kube.delete(MachineConfig, { name: "99-worker-chrony" });
    await cluster.kube.delete(MachineConfig, { name: "99-worker-paused" });
    await cluster.untilRolledOut("worker", before);
    for (const worker of workers) {
      expect(cluster.hostFile(worker, "/etc/chrony.conf")).toContain("pool 2.pool.ntp.org");
      expect(cluster.hostFile(worker, "/etc/paused.conf")).toBeUndefined();
    }
  });

  test("refuses to delete a rendered config in use, and collects unused ones by the pool's limit [scenario-roll-out-3]", async () => {
    const current = await cluster.target("worker");
    const refused = await cluster.kubectl(["delete", "machineconfig", current]);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(
      new RegExp(
        `${current} is in use by (pool worker \\(target\\)|(node|MachineConfigNode) worker-\\d \\((currentConfig|spec)\\)): .*bring them`,
      ),
    );
    // Where nobody is asked it goes, and comes back the same.
    const before = await cluster.kube.get(MachineConfig, { name: current });
    const policies = ["pool", "node", "machine", "build"].map((user) => `rendered-config-in-use-by-${user}-binding`);
    expect((await cluster.kubectl(["delete", "validatingadmissionpolicybinding", ...policies])).code).toBe(0);
    await expect
      .poll(async () => (await cluster.kubectl(["delete", "machineconfig", current])).code, { timeout: 300_000 })
      .toBe(0);
    const after = await cluster.until(
      MachineConfig,
      current,
      ({ metadata }) => metadata.uid !== before?.metadata.uid,
      "it is made again",
    );
    expect(after.spec).toEqual(before?.spec);
    expect(after.metadata.ownerReferences).toEqual(before?.metadata.ownerReferences);

    const stored = async () =>
      (await cluster.kube.list(MachineConfig)).items
        .map(({ metadata }) => metadata.name)
        .filter((name) => name.startsWith("rendered-worker-"));
    expect((await stored()).length).toBeGreaterThan(3);
    const annotate = (values: Readonly<Record<string, string | null>>) =>
      cluster.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { metadata: { annotations: values } } },
      );
    await annotate({ [annotations.retainedConfigs]: "0", [annotations.retentionQuietSeconds]: "0" });
    await expect.poll(stored, { timeout: 300_000 }).toEqual([current]);
    await annotate({ [annotations.retainedConfigs]: null, [annotations.retentionQuietSeconds]: null });
  });

  test("deletes a token that expired two days ago, and keeps a valid one", async () => {
    const token = (name: string, days: number) =>
      cluster.kube.create(ProvisioningToken, {
        apiVersion: ProvisioningToken.apiVersion,
        kind: ProvisioningToken.kind,
        metadata: { name },
        spec: { pool: "worker", tokenHash: "0".repeat(64), expiresAt: timestampOf(Date.now() + days * 86_400_000) },
      });
    await token("isgoodyet0", 1);
    await token("endedlong0", -2);
    const stored = async () => (await cluster.kube.list(ProvisioningToken)).items.map(({ metadata }) => metadata.name);
    await expect.poll(stored, { timeout: 300_000 }).toEqual(["isgoodyet0"]);
    expect((await cluster.mco(["token", "revoke", "isgoodyet0"])).code).toBe(0);
  });

  test("holds an update while a disruption budget forbids eviction, reports it, and continues afterwards [scenario-roll-out-2]", async () => {
    const image = pauseImage(version);
    await cluster.kubectl(["apply", "-f", "-"], {
      input: JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [
          {
            apiVersion: "apps/v1",
            kind: "Deployment",
            metadata: { name: "web", namespace: "default" },
            spec: {
              replicas: 2,
              selector: { matchLabels: { app: "web" } },
              template: {
                metadata: { labels: { app: "web" } },
                spec: {
                  containers: [{ name: "c", image }],
                  affinity: {
                    podAntiAffinity: {
                      requiredDuringSchedulingIgnoredDuringExecution: [
                        { labelSelector: { matchLabels: { app: "web" } }, topologyKey: "kubernetes.io/hostname" },
                      ],
                    },
                  },
                },
              },
            },
          },
          {
            apiVersion: "policy/v1",
            kind: "PodDisruptionBudget",
            metadata: { name: "web", namespace: "default" },
            spec: { minAvailable: 2, selector: { matchLabels: { app: "web" } } },
          },
        ],
      }),
    });
    expect(await cluster.kubectl(["rollout", "status", "deployment/web", "--timeout=400s"])).toMatchObject({ code: 0 });
    await cluster.until(
      kubernetes.PodDisruptionBudget,
      "web",
      ({ status }) => status?.currentHealthy === 2 && status.disruptionsAllowed === 0,
      "the budget counts two pods",
      { namespace: "default" },
    );

    const before = await cluster.target("worker");
    await cluster.kube.create(MachineConfig, machineConfig("99-worker-blocked", { "/etc/blocked.conf": "x" }) as never);
    const blocked = await Promise.any(
      workers.map((worker) =>
        cluster.until(
          MachineConfigNode,
          worker,
          ({ status }) =>
            conditionOf(status?.conditions, "Drained")?.status === "Unknown" &&
            (conditionOf(status?.conditions, "Drained")?.message.includes("default/web") ?? false),
          `${worker} says which budget blocks it`,
        ),
      ),
    );
    expect(blocked.status?.conditions?.find(({ type }) => type === "Drained")?.message).toMatch(/web-/);
    const pods = await cluster.kube.list(kubernetes.Pod, { namespace: "default", labelSelector: "app=web" });
    expect(pods.items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toHaveLength(2);

    await cluster.kube.patch(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace: "default" },
      { type: "merge", body: { spec: { minAvailable: 1 } } },
    );
    await cluster.untilRolledOut("worker", before);
    for (const worker of workers) expect(cluster.hostFile(worker, "/etc/blocked.conf")).toBe("x");
  });

  test("deletes protected pods under a force policy only after the deadline, and reports both [scenario-roll-out-1]", async () => {
    expect(await cluster.kubectl(["rollout", "status", "deployment/web", "--timeout=400s"])).toMatchObject({ code: 0 });
    await cluster.kube.patch(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace: "default" },
      { type: "merge", body: { spec: { minAvailable: 2 } } },
    );
    await cluster.until(
      kubernetes.PodDisruptionBudget,
      "web",
      ({ status, metadata }) =>
        status?.observedGeneration === metadata.generation &&
        status?.currentHealthy === 2 &&
        status.disruptionsAllowed === 0,
      "the budget forbids it again",
      { namespace: "default" },
    );
    const annotate = (values: Readonly<Record<string, string | null>>) =>
      cluster.kube.patch(
        MachineConfigPool,
        { name: "worker" },
        { type: "merge", body: { metadata: { annotations: values } } },
      );
    await annotate({ [annotations.drainDeadlineSeconds]: "3", [annotations.drainAfterDeadline]: "force: pdb" });
    const before = await cluster.target("worker");
    await cluster.kube.create(MachineConfig, machineConfig("99-worker-forced", { "/etc/forced.conf": "x" }) as never);
    await cluster.untilRolledOut("worker", before);
    const items = await untilSeen(
      "Events of the forecast and of the force",
      async () => (await cluster.kube.list(kubernetes.Event, { fieldSelector: "involvedObject.kind=Node" })).items,
      (events) => ["DrainForecast", "DrainForced"].every((wanted) => events.some(({ reason }) => reason === wanted)),
    );
    const told = (reason: string) =>
      items.filter((event) => event.reason === reason).map(({ message }) => message ?? "");
    expect(told("DrainForecast").join()).toMatch(
      /cannot be evicted now: pod default\/web-\S+ by PodDisruptionBudget default\/web \(.*it can never allow one: it wants 2 available of 2/,
    );
    const forced = told("DrainForced");
    expect(forced.length).toBeGreaterThan(0);
    for (const message of forced)
      expect(
        Number(/has drained for (\d+) s, and the policy of pool worker requires it$/.exec(message)?.[1]),
      ).toBeGreaterThanOrEqual(3);
    await annotate({ [annotations.drainDeadlineSeconds]: null, [annotations.drainAfterDeadline]: null });
    await cluster.kubectl(["delete", "deployment/web", "pdb/web", "-n", "default", "--wait=false"]);
  });

  test("reports drift by name and leaves it until the force file requests a repair", async () => {
    const boot = cluster.machineState("worker-0").bootId;
    cluster.writeHostFile("worker-0", "/etc/blocked.conf", "somebody was here");
    const drifted = await cluster.untilNode(
      "worker-0",
      (node) => annotation(node, annotations.state) === "Degraded",
      "drift is reported",
    );
    expect(annotation(drifted, annotations.reason)).toContain("/etc/blocked.conf");
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) => status?.degradedMachineCount === 1,
      "the pool counts it",
    );
    expect(cluster.hostFile("worker-0", "/etc/blocked.conf")).toBe("somebody was here");
    // Put right by hand, and drifted again: the same news is counted, not told again.
    cluster.writeHostFile("worker-0", "/etc/blocked.conf", "x");
    await cluster.untilNode("worker-0", (node) => annotation(node, annotations.state) === "Done", "the drift is over");
    cluster.writeHostFile("worker-0", "/etc/blocked.conf", "somebody was here");
    await cluster.untilNode(
      "worker-0",
      (node) => annotation(node, annotations.state) === "Degraded",
      "drift is reported again",
    );
    const counted = async () =>
      (
        await cluster.kube.list(kubernetes.Event, {
          fieldSelector: "involvedObject.name=worker-0,involvedObject.kind=Node",
        })
      ).items
        .filter(({ reason }) => reason === "ConfigDriftDetected")
        .map(({ count }) => count);
    await expect.poll(counted, { timeout: 300_000 }).toEqual([2]);

    cluster.writeHostFile("worker-0", "/run/machine-config-daemon-force", "");
    await cluster.untilNode(
      "worker-0",
      (node) => annotation(node, annotations.state) === "Done" && node.spec?.unschedulable !== true,
      "the machine is repaired",
    );
    expect(cluster.hostFile("worker-0", "/etc/blocked.conf")).toBe("x");
    expect(cluster.machineState("worker-0").bootId).not.toBe(boot);
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status }) => status?.degradedMachineCount === 0,
      "the pool is well again",
    );
  });
});
