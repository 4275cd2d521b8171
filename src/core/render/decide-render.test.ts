import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import { decideRender } from "./decide-render.ts";
import type {
  PoolRenderMemory,
  RenderDecision,
  RenderTarget,
  RenderView,
  RenderedPool,
  TargetTurn,
} from "./render-decision.ts";

const at = 60_000;

const poolOf = (spec: object = {}, metadata: object = {}): MachineConfigPool =>
  ({
    metadata: { name: "worker", uid: "p", ...metadata },
    spec: { machineConfigSelector: { matchLabels: { [labels.role]: "worker" } }, ...spec },
  }) as unknown as MachineConfigPool;

const configOf = (name: string, spec: object = {}, given: object = {}): MachineConfig =>
  ({
    metadata: { name, labels: { [labels.role]: "worker" }, annotations: given },
    spec: { config: { ignition: { version: "3.4.0" } }, ...spec },
  }) as unknown as MachineConfig;
const base = configOf("00-worker");

const controllerConfigOf = (version = "v1", completed = "True") =>
  ({
    metadata: { name: "c", generation: 1, annotations: { [annotations.generatedByVersion]: version } },
    spec: { baseOSContainerImage: "os@sha256:1" },
    status: {
      observedGeneration: 1,
      conditions: [{ type: "TemplateControllerCompleted", status: completed }],
    },
  }) as unknown as NonNullable<RenderView["controllerConfig"]>;

const fine: RenderView = {
  version: "v1",
  generatorVersion: "g1",
  baseConfigs: "awaited",
  monotonic: at,
  pool: poolOf(),
  pools: [poolOf()],
  controllerConfig: controllerConfigOf(),
  osImageStream: undefined,
  members: [base],
  current: undefined,
  overrides: [],
  missingBase: undefined,
  unjudged: undefined,
  generated: [],
};
const nothing: PoolRenderMemory = { refused: undefined, pointed: undefined, awaited: new Map() };

function renderedFrom(view: RenderView): RenderedPool {
  const decision = decideRender(view, nothing);
  if (decision.do !== "takeTurn") throw new Error(`not rendered: ${decision.because}`);
  return decision.rendered;
}
const rendered = renderedFrom(fine);
const { config } = rendered;
const { name } = config.metadata;
const pointing = (to: string) => poolOf({ configuration: { name: to, source: [...rendered.source] } });
const old = configOf("rendered-worker-old");

const targetOf = (
  known?: MachineConfig,
  turn: TargetTurn = { verdict: "taken" },
): { readonly target: RenderTarget } => ({
  target: { rendered, turn, known },
});
const kept = { ...targetOf(), kept: { verdict: "kept" } } as const;
const unjudged = "KubeletConfig/large";
const settings = "settings of worker";
const generated = (...isThere: readonly boolean[]) => ({
  generated: isThere.map((there, i) => ({ name: `99-generated-${i}`, isThere: there })),
});
const awaited = (what: Readonly<Record<string, number>>) => ({ awaited: new Map(Object.entries(what)) });

interface Row {
  readonly title: string;
  readonly seen: Partial<RenderView>;
  readonly memory?: Partial<PoolRenderMemory>;
  readonly decision: Pick<RenderDecision, "do"> & Readonly<Record<string, unknown>>;
}

