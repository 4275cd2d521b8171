import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import type { Chapter } from "../api/books/machine-state-chapter.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { conditionOf } from "../api/schema/object.ts";
import { type JournalEntry, bookSections } from "../api/books/report-table.ts";
import { healthTypes, keepingTypes } from "../core/operator/health.ts";
import { machineConfigurationStatus } from "../core/operator/machine-configuration-status.ts";
import { stateChildren } from "../core/operator/state-settings.ts";
import type { KeeperChild } from "./child.ts";
import { healthChapters } from "./health-child.ts";
import { bootstrapReports } from "../../test/support/bootstrap-reports.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { StateHarness, patientLease, updateLines } from "../../test/support/state-harness.ts";

const chapterWrites = (harness: StateHarness, book: string) =>
  harness.writes.filter(({ kind, name }) => kind === "machinestatechapters" && name.startsWith(`${book}.`));
const inShort = ({ number, chapter, run, state, outcome }: Chapter) =>
  `${number} ${chapter} ${run} ${state} ${outcome ?? ""}`.trim();
const drift = (node: string): readonly [JournalEntry, JournalEntry] => [
  {
    book: `node/${node}`,
    chapter: "Drift",
    path: "Detected",
    mark: "begin",
    level: "boundary",
    reason: "ConfigDrift",
    message: "/etc/a differs",
  },
  {
    book: `node/${node}`,
    chapter: "Drift",
    path: "Ended",
    mark: "end",
    level: "boundary",
    reason: "DriftGone",
    message: "as it was",
  },
];

/** Tells a whole update, line by line. */
async function update(harness: StateHarness, node: string, target: string, pauseMs = 5000): Promise<void> {
  const daemon = harness.daemon(node);
  daemon.boot = `boot of ${target}`;
  const { begun, rest } = updateLines(node, target);
  for (const line of [...begun, ...rest]) {
    await harness.act(() => daemon.report(line));
    await harness.pass(pauseMs);
  }
}

