import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { describe, expect, test } from "vitest";
import type { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import type { Node, Pod } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import {
  type Facts,
  clusterMayUpgrade,
  factsOf,
  nodePosition,
  nodeWait,
  poolRunsConfig,
  poolMayBuild,
  poolMayRollOut,
  poolProgressOf,
} from "../pool/pool-queries.ts";
import { LineWriter } from "../../../test/support/line-writer.ts";
import type { JournalLine } from "../../api/books/journal-line.ts";
import { foldBook } from "../books/fold-book.ts";
import { type Past, pastOf, noPast } from "../books/past.ts";
import { readBook } from "../books/read-book.ts";
import { explainClusterOperator, explainMachineConfig, explainNode, explainPool } from "./explain.ts";
import { explainNodeBinding } from "./explain-joining-kinds.ts";
import { explanationText } from "./explanation.ts";
import { releasedSpec } from "../join/join-changes.ts";

const now = Date.UTC(2030, 0, 1, 12);
const [old, new_] = [
  "rendered-worker-00000000000000000000000000000001",
  "rendered-worker-00000000000000000000000000000002",
];

const rendered = (name: string, mode: number): MachineConfig =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: {
      name,
      creationTimestamp: "2030-01-01T11:00:00Z",
      annotations: { [annotations.generatedByController]: "1" },
    },
    spec: {
      config: {
        ignition: { version: "3.5.0" },
        storage: { files: [{ path: "/etc/a.conf", mode, contents: { source: "data:,x" } }] },
      },
      kernelArguments: [],
      extensions: [],
      fips: false,
      kernelType: "default",
      osImageURL: "",
      baseOSExtensionsContainerImage: "",
    },
  }) as never;
const poolNamed = (
  name: string,
  more: object = {},
  conditions: readonly object[] = [],
  annotated: Readonly<Record<string, string>> = {},
): MachineConfigPool =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigPool",
    metadata: { name, annotations: annotated, labels: { [labels.builtInPool]: "" } },
    spec: {
      nodeSelector: { matchLabels: { [`role-${name}`]: "" } },
      machineConfigSelector: { matchLabels: { [labels.role]: name } },
      configuration: { name: new_, source: [{ name: "99-worker-a" }] },
      ...more,
    },
    status: { configuration: { name: old }, conditions },
  }) as never;
interface NodeOptions {
  readonly has?: string;
  readonly wants?: string;
  readonly state?: string;
  readonly notes?: Readonly<Record<string, string>>;
  readonly roles?: readonly string[];
  readonly ready?: string;
  readonly cordoned?: boolean;
}
const node = (
  name: string,
  {
    has = new_,
    wants = has,
    state = "Done",
    notes = {},
    roles = ["worker"],
    ready = "True",
    cordoned = false,
  }: NodeOptions = {},
): Node =>
  ({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      creationTimestamp: "2029-01-01T00:00:00Z",
      labels: Object.fromEntries(roles.map((role) => [`role-${role}`, ""])),
      annotations: {
        ...(has === "" ? {} : { [annotations.currentConfig]: has }),
        [annotations.desiredConfig]: wants,
        [annotations.state]: state,
        ...notes,
      },
    },
    spec: cordoned ? { unschedulable: true } : {},
    status: {
      conditions: [
        {
          type: "Ready",
          status: ready,
          reason: "NodeStatusUnknown",
          message: "Kubelet stopped posting node status.",
          lastTransitionTime: "2030-01-01T11:30:00Z",
        },
      ],
    },
  }) as never;
const tells = (
  name: string,
  ...conditions: readonly (readonly [type: string, status: string, reason: string, message: string])[]
): MachineConfigNode =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigNode",
    metadata: { name },
    spec: { node: { name }, pool: { name: "worker" }, configVersion: { desired: new_ } },
    status: {
      configVersion: { current: new_, desired: new_ },
      conditions: conditions.map(([type, status, reason, message]) => ({
        type,
        status,
        reason,
        message,
        lastTransitionTime: "2030-01-01T11:56:00Z",
      })),
    },
  }) as never;
const clusterOf = (given: Partial<Parameters<typeof factsOf>[0]>): Facts =>
  factsOf(
    {
      pools: [poolNamed("worker")],
      nodes: [],
      machineConfigNodes: [],
      machineConfigs: [rendered(old, 0o600), rendered(new_, 0o644)],
      ...given,
    },
    now,
  );

const draining = {
  has: old,
  wants: new_,
  state: "Working",
  notes: { [annotations.desiredDrain]: `drain-${new_}`, [annotations.cordonedFor]: `drain-${new_}` },
  cordoned: true,
};
const held = tells("b", [
  "Drained",
  "Unknown",
  "PodsBlocked",
  "1 pod cannot be evicted: default/web-1 by PodDisruptionBudget default/web",
]);

