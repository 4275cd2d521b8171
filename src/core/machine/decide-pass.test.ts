import { describe, expect, test } from "vitest";
import { memoryOf } from "../../../test/support/pass-memory.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, hostPaths, nodeStates } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { observedAs } from "../preview/plan-cluster.ts";
import { decidePass, healAgainMs, policiesPatienceMs } from "./decide-pass.ts";
import type { ImagePair } from "./image-target.ts";
import type { MachineDocuments, RefusedTarget } from "./machine-record.ts";
import type { Ledger, ObservedNode, ImageContentRecord } from "./observed-node.ts";
import type { MachineView, PassMemory, PassPlan, Preparation } from "./pass-plan.ts";
import { readTarget } from "./read-config.ts";

const boot = "boot-1";
const stock = "os@sha256:1";
const own: ImagePair = { image: `registry.example/pool@sha256:${"a".repeat(64)}`, content: "full" };

const config = (name: string, text: string, spec: Partial<MachineConfig["spec"]> = {}): MachineConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name },
  spec: {
    osImageURL: stock,
    config: {
      ignition: { version: "3.5.0" },
      storage: { files: [{ path: "/etc/a", mode: 0o644, contents: { source: encodeDataUrl(text) } }] },
    },
    ...spec,
  },
});
const one = config("rendered-1", "1");
const two = config("rendered-2", "2");
const unreadable = config("rendered-2", "2", { config: { ignition: { version: "99.0.0" } } });
const fips = config("rendered-2", "2", { fips: true });
const lists = config("rendered-2", "2", { extensions: ["no-such"] });

/** A machine that is as a configuration says, but for `change`. */
function machine(
  has: MachineConfig,
  change: Partial<ObservedNode> = {},
  pair?: ImagePair,
): NonNullable<MachineView["compared"]> {
  const read = readTarget(has, pair);
  if (read.verdict === "refused") throw new Error(read.reason);
  const node = observedAs(read.wanted.config, {
    image: pair?.image ?? has.spec.osImageURL ?? stock,
    onlyControlPlane: false,
  });
  return { node: { ...node, bootId: boot, ...change }, facts: { sshFolder: undefined, freeBytes: undefined } };
}

const withNotes = (notes: Readonly<Record<string, string>>, spec: Node["spec"] = {}): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "worker-0", annotations: { ...settledNotes, ...notes } },
  spec,
});
const settledNotes = {
  [annotations.desiredConfig]: "rendered-1",
  [annotations.currentConfig]: "rendered-1",
  [annotations.state]: nodeStates.done,
};
const toTwo = { [annotations.desiredConfig]: "rendered-2" };
const imageNotes = ({ image, content }: ImagePair) => ({
  [annotations.desiredImage]: image,
  [annotations.desiredOSImage]: image,
  [annotations.desiredImageContent]: content,
});

const all: readonly Preparation[] = [
  "adopt",
  "correctAnnotations",
  "reportOverdueReboot",
  "reportRefusals",
  "noticeTarget",
];
const but = (...left: readonly Preparation[]) => new Set(all.filter((one) => !left.includes(one)));

const had: MachineDocuments = {
  ledger: undefined,
  previous: { config: one, proven: true },
  originals: undefined,
  refused: [],
};
const adopted = {
  verdict: "adopted",
  previous: { config: one, proven: true },
  originals: { paths: {}, enablement: {}, passwords: {}, kernelArguments: [], ownKernelArguments: [] },
  from: "currentconfig",
} as const;
const refused: RefusedTarget = {
  config: "rendered-2",
  image: stock,
  reason: "it did not boot",
  at: "2026-01-01T00:00:00Z",
  reported: true,
};
const ledger = (change: Partial<Ledger> = {}): Ledger => ({
  v: 1,
  target: "rendered-2",
  bootId: boot,
  owes: [],
  openedAt: "2026-01-01T00:00:00Z",
  ...change,
});
const record = (change: Partial<ImageContentRecord> = {}): ImageContentRecord => ({
  v: 1,
  bootId: boot,
  deployment: { image: stock, kernelArguments: [], packages: [], kernelType: "default" },
  changed: [],
  result: "settled",
  ...change,
});
const unmerged = {
  metadata: { name: "cluster", generation: 2 },
  spec: {},
  status: { observedGeneration: 1 },
} as unknown as MachineConfiguration;

