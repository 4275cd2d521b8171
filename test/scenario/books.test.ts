import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import {
  ClusterOperator,
  MachineConfig,
  MachineConfigNode,
  MachineConfigPool,
  MachineConfiguration,
  MachineStateBook,
  MachineStateChapter,
  MachineStateJournal,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import type { Chapter } from "../../src/api/books/machine-state-chapter.ts";
import { type Condition, conditionOf } from "../../src/api/schema/object.ts";
import { version } from "../../src/cli/version.ts";
import { pauseImage } from "../../src/standin/cluster/host/pod-worker.ts";
import { healthTypes, keepingTypes } from "../../src/core/operator/health.ts";
import { appendLines, lineOf } from "../../src/core/books/journal.ts";
import { stateMetrics } from "../../src/operator/manifests.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations, journals, namespace, objects } = names;
const worker = "worker-0";
let cluster: TestCluster;

async function chaptersOf(book: string): Promise<readonly Chapter[]> {
  const { items } = await cluster.kube.list(MachineStateChapter, {
    labelSelector: `${names.bookLabels.book}=${book.replace("/", ".")}`,
  });
  return items.map(({ spec }) => spec).sort((a, b) => a.number - b.number);
}

/** The chapter of a machine's update to a target, once it is closed. */
function updateOf(node: string, target: string): Promise<Chapter> {
  return expect
    .poll(
      async () =>
        (await chaptersOf(`node/${node}`)).filter(
          ({ chapter, run, state }) => chapter === "Update" && run === target && state === "Closed",
        ),
      { timeout: 40_000, message: `the update of ${node} to ${target}` },
    )
    .toHaveLength(1)
    .then(
      async () =>
        (await chaptersOf(`node/${node}`)).find(
          ({ chapter, run }) => chapter === "Update" && run === target,
        ) as Chapter,
    );
}

function isWhole(chapter: Chapter): void {
  expect(chapter).toMatchObject({ outcome: "Succeeded", confidence: "Told", pool: "worker" });
  expect(chapter.sections.length).toBeGreaterThanOrEqual(6);
  for (const { path, startedAt, endedAt } of chapter.sections)
    expect(Date.parse(startedAt), path).toBeLessThanOrEqual(Date.parse(endedAt ?? ""));
}

const statePod = async () =>
  (await cluster.kube.list(kubernetes.Pod, { namespace, labelSelector: `k8s-app=${objects.state}` })).items.filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  );
const settings = (data: Record<string, string>) =>
  cluster.kube.apply(
    kubernetes.ConfigMap,
    { metadata: { name: objects.stateConfig, namespace }, data },
    { owner: "people" },
  );
const untilCondition = (type: string, is: (condition: Condition) => boolean) =>
  cluster.until(
    MachineConfiguration,
    "cluster",
    ({ status }) => {
      const condition = conditionOf(status?.conditions as Condition[] | undefined, type);
      return condition !== undefined && is(condition);
    },
    `${type} is as wanted`,
  );