describe("what a pool says of itself", () => {
  test("during a roll-out: the target and its changes, updating, blocked and waiting machines with reasons, and remedies [preview-explain-5]", () => {
    const facts = clusterOf({
      nodes: [node("a"), node("b", draining), node("c", { has: old }), node("d", { has: old })],
      machineConfigNodes: [held],
    });
    const text = explanationText(explainPool(facts, "worker") ?? expect.fail());
    expect(text).toBe(`Pool worker is rolling out: 1 of 4 machines have ${new_}.
Target:
  ${new_}, made 2030-01-01T11:00:00Z
    ~ /etc/a.conf
Done:
  a
Blocked:
  b: Draining since 2030-01-01T11:56:00Z (1 pod cannot be evicted: default/web-1 by PodDisruptionBudget default/web)
Waiting:
  c, d: BudgetUsed, 1 of 1 allowed unavailable: b updating; it continues when one of them is back; maxUnavailable of the pool says how many may be away
Budget:
  1 of 1 machines that may be away are
What happens next:
  next in turn: c, d
What to do:
  look at what holds the drain of b: mco explain node/b
`);
    // It is the target since its roll-out began, whenever it was made.
    const history = [{ chapter: "Rollout", run: new_, startedAt: "2030-01-01T11:50:00Z", state: "Open", sections: [] }];
    const past = { ...noPast, history } as unknown as typeof noPast;
    expect(explainPool(facts, "worker", past)?.sections[0]?.lines[0]).toBe(`${new_} since 2030-01-01T11:50:00Z`);
    expect(poolMayRollOut(facts, "worker")?.value).toEqual({ may: "Yes" });
    expect(poolRunsConfig(facts, "worker", new_)?.value).toEqual({ is: "Some", machines: 1, of: 4 });
    expect(poolRunsConfig(facts, "worker", old)?.value).toEqual({ is: "Some", machines: 2, of: 4 });
  });

  const verdicts: readonly {
    title: string;
    given: Partial<Parameters<typeof factsOf>[0]>;
    verdict: string;
    tells: readonly string[];
  }[] = [
    {
      title: "when everything is done",
      given: { nodes: [node("a")] },
      verdict: "Done",
      tells: [`The one machine of pool worker has ${new_}.`, "What to do: nothing"],
    },
    {
      title: "when it has no machines",
      given: {},
      verdict: "Done",
      tells: [`Pool worker has no machines; new ones get ${new_}.`],
    },
    {
      title: "when it is paused",
      given: { pools: [poolNamed("worker", { paused: true })], nodes: [node("a", { has: old })] },
      verdict: "Paused",
      tells: ["is paused: 0 of 1", "a: Paused", "set spec.paused of the pool to false"],
    },
    {
      title: "when nothing was rendered yet",
      given: { pools: [poolNamed("worker", { configuration: undefined })], nodes: [node("a", { has: "", wants: "" })] },
      verdict: "NotRendered",
      tells: ["has no configuration yet", "see the condition RenderDegraded"],
    },
    {
      title: "when it cannot be rendered",
      given: {
        pools: [
          poolNamed("worker", {}, [
            { type: "RenderDegraded", status: "True", reason: "RenderRefused", message: "99-x: bad mode" },
          ]),
        ],
        nodes: [node("a")],
      },
      verdict: "Done",
      tells: ["Cannot be rendered:\n  99-x: bad mode", "correct, label, delete or make again what the message names"],
    },
    {
      title: "when a machine is lost",
      given: { nodes: [node("a", { ready: "Unknown" }), node("b")] },
      verdict: "Done",
      tells: [
        "Out of reach:\n  a: Lost since 2030-01-01T11:30:00Z (Ready is Unknown (NodeStatusUnknown))",
        "bring a back, or delete its Node",
      ],
    },
    {
      title: "when a machine is degraded",
      given: {
        nodes: [
          node("a", { has: old, wants: new_, state: "Degraded", notes: { [annotations.reason]: "no space left" } }),
        ],
      },
      verdict: "RollingOut",
      tells: ["Failed:\n  a: Degraded (no space left)", "repair a: mco explain node/a"],
    },
    {
      title: "when a machine went back from the target",
      given: {
        pools: [
          poolNamed("worker", {}, [], {
            [annotations.quarantined]: JSON.stringify([{ config: new_, reason: "x", at: "", nodes: ["a"] }]),
          }),
        ],
        nodes: [node("a", { has: old }), node("b", { has: old })],
      },
      verdict: "Blocked",
      tells: ["stands still", "TargetQuarantined", "removing the annotation"],
    },
  ];
  test.for(verdicts)("$title [preview-explain-6]", ({ given, verdict, tells: expected }) => {
    const facts = clusterOf(given);
    expect(poolProgressOf(facts, "worker")?.value.verdict).toBe(verdict);
    const text = explanationText(explainPool(facts, "worker") ?? expect.fail());
    for (const part of expected) expect(text).toContain(part);
  });

  test("when a daemon is not ready though its kubelet works [preview-explain-7]", () => {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "d", namespace: "x" },
      spec: { nodeName: "a" },
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "False", lastTransitionTime: "2030-01-01T11:50:00Z" }],
      },
    } as unknown as Pod;
    const facts = clusterOf({ nodes: [node("a"), node("b")], daemonPods: [pod] });
    expect(explanationText(explainPool(facts, "worker") ?? expect.fail())).toContain(
      "Daemon silent:\n  a: Updated since 2030-01-01T11:50:00Z",
    );
    expect(nodePosition(facts, "a")?.value).toEqual({ at: "Silent" });
    expect(
      nodePosition(
        factsOf(
          { pools: [poolNamed("worker")], nodes: [node("a")], machineConfigNodes: [], daemonPods: [pod] },
          Date.UTC(2030, 0, 1, 11, 54),
        ),
        "a",
      )?.value,
    ).toEqual({ at: "Idle" });
  });
});

