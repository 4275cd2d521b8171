import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { annotations, hostPaths, labels } from "../api/names.ts";
import { linesOnDisk } from "./machine-books.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";

const { signal } = new AbortController();
const base: Content = { files: { "/etc/app.conf": "one" } };
const reboots: Content = {
  files: { "/etc/app.conf": "two", "/etc/more.conf": "x" },
  spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] },
};
const quietPolicy = { policies: { files: [{ path: "/etc/quiet", actions: [{ type: "None" as const }] }] } };

async function settled(options: Parameters<typeof MachineHarness.make>[0] = {}): Promise<MachineHarness> {
  const harness = await MachineHarness.make(options);
  await harness.updatedTo("rendered-1", base);
  return harness;
}

async function goTo(harness: MachineHarness, name: string, content: Content): Promise<void> {
  await harness.config(name, content);
  await harness.desire(name);
  await harness.untilDone(name);
}

const told = (harness: MachineHarness) =>
  harness.history
    .filter(({ level }) => level === "boundary")
    .map(({ chapter, path, mark, reason }) => `${chapter}/${path} ${mark} ${reason}`);
const updatesOf = async (harness: MachineHarness) =>
  (await harness.chapters())
    .filter(({ chapter, run }) => chapter === "Update" && run !== "rendered-1")
    .map(({ run, state, outcome }) => [run, state, outcome]);