describe("the books of nodes", () => {
  test("hold an update as one chapter, written once when it opens and once when it closes [state-process-8]", async () => {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    harness.start();
    await harness.pass(30_000);
    const { begun, rest } = updateLines("worker-0", "rendered-worker-2");
    await harness.act(() => daemon.report(...begun));
    await harness.pass(5000);
    expect(await harness.chapters("node/worker-0")).toMatchObject([
      { number: 1, chapter: "Update", run: "rendered-worker-2", state: "Open", pool: "worker", confidence: "Told" },
    ]);
    for (const line of rest) {
      await harness.act(() => daemon.report(line));
      await harness.pass(20_000);
    }
    await harness.pass(60_000);
    const [chapter, ...others] = await harness.chapters("node/worker-0");
    expect(others).toEqual([]);
    expect(chapter).toMatchObject({
      state: "Closed",
      outcome: "Succeeded",
      from: { config: "rendered-worker-1" },
      to: { config: "rendered-worker-2" },
    });
    expect(chapter?.sections.length).toBeGreaterThanOrEqual(6);
    for (const { startedAt, endedAt } of chapter?.sections ?? [])
      expect(Date.parse(startedAt)).toBeLessThanOrEqual(Date.parse(endedAt ?? ""));
    expect(chapterWrites(harness, "node.worker-0")).toHaveLength(2);
    expect((await harness.index("node.worker-0"))?.subject).toMatchObject({ kind: "Node", name: "worker-0" });
  });

  test.for([1, 2, 3, 4])(
    "hold every line once, and numbers without a hole, though the process is killed and stopped again and again (%i) [state-process-9]",
    async (seed) => {
      const chance = new Kernel(seed);
      const harness = await StateHarness.make();
      await harness.act(() => harness.node("worker-0"));
      let life = 0;
      let running = harness.start(`state-${(life += 1)}`);
      const shake = async () => {
        if (chance.chance(0.25)) {
          if (chance.chance(0.5)) running.kill();
          else await running.stop();
          if (chance.chance(0.5)) await harness.pass(chance.between(100, 60_000));
          running = harness.start(`state-${(life += 1)}`);
        }
        // Long enough to store the reports; an unreleased lease takes a while to expire.
        await harness.pass(chance.chance(0.5) ? chance.between(0, 400) : chance.between(10_000, 60_000));
      };
      const daemon = harness.daemon("worker-0");
      const targets = ["a", "b", "c"];
      const all: JournalEntry[] = targets.flatMap((target) => {
        const { begun, rest } = updateLines("worker-0", target);
        return [...begun, ...rest, ...(target === "b" ? drift("worker-0") : [])];
      });
      for (const line of all) {
        await harness.act(() => daemon.report(line));
        await shake();
      }
      await harness.pass(120_000);
      const chapters = (await harness.chapters("node/worker-0")).filter(({ chapter }) => chapter !== "Join");
      expect((await harness.chapters("node/worker-0")).map(({ number }) => number)).toEqual(
        (await harness.chapters("node/worker-0")).map((_, index) => index + 1),
      );
      expect(chapters.map(({ chapter, run, state, outcome }) => `${chapter} ${run} ${state} ${outcome}`)).toEqual([
        "Update a Closed Succeeded",
        "Update b Closed Succeeded",
        "Drift  Closed Succeeded",
        "Update c Closed Succeeded",
      ]);
      const kept = chapters.flatMap(({ entries }) => entries.map(({ seq }) => seq)).sort((a, b) => a - b);
      expect(kept).toEqual(all.map((_, index) => index + 1));
      const running_ = await harness.index("node.worker-0");
      expect(running_?.counters["Update/Succeeded"] ?? 0).toBeLessThanOrEqual(3);
    },
  );

  test("take from a node's journal only lines about that node, and count the others [state-process-10]", async () => {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    await harness.act(() => harness.node("worker-1"));
    const { controller } = harness.start();
    await harness.pass(30_000);
    await harness.act(() =>
      daemon.report(
        ...drift("worker-1"),
        {
          book: "cluster",
          chapter: "Install",
          path: "Begun",
          mark: "begin",
          level: "boundary",
          reason: "InstallBegan",
          message: "not so",
        },
        ...drift("worker-0"),
      ),
    );
    await harness.pass(60_000);
    expect((await harness.chapters("node/worker-0")).map(inShort)).toEqual(["1 Drift  Closed Succeeded"]);
    expect(await harness.chapters("node/worker-1")).toEqual([]);
    expect((await harness.chapters("cluster")).filter(({ chapter }) => chapter === "Install")).toEqual([]);
    expect(controller.metrics()).toContain('mco_journal_foreign_lines_total{component="daemon"} 3');
  });

  test("contain an unreported update as far as it is observed [state-process-7]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.node("worker-0"));
    harness.start();
    await harness.pass(30_000);
    const annotate = (changes: Record<string, string>) =>
      harness.kube.patch(
        kubernetes.Node,
        { name: "worker-0" },
        { type: "merge", body: { metadata: { annotations: changes } } },
      );
    await harness.act(() =>
      annotate({
        "machineconfiguration.openshift.io/desiredConfig": "rendered-worker-2",
        "machineconfiguration.openshift.io/state": "Working",
      }),
    );
    await harness.pass(60_000);
    await harness.act(() =>
      annotate({
        "machineconfiguration.openshift.io/currentConfig": "rendered-worker-2",
        "machineconfiguration.openshift.io/state": "Done",
      }),
    );
    await harness.pass(60_000);
    expect(await harness.chapters("node/worker-0")).toMatchObject([
      { chapter: "Update", run: "rendered-worker-2", state: "Closed", outcome: "Succeeded", confidence: "Observed" },
    ]);
  });
});