describe("what a node says of itself", () => {
  test.for<{
    title: string;
    options: NodeOptions;
    machineConfigNode?: MachineConfigNode;
    at: string;
    tells: readonly string[];
  }>([
    {
      title: "with its target",
      options: {},
      at: "Idle",
      tells: [`has ${new_}`, "nothing, until its pool's configuration changes"],
    },
    {
      title: "waiting for its turn",
      options: { has: old },
      at: "NeedsUpdate",
      tells: [`the pool's target is ${new_}`, "On its way:\n  ~ /etc/a.conf", "BudgetUsed"],
    },
    {
      title: "held in its drain",
      options: draining,
      machineConfigNode: held,
      at: "Executing",
      tells: ["by PodDisruptionBudget default/web", "let the pods go that are named under Steps"],
    },
    {
      title: "degraded",
      options: { has: old, wants: new_, state: "Degraded", notes: { [annotations.reason]: "no space left" } },
      at: "Degraded",
      tells: ["no space left", "the daemon tries again by itself"],
    },
    {
      title: "out of reach",
      options: { ready: "Unknown" },
      at: "Lost",
      tells: ["no reboot was announced", "its kubelet"],
    },
    {
      title: "rebooting",
      options: {
        has: old,
        wants: new_,
        state: "Working",
        notes: { [annotations.postConfigAction]: "Rebooting" },
        ready: "Unknown",
        cordoned: true,
      },
      at: "PostAction",
      tells: ["it reboots", "it continues on its own"],
    },
    {
      title: "joining",
      options: { has: "", wants: "", state: "" },
      at: "Joining",
      tells: ["nothing has been applied to it yet"],
    },
  ])("$title [preview-explain-4]", ({ options, machineConfigNode, at, tells: expected }) => {
    // Another machine is away, so that nobody else is taken.
    const facts = clusterOf({
      nodes: [node("b", options), node("z", { cordoned: true })],
      machineConfigNodes: machineConfigNode === undefined ? [] : [machineConfigNode],
    });
    expect(nodePosition(facts, "b")?.value.at).toBe(at);
    const text = explanationText(explainNode(facts, "b") ?? expect.fail());
    for (const part of expected) expect(text).toContain(part);
  });

  test("in two pools it belongs to none, which both pools and the node say [preview-explain-1]", () => {
    const facts = clusterOf({
      pools: [poolNamed("worker"), poolNamed("infra"), poolNamed("gpu")],
      nodes: [node("x", { roles: ["infra", "gpu"] })],
    });
    expect(nodePosition(facts, "x")).toMatchObject({ value: { at: "Unmanaged" }, because: { reason: "SeveralPools" } });
    expect(explanationText(explainNode(facts, "x") ?? expect.fail())).toContain(
      "take a label away that only one of gpu and infra selects by",
    );
    for (const pool of ["infra", "gpu"])
      expect(explanationText(explainPool(facts, pool) ?? expect.fail())).toContain(
        "In several pools, and so in none:\n  x (gpu, infra)",
      );
    expect(explanationText(explainPool(facts, "worker") ?? expect.fail())).not.toContain("several pools");
  });

  test("in no pool it names the labels of each pool, that of its last pool first [preview-explain-22]", () => {
    const facts = clusterOf({
      pools: [poolNamed("master"), poolNamed("worker")],
      nodes: [node("x", { roles: [] })],
    });
    const text = explanationText(explainNode(facts, "x") ?? expect.fail());
    expect(text).toMatch(
      /What to do:\n {2}to put it into pool master: kubectl label node x \S+\n {2}to put it into pool worker: kubectl label node x \S+\n$/,
    );
    const binding = {
      metadata: { name: "x" },
      spec: { pool: "worker", lastPool: "worker", publicKey: "", expiresAt: "", releasedAt: "2026-01-01T00:00:00Z" },
    } as unknown as NodeBinding;
    const known = explanationText(explainNode(facts, "x", { binding }) ?? expect.fail());
    expect(known).toContain(
      "In no pool:\n  its machine joined pool worker; it was in pool worker last; the Node x was deleted on 2026-01-01T00:00:00Z",
    );
    expect(known).toContain("What to do:\n  to put it into pool worker, where it was: kubectl label node x");
  });

  test("it says which of its requests for certificates are refused, why, and what ends that [preview-explain-31]", () => {
    const facts = clusterOf({ pools: [poolNamed("worker")], nodes: [node("x")] });
    const later = "2100-01-01T00:00:00Z";
    const textWith = (spec: Partial<NodeBinding["spec"]>) => {
      const binding = { metadata: { name: "x" }, spec: { pool: "worker", publicKey: "", expiresAt: later, ...spec } };
      return explanationText(explainNode(facts, "x", { binding: binding as NodeBinding }) ?? expect.fail());
    };
    expect(textWith({})).not.toContain("Requests for certificates");
    const released = textWith({ revoked: true });
    expect(released).toContain(
      "Requests for certificates:\n  the API server refuses all requests of the Node (policy former-machines-of-nodes), because an administrator released the name",
    );
    expect(released).toMatch(/What to do:[^]*mco token create --pool worker --node x[^]*kubectl delete nodebinding x/);
    const former = { formerCertificates: [{ sha256: "f".repeat(64), expiresAt: later }], formerExpiresAt: later };
    expect(textWith(former)).toContain(
      "sent with a recorded certificate of that machine (1; policy former-machines-of-nodes)",
    );
    expect(textWith(former)).toContain("kubectl edit nodebinding x");
    const taken = textWith({ ...former, exclusive: true });
    expect(taken).toContain("the API server refuses those that are sent with any other certificate");
    expect(taken).toContain("kubectl patch nodebinding x");
    // Nothing is recorded of the former machine: nothing of it is refused, and that is not kept quiet.
    expect(textWith({ formerExpiresAt: later })).toContain("the API server refuses none of its requests");
    expect(textWith({ ...former, formerExpiresAt: "2000-01-01T00:00:00Z" })).not.toContain("Requests for");
  });

  test.for([
    { pool: "worker", was: "its Node was in pool worker then", remedy: "mco token create --pool worker --node x" },
    { pool: undefined, was: "its Node was in no pool, or gone then", remedy: "mco token create --pool POOL --node x" },
  ])(
    "of a released machine that others admitted, it makes up no way into a pool: $pool [preview-explain-32]",
    ({ pool, was, remedy }) => {
      const facts = clusterOf({ pools: [poolNamed("worker")], nodes: [node("x", { roles: [] })] });
      const binding = { metadata: { name: "x" }, spec: releasedSpec(pool, facts.now) } as NodeBinding;
      const text = explanationText(explainNodeBinding(binding, facts));
      expect(text).toContain("its machine, which another approver admitted, gets no certificate");
      expect(text).toContain("Bound to:\n  no known machine: this suite did not admit the one of the name");
      expect(text).toContain(was);
      expect(text).toContain(remedy);
      const ofNode = explanationText(explainNode(facts, "x", { binding }) ?? expect.fail());
      expect(ofNode).toContain("In no pool:\n  this suite did not admit its machine");
      for (const one of [text, ofNode]) expect(one).not.toMatch(/joined pool|of key|pool unknown/);
      const known = { ...binding, spec: { ...binding.spec, publicKey: "ab".repeat(32), pool: "worker" } };
      expect(explanationText(explainNodeBinding(known, facts))).toContain(
        "the machine of key abababababab…, which joined pool worker",
      );
    },
  );

  test("a disagreement of annotations and MachineConfigNode is reported after a minute [preview-explain-3]", () => {
    const { members } = clusterOf({
      nodes: [node("b")],
      machineConfigNodes: [tells("b", ["NodeDegraded", "True", "Failed", "disk"])],
    });
    expect([...members.contradictions(now)]).toEqual([]);
    expect([...members.contradictions(now + 61_000).keys()]).toEqual(["b"]);
  });

  test("every machine of a large pool knows why it waits [preview-explain-2]", () => {
    const facts = clusterOf({
      nodes: Array.from({ length: 40 }, (_, index) => node(`n${index}`, index === 0 ? draining : { has: old })),
    });
    for (let index = 1; index < 40; index += 1) expect(nodeWait(facts, `n${index}`)?.value.reason).toBe("BudgetUsed");
  });
});