const beforeRendering: readonly Row[] = [
  {
    title: "a pool that is being deleted ends the pass",
    seen: { pool: poolOf({}, { deletionTimestamp: "2030-01-01T00:00:00Z" }) },
    decision: { do: "rest" },
  },
  {
    title: "a pool that selects every MachineConfig is refused",
    seen: { pool: poolOf({ machineConfigSelector: {} }) },
    decision: { do: "refuseAll" },
  },
  {
    title: "a selector that is no selector is refused with its field",
    seen: { pool: poolOf({ nodeSelector: { matchLabels: { "a b": "c" } } }) },
    decision: {
      do: "refuse",
      reason: "RenderRefused",
      because: expect.stringMatching(/^spec\.nodeSelector\.matchLabels has a key that no label can have: /),
      message: expect.stringMatching(/^Failed to render configuration for pool worker: spec\.nodeSelector/),
      isNews: true,
    },
  },
  {
    title: "a pool waits for the ControllerConfig",
    seen: { controllerConfig: undefined },
    decision: { do: "wait", reason: "ControllerConfigAbsent", seconds: 30 },
  },
  {
    title: "a pool waits for the ControllerConfig of its release",
    seen: { controllerConfig: controllerConfigOf("v0") },
    decision: { do: "wait", reason: "ControllerConfigOfOtherVersion", seconds: 30 },
  },
  {
    title: "a pool waits for the base configurations",
    seen: { controllerConfig: controllerConfigOf("v1", "False") },
    decision: { do: "wait", reason: "ControllerConfigNotCompleted", seconds: 30 },
  },
  {
    title: "a process that makes no base configurations does not wait for them",
    seen: { controllerConfig: controllerConfigOf("v1", "False"), baseConfigs: "absent" },
    decision: { do: "takeTurn" },
  },
  {
    title: "a pool waits for a base configuration that was deleted",
    seen: { missingBase: "00-worker" },
    decision: { do: "wait", because: "the base configuration 00-worker is not there yet" },
  },
  {
    title: "a pool begins to wait for an object with settings",
    seen: { unjudged },
    decision: { do: "await", what: settings },
  },
  {
    title: "and waits for it",
    seen: { unjudged },
    memory: awaited({ [settings]: at - 9_999 }),
    decision: { do: "wait", reason: "SettingsNotJudged", because: `${unjudged} has not been judged yet`, seconds: 2 },
  },
  {
    title: "for ten seconds, whatever becomes of it",
    seen: { unjudged },
    memory: awaited({ [settings]: at - 10_000 }),
    decision: { do: "takeTurn" },
  },
  {
    title: "a pool whose objects with settings were all judged waits for the next one again",
    seen: {},
    memory: awaited({ [settings]: at - 10_000 }),
    decision: { do: "endWait", what: [settings] },
  },
  {
    title: "a pool begins to wait for the first MachineConfig that is about to be made",
    seen: generated(true, false, false),
    decision: { do: "await", what: "99-generated-1" },
  },
  {
    title: "and waits for it, and for no other one meanwhile",
    seen: generated(true, false, false),
    memory: awaited({ "99-generated-1": at }),
    decision: {
      do: "wait",
      reason: "SettingsNotJudged",
      because: "99-generated-1 has not been written yet",
      seconds: 2,
    },
  },
  {
    title: "after ten seconds the pool waits for the next one",
    seen: generated(true, false, false),
    memory: awaited({ "99-generated-1": at - 10_000 }),
    decision: { do: "await", what: "99-generated-2" },
  },
  {
    title: "MachineConfigs that came are awaited no longer",
    seen: generated(true, false),
    memory: awaited({ "99-generated-0": at, "99-generated-1": at }),
    decision: { do: "endWait", what: ["99-generated-0"] },
  },
  {
    title: "a pool waits for the streams of the present images",
    seen: {
      osImageStream: {
        metadata: { name: "cluster", annotations: { [annotations.streamInputs]: '["os@sha256:0","",""]' } },
        status: {},
      } as unknown as NonNullable<RenderView["osImageStream"]>,
    },
    decision: { do: "wait", reason: "StreamsNotRead", seconds: 2 },
  },
  {
    title: "a pool waits for a member that is not current yet",
    seen: { members: [base, configOf("01-base", {}, { [annotations.generatedByController]: "g0" })] },
    decision: { do: "wait", reason: "OutdatedMember", seconds: 30 },
  },
  {
    title: "a pool without members is refused",
    seen: { members: [] },
    decision: { do: "refuse", reason: "RenderRefused", isNews: true },
  },
  {
    title: "a pool that can be rendered takes a turn",
    seen: {},
    decision: { do: "takeTurn", rendered: expect.objectContaining({ source: rendered.source }) },
  },
];