describe("the journal of an update", () => {
  test("with a reboot has every section with its times, and the planned, written and staged items [daemon-story-2]", async () => {
    const harness = await settled();
    await goTo(harness, "rendered-2", reboots);
    const chapter = (await harness.chapters()).find(({ run }) => run === "rendered-2");
    expect(chapter).toMatchObject({
      state: "Closed",
      outcome: "Succeeded",
      from: { config: "rendered-1" },
      to: { config: "rendered-2", image: "os@sha256:2" },
    });
    const sections = chapter?.sections ?? [];
    expect(sections.map(({ path, outcome }) => [path, outcome])).toEqual(
      [
        "Requested",
        "Prepared",
        "Executed/ImagePulled",
        "Executed/Cordoned",
        "Executed/OS",
        "Executed/Files",
        "PostAction/Rebooted",
        "Resumed",
        "Complete/Uncordoned",
        "Updated",
        // Of the controller nothing was heard.
      ].map((path) => [path, path === "Complete/Uncordoned" ? "Unknown" : "Succeeded"]),
    );
    for (const { startedAt, endedAt, durationMs } of sections)
      expect(
        Date.parse(endedAt ?? "") - Date.parse(startedAt),
        `${startedAt} ${endedAt} ${durationMs}`,
      ).toBeGreaterThanOrEqual(0);
    expect(sections.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0)).toBeLessThanOrEqual(
      chapter?.durationMs ?? 0,
    );
    const details = (path: string) => sections.find((section) => section.path === path)?.details;
    expect(details("Prepared")).toMatchObject({
      files: "2",
      units: "0",
      kernelArguments: "+1 -0",
      drain: "true",
      reboot: "true",
    });
    expect(details("Executed/Files")).toMatchObject({ count: "2", paths: "/etc/app.conf /etc/more.conf" });
    expect(details("PostAction/Rebooted")).toMatchObject({
      boot: (await harness.host.os.status(signal)).bootId,
      upAfterMs: expect.stringMatching(/^2\d{4}$/) as string,
    });
    expect(Number(details("Updated")?.["totalMs"])).toBeGreaterThan(20_000);
  });

  test("without a reboot names no action or a service's [daemon-story-3]", async () => {
    const harness = await settled(quietPolicy);
    await goTo(harness, "rendered-2", { files: { ...base.files, "/etc/quiet": "1" } });
    await goTo(harness, "rendered-3", {
      files: {
        ...base.files,
        "/etc/quiet": "1",
        "/etc/containers/registries.conf": '[[registry]]\nprefix = "a.example"\nlocation = "a.example"\n',
      },
    });
    const section = async (run: string, path: string) =>
      (await harness.chapters()).find((chapter) => chapter.run === run)?.sections.find((each) => each.path === path);
    expect(await section("rendered-2", "Executed/Drained")).toMatchObject({
      outcome: "NotRequired",
      reason: "NotRequired",
    });
    expect(await section("rendered-2", "PostAction/Service")).toMatchObject({ outcome: "NotRequired", reason: "None" });
    expect(await section("rendered-3", "PostAction/Service")).toMatchObject({
      outcome: "Succeeded",
      reason: "ServiceReloaded",
      message: "reload crio.service",
    });
    expect(await updatesOf(harness)).toEqual([
      ["rendered-2", "Closed", "Succeeded"],
      ["rendered-3", "Closed", "Succeeded"],
    ]);
  });

  test("is reported once, regardless of passes and restarts of the daemon", async () => {
    const harness = await settled();
    await goTo(harness, "rendered-2", reboots);
    const before = told(harness);
    expect(new Set(before).size).toBe(before.length);
    for (let round = 0; round < 3; round += 1) {
      await harness.annotate({ "test/touched": String(round) });
      harness.kill();
      harness.start();
      await harness.pass(700_000);
    }
    expect(told(harness)).toEqual(before);
  });

  test("continues after a kill at any effect: the running section is interrupted, nothing is repeated, and the update succeeds [daemon-story-5]", async () => {
    const quiet = await settled();
    await goTo(quiet, "rendered-2", reboots);
    const effects = quiet.effects.length;
    expect(effects).toBeGreaterThan(5);
    let interruptions = 0;
    for (let effect = 1; effect <= effects; effect += 2) {
      const harness = await settled();
      harness.countEffectsFromHere();
      harness.killAt = { effect, when: effect % 4 === 1 ? "before" : "after" };
      await goTo(harness, "rendered-2", reboots);
      expect(await updatesOf(harness), `killed at effect ${effect}`).toEqual([["rendered-2", "Closed", "Succeeded"]]);
      const lines = (await harness.journal()).filter(({ run }) => run === "rendered-2");
      // Of one section no two ends without a beginning in between, and no two beginnings without an end or an
      // interruption.
      for (const path of new Set(lines.map((line) => line.path))) {
        const marks = lines.filter((line) => line.path === path).map(({ mark }) => mark);
        expect(
          marks.filter((mark, index) => mark === marks[index + 1]),
          `killed at effect ${effect}: ${path} ${marks.join(" ")}`,
        ).toEqual([]);
      }
      interruptions += lines.filter(
        ({ mark, reason, outcome }) => mark === "retry" && reason === "Interrupted" && outcome === "Interrupted",
      ).length;
    }
    expect(interruptions).toBeGreaterThanOrEqual(effects / 2 - 3);
  });

  test("reports a shutdown that fails twice in the same way once, even across daemon restarts", async () => {
    const harness = await settled();
    await harness.host.failToFinalise?.("no space left");
    await harness.config("rendered-2", reboots);
    await harness.desire("rendered-2");
    await harness.kernel.run({ until: () => harness.reboots.length === 2, maxMs: 3_600_000 });
    await harness.host.failToFinalise?.("no space left");
    await harness.untilDone("rendered-2");
    expect(harness.reboots.length).toBe(3);
    expect(
      (await harness.journal())
        .filter(({ path, run }) => path === "PostAction/Rebooted" && run === "rendered-2")
        .map(({ mark, reason }) => `${mark} ${reason}`),
    ).toEqual(["begin RebootRequested", "fail FinaliseFailed", "end Rebooted"]);
  });

  test("is superseded by a newer target's journal, which starts empty [daemon-story-8]", async () => {
    const harness = await settled();
    await harness.act(() =>
      harness.kube.create(kubernetes.PodDisruptionBudget, {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "held", namespace: "default" },
        spec: { minAvailable: 1, selector: { matchLabels: { app: "held" } } },
      }),
    );
    await harness.pod("held-1");
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Pod,
        { name: "held-1", namespace: "default" },
        { type: "merge", body: { metadata: { labels: { app: "held" } } } },
      ),
    );
    await harness.config("rendered-2", reboots);
    await harness.desire("rendered-2");
    await harness.pass(60_000);
    await harness.config("rendered-3", { files: { "/etc/app.conf": "three" } });
    await harness.desire("rendered-3");
    await harness.pass(5000);
    await harness.act(() =>
      harness.kube.delete(kubernetes.Pod, { name: "held-1", namespace: "default" }, { gracePeriodSeconds: 0 }),
    );
    await harness.untilDone("rendered-3");
    expect(await updatesOf(harness)).toEqual([
      ["rendered-2", "Closed", "Superseded"],
      ["rendered-3", "Closed", "Succeeded"],
    ]);
  });

  test("that cannot be applied ends once, in the check, and closes when another target is chosen", async () => {
    const harness = await settled();
    await harness.config("rendered-2", { ignition: { storage: { disks: [{ device: "/dev/sda", wipeTable: true }] } } });
    await harness.desire("rendered-2");
    await harness.untilState("Unreconcilable");
    await harness.annotate({ "test/touched": "1" });
    await harness.pass(700_000);
    expect(told(harness).filter((line) => line.includes("Irreconcilable"))).toEqual([
      "Update/Prepared fail Irreconcilable",
      "Degraded/Failed fail Irreconcilable",
    ]);
    await goTo(harness, "rendered-3", { files: { "/etc/app.conf": "three" } });
    const chapters = (await harness.chapters()).map(({ chapter, run, outcome }) => `${chapter} ${run} ${outcome}`);
    expect(chapters).toEqual(
      expect.arrayContaining(["Update rendered-2 Superseded", "Degraded  Succeeded", "Update rendered-3 Succeeded"]),
    );
  });

  test("of a repeatedly failing step reports each failure once as a boundary line", async () => {
    const harness = await settled();
    let broken = true;
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        prefetch: (image, until) =>
          broken ? Promise.reject(new Error("connection refused")) : host.os.prefetch(image, until),
      },
    });
    harness.kill();
    harness.start();
    await harness.config("rendered-2", reboots);
    await harness.desire("rendered-2");
    await harness.pass(1_200_000);
    broken = false;
    await harness.untilDone("rendered-2");
    const pulls = (await harness.journal())
      .filter(({ path }) => path === "Executed/ImagePulled")
      .map(({ mark, reason }) => `${mark} ${reason}`);
    expect(pulls).toEqual(["begin Pulling", "fail PullFailed", "end Pulled"]);
    // The file on the machine has every try.
    expect(
      (await linesOnDisk(harness.host, harness.name, signal)).filter(
        ({ path, mark }) => path === "Executed/ImagePulled" && mark === "begin",
      ).length,
    ).toBeGreaterThan(3);
    expect(await updatesOf(harness)).toEqual([["rendered-2", "Closed", "Succeeded"]]);
    expect(
      (await harness.chapters())
        .filter(({ chapter }) => chapter === "Degraded")
        .map(({ state, outcome }) => `${state} ${outcome}`),
    ).toEqual(["Closed Succeeded"]);
  });
});