/** What the pool's own journal lines make of its past, with the chapters kept and with nothing kept. */
function pastFrom(lines: readonly JournalLine[], keeps: boolean) {
  const book = "pool/worker";
  const chapters = keeps
    ? foldBook(book, lines, { now }).map((record, index) => ({ spec: { ...record, number: index + 1 } }))
    : [];
  const journals = keeps ? [] : [{ metadata: { name: "controller" }, spec: { lines: [...lines], last: [] } }];
  const update = (minutes: number) => ({
    book: "node/x",
    number: 1,
    chapter: "Update",
    run: "r",
    pool: "worker",
    startedAt: "2029-12-31T10:00:00Z",
    endedAt: `2029-12-31T10:0${minutes}:00Z`,
    state: "Closed" as const,
    outcome: "Succeeded" as const,
    confidence: "Told" as const,
    entries: [],
    dropped: 0,
    through: [],
    sections: [
      {
        path: "Executed/Drained",
        startedAt: "2029-12-31T10:00:00Z",
        endedAt: `2029-12-31T10:0${minutes - 1}:00Z`,
        outcome: "Succeeded" as const,
        attempts: 1,
      },
    ],
  });
  return pastOf(
    "worker",
    keeps ? [update(4), update(5), update(6)] : [],
    readBook({ books: [], chapters, journals }, book, now).chapters,
  );
}