const afterRendering: readonly Row[] = [
  {
    title: "a target without a turn waits for it",
    seen: targetOf(undefined, { verdict: "later", seconds: 7, message: "often" }),
    decision: { do: "wait", reason: "ChangesPaced", because: "often", seconds: 7 },
  },
  { title: "a rendered config that there is not is created", seen: targetOf(), decision: { do: "store", config } },
  {
    title: "a rendered config that the installation brought is adopted",
    seen: targetOf({ ...config, metadata: { name } }),
    decision: { do: "adopt", name, ownerReferences: config.metadata.ownerReferences },
  },
  {
    title: "one of its name with other contents is tried again without a write",
    seen: targetOf({ ...config, spec: { ...config.spec, kernelArguments: ["mine"] } }),
    decision: { do: "tryWrite", config },
  },
  {
    title: "a pool is not pointed at what another writer put there",
    seen: { ...targetOf(), kept: { verdict: "taken" } },
    decision: {
      do: "refuse",
      reason: "RenderedNameTaken",
      message: expect.stringContaining(`the MachineConfig ${name} has other contents`),
      isNews: true,
    },
  },
  {
    title: "a pool is not pointed at what the API server keeps in part",
    seen: { ...targetOf(), kept: { verdict: "partly", lost: ["spec.fips"] } },
    decision: {
      do: "refuse",
      reason: "RenderedConfigNotKept",
      message: expect.stringContaining(`does not keep spec.fips of the MachineConfig ${name}`),
      isNews: true,
    },
  },
  {
    title: "a pool gets its first target",
    seen: kept,
    decision: {
      do: "point",
      isRecovered: false,
      news: { is: "first" },
      configuration: { name, source: rendered.source },
    },
  },
  {
    title: "the first target is reported once",
    seen: kept,
    memory: { pointed: name },
    decision: { do: "point", news: undefined, configuration: expect.objectContaining({ name }) },
  },
  {
    title: "a rendered config that is there as it was rendered is not written again",
    seen: targetOf(config),
    decision: { do: "point", news: { is: "first" } },
  },
  {
    title: "a new target takes the place of the current one",
    seen: { ...kept, pool: pointing(old.metadata.name), current: old },
    decision: { do: "point", news: { is: "changed", from: old, isKnown: false } },
  },
  {
    title: "a target that its pool's book has is reported by an Event alone",
    seen: { ...kept, pool: pointing(old.metadata.name), current: old },
    memory: { pointed: name },
    decision: { do: "point", news: { is: "changed", from: old, isKnown: true } },
  },
  {
    title: "nothing is said of a change whose beginning is gone",
    seen: { ...kept, pool: pointing(old.metadata.name) },
    decision: { do: "point", news: undefined, configuration: expect.objectContaining({ name }) },
  },
  {
    title: "a pool that has its target is left as it is, and its refusal ends",
    seen: { ...kept, pool: pointing(name), current: config },
    memory: { refused: "anything" },
    decision: { do: "point", isRecovered: true, news: undefined, configuration: undefined },
  },
];

/** A case of the decision without an entry here does not compile. */
const cases: Readonly<Record<RenderDecision["do"], true>> = {
  adopt: true,
  await: true,
  endWait: true,
  point: true,
  refuse: true,
  refuseAll: true,
  rest: true,
  store: true,
  takeTurn: true,
  tryWrite: true,
  wait: true,
};

describe("decideRender", () => {
  test.for([...beforeRendering, ...afterRendering])("$title [decide-render-1]", ({ seen, memory, decision }) => {
    const decided = decideRender({ ...fine, ...seen }, { ...nothing, ...memory });
    expect(decided).toMatchObject(decision);
    expect(decided.because).not.toBe("");
  });

  test("a refusal that its pool's book has is no news [decide-render-2]", () => {
    const view: RenderView = { ...fine, members: [] };
    const refused = decideRender(view, nothing).because;
    expect(decideRender(view, { ...nothing, refused })).toMatchObject({ do: "refuse", isNews: false });
    expect(decideRender(view, { ...nothing, refused: "another" })).toMatchObject({ do: "refuse", isNews: true });
  });

  test("a target that was rendered is not rendered again, though what was awaited changes meanwhile [decide-render-3]", () => {
    const view: RenderView = { ...fine, ...kept, ...generated(false), unjudged, controllerConfig: undefined };
    expect(decideRender(view, nothing).do).toBe("point");
  });

  test("each case is reached [decide-render-4]", () => {
    const reached = [...beforeRendering, ...afterRendering].map(({ decision }) => decision.do);
    expect([...new Set(reached)].toSorted()).toEqual(Object.keys(cases).toSorted());
  });
});