describe("missed lines", () => {
  /** Lines of which a journal holds only the newest, as after its ring overflowed. */
  async function overflown(harness: StateHarness, lines: number, held: number): Promise<void> {
    const daemon = harness.daemon("worker-0");
    const all = daemon.lines(Array.from({ length: lines }, (_, index) => drift("worker-0")[index % 2] as JournalEntry));
    await harness.act(() => daemon.append(all));
    await harness.act(() =>
      harness.kube.patch(
        MachineStateJournal,
        { name: "node-worker-0" },
        { type: "merge", body: { spec: { lines: all.slice(-held) } } },
      ),
    );
  }

  test("while the process was down are a gap with a count, in the book, in the cluster's and in StateKeeping [state-process-15]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.node("worker-0"));
    await overflown(harness, 30, 4);
    harness.start("state-0", patientLease);
    await harness.pass(60_000);
    expect((await harness.chapters("node/worker-0"))[0]?.missed).toBe(26);
    expect((await harness.chapters("cluster")).find(({ chapter }) => chapter === "BookIndex")).toMatchObject({
      state: "Closed",
      reason: "Gap",
      message: "26 lines of the journal node-worker-0 left it before they were read",
    });
    expect(await harness.condition("StateKeeping")).toMatchObject({ status: "False", reason: "Gap" });
    await harness.pass(3_700_000);
    expect(await harness.condition("StateKeeping")).toMatchObject({ status: "True", reason: "AsExpected" });
  });

  test("do not occur while the process runs, regardless of its restarts [state-process-16]", async () => {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    const first = harness.start("state-1");
    await harness.pass(30_000);
    for (let turn = 0; turn < 3; turn += 1) {
      await harness.act(() => daemon.report(...drift("worker-0")));
      await harness.pass(20_000);
    }
    await first.stop();
    // The oldest lines leave; they are in books.
    await harness.act(() =>
      harness.kube.patch(
        MachineStateJournal,
        { name: "node-worker-0" },
        { type: "json", operations: [0, 1, 2, 3].map(() => ({ op: "remove" as const, path: "/spec/lines/0" })) },
      ),
    );
    harness.start("state-2");
    await harness.pass(60_000);
    expect((await harness.chapters("node/worker-0")).map(({ missed }) => missed)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect((await harness.chapters("cluster")).filter(({ chapter }) => chapter === "BookIndex")).toEqual([]);
    expect(await harness.condition("StateKeeping")).toMatchObject({ status: "True" });
  });
});

test("of an open chapter, read by a killed process and then dropped from the journal, are a gap", async () => {
  const harness = await StateHarness.make();
  const daemon = await harness.act(() => harness.node("worker-0"));
  const first = harness.start("state-1");
  await harness.pass(30_000);
  const { begun, rest } = updateLines("worker-0", "rendered-worker-2");
  await harness.act(() => daemon.report(...begun));
  await harness.pass(5000);
  await harness.act(() => daemon.report(...rest.slice(0, 5)));
  await harness.pass(5000);
  first.kill();
  await harness.act(() =>
    harness.kube.patch(
      MachineStateJournal,
      { name: "node-worker-0" },
      { type: "json", operations: [1, 2, 3, 4, 5, 6].map(() => ({ op: "remove" as const, path: "/spec/lines/0" })) },
    ),
  );
  harness.start("state-2");
  await harness.pass(60_000);
  await harness.act(() => daemon.report(...rest.slice(5)));
  await harness.pass(60_000);
  expect(await harness.chapters("node/worker-0")).toMatchObject([{ state: "Closed", outcome: "Succeeded", missed: 3 }]);
  expect((await harness.chapters("cluster")).filter(({ reason }) => reason === "Gap")).toHaveLength(1);
});