describe("a pool is explained with cause and next action, with and without a state process", () => {
  const of = (
    path: "Built",
    mark: "begin" | "end" | "fail",
    reason: "BuildStarted" | "ImageBuilt" | "BuildFailed",
    message: string,
  ) =>
    ({
      book: "pool/worker",
      chapter: "Build",
      run: "worker-abc",
      path,
      mark,
      reason,
      message,
      level: "boundary",
    }) as const;
  const told = (...lines: readonly Parameters<LineWriter["at"]>[1][]): readonly JournalLine[] => {
    const builder = new LineWriter("os-builder", "os-builder-x", "pod-1");
    for (const [index, line] of lines.entries()) builder.at(index * 60, line);
    return builder.lines;
  };
  const silentPod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "d", namespace: "x" },
    spec: { nodeName: "a" },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: "False", lastTransitionTime: "2030-01-01T11:50:00Z" }],
    },
  } as unknown as Pod;
  const states: readonly {
    title: string;
    given?: Partial<Parameters<typeof factsOf>[0]>;
    lines?: readonly JournalLine[];
    cause: string;
    next: string;
  }[] = [
    {
      title: "building",
      lines: told(of("Built", "begin", "BuildStarted", "worker-abc is built from rendered-worker-2")),
      cause: "Image being built:\n  worker-abc is built from rendered-worker-2, since 2026-01-02T10:00:00Z",
      next: "machines get the image when it is built",
    },
    {
      title: "build failed",
      lines: told(
        of("Built", "begin", "BuildStarted", "worker-abc is built"),
        of("Built", "fail", "BuildFailed", "step user:2: no package named htopp"),
      ),
      cause: "Image cannot be built:\n  step user:2: no package named htopp",
      next: "mco build explain names the step",
    },
    {
      title: "next image cannot be built",
      given: {
        pools: [
          poolNamed("worker", {}, [
            { type: "ImageBuildDegraded", status: "True", reason: "SecretMissing", message: "the Secret push is gone" },
          ]),
        ],
        nodes: [node("a")],
      },
      cause: "Next image cannot be built:\n  the Secret push is gone",
      next: "have its next image built: mco build explain worker",
    },
    {
      title: "draining blocked by PDB",
      given: { nodes: [node("b", draining)], machineConfigNodes: [held] },
      cause: "PodDisruptionBudget default/web",
      next: "look at what holds the drain of b",
    },
    {
      title: "canary wait",
      given: { nodes: [node("a"), node("b", { has: old })] },
      lines: told(
        { book: "pool/worker", chapter: "Rollout", run: new_, path: "Begun", mark: "begin", reason: "TargetChanged" },
        {
          book: "pool/worker",
          chapter: "Rollout",
          run: new_,
          path: "Canary",
          mark: "begin",
          reason: "Canary",
          message: "a goes first",
        },
      ),
      cause: "One machine goes first:\n  a goes first",
      next: "when the first has proven itself",
    },
    {
      title: "paused",
      given: { pools: [poolNamed("worker", { paused: true })], nodes: [node("a", { has: old })] },
      cause: "is paused: 0 of 1",
      next: "set spec.paused of the pool to false",
    },
    {
      title: "render degraded",
      given: {
        pools: [
          poolNamed("worker", {}, [
            { type: "RenderDegraded", status: "True", reason: "RenderRefused", message: "99-x: bad mode" },
          ]),
        ],
        nodes: [node("a")],
      },
      cause: "99-x: bad mode",
      next: "correct, label, delete or make again what the message names",
    },
    {
      title: "lost node",
      given: { nodes: [node("a", { ready: "Unknown" }), node("b")] },
      cause: "Out of reach:\n  a: Lost since 2030-01-01T11:30:00Z",
      next: "bring a back, or delete its Node",
    },
    {
      title: "silent daemon",
      given: { nodes: [node("a"), node("b")], daemonPods: [silentPod] },
      cause: "its daemon's pod is not ready, so the machine is not managed",
      next: "look at the daemon's pod on a",
    },
  ];
  test.for(
    states
      .flatMap((state) => [
        { ...state, keeps: true },
        { ...state, keeps: false },
      ])
      .map((state) => ({ ...state, title: `${state.title}, ${state.keeps ? "with chapters" : "without"}` })),
  )("$title [preview-explain-15]", ({ given, lines = [], cause, next, keeps }) => {
    const text = explanationText(
      explainPool(clusterOf(given ?? { nodes: [node("a")] }), "worker", pastFrom(lines, keeps)) ?? expect.fail(),
    );
    expect(text).toContain(cause);
    expect(text.slice(Math.max(text.indexOf("What happens next:"), 0))).toContain(next);
  });

  test("a machine that was served and has not joined is named, with what to do [preview-explain-14]", () => {
    const overdue = [
      {
        requester: "10.0.0.7",
        pool: "worker",
        config: "rendered-worker-2",
        servedAt: Date.parse("2030-01-01T10:00:00Z"),
      },
    ];
    const text = explanationText(
      explainPool(clusterOf({ nodes: [node("a")] }), "worker", { ...noPast, overdue }) ?? expect.fail(),
    );
    expect(text).toContain(
      "Served and not joined:\n  the machine 10.0.0.7 was given rendered-worker-2 at 2030-01-01T10:00:00Z and has not joined since",
    );
    expect(text.slice(text.indexOf("What to do:"))).toContain("Look at the machine's console");
  });

  test("machines that started from old boot images are named, with what to do [preview-explain-28]", () => {
    const served = { pool: "worker", config: "rendered-worker-2", servedAt: Date.parse("2030-01-01T10:00:00Z") };
    const booted = [
      { ...served, requester: "10.0.0.7", ignition: "2.9", is: "joined", node: "a" },
      { ...served, requester: "10.0.0.7", ignition: "2.9", is: "joined", node: "a" },
      { ...served, requester: "10.0.0.8", ignition: "2.9", is: "overdue" },
      { ...served, requester: "10.0.0.9", ignition: "0.35", is: "probable", node: "b" },
      { ...served, requester: "10.0.0.1", ignition: "2.20", is: "joined", node: "c" },
      { ...served, requester: "10.0.0.2", is: "joined", node: "d" },
    ] as const;
    const text = (past: Past) =>
      explanationText(explainPool(clusterOf({ nodes: [node("a")] }), "worker", past) ?? expect.fail());
    const said = text({ ...noPast, booted });
    expect(said).toContain(
      "Started from old boot images in the last week, as their requests say:\n  Ignition 0.35: probably b\n  Ignition 2.9: a, the machine 10.0.0.8\n",
    );
    expect(said.slice(said.indexOf("What to do:"))).toContain("from a boot image with Ignition 2.15 or later");
    expect(text({ ...noPast, booted: booted.slice(4) })).toBe(text(noPast));
  });

  test("an image that was built after all is no trouble any more, nor one that goes first and is through [preview-explain-16]", () => {
    const lines = told(
      of("Built", "fail", "BuildFailed", "no"),
      of("Built", "begin", "BuildStarted", "again"),
      of("Built", "end", "ImageBuilt", "done"),
    );
    const text = explanationText(
      explainPool(clusterOf({ nodes: [node("a")] }), "worker", pastFrom(lines, true)) ?? expect.fail(),
    );
    expect(text).not.toMatch(/Image|goes first/);
    expect(text).toContain("What to do: nothing");
  });

  test.for([true, false])(
    "an image that could not be built is no trouble of a pool that has opted out since, kept: %j [preview-explain-27]",
    (keeps) => {
      const lines = told(of("Built", "begin", "BuildStarted", "built"), of("Built", "fail", "BuildFailed", "no"), {
        book: "pool/worker",
        chapter: "OptOut",
        run: "2026-01-02T10:02:00Z",
        path: "Asked",
        mark: "end",
        reason: "OptedOut",
      });
      const text = explanationText(
        explainPool(clusterOf({ nodes: [node("a")] }), "worker", pastFrom(lines, keeps)) ?? expect.fail(),
      );
      expect(text).not.toContain("Image cannot be built");
      expect(text).toContain("What to do: nothing");
    },
  );
});