/** A machine that has its target, in a pass in which everything is prepared and read. */
const view = (change: Partial<MachineView> = {}): MachineView => ({
  now: 1_000_000,
  rebootPatienceSeconds: 120,
  node: withNotes({}),
  onlyControlPlane: false,
  configuration: undefined,
  storageOverrides: [],
  documents: had,
  adoption: undefined,
  served: undefined,
  os: {
    bootId: boot,
    booted: { image: stock, kernelArguments: [], packages: [], kernelType: "default" },
    staged: undefined,
    can: { images: true, kernelArguments: true, packages: true, kernelTypes: ["default"] },
    fips: false,
  },
  forced: false,
  prepared: but(),
  desired: { config: one },
  compared: machine(one),
  ...change,
});
/** The same, on its way to the second configuration. */
const going = (change: Partial<MachineView> = {}): MachineView =>
  view({ node: withNotes(toTwo), desired: { config: two }, ...change });

const remembered = memoryOf(boot);

interface Row {
  readonly title: string;
  readonly view: MachineView;
  readonly memory?: Partial<PassMemory>;
  /** What the plan says, at least. */
  readonly plan: { readonly case: PassPlan["case"] } & Readonly<Record<string, unknown>>;
}

const without = (part: "compared" | "desired", from: MachineView): MachineView => {
  const { [part]: _left, ...rest } = from;
  return rest;
};
const lastBoots = ["boot-a", "boot-b", "boot-c"];
const newSystem = config("rendered-2", "1", { osImageURL: "os@sha256:2" });
const neverBoots = going({
  desired: { config: newSystem },
  documents: { ...had, ledger: ledger({ rebootsAsked: lastBoots }) },
  compared: machine(one, { ledger: ledger({ rebootsAsked: lastBoots }) }),
});
const drifted = new Map([["/etc/a", { kind: "file", digest: "x", mode: 0o644, uid: 0, gid: 0 } as const]]);
const heals = { ...imageNotes(own), [annotations.driftPolicy]: "settle" };
const onImage = (change: Partial<ObservedNode> = {}, notes: Readonly<Record<string, string>> = imageNotes(own)) =>
  view({
    node: withNotes(notes),
    documents: { ...had, previous: { config: one, pair: own, proven: true } },
    os: { ...view().os, booted: { ...view().os.booted, image: own.image } },
    compared: machine(one, { payload: "image", ...change }, own),
  });