describe("a child", () => {
  /** The child, but that it breaks whenever it has run for a while. */
  const brittle = (own: KeeperChild, afterMs: number, harness: StateHarness): KeeperChild => ({
    name: own.name,
    metrics: () => own.metrics?.() ?? { kept: [] },
    async run(context, signal) {
      const broken = new AbortController();
      const breaking = harness.kernel.clock.sleep(afterMs, signal).then(() => {
        broken.abort();
        throw new TypeError("a planted bug");
      });
      await Promise.race([own.run(context, AbortSignal.any([signal, broken.signal])), breaking]);
    },
  });

  test.for(stateChildren)(
    "%s that fails repeatedly stops no other, and StateKeeping names it [state-process-1]",
    async (broken) => {
      const harness = await StateHarness.make();
      await harness.act(() => harness.well());
      await harness.act(() => harness.node("worker-0"));
      harness.plant = { [broken]: (own: () => KeeperChild) => brittle(own(), 0, harness) };
      const { controller } = harness.start("state-0", patientLease);
      await harness.pass(120_000);
      expect(
        Object.entries(controller.children).flatMap(([name, { is }]) => (is === "running" ? [] : [`${name} ${is}`])),
      ).toEqual([`${broken} down`]);
      expect(await harness.condition("StateKeeping")).toMatchObject({
        status: "False",
        reason: `Child${broken.charAt(0).toUpperCase()}${broken.slice(1)}Down`,
        message: expect.stringContaining("a planted bug") as string,
      });

      const report = async () => {
        await harness.act(() => harness.daemon("worker-0").append([]));
        const daemon = harness.daemon("worker-0");
        daemon.boot = `boot at ${harness.kernel.now}`;
        await harness.act(() => daemon.report(...drift("worker-0")));
        const controllers = harness.component("controller");
        controllers.boot = daemon.boot;
        await harness.act(() =>
          controllers.report({
            book: "pool/worker",
            chapter: "Render",
            path: "Rendered",
            mark: "end",
            level: "boundary",
            reason: "RenderedConfigGenerated",
            message: "rendered-worker-9",
          }),
        );
        const builder = harness.component("os-builder");
        builder.boot = daemon.boot;
        await harness.act(() =>
          builder.report({
            book: "build/image-1",
            chapter: "Planned",
            path: "Planned",
            mark: "end",
            level: "boundary",
            reason: "BuildPlanned",
            message: "by appending",
          }),
        );
        await harness.pass(30_000);
      };
      await report();
      const keeps = { nodes: "node/worker-0", pools: "pool/worker", builds: "build/image-1" } as const;
      for (const name of ["nodes", "pools", "builds"] as const)
        expect(await harness.chapters(keeps[name]), name).toHaveLength(name === broken ? 0 : 1);
      if (broken !== "health") expect(await harness.condition("DaemonsHealthy")).toMatchObject({ status: "True" });

      // After the repair it continues, and reports the lines that it missed.
      harness.plant = {};
      await harness.pass(400_000);
      expect(controller.children[broken].is).toBe("running");
      for (const name of ["nodes", "pools", "builds"] as const)
        expect(await harness.chapters(keeps[name]), name).toHaveLength(1);
      expect(await harness.condition("StateKeeping")).toMatchObject({
        status: "False",
        reason: "Gap",
        message: expect.stringContaining(`${broken}: down from`) as string,
      });
      await harness.pass(3_700_000);
      expect(await harness.condition("StateKeeping")).toMatchObject({ status: "True" });
    },
  );

  test("is switched separately, while the process runs [state-process-2]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    const daemon = await harness.act(() => harness.node("worker-0"));
    const { controller } = harness.start();
    await harness.pass(60_000);
    await harness.act(() => harness.settings({ "children.nodes": "off", "children.health": "off" }));
    await harness.pass(5000);
    expect(Object.entries(controller.children).map(([name, { is }]) => `${name} ${is}`)).toEqual([
      "nodes off",
      "pools running",
      "builds running",
      "health off",
    ]);
    expect(await harness.condition("StateKeeping")).toMatchObject({
      status: "False",
      reason: "Off",
      message: "switched off: nodes, health",
    });
    expect(await harness.condition("Healthy")).toMatchObject({
      status: "False",
      reason: "Off",
      message: "StateKeeping: switched off: nodes, health",
    });
    for (const type of healthTypes)
      expect(await harness.condition(type)).toMatchObject({ status: "Unknown", reason: "Off" });
    await harness.act(() => daemon.report(...drift("worker-0")));
    await harness.pass(60_000);
    expect(await harness.chapters("node/worker-0")).toEqual([]);
    await harness.act(() => harness.settings({}));
    await harness.pass(60_000);
    expect((await harness.chapters("node/worker-0")).map(inShort)).toEqual(["1 Drift  Closed Succeeded"]);
    expect(await harness.condition("OperatorHealthy")).toMatchObject({ status: "True" });
    expect(await harness.condition("StateKeeping")).toMatchObject({ status: "True" });
    expect(await harness.condition("Healthy")).toMatchObject({ status: "True", reason: "AsExpected", message: "" });
  });
});