describe.skipIf(!hasApiServer)("a cluster that keeps books", () => {
  /** Targets of the pool worker before and after the first roll-out. */
  let first = "";
  let second = "";

  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
    await settings({ "retention.pool.days-after-end": "0", "retention.node.chapters": "20" });
    await cluster.kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name: "infra" },
      spec: {
        machineConfigSelector: {
          matchExpressions: [{ key: names.labels.role, operator: "In", values: ["worker", "infra"] }],
        },
        nodeSelector: { matchLabels: { "node-role.kubernetes.io/infra": "" } },
      },
    });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("runs the state process as a pod, has a journal for each writer, and reports its health [scenario-books-2]", async () => {
    expect(await statePod()).toHaveLength(1);
    const { items } = await cluster.kube.list(MachineStateJournal);
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(
      [
        journals.bootstrap,
        journals.controller,
        "node-master-0",
        "node-worker-0",
        journals.operator,
        journals.osBuilder,
        journals.server,
      ].sort(),
    );
    for (const type of [
      "OperatorHealthy",
      "ControllerHealthy",
      "DaemonsHealthy",
      "ServerHealthy",
      "BuilderHealthy",
      "StateKeeping",
    ])
      await untilCondition(type, ({ status }) => status === "True");
    await untilCondition("BootstrapComplete", ({ status }) => status === "True");
  });

  test("was bootstrapped: the books tell it, and the control plane has what the controller renders [scenario-books-9]", async () => {
    // What the bootstrap left in the cluster's folder: the pools that its server served from.
    const bootstrapped = (pool: string) =>
      parse(
        readFileSync(join(cluster.directory, "bootstrap", "rendered", "machine-pools", `${pool}.yaml`), "utf8"),
      ) as MachineConfigPool;
    const nameOf = (pool: string) => bootstrapped(pool).status?.configuration?.name ?? "";
    for (const pool of ["master", "worker"]) {
      // The controller has rendered the same: otherwise the control plane would have rebooted into another one at once.
      const inCluster = await cluster.kube.get(MachineConfig, { name: nameOf(pool) });
      const file = join(cluster.directory, "bootstrap", "rendered", "machine-configs", `${nameOf(pool)}.yaml`);
      expect((parse(readFileSync(file, "utf8"), { version: "1.1" }) as MachineConfig).spec).toEqual(inCluster?.spec);
      expect(inCluster?.metadata.ownerReferences).toMatchObject([{ kind: "MachineConfigPool", name: pool }]);
    }

    const [bootstrap, ...more] = (await chaptersOf("cluster")).filter(({ chapter }) => chapter === "Bootstrap");
    expect(more).toEqual([]);
    expect(bootstrap).toMatchObject({ number: 1, state: "Closed", outcome: "Succeeded", confidence: "Told" });
    expect(bootstrap?.entries.map(({ writer, path, reason }) => `${writer.component} ${path} ${reason}`)).toEqual([
      "operator ManifestsRendered ManifestsRendered",
      "controller ControllerRendered/master PoolRendered",
      "controller ControllerRendered/worker PoolRendered",
      "server ServerUp ServerUp",
      "server Served/master Served",
      "state HandedOver HandedOver",
    ]);
    const ofMachine = async (name: string) =>
      (await chaptersOf("node/master-0")).find(({ chapter, state }) => chapter === name && state === "Closed");
    // The daemon's lines come to the books some seconds later than those of the controllers.
    for (const name of ["Bootstrap", "Firstboot", "Join", "Update"])
      await expect
        .poll(async () => (await ofMachine(name))?.outcome, { timeout: 40_000, message: name })
        .toBe("Succeeded");
    expect((await ofMachine("Bootstrap"))?.number).toBe(1);
    expect(
      (await ofMachine("Firstboot"))?.entries.filter(({ path }) => path === "Reboot").map(({ reason }) => reason),
    ).toEqual(["NotRequired"]);
    // Its first update is the one that this scenario's secrets made: it had the bootstrap's configuration until then.
    expect((await ofMachine("Update"))?.from?.config).toBe(nameOf("master"));
    const printed = async (book: string) => (await cluster.mco(["book", book, "--chapter", "1"])).stdout;
    expect(await printed("cluster")).toMatch(/#1 Bootstrap .*: Succeeded/);
    expect(await printed("cluster")).toContain(`master-0 was given ${nameOf("master")}`);
    expect(await printed("node/master-0")).toMatch(/#1 Bootstrap .*: Succeeded/);
    expect(await printed("node/master-0")).toContain(`the bootstrap gave the machine ${nameOf("master")}`);
    expect(cluster.record()).toMatchObject({ bootstrap: "done" });
    expect(await cluster.processes("server", "bootstrap")).toEqual([]);
    expect((JSON.parse((await cluster.mco(["host", "list", "--json"])).stdout) as { hosts: object[] }).hosts).toEqual([
      expect.objectContaining({ name: "master-0", installedBy: expect.any(String) as string }),
      expect.not.objectContaining({ installedBy: expect.any(String) as string }),
    ]);
  });

  test("completes a roll-out with a blocked drain, and detects drift, while its state process is killed [scenario-books-4]", async () => {
    const app = { app: "web" };
    const web = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "default" },
      spec: {
        replicas: 1,
        selector: { matchLabels: app },
        template: { metadata: { labels: app }, spec: { containers: [{ name: "c", image: pauseImage(version) }] } },
      },
    };
    const budget = {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web", namespace: "default" },
      spec: { minAvailable: 1, selector: { matchLabels: app } },
    };
    await cluster.kubectl(["apply", "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "List", items: [web, budget] }),
    });
    await cluster.until(
      kubernetes.PodDisruptionBudget,
      "web",
      ({ status }) => status?.currentHealthy === 1 && status.disruptionsAllowed === 0,
      "the budget counts one pod",
      { namespace: "default" },
    );
    first = await cluster.target("worker");
    await cluster.kube.create(MachineConfig, machineConfig("99-worker-books", { "/etc/books.conf": "one\n" }) as never);
    await cluster.until(
      MachineConfigNode,
      worker,
      ({ status }) => conditionOf(status?.conditions, "Drained")?.message.includes("default/web") ?? false,
      "the drain is blocked",
    );
    expect(await cluster.kill("SIGKILL", "state", "start")).toBe(1);
    await cluster.kube.patch(
      kubernetes.PodDisruptionBudget,
      { name: "web", namespace: "default" },
      { type: "merge", body: { spec: { minAvailable: 0 } } },
    );
    second = await cluster.untilRolledOut("worker", first);

    const ours = cluster.hostFile(worker, "/etc/books.conf") ?? "";
    cluster.writeHostFile(worker, "/etc/books.conf", "theirs\n");
    await cluster.untilNode(worker, (node) => annotation(node, annotations.state) === "Degraded", "degraded");
    cluster.writeHostFile(worker, "/etc/books.conf", ours);
    await cluster.untilNode(worker, (node) => annotation(node, annotations.state) === "Done", "well again");
  });

  test("shows update and drift as chapters in kubectl and mco book [scenario-books-5]", async () => {
    const chapter = await updateOf(worker, second);
    isWhole(chapter);
    expect(chapter).toMatchObject({ from: { config: first }, to: { config: second } });
    expect(chapter.sections.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        "Requested",
        "Prepared",
        "Executed/Cordoned",
        "Executed/Drained",
        "Executed/Files",
        "PostAction/Rebooted",
        "Resumed",
        "Complete/Uncordoned",
        "Updated",
      ]),
    );
    expect(chapter.entries.map(({ reason }) => reason)).toContain("PodsBlocked");
    const lines = chapter.entries.map(({ writer, boot, seq, sub }) => `${writer.instance} ${boot} ${seq} ${sub ?? 0}`);
    expect(lines).toEqual([...new Set(lines)]);
    await expect
      .poll(
        async () =>
          (await chaptersOf(`node/${worker}`)).filter(
            ({ chapter: kind, state }) => kind === "Drift" && state === "Closed",
          ),
        { timeout: 40_000 },
      )
      .toHaveLength(1);
    const drift = (await chaptersOf(`node/${worker}`)).find(({ chapter: kind }) => kind === "Drift");
    expect(drift?.entries.map(({ reason }) => reason)).toEqual(["ConfigDrift", "DriftGone"]);
    const { stdout } = await cluster.kubectl(["get", "machinestatechapters", "-l", `book=node.${worker}`]);
    expect(stdout).toMatch(/^NAME +BOOK +\S+ +CHAPTER +STARTED +DURATION +OUTCOME +REASON\n/);
    expect(stdout).toMatch(/node\/worker-0 +\d+ +Update +\S+ +\S+ +Succeeded +Succeeded/);
    const read = await cluster.mco(["book", `node/${worker}`]);
    for (const words of ["Executed/Drained", "default/web", "Drift", "/etc/books.conf"])
      expect(read.stdout).toContain(words);
    // That of the pool is told by the controllers, and the installation by the operator.
    const has = async (book: string, kind: string, run: string) =>
      (await chaptersOf(book)).some((one) => one.chapter === kind && one.run === run && one.outcome === "Succeeded");
    await expect.poll(() => has("pool/worker", "Rollout", second), { timeout: 300_000 }).toBe(true);
    await expect.poll(() => has("cluster", "Install", version), { timeout: 300_000 }).toBe(true);
    await cluster.until(MachineStateBook, "pool.infra", () => true, "the other pool has a book");
    await cluster.kube.delete(MachineConfigPool, { name: "infra" });
  });

  test("refuses every change of a closed chapter, and every writer of books but the state process [scenario-books-3]", async () => {
    const closed = (await cluster.kube.list(MachineStateChapter, { labelSelector: `${names.bookLabels.state}=Closed` }))
      .items[0];
    const name = closed?.metadata.name ?? "";
    await expect(
      cluster.kube.patch(
        MachineStateChapter,
        { name },
        { type: "merge", body: { spec: { message: "it was otherwise" } } },
      ),
    ).rejects.toThrow("a closed chapter is never changed");
    const may = async (account: string, verb: string, kind: string) =>
      (
        await cluster.kubectl(["auth", "can-i", verb, kind, `--as=system:serviceaccount:${namespace}:${account}`])
      ).stdout.trim();
    for (const kind of ["machinestatebooks", "machinestatechapters"]) {
      expect(await may(objects.state, "patch", kind)).toBe("yes");
      for (const account of [objects.operator, objects.controller, objects.daemon])
        expect(await may(account, "patch", kind), account).toBe("no");
    }
  });

  test("rolls out without the state process; switched on again, the process writes the missing chapters and applies retention [scenario-books-1]", async () => {
    await settings({ mode: "off" });
    await expect.poll(statePod, { timeout: 300_000 }).toEqual([]);
    for (const type of [...healthTypes, ...keepingTypes])
      await untilCondition(type, ({ status, reason }) => status === "Unknown" && reason === "Off");
    const before = await cluster.target("worker");
    await cluster.kube.create(
      MachineConfig,
      machineConfig(
        "99-worker-books-off",
        {},
        { config: { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA books"] }] } } },
      ) as never,
    );
    const target = await cluster.untilRolledOut("worker", before);
    const operator = await cluster.kube.get(ClusterOperator, { name: objects.clusterOperator });
    expect(["Available", "Degraded"].map((type) => conditionOf(operator?.status?.conditions, type)?.status)).toEqual([
      "True",
      "False",
    ]);
    // What journals hold is read without it.
    await expect
      .poll(async () => (await cluster.mco(["book", `node/${worker}`, "--json"])).stdout, { timeout: 300_000 })
      .toContain(target);
    expect((await chaptersOf(`node/${worker}`)).some(({ run }) => run === target)).toBe(false);
    // A node without a machine: its daemon never comes up, and nobody can be blamed for that but its kubelet.
    await cluster.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "ghost", labels: { [names.labels.os]: "linux" } },
    });
    await cluster.until(
      kubernetes.DaemonSet,
      objects.daemon,
      ({ status }) => status?.desiredNumberScheduled === 3 && status.numberReady === 2,
      "a daemon is wanted there",
      { namespace },
    );
    await settings({ mode: "on", "retention.node.chapters": "1", "retention.pool.days-after-end": "0" });
    isWhole(await updateOf(worker, target));
    await untilCondition("StateKeeping", ({ reason }) => reason === "AsExpected");
    // The process reads the journal of the bootstrap at each start; its chapter was there before.
    await untilCondition("BootstrapComplete", ({ status }) => status === "True");
    expect((await chaptersOf("cluster")).filter(({ chapter }) => chapter === "Bootstrap")).toHaveLength(1);
    await untilCondition(
      "DaemonsHealthy",
      ({ status, message }) =>
        status === "True" && message.startsWith("1 of 3 copies of machine-config-daemon are not available"),
    );
    await cluster.kube.delete(kubernetes.Node, { name: "ghost" });
    await expect
      .poll(
        async () =>
          (await chaptersOf(`node/${worker}`)).filter(
            ({ state, outcome }) => state === "Closed" && outcome === "Succeeded",
          ).length,
        { timeout: 300_000 },
      )
      .toBeLessThanOrEqual(2);
    const index = await cluster.until(
      MachineStateBook,
      "node.worker-0",
      ({ spec }) => spec.prunedThrough > 0,
      "older chapters were thrown away",
    );
    expect(index.spec.counters["chapters"]).toBeGreaterThan(2);
  });

  test("reports a served machine that has not joined on its pool, also with a foreign config server [scenario-books-6]", async () => {
    const at = Date.now() - 40 * 60_000;
    const line = lineOf(
      {
        book: "cluster",
        chapter: "Server",
        path: "Served/worker",
        mark: "note",
        level: "boundary",
        reason: "Served",
        message: "served",
        data: { requester: "10.99.0.7", config: second },
      },
      { writer: { component: "server", instance: "a-writer-of-tests" }, boot: "boot", number: { seq: 1 }, at, mono: 1 },
    );
    const journal = await cluster.kube.get(MachineStateJournal, { name: journals.server });
    await cluster.kube.patch(
      MachineStateJournal,
      { name: journals.server },
      { type: "json", operations: appendLines(journal?.spec, [line])?.operations ?? [] },
    );
    await expect
      .poll(
        async () =>
          (await cluster.kube.list(kubernetes.Event)).items
            .filter(({ reason, involvedObject }) => reason === "JoinOverdue" && involvedObject.name === "worker")
            .map(({ message }) => message),
        { timeout: 300_000 },
      )
      .toEqual([expect.stringContaining("10.99.0.7")]);
    expect((await cluster.mco(["explain", "pool/worker"])).stdout).toContain("the machine 10.99.0.7 was given");
  });

  test("serves metrics of the state process over TLS to authorized clients only [scenario-books-7]", async () => {
    await cluster.kubectl(["create", "clusterrole", "reads-figures", "--verb=get", "--non-resource-url=/metrics"]);
    await cluster.kubectl(["create", "serviceaccount", "reader", "-n", "default"]);
    await cluster.kubectl([
      "create",
      "clusterrolebinding",
      "reads-figures",
      "--clusterrole=reads-figures",
      "--serviceaccount=default:reader",
    ]);
    const tokenOf = async (account: string) =>
      (await cluster.kubectl(["create", "token", account, "-n", "default"])).stdout.trim();
    const [pod] = await statePod();
    const secret = await cluster.kube.get(kubernetes.Secret, { name: stateMetrics.secret, namespace });
    const scrape = (token: string) =>
      get(`https://${pod?.status?.hostIP}:${stateMetrics.port}/metrics`, atob(secret?.data?.["ca.crt"] ?? ""), token);
    const { status, text } = await scrape(await tokenOf("reader"));
    expect(status, text).toBe(200);
    expect(text).toMatch(/mco_health\{component="StateKeeping"\} 1/);
    expect(text).toContain('mco_join_overdue{pool="worker"} 1');
    expect(text).toMatch(/mco_library_chapters\{kind="node",state="Closed"\} \d+/);
    expect((await scrape(await tokenOf("default"))).status).toBe(403);
  });

  test("removes a deleted pool's book after its retention, and records that in the cluster's book [scenario-books-8]", async () => {
    await expect
      .poll(async () => (await cluster.kube.list(MachineStateBook)).items.map(({ metadata }) => metadata.name), {
        timeout: 40_000,
      })
      .not.toContain("pool.infra");
    expect(await chaptersOf("pool/infra")).toEqual([]);
    expect(
      (await chaptersOf("cluster"))
        .filter(({ chapter }) => chapter === "BookIndex")
        .flatMap(({ sections }) => sections.map(({ path }) => path)),
    ).toContain("Gone/pool/infra");
  });
});

function get(url: string, ca: string, token: string): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const call = request(url, { ca, agent: false, headers: { authorization: `Bearer ${token}` } }, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    call.on("error", reject);
    call.end();
  });
}