describe("with chapters", () => {
  const rolling = clusterOf({
    nodes: [node("a"), node("b", { ...draining }), node("c", { has: old }), node("d", { has: old })],
    machineConfigNodes: [tells("b", ["Drained", "Unknown", "Draining", "3 pods leave"])],
  });

  test("a roll-out says when each machine and the whole are likely to end, with the spread [preview-explain-17]", () => {
    const explanation = explainPool(rolling, "worker", pastFrom([], true)) ?? expect.fail();
    expect(explanation.sections.find(({ title }) => title === "Likely end")?.lines).toEqual([
      "the roll-out: between 12:06 and 12:21Z, most likely 12:12 (in 12m00s; median of 3 updates of this pool)",
      "b: between 12:00 and 12:08Z, most likely 12:02 (in 2m00s; one update of this pool)",
      "a machine takes 5m00s (4m12s to 5m48s), of that Executed/Drained 4m00s (3m12s to 4m48s)",
    ]);
    expect(explanation.likelyEnd).toEqual({
      likely: "2030-01-01T12:12:00Z",
      earliest: expect.any(String) as string,
      latest: expect.any(String) as string,
      updates: 3,
    });
    expect(
      explainNode(rolling, "b", { past: pastFrom([], true) })?.sections.find(({ title }) => title === "Likely end")
        ?.lines,
    ).toHaveLength(1);
  });

  test("without them nothing is estimated, and nothing else is missing [preview-explain-18]", () => {
    const [without, with_] = [
      explainPool(rolling, "worker", pastFrom([], false)) ?? expect.fail(),
      explainPool(rolling, "worker", pastFrom([], true)) ?? expect.fail(),
    ];
    expect(without).not.toHaveProperty("likelyEnd");
    expect(without.sections).toEqual(with_.sections.filter(({ title }) => title !== "Likely end"));
    expect([without.next, without.todo]).toEqual([with_.next, with_.todo]);
  });

  test("a pool that needs an administrator has no estimated end [preview-explain-19]", () => {
    for (const given of [
      { pools: [poolNamed("worker", { paused: true })] },
      {
        pools: [
          poolNamed("worker", {}, [], {
            [annotations.quarantined]: JSON.stringify([{ config: new_, reason: "x", at: "", nodes: ["a"] }]),
          }),
        ],
      },
    ]) {
      const facts = clusterOf({ nodes: [node("a", { has: old }), node("b", { has: old })], ...given });
      expect(explainPool(facts, "worker", pastFrom([], true))).not.toHaveProperty("likelyEnd");
    }
  });

  test("a machine that pods hold has no estimated end, as its pool does not count it; nor is it told to let pods go that do not hold it [preview-explain-26]", () => {
    const with_ = (phase: typeof held) =>
      explainNode(clusterOf({ nodes: [node("a"), node("b", draining)], machineConfigNodes: [phase] }), "b", {
        past: pastFrom([], true),
      }) ?? expect.fail();
    expect(with_(held)).not.toHaveProperty("likelyEnd");
    expect(with_(held).todo).toEqual([expect.stringContaining("let the pods go")]);
    const superseded = with_(tells("b", ["Drained", "Unknown", "Superseded", `${new_} came in the middle of it`]));
    expect(superseded.likelyEnd).toBeDefined();
    expect(superseded.todo).toEqual([]);
  });

  test("a pool that waits for an image has no estimated end, and names what is missing [preview-explain-25]", () => {
    const waits = poolNamed("worker");
    const pool = { ...waits, metadata: { ...waits.metadata, labels: { [annotations.layeringEnabled]: "" } } };
    const facts = clusterOf({ nodes: [node("a", { has: old }), node("b", { has: old })], pools: [pool] });
    const explanation = explainPool(facts, "worker", pastFrom([], true)) ?? expect.fail();
    expect(explanation).not.toHaveProperty("likelyEnd");
    // They may have the configuration, and only its image is missing.
    expect(explanation.headline).toMatch(/0 of 2 machines have rendered-\S+ with its image\.$/);
    expect(explanation.todo.join("\n")).toContain("on-cluster-build-config");
    expect(explanation.sections.find(({ title }) => title === "Likely end")?.lines.join() ?? "").not.toContain(
      "roll-out",
    );
  });

  test("a pool shows what changed, its author and its time: from the API server, or else from the reported roll-out [preview-explain-20]", () => {
    const member = {
      apiVersion: "machineconfiguration.openshift.io/v1",
      kind: "MachineConfig",
      metadata: {
        name: "99-worker-a",
        managedFields: [{ manager: "kubectl-edit", operation: "Update", time: "2030-01-01T11:30:00Z" }],
      },
      spec: {},
    } as unknown as MachineConfig;
    const controller = new LineWriter("controller", "c", "pod-1");
    controller.at(0, {
      book: "pool/worker",
      chapter: "Rollout",
      run: new_,
      path: "Begun",
      mark: "begin",
      reason: "TargetChanged",
      data: { cause: "99-worker-a changed", by: "kubectl-edit" },
    });
    const facts = clusterOf({
      nodes: [node("a", { has: old })],
      machineConfigs: [rendered(old, 0o600), rendered(new_, 0o644), member],
    });
    expect(
      explainPool(facts, "worker", pastFrom(controller.lines, true))?.sections.find(({ title }) => title === "Changed")
        ?.lines,
    ).toEqual(["99-worker-a: changed by kubectl-edit at 2030-01-01T11:30:00Z"]);
    const gone = clusterOf({
      nodes: [node("a", { has: old })],
      machineConfigs: [rendered(old, 0o600), rendered(new_, 0o644)],
    });
    expect(
      explainPool(gone, "worker", pastFrom(controller.lines, true))?.sections.find(({ title }) => title === "Changed")
        ?.lines,
    ).toEqual(["99-worker-a changed, by kubectl-edit"]);
    expect(explanationText(explainMachineConfig(facts, "99-worker-a") ?? expect.fail())).toContain(
      "Written:\n  by kubectl-edit at 2030-01-01T11:30:00Z",
    );
  });

  test("a node says how its last chapters ended [preview-explain-21]", () => {
    const daemon = new LineWriter("daemon", "a");
    daemon.at(0, { book: "node/a", chapter: "Drift", path: "Detected", mark: "fail", reason: "ConfigDrift" });
    daemon.at(60, { book: "node/a", chapter: "Drift", path: "Ended", mark: "end", reason: "DriftGone" });
    const { chapters } = readBook(
      {
        books: [],
        chapters: [],
        journals: [{ metadata: { name: "node-a" }, spec: { lines: daemon.lines, last: [] } }],
      },
      "node/a",
      now,
    );
    expect(
      explanationText(explainNode(clusterOf({ nodes: [node("a")] }), "a", { chapters }) ?? expect.fail()),
    ).toContain("Before:\n  #1 Drift  2026-01-02 10:00:00Z to 10:01:00Z, 1m00s: Succeeded");
  });
});