describe("the switch", () => {
  test("off during an update loses no journal lines: switched on again, the chapter is complete [state-process-3]", async () => {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    const { controller } = harness.start();
    await harness.pass(30_000);
    const { begun, rest } = updateLines("worker-0", "rendered-worker-2");
    await harness.act(() => daemon.report(...begun));
    await harness.pass(30_000);
    await harness.act(() => harness.settings({ mode: "off" }));
    await harness.pass(10_000);
    expect(stateChildren.map((name) => controller.children[name].is)).toEqual(["off", "off", "off", "off"]);
    for (const type of [...healthTypes, ...keepingTypes])
      expect(await harness.condition(type), type).toMatchObject({ status: "Unknown", reason: "Off" });
    const writes = harness.writes.length;
    for (const line of rest) {
      await harness.act(() => daemon.report(line));
      await harness.pass(60_000);
    }
    expect(harness.writes).toHaveLength(writes);
    await harness.act(() => harness.settings({ mode: "on" }));
    await harness.pass(60_000);
    const [chapter] = await harness.chapters("node/worker-0");
    expect(chapter).toMatchObject({ state: "Closed", outcome: "Succeeded" });
    expect(chapter?.missed).toBeUndefined();
    expect(chapter?.entries.map(({ seq }) => seq)).toEqual([...begun, ...rest].map((_, index) => index + 1));
  });

  test("on an orderly stop sets Off in each of its own conditions; a kill sets nothing [state-process-4]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    const first = harness.start("state-1");
    await harness.pass(60_000);
    expect(await harness.condition("OperatorHealthy")).toMatchObject({ status: "True" });
    first.kill();
    await harness.pass(60_000);
    expect(await harness.condition("OperatorHealthy")).toMatchObject({ status: "True" });
    // The operator writes its own conditions beside them.
    await harness.act(async () => {
      const settings = await harness.kube.get(MachineConfiguration, { name: "cluster" });
      if (settings !== undefined)
        await harness.kube.patch(
          MachineConfiguration,
          { name: "cluster" },
          { type: "merge", body: { status: machineConfigurationStatus(settings, harness.kernel.clock.now()) } },
          { subresource: "status", owner: "mco-operator" },
        );
    });
    const second = harness.start("state-2");
    await harness.pass(60_000);
    await second.stop();
    for (const type of [...healthTypes, ...keepingTypes, "Healthy"])
      expect(await harness.condition(type), type).toMatchObject({ status: "Unknown", reason: "Off" });
    expect(await harness.condition("BootImageUpdateDegraded")).toMatchObject({ status: "False", reason: "NA" });
  });
});

