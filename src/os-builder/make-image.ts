import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { type BuildPlan, type PlanFacts, currentBuildOf, nextBuildName } from "../core/build/build-plan.ts";
import { activeRebuild } from "../core/build/build-rebuild.ts";
import { readRetries } from "../core/build/build-retry.ts";
import { maxRetriesOf } from "../core/build/build-settings.ts";
import {
  type BuildAction,
  type BuildDecision,
  type BuildObstacle,
  type BuildQuestion,
  type BuildView,
  decideBuild,
} from "../core/build/decide-build.ts";
import { adoptImage, closeSeed } from "./adopt-image.ts";
import { buildRequest } from "./build-request.ts";
import type { BuilderContext } from "./builder-context.ts";
import { buildSettingsIn } from "./cluster-facts.ts";
import { type BuildReason, buildSpec, createBuild } from "./create-build.ts";
import { cancelBuild, succeed } from "./end-build.ts";
import type { Want } from "./observe-want.ts";
import { publishImage } from "./publish-image.ts";
import { beginRebuild, clearFailed, endRebuild } from "./rebuild-requests.ts";
import type { Configured, Standing } from "./report-image.ts";
import { annotateBuild, annotatePool, writeBuildState } from "./write-objects.ts";
import { buildAttached, configReplaced, retriesUnreadable } from "./reports.ts";

/** A pool whose image is to be made, and what is to be in it. */
interface Work {
  readonly pool: MachineConfigPool;
  readonly intent: Configured;
  readonly want: Want;
  readonly view: BuildView;
}

/**
 * Has the pool's desired image made.
 *
 * @returns the state of the image. `again`: a write has changed the desired image.
 */
export async function makeImage(
  pool: MachineConfigPool,
  intent: Configured,
  want: Want,
  context: BuilderContext,
): Promise<Standing | "again"> {
  await repairRetries(pool, context);
  let view = observeBuilds(pool, intent, want, context);
  for (;;) {
    const decision = decideBuild(view);
    switch (decision.do) {
      case "inspect":
      case "preflight":
      case "tidy":
        view = await answered(decision, { pool, intent, want, view }, context);
        break;
      default:
        return perform(decision, { pool, intent, want, view }, context);
    }
  }
}

/** A counter of retries that is no number counts as none. */
async function repairRetries(pool: MachineConfigPool, context: BuilderContext): Promise<void> {
  const text = pool.metadata.annotations?.[annotations.buildRetries];
  if (readRetries(text).valid) return;
  context.report(retriesUnreadable(pool, text));
  await annotatePool(pool, { [annotations.buildRetries]: null }, context);
}

function observeBuilds(
  pool: MachineConfigPool,
  { config }: Configured,
  want: Want,
  context: BuilderContext,
): BuildView {
  const { caches, clock, memory, stillMs } = context;
  const { key, parentKey } = want.inputs.key;
  const known = memory.still.get(pool.metadata.name);
  const now = clock.monotonic();
  return {
    pool,
    config,
    facts: {
      machineOSConfig: config.metadata.name,
      rendered: want.rendered.metadata.name,
      repository: want.inputs.repository,
      key,
      parentKey,
      base: want.sources.base,
      isBaseParent: want.inputs.isBaseParent,
      holdsConfiguration: want.mode === "full",
      current: config.metadata.annotations?.[annotations.currentMachineOSBuild],
      builds: caches
        .of(MachineOSBuild)
        .list()
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined),
      forced: activeRebuild(config) !== undefined,
    },
    maxRetries: maxRetriesOf(config, buildSettingsIn(caches)),
    now: clock.now(),
    still: { since: known?.key === key ? known.since : now, now, ms: stillMs },
    images: new Map(),
    isTidy: false,
    preflight: "unknown",
  };
}

/** The view with the facts that a decision requested. */
async function answered(question: BuildQuestion, work: Work, context: BuilderContext): Promise<BuildView> {
  const { view, want } = work;
  switch (question.do) {
    case "inspect": {
      const answer = await want.images.inspect(question.image, context.signal);
      return { ...view, images: new Map([...view.images, [question.image, answer]]) };
    }
    case "preflight":
      return { ...view, preflight: { problem: await preflight(want, view.facts, question.plan, context) } };
    case "tidy": {
      const { rendered, key } = view.facts;
      for (const build of question.clears) await clearFailed(build, context);
      for (const build of question.cancels)
        await cancelBuild(build, "Superseded", `${rendered} (key ${key}) is wanted now`, {
          context,
          backends: context.backends,
        });
      return { ...view, isTidy: true };
    }
  }
}

/** Why this cluster cannot run steps at all. */
async function preflight(
  want: Want,
  facts: PlanFacts,
  plan: BuildPlan,
  context: BuilderContext,
): Promise<BuildObstacle | undefined> {
  const { backends, caches, observer, signal } = context;
  const backend = backends.find((each) => each.capabilities().run);
  if (backend === undefined)
    return { code: "BuilderBinaryMissing", message: "nothing here can run the steps of a Containerfile" };
  const name = nextBuildName(facts);
  const draft: MachineOSBuild = {
    apiVersion: MachineOSBuild.apiVersion,
    kind: MachineOSBuild.kind,
    metadata: { name, annotations: { [annotations.buildStrategy]: plan.strategy } },
    spec: buildSpec(name, facts),
  };
  const how = { moreMemory: false, noCache: false };
  const [problem] = await backend.preflight(await buildRequest(draft, 1, want, observer, caches, how, signal), signal);
  return problem;
}

