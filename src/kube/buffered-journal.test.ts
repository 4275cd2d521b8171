import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { ringLimits } from "../core/books/journal.ts";
import type { JournalLine } from "../api/books/journal-line.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import type { HttpHandler } from "../ports/http.ts";
import type { Logger } from "../ports/logger.ts";
import type { LineStore } from "../ports/journal.ts";
import { anySecret } from "../../test/support/any-secret.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { componentSending, createJournalWriter, nodeSending } from "./journal-writer.ts";
import { createBufferedJournal } from "./buffered-journal.ts";

const writer = { component: "daemon", instance: "worker-0", node: "worker-0" };
const name = "node-worker-0";
const line = (
  path: "Requested" | "Prepared" | "Updated",
  message: string,
  more: Partial<Pick<JournalEntry, "level" | "mark" | "data">> = {},
) =>
  ({
    book: "node/worker-0",
    chapter: "Update",
    run: "rendered-1",
    path,
    mark: "end",
    level: "boundary",
    reason: path === "Requested" ? "TargetSeen" : path === "Prepared" ? "Planned" : "Succeeded",
    message,
    ...more,
  }) as JournalEntry;

/** A scribe of a machine, its disk, and an API server that can be in the way. */
async function harness(options: { readonly sender?: "absent"; readonly component?: boolean } = {}) {
  const kernel = new Kernel(3);
  const cluster = await kernel.complete(inProcessCluster(kernel), 60_000);
  const disk: string[] = [];
  const logged: string[] = [];
  const writes: { readonly at: number; readonly body: string }[] = [];
  const trouble = { disk: false, between: undefined as ((next: HttpHandler) => HttpHandler) | undefined };
  const makeJournal = () =>
    kernel.complete(
      cluster.kube.create(MachineStateJournal, {
        apiVersion: MachineStateJournal.apiVersion,
        kind: "MachineStateJournal",
        metadata: { name },
        spec: { lines: [], last: [] },
      }),
      60_000,
    );
  if (options.sender !== "absent") await makeJournal();
  const kube = cluster.client((request, signal) => {
    if (request.method !== "GET") writes.push({ at: kernel.now, body: String(request.body) });
    return (trouble.between?.(cluster.transport) ?? cluster.transport)(request, signal);
  });
  const store: LineStore = {
    async append(_boot, lines) {
      if (trouble.disk) throw new Error("no space left on device");
      disk.push(...lines);
    },
  };
  const note = (fields: object, message: string) => void logged.push(JSON.stringify({ message, ...fields }));
  const log: Logger = { debug: note, info: note, warn: note, error: note, child: () => log };
  const sender = createJournalWriter({
    kube,
    clock: kernel.clock,
    random: kernel.random,
    log,
    name,
    owner: "mcd",
    rules: options.component === true ? componentSending : nodeSending,
  });
  const make = (boot: string, after?: { seq: number }) =>
    createBufferedJournal({
      clock: kernel.clock,
      log,
      writer,
      boot,
      sender,
      ...(options.component === true ? {} : { store }),
      ...(after === undefined ? {} : { after }),
    });
  return {
    kernel,
    cluster,
    disk,
    logged,
    writes,
    trouble,
    makeJournal,
    sender,
    make,
    journal: make("boot-1"),
    async pass(ms: number) {
      let over = false;
      kernel.schedule(ms, "time passes", () => (over = true));
      await kernel.run({ until: () => over, maxMs: ms });
    },
    act: <T>(work: () => Promise<T>) => kernel.complete(work(), 600_000),
    async object(): Promise<readonly JournalLine[]> {
      const object = await kernel.complete(cluster.kube.get(MachineStateJournal, { name }), 60_000);
      expect(object).toSatisfy((value: unknown) => value === undefined || MachineStateJournal.is(value));
      return object?.spec.lines ?? [];
    },
  };
}