test("after an outage during staging, the API server gets the newest state in one write, and every line with its original time [daemon-story-4]", async () => {
  const harness = await settled();
  let isAway = false;
  const stagingMs = 20 * 60_000;
  harness.tamper = (host) => ({
    ...host,
    os: {
      ...host.os,
      async stage(deployment, from, until) {
        isAway = true;
        await harness.kernel.clock.sleep(stagingMs, until);
        await host.os.stage(deployment, from, until);
        isAway = false;
      },
    },
  });
  harness.intercept = (next) => (request, until) =>
    isAway ? Promise.reject(new Error("connection refused")) : next(request, until);
  harness.kill();
  harness.start();
  await harness.config("rendered-2", reboots);
  await harness.desire("rendered-2");
  await harness.kernel.run({ until: () => isAway, maxMs: 600_000 });
  const asked = harness.requests.length;
  await harness.kernel.run({ until: () => harness.reboots.length > 0, maxMs: 3_600_000 });
  // While it was away whoever wanted to write was turned away; then the state as it is now, and nothing of what was in
  // between.
  const patches = harness.requests
    .slice(asked)
    .filter(({ what }) => what.startsWith("PATCH") && what.includes("machineconfignodes"));
  expect(patches.length).toBe(1);
  expect(await harness.condition("AppliedOSImage")).toMatch(/^True/);
  await harness.untilDone("rendered-2");
  const staging = (await harness.journal()).filter(({ path }) => path === "Executed/OS");
  expect(staging.map(({ mark, reason }) => `${mark} ${reason}`)).toEqual(["begin Staging", "end Staged"]);
  expect((staging[1]?.at ?? 0) - (staging[0]?.at ?? 0)).toBe(stagingMs);
  expect(await updatesOf(harness)).toEqual([["rendered-2", "Closed", "Succeeded"]]);
});