describe("decidePass", () => {
  test.for<Row>([
    {
      title: "a machine without documents that has a configuration is adopted",
      view: view({ adoption: adopted, prepared: but("adopt") }),
      plan: { case: "adopt", from: "currentconfig" },
    },
    {
      title: "a configuration that neither the disk nor the cluster holds stops everything",
      view: view({ adoption: { verdict: "unknown", config: "rendered-0" } }),
      plan: { case: "currentConfigMissing", message: expect.stringContaining("rendered-0") },
    },
    {
      title: "the force file has a target applied over an unknown configuration",
      view: view({ adoption: { verdict: "unknown", config: "rendered-0" }, forced: true, prepared: new Set() }),
      plan: { case: "correctAnnotations" },
    },
    {
      title: "the disk corrects what the Node says of the current configuration",
      view: view({
        prepared: but("correctAnnotations"),
        node: withNotes({ [annotations.currentConfig]: "rendered-0" }),
      }),
      plan: {
        case: "correctAnnotations",
        annotations: { [annotations.currentConfig]: "rendered-1", [annotations.currentImage]: undefined },
        startedWith: undefined,
      },
    },
    {
      title: "an update under way leaves the current configuration of the Node alone",
      view: view({ prepared: but("correctAnnotations"), documents: { ...had, ledger: ledger() } }),
      plan: { case: "correctAnnotations", annotations: {} },
    },
    {
      title: "the first pass of a boot asks whether the staged system was finalised",
      view: view(),
      memory: { tidiedBoot: "boot-0" },
      plan: { case: "observe", what: { read: "finaliseFailure" } },
    },
    {
      title: "the first pass of a boot tidies up, and reports the reboot that was asked for",
      view: view({
        node: withNotes({ [annotations.postConfigAction]: "Rebooting" }),
        finaliseFailure: { text: "no space" },
      }),
      memory: { tidiedBoot: "boot-0" },
      plan: { case: "tidyAfterBoot", failure: "no space", isNewFailure: true, hasRebooted: true },
    },
    {
      title: "a machine that was asked to reboot is left alone until its patience ends",
      view: view({ now: 119_999 }),
      memory: { rebootAsked: { bootId: boot, at: 0 } },
      plan: { case: "awaitReboot", seconds: 120 },
    },
    {
      title: "a machine that did not go down is reported",
      view: view({ now: 120_000, prepared: but("reportOverdueReboot") }),
      memory: { rebootAsked: { bootId: boot, at: 0 } },
      plan: { case: "reportOverdueReboot" },
    },
    {
      title: "a reboot that was asked for in another boot is over",
      view: view({ now: 1 }),
      memory: { rebootAsked: { bootId: "boot-0", at: 0 } },
      plan: { case: "done" },
    },
    {
      title: "a machine whose content was applied too late waits for one more boot",
      view: view({ documents: { ...had, settled: record({ result: "rebooting" }) } }),
      plan: { case: "awaitRestart", asksAgain: false, since: 1_000_000 },
    },
    {
      title: "that boot is asked for again when patience ends",
      view: view({ documents: { ...had, settled: record({ result: "rebooting" }) } }),
      memory: { restartAwaitedSince: 1_000_000 - 120_000 },
      plan: { case: "awaitRestart", asksAgain: true },
    },
    {
      title: "the force file lifts every refusal",
      view: going({ documents: { ...had, refused: [refused] }, forced: true }),
      plan: { case: "forgetRefusals" },
    },
    {
      title: "a refusal that the MachineConfigNode does not name yet is reported there",
      view: going({ documents: { ...had, refused: [{ ...refused, reported: false }] } }),
      plan: { case: "reportRefusals" },
    },
    {
      title: "a reported refusal is looked up in the MachineConfigNode",
      view: going({ documents: { ...had, refused: [refused] }, prepared: but("reportRefusals") }),
      plan: { case: "observe", what: { read: "refusals" } },
    },
    {
      title: "a refusal that was removed from the MachineConfigNode is lifted",
      view: going({
        documents: { ...had, refused: [refused] },
        prepared: but("reportRefusals"),
        refusalsNamed: false,
      }),
      plan: { case: "forgetRefusals" },
    },
    {
      title: "without a desired configuration nothing is done",
      view: view({ node: withNotes({ [annotations.desiredConfig]: "" }) }),
      plan: { case: "noTarget" },
    },
    {
      title: "image annotations that contradict each other hold the machine, and take its drain back",
      view: going({
        node: withNotes({
          ...toTwo,
          ...imageNotes(own),
          [annotations.desiredOSImage]: "other@sha256:1",
          [annotations.desiredDrain]: "drain-rendered-2",
        }),
      }),
      plan: {
        case: "hold",
        reason: "ConflictingImageAnnotations",
        annotations: { [annotations.desiredDrain]: "uncordon-rendered-1" },
      },
    },
    {
      title: "the desired configuration is read by its name",
      view: without("desired", going()),
      plan: { case: "observe", what: { read: "config", name: "rendered-2" } },
    },
    {
      title: "a configuration that does not exist is waited for",
      view: going({ desired: { config: undefined } }),
      plan: { case: "targetAbsent", message: "rendered-2 does not exist" },
    },
    {
      title: "a new target is noticed before it is compared",
      view: going({ prepared: but("noticeTarget") }),
      plan: { case: "noticeTarget", target: "rendered-2", from: "rendered-1" },
    },
    {
      title: "a target that cannot be read is refused",
      view: going({ desired: { config: unreadable } }),
      plan: { case: "refuse", annotations: { [annotations.state]: nodeStates.unreconcilable } },
    },
    {
      title: "a kept configuration that cannot be read is a failure",
      view: going({ documents: { ...had, previous: { config: unreadable, proven: true } }, desired: { config: one } }),
      plan: { case: "previousUnreadable" },
    },
    {
      title: "the machine is read as far as configuration and target name it",
      view: without("compared", going()),
      plan: { case: "observe", what: { read: "machine", inService: true } },
    },
    {
      title: "a running machine cannot follow a change of FIPS",
      view: going({ desired: { config: fips } }),
      plan: { case: "refuse", message: expect.stringMatching(/^rendered-2 cannot be applied: .*fips/i) },
    },
    {
      title: "a machine that cannot take its target refuses it",
      view: going({ desired: { config: lists } }),
      plan: { case: "refuse", message: expect.stringContaining("no such extension") },
    },
    {
      title: "an image that holds something else than its annotation says holds the machine",
      view: onImage({ payload: undefined }),
      plan: { case: "hold", reason: "ImageContentMismatch" },
    },
    {
      title: "a machine that has its target is done",
      view: view(),
      plan: { case: "done", isNews: false, isFirstOfBoot: false, proves: undefined, forgetsRefusals: false },
    },
    {
      title: "a machine that came up with its first configuration is verified",
      view: view({
        documents: { ...had, previous: { config: one, proven: false }, originals: adopted.originals },
      }),
      plan: { case: "done", proves: { config: one, proven: true } },
    },
    {
      title: "a machine that rolled back keeps its current target",
      view: going({ documents: { ...had, refused: [refused] }, refusalsNamed: true }),
      plan: { case: "stayBack", reason: "TargetRefused", message: expect.stringContaining("it did not boot") },
    },
    {
      title: "a system that never boots is asked for its failure",
      view: neverBoots,
      plan: { case: "observe", what: { read: "finaliseFailure" } },
    },
    {
      title: "a system that never boots sends the machine back",
      view: { ...neverBoots, finaliseFailure: { text: "no space" } },
      plan: {
        case: "goBack",
        reason: "BootFailed",
        to: "rendered-1",
        entry: { config: "rendered-2", image: "os@sha256:2" },
        message: expect.stringMatching(/^after 3 reboots for rendered-2 .*: no space$/),
      },
    },
    {
      title: "a machine that never had anything else cannot go back",
      view: {
        ...neverBoots,
        documents: { ...neverBoots.documents, previous: undefined },
        finaliseFailure: { text: undefined },
      },
      plan: { case: "nothingToGoBackTo", reason: "BootFailed" },
    },
    {
      title: "a machine that cannot apply its image's content rolls back",
      view: going({
        compared: machine(one, { ledger: ledger({ failed: { path: "/etc/a", cause: "it is full" } }) }),
      }),
      plan: { case: "goBack", reason: "SettleFailed", message: expect.stringContaining("at /etc/a: it is full") },
    },
    {
      title: "drift is reported, and a drain request is withdrawn",
      view: view({
        node: withNotes({ [annotations.desiredDrain]: "drain-rendered-1" }),
        compared: machine(one, { entries: drifted }),
      }),
      plan: {
        case: "reportDrift",
        event: "ConfigDriftDetected",
        annotations: { [annotations.desiredDrain]: "uncordon-rendered-1" },
      },
    },
    {
      title: "drift that is found before the machine was ever well is no change that was just made",
      view: view({ compared: machine(one, { entries: drifted }) }),
      memory: { resumedBoot: undefined },
      plan: { case: "reportDrift", event: "OnDiskStateValidationFailed" },
    },
    {
      title: "drift of a machine with its files in the image is repaired if its policy says so",
      view: onImage({ entries: drifted }, heals),
      plan: { case: "healDrift", drift: "/etc/a" },
    },
    {
      title: "drift that returns at once is reported and not repaired again",
      view: onImage({ entries: drifted }, heals),
      memory: { healedDrift: { drift: "/etc/a", at: 1_000_000 - healAgainMs } },
      plan: { case: "reportDrift" },
    },
    {
      title: "drift that returns later is repaired again",
      view: onImage({ entries: drifted }, heals),
      memory: { healedDrift: { drift: "/etc/a", at: 1_000_000 - healAgainMs - 1 } },
      plan: { case: "healDrift" },
    },
    {
      title: "a machine that could not be made equal to the image that it runs is reported",
      view: onImage({ settled: record({ result: "failed", path: "/etc/a", cause: "it is full" }) }),
      plan: { case: "reportUnapplied", message: expect.stringContaining("/etc/a: it is full") },
    },
    {
      title: "an update that has not begun waits for policies that are not merged",
      view: going({ configuration: unmerged }),
      plan: { case: "awaitPolicies", since: 1_000_000, isFirst: true, isOverdue: false },
    },
    {
      title: "policies that are not merged for long are reported",
      view: going({ configuration: unmerged }),
      memory: { policiesAwaitedSince: 1_000_000 - policiesPatienceMs - 1 },
      plan: { case: "awaitPolicies", isFirst: false, isOverdue: true },
    },
    {
      title: "an update that has begun does not wait for policies",
      view: going({ configuration: unmerged, compared: machine(one, { ledger: ledger() }) }),
      plan: { case: "update" },
    },
  ])("$title", ({ view: seen, memory = {}, plan }) => {
    expect(decidePass(seen, { ...remembered, ...memory })).toMatchObject(plan);
  });
});

