import { expect, test } from "vitest";
import { MachineStateChapter } from "../api/books/machine-state-chapter.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { annotations, journals } from "../api/names.ts";
import type { ControllerOptions } from "../controller/run-controller.ts";
import { appendLines, lineOf } from "../core/books/journal.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import type { HttpHandler } from "../ports/http.ts";
import type { ServerHandler } from "../ports/listener.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import { StateController } from "./state-controller.ts";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";

const machines = ["a", "b", "c"];

/** Every caller may read metrics. */
const anybodyReads =
  (handler: HttpHandler): HttpHandler =>
  (request, signal) => {
    const answer = (status: object) =>
      Promise.resolve({
        status: 201,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ status }),
      });
    if (request.target.includes("/tokenreviews")) return answer({ authenticated: true, user: { username: "reader" } });
    if (request.target.includes("/subjectaccessreviews")) return answer({ allowed: true });
    return handler(request, signal);
  };

function keepBooks(harness: Harness): () => void {
  const stopping = new AbortController();
  const { kernel, cluster } = harness;
  const ports = {
    clock: kernel.clock,
    random: kernel.random,
    log: silentLogger,
    journal: memoryJournal(),
    kube: cluster.kube,
  };
  const controller = new StateController({
    ...ports,
    events: createEventRecorder({ ...ports, component: "machine-state-controller" }),
    identity: "state-0",
    version: "1.0.0",
  });
  void controller.run(stopping.signal).catch(() => undefined);
  return () => stopping.abort(new Error("over"));
}

/** The controllers' reports become lines of their journal, as in their own process. */
async function sendJournal(harness: Harness): Promise<void> {
  const lines = harness.journal.lines.map((line, index) =>
    lineOf(line, {
      writer: { component: "controller", instance: "c" },
      boot: "pod-1",
      number: { seq: index + 1 },
      at: harness.kernel.clock.now(),
      mono: harness.kernel.clock.monotonic(),
    }),
  );
  await harness.act(async () => {
    const journal = await harness.kube.get(MachineStateJournal, { name: journals.controller });
    const append = appendLines(journal?.spec, lines);
    if (append !== undefined)
      await harness.kube.patch(
        MachineStateJournal,
        { name: journals.controller },
        { type: "json", operations: append.operations },
      );
  });
}

/**
 * A roll-out to three machines, each drained and uncordoned, with or without the state process; returns the
 * controller's metrics.
 */
async function metrics(keeps: boolean): Promise<{ readonly text: string; readonly chapters: number }> {
  let handler: ServerHandler | undefined;
  const admission: NonNullable<ControllerOptions["admission"]> = (given) => {
    handler = given;
    return Promise.resolve();
  };
  const { harness } = await updatedPool(machines, { admission });
  harness.intercept = anybodyReads;
  await harness.act(() =>
    harness.kube.create(MachineStateJournal, {
      apiVersion: MachineStateJournal.apiVersion,
      kind: MachineStateJournal.kind,
      metadata: { name: journals.controller },
      spec: { lines: [], last: [] },
    }),
  );
  const stop = keeps ? keepBooks(harness) : undefined;
  await harness.pass(60_000);
  await harness.act(() => harness.config("60-more", "worker", { "/etc/b": "2" }));
  for (const name of machines) {
    await harness.pass(10_000);
    const target = (await harness.node_(name)).metadata.annotations?.[annotations.desiredConfig] ?? "";
    await harness.act(() =>
      harness.annotate(name, { [annotations.state]: "Working", [annotations.desiredDrain]: `drain-${target}` }),
    );
    // Far from the bounds of the histograms' buckets.
    await harness.pass(15_000);
    await sendJournal(harness);
    await harness.act(() => harness.annotate(name, { [annotations.desiredDrain]: `uncordon-${target}` }));
    await harness.act(() => harness.finish(name));
    await harness.pass(10_000);
  }
  await harness.pass(60_000);
  const scraped = await harness.act(async () =>
    handler?.(
      { method: "GET", target: "/metrics", headers: { authorization: "Bearer t" } },
      undefined as never,
      new AbortController().signal,
    ),
  );
  const { items } = keeps ? await harness.act(() => harness.kube.list(MachineStateChapter)) : { items: [] };
  stop?.();
  return { text: typeof scraped?.body === "string" ? scraped.body : "", chapters: items.length };
}

/** Sample → its value. */
const samplesOf = (text: string) =>
  new Map(
    text
      .split("\n")
      .flatMap((line) =>
        line === "" || line.startsWith("#")
          ? []
          : [[line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))] as const],
      ),
  );
/**
 * Times, durations, and passes, several changes of which may become one: with one more process on the network, requests
 * take different times.
 */
const isTime = (sample: string) => /^mcc_|_running_seconds|_seconds_sum/.test(sample);

test("every metric of the controller is the same with and without a state process [state-metrics-beside-1]", async () => {
  const [off, on] = [await metrics(false), await metrics(true)];
  const [without, beside] = [samplesOf(off.text), samplesOf(on.text)];
  // The books were kept, and there was something to measure.
  expect(on.chapters).toBeGreaterThan(machines.length);
  for (const name of [
    'mco_section_duration_seconds_count{book_kind="node",path="Executed/Drained",outcome="Succeeded",pool="worker"}',
    'mco_section_duration_seconds_count{book_kind="node",path="Complete/Uncordoned",outcome="Succeeded",pool="worker"}',
    'mco_node_out_of_service_seconds_count{pool="worker",cause="Update"}',
  ])
    expect(without.get(name), name).toBe(machines.length);
  expect([...beside.keys()]).toEqual([...without.keys()]);
  const exactly = (samples: ReadonlyMap<string, number>) =>
    Object.fromEntries([...samples].filter(([sample]) => !isTime(sample)));
  expect(exactly(beside)).toEqual(exactly(without));
  for (const [sample, value] of without)
    if (isTime(sample)) expect(Math.abs((beside.get(sample) ?? Number.NaN) - value), sample).toBeLessThan(15);
});