describe("other chapters of a machine", () => {
  test("drift begins, and ends when it is undone or the configuration is applied again", async () => {
    const harness = await settled();
    await harness.put("/etc/app.conf", "changed");
    await harness.untilState("Degraded");
    await harness.pass(700_000);
    await harness.put("/etc/app.conf", "one");
    await harness.untilDone("rendered-1");
    await harness.put("/etc/app.conf", "changed again");
    await harness.untilState("Degraded");
    await harness.put(hostPaths.force, "");
    await harness.untilDone("rendered-1");
    expect(told(harness).filter((line) => line.startsWith("Drift"))).toEqual([
      "Drift/Detected begin ConfigDrift",
      "Drift/Ended end DriftGone",
      "Drift/Detected begin ConfigDrift",
      "Drift/Ended end DriftForced",
    ]);
    expect((await harness.chapters()).filter(({ chapter }) => chapter === "Drift").map(({ state }) => state)).toEqual([
      "Closed",
      "Closed",
    ]);
  });

  test("a machine that never boots its target rolls back, and both chapters report it", async () => {
    const harness = await settled();
    harness.tamper = (host) => ({ ...host, os: { ...host.os, stage: () => Promise.resolve() } });
    harness.kill();
    harness.start();
    await harness.config("rendered-2", { ...base, spec: { kernelArguments: ["nosmt"] } });
    await harness.desire("rendered-2");
    await harness.until(
      async () =>
        (await harness.kube.get(kubernetes.Node, { name: harness.name }))?.metadata.annotations?.[
          annotations.reason
        ]?.includes("is refused") === true,
      "it is back",
    );
    await harness.pass(120_000);
    const chapters = await harness.chapters();
    expect(chapters.find(({ run, chapter }) => chapter === "Update" && run === "rendered-2")).toMatchObject({
      state: "Closed",
      outcome: "RolledBack",
      reason: "WentBack",
    });
    expect(chapters.find(({ chapter }) => chapter === "Rollback")).toMatchObject({
      run: "rendered-2",
      state: "Closed",
      outcome: "RolledBack",
    });
    expect(chapters.find(({ chapter }) => chapter === "Degraded")).toMatchObject({
      state: "Open",
      reason: "TargetRefused",
    });
  });

  test("a machine that gets another target while it goes back ends its way back, too [daemon-story-9]", async () => {
    const harness = await settled();
    let isBroken = true;
    harness.tamper = (host) => ({
      ...host,
      os: { ...host.os, stage: (...args) => (isBroken ? Promise.resolve() : host.os.stage(...args)) },
    });
    harness.kill();
    harness.start();
    await harness.config("rendered-2", { files: { "/etc/app.conf": "2" }, spec: { kernelArguments: ["nosmt"] } });
    await harness.config("rendered-3", { files: { "/etc/app.conf": "3" } });
    await harness.desire("rendered-2");
    const rollback = async () => (await harness.chapters()).find(({ chapter }) => chapter === "Rollback");
    await harness.until(
      async () => (await harness.annotation(annotations.desiredDrain)) === "drain-rendered-1",
      "it is drained to go back",
    );
    isBroken = false;
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    await harness.pass(60_000);
    expect(await rollback()).toMatchObject({ run: "rendered-2", state: "Closed", outcome: "RolledBack" });
  });

  test("a machine provisioned by Ignition reports its first boot and its join, with the times of the first boot [daemon-story-1]", async () => {
    const harness = await MachineHarness.make();
    await harness.firstBoot("rendered-1", reboots);
    const began = harness.kernel.clock.now();
    await harness.pass(600_000);
    await harness.config("rendered-1", reboots);
    await harness.desire("rendered-1");
    harness.start();
    await harness.untilDone("rendered-1");
    const chapters = await harness.chapters();
    const firstBoot = chapters.find(({ chapter }) => chapter === "Firstboot");
    expect(firstBoot).toMatchObject({ state: "Closed", outcome: "Succeeded" });
    expect(firstBoot?.sections.map(({ path }) => path)).toEqual([
      "EncapsulatedConfigRead",
      "OSUpdated",
      "Kargs",
      "Reboot",
      "Registered",
      "DaemonUp",
      "AnnotationsInitialised",
      "Validated",
    ]);
    expect(Date.parse(firstBoot?.startedAt ?? "")).toBeLessThanOrEqual(began);
    expect(chapters.find(({ chapter }) => chapter === "Join")).toMatchObject({ state: "Closed", outcome: "Succeeded" });
    const lines = await harness.journal();
    expect(new Set(lines.map(({ book }) => book))).toEqual(new Set([`node/${harness.name}`]));
    expect(new Set(lines.map(({ writer }) => writer.component))).toEqual(new Set(["first-boot", "daemon"]));
  });
});

