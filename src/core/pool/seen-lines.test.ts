import { describe, expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import { annotations } from "../../api/names.ts";
import type { Condition } from "../../api/schema/object.ts";
import { type WriterIdentity, lineOf } from "../books/journal.ts";
import { morning, reportedUpdate } from "../../../test/support/line-writer.ts";
import { foldBook } from "../books/fold-book.ts";
import { type NodeSeen, lostAfterMs, linesFromNode } from "./seen-lines.ts";

const at = (seconds: number) => new Date(morning + seconds * 1000).toISOString();
const node = (
  options: {
    desired?: string;
    current?: string;
    state?: string;
    ready?: boolean;
    readySince?: number;
    uid?: string;
    created?: number;
  } = {},
): Node => {
  const {
    desired = "rendered-worker-a",
    current = "rendered-worker-a",
    state = "Done",
    ready = true,
    readySince = -1000,
    uid = "uid-1",
    created = -9000,
  } = options;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "worker-0",
      uid,
      creationTimestamp: at(created),
      annotations: {
        [annotations.desiredConfig]: desired,
        [annotations.currentConfig]: current,
        [annotations.state]: state,
      },
    },
    status: {
      conditions: [{ type: "Ready", status: ready ? "True" : "Unknown", lastTransitionTime: at(readySince) }],
    } as NonNullable<Node["status"]>,
  };
};
const machineConfigNode = (
  conditions: readonly (readonly [string, Condition["status"], number])[],
): MachineConfigNode =>
  ({
    apiVersion: MachineConfigNode.apiVersion,
    kind: "MachineConfigNode",
    metadata: { name: "worker-0" },
    spec: { node: { name: "worker-0" }, pool: { name: "worker" }, configVersion: { desired: "x" } },
    status: {
      conditions: conditions.map(([type, status, seconds]) => ({
        type,
        status,
        reason: type,
        message: "",
        lastTransitionTime: at(seconds),
      })),
    },
  }) as MachineConfigNode;

/** Looks one after the other, and everything that they said. */
function watch(
  looks: readonly {
    readonly seconds: number;
    readonly node?: Node;
    readonly mcn?: MachineConfigNode;
    readonly pool?: string;
  }[],
) {
  let seen: NodeSeen | undefined;
  return looks.flatMap(({ seconds, node: is, mcn, pool = "worker" }) => {
    const look = linesFromNode(seen, is, mcn, pool, { now: morning + seconds * 1000, since: morning - 1000 });
    seen = look.seen;
    return look.lines;
  });
}
const said = (lines: ReturnType<typeof watch>) =>
  lines.map(
    ({ line, at: when }) => `${line.chapter} ${line.path} ${line.mark} ${line.reason} ${(when - morning) / 1000}`,
  );

describe("what an onlooker says of a node", () => {
  test("nothing of one that was there before and does nothing", () => {
    expect(
      watch([
        { seconds: 0, node: node() },
        { seconds: 60, node: node() },
      ]),
    ).toEqual([]);
  });

  test("that it came, that it went, and that another came in its place", () => {
    expect(
      said(
        watch([
          { seconds: 10, node: node({ created: 5 }) },
          { seconds: 20, node: node({ uid: "uid-2", created: 19 }) },
          { seconds: 30 },
        ]),
      ),
    ).toEqual([
      "Join Registered end Registered 5",
      "Join Registered end Registered 19",
      "Leave Deleted end NodeDeleted 30",
    ]);
  });

  test("that its pool is another [pool-seen-lines-4]", () => {
    expect(
      watch([
        { seconds: 0, node: node() },
        { seconds: 9, node: node(), pool: "infra" },
      ]),
    ).toMatchObject([
      { line: { chapter: "PoolMove", message: "from pool worker to infra, as the labels of the node say" } },
    ]);
  });

  test("that its kubelet stopped reporting, after five minutes with the time; and its recovery", () => {
    const silent = node({ ready: false, readySince: 100 });
    const look = linesFromNode(
      linesFromNode(undefined, node(), undefined, "worker", { now: morning, since: 0 }).seen,
      silent,
      undefined,
      "worker",
      { now: morning + 160_000, since: 0 },
    );
    expect([look.lines, look.reconcileAfterMs]).toEqual([[], lostAfterMs - 60_000]);
    expect(
      said(
        watch([
          { seconds: 0, node: node() },
          { seconds: 399, node: silent },
          { seconds: 400, node: silent },
          { seconds: 500, node: silent },
          { seconds: 600, node: node({ readySince: 590 }) },
        ]),
      ),
    ).toEqual(["Lost Silent begin KubeletSilent 100", "Lost Back end KubeletBack 590"]);
  });

  test("no phase of the target before, which the daemon still reports [pool-seen-lines-5]", () => {
    const phases = machineConfigNode([["UpdatePrepared", "True", 2]]);
    const of = (desired: string) => ({
      ...phases,
      status: { ...phases.status, configVersion: { desired: `rendered-worker-${desired}` } },
    });
    expect(
      said(
        watch([
          { seconds: 0, node: node() },
          { seconds: 1, node: node({ desired: "rendered-worker-b" }) },
          { seconds: 2, node: node({ desired: "rendered-worker-c", state: "Working" }), mcn: of("b") as never },
        ]),
      ),
    ).toEqual(["Update Requested begin TargetSet 1", "Update Requested begin TargetSet 2"]);
    expect(
      said(
        watch([
          { seconds: 0, node: node() },
          { seconds: 2, node: node({ desired: "rendered-worker-b", state: "Working" }), mcn: of("b") as never },
        ]),
      ),
    ).toEqual(["Update Requested begin TargetSet 2", "Update Prepared end Planned 2"]);
  });

  test("nothing of a silence that a reboot announced", () => {
    const rebooting = node({ ready: false, readySince: 10 });
    rebooting.metadata.annotations = { ...rebooting.metadata.annotations, [annotations.postConfigAction]: "Rebooting" };
    expect(
      watch([
        { seconds: 0, node: node() },
        { seconds: 900, node: rebooting },
      ]),
    ).toEqual([]);
  });
});