describe("what the operator says of itself", () => {
  const operator = {
    metadata: { name: "machine-config" },
    status: {
      versions: [{ name: "operator", version: "1.0" }],
      conditions: [
        {
          type: "Available",
          status: "True",
          reason: "AsExpected",
          message: "",
          lastTransitionTime: "2030-01-01T11:00:00Z",
        },
      ],
    },
  } as unknown as ClusterOperator;
  test("when all is well [preview-explain-9]", () => {
    expect(explanationText(explainClusterOperator(clusterOf({ nodes: [node("a")] }), operator))).toContain(
      "The operator is as it should be at operator 1.0.",
    );
  });
  test("an upgrade is kept back by a pool that cannot be rendered, by degraded machines, and by a paused pool that upgrades need, each named with what to do [preview-explain-10]", () => {
    const master = poolNamed("master", { paused: true });
    const pools = [
      poolNamed("worker", {}, [{ type: "RenderDegraded", status: "True", reason: "x", message: "99-x: bad mode" }]),
      { ...master, metadata: { ...master.metadata, labels: { [labels.requiredForUpgrade]: "" } } },
    ];
    const answer = clusterMayUpgrade(
      clusterOf({ pools, nodes: [node("a", { state: "Degraded", notes: { [annotations.reason]: "drift" } })] }),
    );
    expect(answer.value).toMatchObject({
      may: "No",
      blockers: [
        { pool: "worker", reason: "RenderRefused" },
        { pool: "worker", reason: "DegradedPool", remedy: "mco explain node/a" },
        { pool: "master", reason: "PausedPool" },
      ],
    });
  });
});