describe("the bootstrap", () => {
  const bootstrap = (harness: StateHarness) => harness.component("bootstrap");
  const { operator, controller, server, handOver } = bootstrapReports();
  const lines = [...operator, ...controller, ...server, ...handOver];

  test("is in the book of the cluster once, however often the process starts [state-process-5]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.journal("bootstrap"));
    const writer = bootstrap(harness);
    // Long before the process ran for the first time.
    await harness.act(() => writer.append(writer.lines(lines, 50_000)));
    for (const identity of ["state-1", "state-2", "state-3"]) {
      const running = harness.start(identity);
      await harness.pass(60_000);
      expect(await harness.condition("BootstrapComplete")).toMatchObject({ status: "True", reason: "AsExpected" });
      await running.stop();
    }
    const chapters = (await harness.chapters("cluster")).filter(({ chapter }) => chapter === "Bootstrap");
    expect(chapters).toMatchObject([{ state: "Closed", outcome: "Succeeded" }]);
    expect(chapters[0]?.sections.map(({ path }) => path)).toEqual([
      "ManifestsRendered",
      "ControllerRendered/master",
      "ControllerRendered/worker",
      "ServerUp",
      "Served/master",
      "HandedOver",
    ]);
  });

  test.for([
    {
      title: "missing",
      prepare: () => Promise.resolve(),
      says: { status: "False", reason: "BootstrapJournalMissing" },
    },
    {
      title: "empty",
      prepare: (harness: StateHarness) => harness.journal("bootstrap"),
      says: { status: "False", reason: "BootstrapJournalMissing" },
    },
    {
      title: "made of something else",
      prepare: async (harness: StateHarness) => {
        await harness.journal("bootstrap");
        const strange = {
          ...bootstrap(harness).lines(lines.slice(0, 1))[0],
          book: "shelf/x",
          chapter: "Nonsense",
          path: "/",
        };
        await harness.kube.patch(
          MachineStateJournal,
          { name: "bootstrap" },
          { type: "merge", body: { spec: { lines: [strange] } } },
        );
      },
      says: {
        status: "False",
        reason: "BootstrapJournalMissing",
        message: expect.stringContaining("1 of its 1 lines are of no kind that there is") as string,
      },
    },
    {
      title: "without an end",
      prepare: async (harness: StateHarness) => {
        await harness.journal("bootstrap");
        await bootstrap(harness).report(...lines.slice(0, 2));
      },
      says: { status: "False", reason: "InProgress" },
    },
  ])(
    "is reported as unknown when its journal is $title, and everything else works [state-process-6]",
    async ({ prepare, says }) => {
      const harness = await StateHarness.make();
      await harness.act(async () => prepare(harness) as Promise<unknown>);
      const daemon = await harness.act(() => harness.node("worker-0"));
      const { controller } = harness.start();
      await harness.pass(60_000);
      expect(await harness.condition("BootstrapComplete")).toMatchObject(says);
      expect(stateChildren.map((name) => controller.children[name].is)).toEqual([
        "running",
        "running",
        "running",
        "running",
      ]);
      await harness.act(() => daemon.report(...drift("worker-0")));
      await harness.pass(60_000);
      expect(await harness.chapters("node/worker-0")).toHaveLength(1);
    },
  );
});