describe("of two cases that apply, decidePass chooses", () => {
  const goingDown: Partial<PassMemory> = { rebootAsked: { bootId: boot, at: 1_000_000 } };
  test.for<Row>([
    {
      title: "adopting a machine before its first pass of a boot",
      view: view({ adoption: adopted, prepared: new Set() }),
      memory: { tidiedBoot: undefined },
      plan: { case: "adopt" },
    },
    {
      title: "the annotations before the first pass of a boot",
      view: view({ prepared: but("correctAnnotations") }),
      memory: { tidiedBoot: undefined },
      plan: { case: "correctAnnotations" },
    },
    {
      title: "the first pass of a boot before waiting for a reboot",
      view: view({ finaliseFailure: { text: undefined } }),
      memory: { ...goingDown, tidiedBoot: undefined },
      plan: { case: "tidyAfterBoot" },
    },
    {
      title: "waiting for a reboot that was asked for before one that applied content wants",
      view: view({ documents: { ...had, settled: record({ result: "rebooting" }) } }),
      memory: goingDown,
      plan: { case: "awaitReboot" },
    },
    {
      title: "a restart before lifting refusals",
      view: view({
        forced: true,
        documents: { ...had, refused: [refused], settled: record({ result: "rebooting" }) },
      }),
      plan: { case: "awaitRestart" },
    },
    {
      title: "lifting refusals before a missing target",
      view: view({
        forced: true,
        documents: { ...had, refused: [refused] },
        node: withNotes({ [annotations.desiredConfig]: "" }),
      }),
      plan: { case: "forgetRefusals" },
    },
    {
      title: "a contradiction of images before an absent configuration",
      view: going({
        node: withNotes({ ...toTwo, [annotations.desiredImage]: "image:latest" }),
        desired: { config: undefined },
      }),
      plan: { case: "hold", reason: "ImageNotDigest" },
    },
    {
      title: "the target's problems before those of the kept configuration",
      view: going({
        documents: { ...had, previous: { config: unreadable, proven: true } },
        desired: { config: unreadable },
      }),
      plan: { case: "refuse" },
    },
    {
      title: "what the machine cannot take before drift",
      view: going({ desired: { config: lists }, compared: machine(one, { entries: drifted }) }),
      plan: { case: "refuse" },
    },
    {
      title: "drift before content that is not applied",
      view: onImage({ entries: drifted, settled: record({ result: "failed", cause: "it is full" }) }),
      plan: { case: "reportDrift" },
    },
    {
      title: "drift before policies that are not merged",
      view: view({ configuration: unmerged, compared: machine(one, { entries: drifted }) }),
      plan: { case: "reportDrift" },
    },
    {
      title: "the force file before drift",
      view: view({ forced: true, compared: machine(one, { entries: drifted, forced: true }) }),
      plan: { case: "update" },
    },
  ])("$title", ({ view: seen, memory = {}, plan }) => {
    expect(decidePass(seen, { ...remembered, ...memory })).toMatchObject(plan);
  });
});