describe("where a MachineConfig is", () => {
  const member = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: "99-worker-a", labels: { [labels.role]: "worker" } },
    spec: {},
  } as MachineConfig;
  test("in its pool, with how many machines have it [preview-explain-12]", () => {
    const facts = clusterOf({
      nodes: [node("a"), node("b", { has: old })],
      machineConfigs: [member, rendered(new_, 0o644)],
    });
    expect(
      explanationText(
        explainMachineConfig(facts, new_, {
          name: new_,
          keep: true,
          because: "used",
          users: ["node w0 (desiredConfig)"],
        }) ?? expect.fail(),
      ),
    ).toContain("Kept:\n  used by node w0 (desiredConfig)");
    expect(explanationText(explainMachineConfig(facts, "99-worker-a") ?? expect.fail())).toContain(
      `worker: part of ${new_}, which 1 of 2 machines have`,
    );
  });
  test("in no pool, with what to do [preview-explain-13]", () => {
    const facts = clusterOf({ machineConfigs: [{ ...member, metadata: { name: "99-lost" } }] });
    expect(explanationText(explainMachineConfig(facts, "99-lost") ?? expect.fail())).toContain("give it a label");
  });
});

test("a pool may be built whatever its machines do, but not without a configuration or one that cannot be rendered [preview-explain-8]", () => {
  expect(poolMayBuild(clusterOf({ nodes: [node("a", { state: "Degraded" })] }), "worker")?.value).toEqual({
    may: "Yes",
  });
  expect(
    poolMayBuild(clusterOf({ pools: [poolNamed("worker", { configuration: undefined })] }), "worker")?.value,
  ).toMatchObject({ may: "No", blockers: [{ reason: "NotRendered" }] });
  expect(
    poolMayBuild(
      clusterOf({ pools: [poolNamed("worker", {}, [{ type: "RenderDegraded", status: "True", message: "no" }])] }),
      "worker",
    )?.value,
  ).toMatchObject({ may: "No", blockers: [{ reason: "RenderRefused" }] });
});

test("an answer says how current it is [preview-explain-11]", () => {
  const facts = clusterOf({ nodes: [node("a")] });
  expect(nodePosition(facts, "a")?.freshness).toBe("Fresh");
  expect(nodePosition({ ...facts, heardAt: now - 200_000 }, "a")).toMatchObject({
    freshness: "Stale",
    asOf: new Date(now - 200_000).toISOString(),
  });
  expect(nodePosition({ ...facts, heardAt: undefined }, "a")?.freshness).toBe("Unknown");
});