describe("the load of writes", () => {
  test("of an idle cluster of 50 machines is less than one object a minute, and zero without changes [state-process-18]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    for (let index = 0; index < 50; index += 1) await harness.act(() => harness.node(`worker-${index}`));
    harness.start("state-0", patientLease);
    for (const index of [0, 1, 2]) await update(harness, `worker-${index}`, "rendered-worker-2", 100);
    await harness.pass(1_200_000);
    const from = harness.writes.length;
    await harness.pass(3_600_000);
    expect(harness.writes.slice(from).map(({ kind, name }) => `${kind}/${name}`)).toEqual([]);
  });

  test("of an index is one write at once when the book is new, and then one in ten minutes at most [state-process-19]", async () => {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    harness.start("state-0", patientLease);
    await harness.pass(30_000);
    for (let turn = 0; turn < 40; turn += 1) {
      await harness.act(() => daemon.report(...drift("worker-0")));
      await harness.pass(60_000);
    }
    const indexes = harness.writes
      .filter(({ kind, name }) => kind === "machinestatebooks" && name === "node.worker-0")
      .map(({ at }) => at);
    expect((await harness.index("node.worker-0"))?.lastNumber).toBeGreaterThan(30);
    // The first makes the book, which has to be there before its chapters.
    expect(indexes.length).toBeGreaterThan(3);
    for (const [place, at] of indexes.entries())
      if (place > 1) expect(at - (indexes[place - 1] ?? 0)).toBeGreaterThanOrEqual(600_000);
    await harness.pass(660_000);
    // Removals are written with the index that records them.
    expect(
      harness.writes.filter(({ method, kind }) => method === "DELETE" && kind === "machinestatechapters"),
    ).toHaveLength(40 - 5);
    expect((await harness.chapters("node/worker-0")).map(({ number }) => number)).toEqual([36, 37, 38, 39, 40]);
    expect((await harness.index("node.worker-0"))?.prunedThrough).toBe(35);
  });

  test("never decreases the counters of a book, despite kills and pruning [state-process-17]", async () => {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    let running = harness.start("state-0");
    let before = 0;
    for (let turn = 1; turn <= 12; turn += 1) {
      await harness.act(() => daemon.report(...drift("worker-0")));
      await harness.pass(40_000);
      if (turn % 3 === 0) {
        running.kill();
        running = harness.start(`state-${turn}`);
        await harness.pass(40_000);
      }
      const counted = (await harness.index("node.worker-0"))?.counters["Drift/Succeeded"] ?? 0;
      expect(counted).toBeGreaterThanOrEqual(before);
      before = counted;
    }
    await harness.pass(660_000);
    expect((await harness.index("node.worker-0"))?.counters).toMatchObject({ chapters: 12, "Drift/Succeeded": 12 });
  });
});

describe("the end of a book", () => {
  test("comes days after its subject's end, with a line in the cluster's book; a new subject of that name adopts it", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.settings({ "retention.pool.days-after-end": "1", "children.health": "off" }));
    const controllers = harness.component("controller");
    harness.start("state-0", patientLease);
    await harness.pass(30_000);
    const rendered: JournalEntry = {
      book: "pool/infra",
      chapter: "Render",
      path: "Rendered",
      mark: "end",
      level: "boundary",
      reason: "RenderedConfigGenerated",
      message: "rendered-infra-1",
    };
    await harness.act(() => harness.pool("infra"));
    await harness.act(() => controllers.report(rendered));
    await harness.pass(30_000);
    const remove = () => harness.act(() => harness.kube.delete(MachineConfigPool, { name: "infra" }));
    await remove();
    await harness.pass(30_000);
    expect((await harness.index("pool.infra"))?.subjectGoneAt).toBeDefined();
    await harness.act(() => harness.pool("infra"));
    await harness.pass(700_000);
    expect((await harness.index("pool.infra"))?.subjectGoneAt).toBeUndefined();
    await remove();
    await harness.pass(23 * 3_600_000);
    expect(await harness.chapters("pool/infra")).toHaveLength(1);
    await harness.pass(8 * 3_600_000);
    expect(await harness.chapters("pool/infra")).toEqual([]);
    expect(await harness.index("pool.infra")).toBeUndefined();
    const told = (await harness.chapters("cluster")).filter(({ chapter }) => chapter === "BookIndex");
    expect(told).toMatchObject([{ state: "Closed", reason: "SubjectGone", sections: [{ path: "Gone/pool/infra" }] }]);
    expect(told[0]?.message).toContain("its book had 1 chapters");
    // The journal holds its lines for longer.
    await harness.pass(8 * 3_600_000);
    expect(await harness.index("pool.infra")).toBeUndefined();
  });
});