const refusing = (status: number, reason: string) => (): HttpHandler => async () => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ kind: "Status", status: "Failure", reason, code: status, message: "planned" }),
});

describe("a journal on a machine", () => {
  test("stamps lines, keeps all of them on the disk, and brings boundary lines to the journal, in order", async () => {
    const { journal, disk, object, pass } = await harness();
    journal.line(line("Requested", "1"));
    journal.line(line("Prepared", "2", { level: "progress", mark: "note" }));
    journal.line(line("Prepared", "3", { data: { files: 2, drain: true } }));
    await pass(5000);
    const written = disk.map((text) => JSON.parse(text) as JournalLine);
    expect(written.map(({ seq, sub, msg, boot, via, writer: by }) => ({ seq, sub, msg, boot, via, by }))).toEqual([
      { seq: 1, sub: undefined, msg: "1", boot: "boot-1", via: "told", by: writer },
      { seq: 1, sub: 1, msg: "2", boot: "boot-1", via: "told", by: writer },
      { seq: 2, sub: undefined, msg: "3", boot: "boot-1", via: "told", by: writer },
    ]);
    expect((await object()).map(({ msg, data }) => ({ msg, data }))).toEqual([
      { msg: "1" },
      { msg: "3", data: { files: "2", drain: "true" } },
    ]);
  });

  test("goes on with its numbers where the last one of this boot left off", async () => {
    const { make, disk, pass } = await harness();
    make("boot-1", { seq: 41 }).line(line("Requested", "next"));
    await pass(100);
    expect(disk.map((text) => (JSON.parse(text) as JournalLine).seq)).toEqual([42]);
  });

  test("sends at turning points, what lies between with the next of them, and everything when the machine is about to go down", async () => {
    const { journal, writes, pass, act, object } = await harness();
    journal.line(line("Requested", "seen"));
    journal.line(line("Prepared", "planned"));
    await pass(5000);
    expect(writes.length).toBe(1);
    journal.line(line("Prepared", "something on the way"));
    await pass(120_000);
    expect(writes.length).toBe(1);
    await act(() => journal.flush());
    expect(writes.length).toBe(2);
    journal.line({ ...line("Prepared", "no"), mark: "fail", reason: "Irreconcilable" } as JournalEntry);
    await pass(5000);
    expect(writes.length).toBe(3);
    journal.line(line("Prepared", "late, but not for ever"));
    await pass(310_000);
    expect((await object()).length).toBe(5);
    // New lines only, and the version that was read.
    expect(
      writes.map(
        ({ body }) => (JSON.parse(body) as { path: string }[]).filter(({ path }) => path === "/spec/lines/-").length,
      ),
    ).toEqual([2, 1, 1, 1]);
    expect(writes.every(({ body }) => body.includes("/metadata/resourceVersion"))).toBe(true);
  });

  test("waits while the API server is unavailable, then sends the newest 200 lines in one write with their original times [kube-story-scribe-1]", async () => {
    const { journal, trouble, writes, pass, object, disk, kernel } = await harness();
    trouble.between = () => () => Promise.reject(new Error("connection refused"));
    const began = kernel.clock.now();
    for (let count = 1; count <= 250; count += 1) {
      journal.line(line("Updated", String(count)));
      await pass(1000);
    }
    trouble.between = undefined;
    writes.length = 0;
    await pass(120_000);
    const told = await object();
    expect(writes.length).toBe(1);
    expect(told.map(({ msg }) => msg)).toEqual(
      Array.from({ length: ringLimits.lines }, (_, index) => String(index + 51)),
    );
    expect((told[0]?.at ?? 0) - began).toBe(50_000);
    expect(disk.length).toBe(250);
    expect(journal.counts).toMatchObject({ lines: 250, waiting: 0, dropped: 50 });
  });

  test("brings no line twice when an answer is lost", async () => {
    const { journal, trouble, pass, object } = await harness();
    let lost = 0;
    trouble.between = (next) => async (request, signal) => {
      const response = await next(request, signal);
      if (request.method === "GET" || (lost += 1) > 2) return response;
      throw new Error("the connection was cut");
    };
    journal.line(line("Requested", "1"));
    await pass(20_000);
    journal.line(line("Updated", "2"));
    await pass(60_000);
    expect(lost).toBeGreaterThan(1);
    expect((await object()).map(({ msg }) => msg)).toEqual(["1", "2"]);
  });

  test("brings a line that comes while an answer is on its way", async () => {
    const { journal, trouble, pass, object, kernel } = await harness();
    trouble.between = (next) => async (request, signal) => {
      const response = await next(request, signal);
      await kernel.clock.sleep(3000, signal);
      return response;
    };
    for (let count = 1; count <= 20; count += 1) {
      journal.line(line("Updated", String(count)));
      await pass(700);
    }
    await pass(30_000);
    expect((await object()).map(({ msg }) => msg)).toEqual(Array.from({ length: 20 }, (_, index) => String(index + 1)));
  });

  test("reads again after a concurrent write", async () => {
    const { journal, cluster, pass, act, object } = await harness();
    journal.line(line("Requested", "1"));
    await pass(5000);
    await act(() =>
      cluster.kube.patch(
        MachineStateJournal,
        { name },
        { type: "merge", body: { metadata: { labels: { touched: "yes" } } } },
      ),
    );
    journal.line(line("Updated", "2"));
    await pass(5000);
    expect((await object()).map(({ msg }) => msg)).toEqual(["1", "2"]);
  });

  test("waits for a journal that does not exist yet", async () => {
    const { journal, makeJournal, pass, object, logged, writes } = await harness({ sender: "absent" });
    journal.line(line("Requested", "1"));
    await pass(200_000);
    expect(logged).toEqual([expect.stringContaining("the MachineStateJournal does not exist yet")]);
    expect(writes).toEqual([]);
    await makeJournal();
    await pass(200_000);
    expect((await object()).map(({ msg }) => msg)).toEqual(["1"]);
  });

  test("notes once that a right is missing, and asks seldom", async () => {
    const { journal, trouble, pass, logged } = await harness();
    let asked = 0;
    const refuse = refusing(403, "Forbidden")();
    trouble.between = () => (request, signal) => ((asked += 1), refuse(request, signal));
    for (let count = 0; count < 60; count += 1) {
      journal.line(line("Updated", String(count)));
      await pass(60_000);
    }
    expect(logged).toEqual([expect.stringContaining("journal lines could not be sent yet")]);
    expect(asked).toBeLessThanOrEqual(18);
  });

  test("sends nothing that the disk has not taken, loses nothing of it, and says so once", async () => {
    const { journal, trouble, pass, act, object, logged, disk } = await harness();
    trouble.disk = true;
    for (let count = 1; count <= 20; count += 1) journal.line(line("Updated", String(count)));
    await pass(60_000);
    await act(() => journal.flush());
    expect(await object()).toEqual([]);
    expect(logged.length).toBe(1);
    trouble.disk = false;
    await pass(60_000);
    expect(disk.map((text) => (JSON.parse(text) as JournalLine).seq)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    expect((await object()).length).toBe(20);
  });

  test("says when the disk has its lines, and does not wait for a disk that refuses them [kube-buffered-journal-kept-1]", async () => {
    const { journal, trouble, act, disk } = await harness();
    journal.line(line("Requested", "1"));
    journal.line(line("Prepared", "2"));
    await act(() => journal.kept?.() ?? expect.fail());
    expect(disk.length).toBe(2);
    trouble.disk = true;
    journal.line(line("Updated", "3"));
    await act(() => journal.kept?.() ?? expect.fail());
    expect(disk.length).toBe(2);
  });

  test("does not delay a shutdown while the API server does not answer", async () => {
    const { journal, trouble, act, kernel, disk } = await harness();
    trouble.between = () => () => new Promise(() => undefined);
    journal.line(line("Requested", "1"));
    const began = kernel.now;
    await act(() => journal.flush());
    expect(kernel.now - began).toBeLessThanOrEqual(3000);
    expect(disk.length).toBe(1);
  });

  test("counts lines when there are too many in a minute: debug lines first, then progress lines, boundary lines never", async () => {
    const { journal, disk, pass } = await harness();
    for (let count = 0; count < 3000; count += 1)
      journal.line(line("Prepared", `debug ${count}`, { level: "debug", mark: "note" }));
    for (let count = 0; count < 3000; count += 1)
      journal.line(line("Prepared", `progress ${count}`, { level: "progress", mark: "note" }));
    for (let count = 0; count < 150; count += 1) journal.line(line("Prepared", `boundary ${count}`));
    await pass(120_000);
    const lines = disk.map((text) => JSON.parse(text) as JournalLine);
    const of = (level: string) =>
      lines.filter((each) => each.level === level && each.data?.["folded"] === undefined).length;
    expect([of("debug"), of("progress"), of("boundary")]).toEqual([2000, 1000, 150]);
    expect(
      lines
        .filter(({ data }) => data?.["folded"] !== undefined)
        .reduce((sum, { data }) => sum + Number(data?.["folded"]), 0),
    ).toBe(3000);
    expect(journal.counts.folded).toBe(3000);
  });

  test("redacts secrets on the disk, in the journal and in the log [kube-story-scribe-2]", async () => {
    const { journal, trouble, disk, object, logged, pass } = await harness();
    const secrets = fc.sample(anySecret, { numRuns: 60, seed: 8 });
    trouble.disk = true;
    for (const { text } of secrets)
      journal.line(line("Updated", `pull failed: ${text} (twice)`, { data: { from: text, password: text } }));
    await pass(10_000);
    trouble.disk = false;
    await pass(120_000);
    const said = [...disk, ...logged, JSON.stringify(await object())].join("\n");
    expect(disk.length).toBe(60);
    expect(secrets.filter(({ secret }) => said.includes(secret))).toEqual([]);
  });
});

describe("a journal in a pod", () => {
  test("keeps its lines in memory and appends at most once in ten seconds [kube-story-scribe-3]", async () => {
    const { journal, writes, disk, object, pass } = await harness({ component: true });
    for (let count = 0; count < 100; count += 1) {
      journal.line(line("Updated", String(count)));
      await pass(1000);
    }
    await pass(20_000);
    expect(writes.length).toBeLessThanOrEqual(12);
    const gaps = writes.slice(1).map(({ at }, index) => at - (writes[index]?.at ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(9_999);
    expect((await object()).length).toBe(100);
    expect([disk.length, journal.lines.length]).toEqual([0, 100]);
  });

  test("appends sooner if a large roll-out would overflow the ring: no line is lost [kube-story-scribe-4]", async () => {
    const { journal, writes, object, pass } = await harness({ component: true });
    const seen = new Set<number>();
    for (let second = 0; second < 20; second += 1) {
      for (let count = 0; count < 60; count += 1) journal.line(line("Updated", `${second}/${count}`));
      await pass(1000);
      for (const { seq } of await object()) seen.add(seq);
    }
    await pass(20_000);
    for (const { seq } of await object()) seen.add(seq);
    expect(seen.size).toBe(1200);
    expect(writes.length).toBeLessThanOrEqual(20);
    expect(journal.counts.dropped).toBe(0);
  });

  test("writes nothing more once it has stopped [kube-story-scribe-5]", async () => {
    const { journal, writes, pass } = await harness({ component: true });
    journal.line(line("Updated", "1"));
    journal.stop();
    journal.line(line("Updated", "2"));
    await pass(60_000);
    expect([writes.length, journal.lines.length]).toEqual([0, 1]);
  });
});