/** Carries a decision out. */
async function perform(
  decision: Exclude<BuildDecision, BuildQuestion>,
  work: Work,
  context: BuilderContext,
): Promise<Standing | "again"> {
  const { pool, intent, want, view } = work;
  switch (decision.do) {
    case "closeSeed":
      await closeSeed(intent.config, decision, context);
      return "again";
    case "adopt":
      await adoptImage(decision, want, view.facts, context);
      return "again";
    case "rebuild":
      await beginRebuild(pool, intent.config, decision, context);
      return "again";
    case "nothing":
    case "wait":
    case "holdStill":
    case "publish":
    case "giveUp":
    case "forget":
    case "recall":
    case "reuse":
    case "attach":
    case "start":
    case "restart": {
      const standing = await act(decision, work, context);
      if (decision.endsRebuild !== undefined)
        await endRebuild(pool, intent.config, decision.endsRebuild.succeeded, context);
      return standing;
    }
  }
}

const notYet = (reason: string, message: string): Standing["upToDate"] => ({ is: false, reason, message });

async function act(action: BuildAction, work: Work, context: BuilderContext): Promise<Standing | "again"> {
  const { pool, intent, view } = work;
  switch (action.do) {
    case "nothing":
      return { upToDate: { is: true, reason: "UpToDate", message: action.because } };
    case "wait": {
      const { do: _, reason, message, ...more } = action;
      return { upToDate: notYet(reason, message), ...more };
    }
    case "holdStill":
      context.memory.still.set(pool.metadata.name, { key: view.facts.key, since: action.since });
      return { upToDate: notYet("InputsMoving", action.because), reconcileAfterSeconds: action.reconcileAfterSeconds };
    case "publish": {
      const { build, image } = action;
      await publishImage(pool, intent, build, image, context);
      return { upToDate: { is: true, reason: "UpToDate", message: `${build.metadata.name}: ${image}` }, build };
    }
    case "giveUp":
      return { upToDate: notYet(action.reason, action.because), build: action.build };
    case "forget":
      await forgetImage(action.image, view.facts, context);
      return "again";
    case "recall": {
      const { because, isPreBuilt } = action;
      const plan = { strategy: "reuse", because, turnedDown: [], isPreBuilt } as const;
      return takeImage(action.image, plan, "is published again", work, context);
    }
    case "reuse":
      return takeImage(
        action.image,
        action.plan,
        `takes the image of ${action.plan.from.metadata.name}`,
        work,
        context,
      );
    case "attach": {
      const made = await begin(action.plan, work, context);
      await attach(made, action.plan.from, context);
      return begun(made, action.plan);
    }
    case "start":
    case "restart": {
      const made = await begin(action.plan, work, context);
      await writeBuildState(made, { phase: "Initial", reason: "", message: "" }, context);
      return begun(made, action.plan);
    }
  }
}

/** Makes a build that has its image from the beginning. */
async function takeImage(
  image: string,
  plan: BuildReason,
  says: string,
  { want, view }: Work,
  context: BuilderContext,
): Promise<Standing> {
  const build = await createBuild(view.facts, want, plan, context);
  await succeed(build, image, "Reused", undefined, context);
  return { upToDate: notYet("Building", `${build.metadata.name} ${says}`), build, reconcileAfterSeconds: 1 };
}

const begun = (build: MachineOSBuild, { strategy, because }: BuildPlan): Standing => ({
  upToDate: notYet("Building", `${build.metadata.name}: ${strategy}, as ${because}`),
  build,
});

/** Creates the object of a build whose image is not built yet. */
async function begin(plan: BuildReason, { pool, want, view }: Work, context: BuilderContext): Promise<MachineOSBuild> {
  const { facts } = view;
  // Retries were spent on another key.
  if (currentBuildOf(facts) === undefined && pool.metadata.annotations?.[annotations.buildRetries] !== undefined)
    await annotatePool(pool, { [annotations.buildRetries]: null }, context);
  const rolledOut = facts.builds.find(({ metadata }) => metadata.name === facts.current)?.spec.machineConfig.name;
  if (rolledOut !== undefined && rolledOut !== facts.rendered)
    context.report(configReplaced(pool, { rendered: facts.rendered, before: rolledOut, strategy: plan.strategy }));
  const made = await createBuild(facts, want, plan, context);
  context.memory.still.delete(pool.metadata.name);
  return made;
}

async function attach(build: MachineOSBuild, from: MachineOSBuild, context: BuilderContext): Promise<void> {
  const message = `waits for ${from.metadata.name}, which makes the same image`;
  await writeBuildState(build, { phase: "Building", reason: "Attached", message }, context);
  context.report(buildAttached(build, message));
}

/** The registry no longer has the image: no build is recorded as its origin. */
async function forgetImage(image: string, facts: PlanFacts, context: BuilderContext): Promise<void> {
  for (const build of facts.builds)
    if (build.status?.digestedImagePushSpec === image)
      await annotateBuild(build, { [annotations.imageLost]: timestampOf(context.clock.now()) }, context);
  context.log.warn({ image }, "the registry does not have an image any more");
}