describe("health", () => {
  test("of a failing component becomes a condition at once and a chapter of the cluster's book [state-process-12]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    const { controller } = harness.start();
    await harness.pass(60_000);
    expect(await harness.condition("ControllerHealthy")).toMatchObject({ status: "True" });
    const scale = (availableReplicas: number) =>
      harness.act(() =>
        harness.kube.patch(
          kubernetes.Deployment,
          { name: "machine-config-controller", namespace: "openshift-machine-config-operator" },
          { type: "merge", body: { status: { availableReplicas } } },
          { subresource: "status" },
        ),
      );
    await scale(0);
    await harness.pass(2000);
    expect(await harness.condition("ControllerHealthy")).toMatchObject({ status: "False", reason: "NotAvailable" });
    expect(controller.metrics()).toContain('mco_health{component="Controller"} 0');
    await scale(1);
    await harness.pass(60_000);
    expect(await harness.condition("ControllerHealthy")).toMatchObject({ status: "True" });
    const told = (await harness.chapters("cluster")).filter(({ chapter }) => chapter === "Controller");
    expect(told.flatMap(({ entries }) => entries.map(({ reason, via }) => `${reason} ${via}`))).toEqual(
      expect.arrayContaining(["NotAvailable seen", "Recovered seen"]),
    );
    expect(controller.metrics()).toContain('mco_health{component="Controller"} 1');
  });

  test("is owned by condition: the operator and the state process each own theirs [state-process-13]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    harness.start();
    await harness.pass(60_000);
    const settings = await harness.act(() => harness.kube.get(MachineConfiguration, { name: "cluster" }));
    const owned = (manager: string) =>
      ((settings?.metadata.managedFields ?? []) as { manager: string; subresource?: string; fieldsV1?: unknown }[])
        .filter((entry) => entry.manager === manager && entry.subresource === "status")
        .flatMap(({ fieldsV1 }) =>
          [...JSON.stringify(fieldsV1).matchAll(/k:\{\\"type\\":\\"(\w+)\\"\}/g)].map(([, type]) => type),
        );
    expect(owned("mco-health").toSorted()).toEqual([...healthTypes].toSorted());
    expect(owned("mco-state").toSorted()).toEqual([...keepingTypes].toSorted());
    expect(owned("mco-overall")).toEqual(["Healthy"]);
    expect(conditionOf(settings?.status?.conditions, "BootstrapComplete")?.status).toBe("False");
  });

  test("reports only component lines that the tables of the cluster's book contain [state-process-14]", () => {
    for (const { chapter, reasons } of Object.values(healthChapters)) {
      const allowed: readonly string[] = bookSections.cluster[chapter].Degraded;
      for (const reason of [...reasons, "Recovered"]) expect(allowed, `${chapter} ${reason}`).toContain(reason);
    }
  });
});

describe("figures", () => {
  test("count closing chapters, and show the stored and the open ones [state-process-11]", async () => {
    const harness = await StateHarness.make();
    await harness.act(() => harness.well());
    const daemon = await harness.act(() => harness.node("worker-0"));
    const { controller } = harness.start();
    await harness.pass(30_000);
    await update(harness, "worker-0", "rendered-worker-2");
    const { begun } = updateLines("worker-0", "rendered-worker-3");
    daemon.boot = "another";
    await harness.act(() => daemon.report(...begun));
    await harness.pass(100_000);
    const text = controller.metrics();
    expect(text).toContain(
      'mco_chapters_total{book_kind="node",chapter="Update",outcome="Succeeded",reason="Succeeded",pool="worker"} 1',
    );
    expect(text).toMatch(/mco_open_chapter_age_seconds\{book_kind="node",chapter="Update",pool="worker"\} \d{2,3}\n/);
    expect(text).toMatch(/mco_library_chapters\{kind="node",state="Closed"\} 1/);
    expect(text).toMatch(/mco_library_bytes\{kind="node",state="Open"\} \d{3}/);
    expect(text).toMatch(/mco_journal_lag_seconds\{component="daemon"\} [0-9.]+/);
    expect(text).toContain('mco_health{component="StateKeeping"} 1');
  });
});