/** An update as a daemon that tells nothing shows it: by annotations and conditions. */
const shown = watch([
  { seconds: 0, node: node() },
  { seconds: 1, node: node({ desired: "rendered-worker-b" }) },
  {
    seconds: 3,
    node: node({ desired: "rendered-worker-b", state: "Working" }),
    mcn: machineConfigNode([
      ["UpdatePrepared", "True", 2],
      ["Cordoned", "True", 3],
    ]),
  },
  {
    seconds: 60,
    node: node({ desired: "rendered-worker-b", state: "Working" }),
    mcn: machineConfigNode([
      ["UpdatePrepared", "True", 2],
      ["Cordoned", "True", 3],
      ["Drained", "Unknown", 4],
    ]),
  },
  {
    seconds: 64,
    node: node({ desired: "rendered-worker-b", state: "Working" }),
    mcn: machineConfigNode([
      ["UpdatePrepared", "True", 2],
      ["Cordoned", "True", 3],
      ["Drained", "True", 63],
      ["AppliedFiles", "True", 64],
      ["RebootedNode", "Unknown", 64],
    ]),
  },
  {
    seconds: 121,
    node: node({ desired: "rendered-worker-b", state: "Working" }),
    mcn: machineConfigNode([
      ["UpdatePrepared", "True", 2],
      ["Cordoned", "True", 3],
      ["Drained", "True", 63],
      ["AppliedFiles", "True", 64],
      ["RebootedNode", "True", 120],
    ]),
  },
  {
    seconds: 125,
    node: node({ desired: "rendered-worker-b", current: "rendered-worker-b" }),
    mcn: machineConfigNode([]),
  },
]);
const writer: WriterIdentity = { component: "state", instance: "state-x" };
const seenLines = shown.map(({ line, at: when }, index) => ({
  ...lineOf(
    { book: "node/worker-0", ...line },
    { writer, boot: "pod-9", number: { seq: index + 1 }, at: when, mono: when - morning + 5_000_000 },
  ),
  via: "seen" as const,
}));

describe("an unreported update", () => {
  test("is a chapter with the visible sections, marked as observed [pool-seen-lines-1]", () => {
    const chapters = foldBook("node/worker-0", seenLines, { now: morning + 200_000 });
    expect(chapters).toMatchObject([
      {
        chapter: "Update",
        run: "rendered-worker-b",
        outcome: "Succeeded",
        confidence: "Observed",
        from: { config: "rendered-worker-a" },
        durationMs: 124_000,
      },
    ]);
    expect(chapters[0]?.sections.map(({ path, durationMs, outcome }) => [path, durationMs, outcome])).toEqual([
      ["Requested", 1000, "Succeeded"],
      ["Prepared", 0, "Succeeded"],
      ["Executed/Cordoned", 0, "Succeeded"],
      ["Executed/Drained", 59_000, "Succeeded"],
      ["Executed/Files", 0, "Succeeded"],
      ["PostAction/Rebooted", 56_000, "Succeeded"],
      ["Updated", 0, "Succeeded"],
    ]);
  });

  test("is taken from reports as soon as they arrive, and observations add nothing [pool-seen-lines-2]", () => {
    const { lines } = reportedUpdate();
    const [told] = foldBook("node/worker-0", lines, { now: morning + 200_000 });
    expect(foldBook("node/worker-0", [...seenLines, ...lines], { now: morning + 200_000 })).toEqual([told]);
  });

  test("ends as observed if the daemon reported only its beginning [pool-seen-lines-3]", () => {
    const { daemon, controller } = reportedUpdate();
    const begun = [...daemon.lines.slice(0, 5), ...controller.lines];
    const [chapter] = foldBook("node/worker-0", [...begun, ...seenLines], { now: morning + 200_000 });
    expect(chapter).toMatchObject({ state: "Closed", outcome: "Succeeded", confidence: "Told" });
    expect(chapter?.sections.find(({ path }) => path === "PostAction/Rebooted")).toMatchObject({
      outcome: "Succeeded",
      durationMs: 56_000,
    });
  });
});