describe("an update", () => {
  const drained = {
    [annotations.desiredDrain]: "drain-rendered-2",
    [annotations.lastAppliedDrain]: "drain-rendered-2",
  };
  const stepsOf = (plan: PassPlan) => (plan.case === "update" ? plan.steps.map((step) => step.do) : plan.case);

  test("begins with a drain, and is announced", () => {
    const plan = decidePass(going(), remembered);
    expect(stepsOf(plan)).toEqual(["drain", "openLedger", "writeEntries", "reboot", "closeLedger"]);
    expect(plan).toMatchObject({
      drains: true,
      announcement: { message: expect.stringContaining("1 change, drain required"), isBootResync: false },
      isNewTarget: true,
      isRetry: false,
    });
  });

  test("continues without a drain once the machine is drained", () => {
    const node = withNotes({ ...toTwo, ...drained }, { unschedulable: true });
    expect(stepsOf(decidePass(going({ node }), remembered))).not.toContain("drain");
  });

  test("drains again when the machine was put back into service", () => {
    const node = withNotes({ ...toTwo, ...drained });
    expect(stepsOf(decidePass(going({ node }), remembered))).toContain("drain");
  });

  test("is announced once, by this process or by one before it", () => {
    expect(decidePass(going(), { ...remembered, announced: "rendered-2" })).toMatchObject({ announcement: undefined });
    const working = going({
      node: withNotes({ ...toTwo, [annotations.state]: nodeStates.working }),
      compared: machine(one, { ledger: ledger() }),
    });
    expect(decidePass(working, remembered)).toMatchObject({ announcement: undefined });
  });

  test("that failed stays degraded while it is tried again", () => {
    expect(decidePass(going(), { ...remembered, failing: "rendered-2" })).toMatchObject({ isRetry: true });
  });

  test("fetches no image that this process has fetched, and still counts as one of the system", () => {
    const next = going({ desired: { config: newSystem } });
    expect(stepsOf(decidePass(next, remembered))).toContain("prefetch");
    const plan = decidePass(next, { ...remembered, fetchedImages: new Set(["os@sha256:2"]) });
    expect(stepsOf(plan)).not.toContain("prefetch");
    expect(plan).toMatchObject({ changesOs: true });
  });

  test("after its reboot ends as one that runs a new system, and needs no second drain", () => {
    const plan = decidePass(
      going({
        node: withNotes({ ...toTwo, ...drained }, { unschedulable: true }),
        desired: { config: newSystem },
        compared: machine(newSystem, {
          ledger: ledger({ bootId: "boot-0", deployment: machine(newSystem).node.booted }),
          previous: machine(one).node.previous,
          settled: record({ changed: ["/etc/a"] }),
        }),
      }),
      remembered,
    );
    expect(stepsOf(plan)).toEqual(["closeLedger"]);
    expect(plan).toMatchObject({
      drains: false,
      skipsDrain: false,
      ending: { hasRebooted: true, putRight: 1, runsNewSystem: true, skipsReboot: false, after: { case: "done" } },
    });
  });

  test("with a reboot for files alone ends on the system that the machine had", () => {
    const compared = machine(newSystem, { ledger: ledger({ bootId: "boot-0" }), previous: undefined });
    const plan = decidePass(
      going({
        node: withNotes({ ...toTwo, ...drained }, { unschedulable: true }),
        desired: { config: newSystem },
        compared,
      }),
      remembered,
    );
    expect(plan).toMatchObject({ ending: { hasRebooted: true, runsNewSystem: false } });
  });

  test("that needs neither a reboot nor a service action reports that", () => {
    const quiet = {
      metadata: { name: "cluster", generation: 1 },
      spec: {},
      status: {
        observedGeneration: 1,
        nodeDisruptionPolicyStatus: { clusterPolicies: { files: [{ path: "/etc/a", actions: [{ type: "None" }] }] } },
      },
    } as unknown as MachineConfiguration;
    expect(decidePass(going({ configuration: quiet }), remembered)).toMatchObject({
      case: "update",
      skipsDrain: true,
      ending: { skipsReboot: true },
    });
  });

  test("on the way back ends by staying there", () => {
    const plan = decidePass(
      going({
        documents: { ...had, refused: [refused], ledger: ledger() },
        refusalsNamed: true,
        compared: machine(two, { previous: machine(one).node.previous, ledger: ledger() }),
      }),
      remembered,
    );
    expect(plan).toMatchObject({
      case: "update",
      isNewTarget: false,
      target: { config: { name: "rendered-1" } },
      ending: { after: { case: "stayBack" } },
    });
  });
});

test("the force file's place is named where it helps", () => {
  expect(decidePass(view({ compared: machine(one, { entries: drifted }) }), remembered)).toMatchObject({
    message: expect.stringContaining(hostPaths.force),
  });
});
