import { expect, test } from "vitest";
import { type Event, kubernetes } from "../api/foreign/kubernetes.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import { StateHarness } from "../../test/support/state-harness.ts";

const served = (requester: string): JournalEntry => ({
  book: "cluster",
  chapter: "Server",
  path: "Served/worker",
  mark: "note",
  level: "boundary",
  reason: "Served",
  message: `${requester} was given rendered-worker-1`,
  data: { requester, config: "rendered-worker-1" },
});

test("a served machine is overdue after half an hour: once in the book and as an event, in metrics until it joins [state-joins-1]", async () => {
  const harness = await StateHarness.make();
  let running = harness.start();
  await harness.pass(5000);
  const server = harness.component("server");
  await harness.act(() => server.report(served("10.0.0.7"), served("10.0.0.8")));
  await harness.act(() => harness.node("worker-0"));
  await harness.pass(25 * 60_000);
  const joins = async () => (await harness.chapters("pool/worker")).filter(({ chapter }) => chapter === "Join");
  expect(await joins()).toEqual([]);

  await harness.pass(10 * 60_000);
  const [join, ...more] = await joins();
  // One of the two is the node that joined, though no address shows which.
  expect(more).toEqual([]);
  expect(join).toMatchObject({
    state: "Closed",
    outcome: "Failed",
    reason: "JoinOverdue",
    message: expect.stringMatching(
      /^the machine 10\.0\.0\.8 was given rendered-worker-1 at .* and has not joined since$/,
    ) as string,
    next: expect.stringContaining("console") as string,
  });
  const events = async () =>
    (await harness.act(() => harness.kube.list<Event>(kubernetes.Event))).items
      .filter(({ reason }) => reason === "JoinOverdue")
      .map(({ involvedObject, type, count }) => `${type} ${involvedObject.kind}/${involvedObject.name} ${count ?? 1}`);
  expect(await events()).toEqual(["Warning MachineConfigPool/worker 1"]);
  expect(running.controller.metrics()).toContain('mco_join_overdue{pool="worker"} 1');

  // A restarted state process finds that the join was already reported.
  running.kill();
  running = harness.start("state-1");
  await harness.pass(60_000);
  expect(await joins()).toHaveLength(1);
  await harness.act(() => harness.node("worker-1"));
  await harness.act(() =>
    harness.kube.patch(
      kubernetes.Node,
      { name: "worker-1" },
      { type: "merge", body: { status: { addresses: [{ type: "InternalIP", address: "10.0.0.8" }] } } },
      { subresource: "status" },
    ),
  );
  await harness.pass(60_000);
  expect(running.controller.metrics()).toContain('mco_join_overdue{pool="worker"} 0');
  expect(await joins()).toHaveLength(1);
});