describe("a power cut", () => {
  test("between the disk and the journal loses no persisted line, and repeats none [daemon-story-6]", async () => {
    const harness = await settled();
    let hasStopped = false;
    const stopsAt = (path: string) => {
      hasStopped ||= path === "/etc/app.conf";
      return hasStopped;
    };
    harness.tamper = (host) => ({
      ...host,
      files: {
        ...host.files,
        write: (writes, until) =>
          writes.some(({ path }) => stopsAt(path)) ? new Promise(() => undefined) : host.files.write(writes, until),
      },
    });
    harness.kill();
    harness.start();
    harness.intercept = (next) => (request, until) =>
      request.method === "PATCH" && request.target.includes("machinestatejournals")
        ? Promise.reject(new Error("connection refused"))
        : next(request, until);
    await harness.config("rendered-2", reboots);
    await harness.desire("rendered-2");
    await harness.kernel.run({ until: () => hasStopped, maxMs: 600_000 });
    harness.tamper = (host) => host;
    harness.intercept = (next) => next;
    await harness.boot({ orderly: false });
    await harness.untilDone("rendered-2");
    const lines = await harness.journal();
    const names = lines.map(({ writer, boot, seq }) => `${writer.component} ${boot} ${seq}`);
    expect(new Set(names).size).toBe(names.length);
    const onDisk = (await linesOnDisk(harness.host, harness.name, signal)).filter(({ level }) => level === "boundary");
    expect(lines.map(({ msg, seq }) => [msg, seq])).toEqual(onDisk.map(({ msg, seq }) => [msg, seq]));
    expect(await updatesOf(harness)).toEqual([["rendered-2", "Closed", "Succeeded"]]);
    expect(lines.some(({ reason, mark }) => mark === "retry" && reason === "Interrupted")).toBe(true);
  });

  test("of a machine whose journal object was lost is restored from its disk [daemon-story-7]", async () => {
    const harness = await settled();
    await goTo(harness, "rendered-2", reboots);
    const before = await harness.journal();
    await harness.act(() =>
      harness.kube.patch(
        MachineStateJournal,
        { name: `node-${harness.name}` },
        { type: "merge", body: { spec: { lines: [], last: [] } } },
      ),
    );
    harness.kill();
    harness.start();
    await harness.pass(30_000);
    expect((await harness.journal()).map(({ msg }) => msg)).toEqual(before.map(({ msg }) => msg));
  });
});

test("a machine whose Node was deleted and registered again has joined again [daemon-joined-again-1]", async () => {
  const harness = await MachineHarness.make();
  await harness.updatedTo("rendered-1", {});
  const joined = () => told(harness).filter((line) => line.startsWith("Join/Validated"));
  await harness.annotate({ "test/touched": "1" });
  await harness.pass(700_000);
  const before = joined().length;
  await harness.act(() => harness.kube.delete(kubernetes.Node, { name: harness.name }));
  await harness.pass(5_000);
  await harness.act(() =>
    harness.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: harness.name, labels: { [labels.workerRole]: "" } },
      spec: {},
    }),
  );
  await harness.desire("rendered-1");
  await harness.until(() => Promise.resolve(joined().length > before), "the machine has joined again");
  await harness.pass(700_000);
  expect(joined()).toHaveLength(before + 1);
});
