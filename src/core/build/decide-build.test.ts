import { describe, expect, test } from "vitest";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations, imageLabels, labels } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { buildName, repeatName } from "./build-key.ts";
import { type BuildDecision, type BuildView, type ImageAnswer, decideBuild } from "./decide-build.ts";

const now = Date.UTC(2026, 0, 1);
const key = "a".repeat(32);
const otherKey = "c".repeat(32);
const parentKey = "b".repeat(32);
const repository = "r.example.com/os";
const digest = (letter: string) => `${repository}@sha256:${letter.repeat(64)}`;
const [image, base, seed] = [digest("1"), digest("0"), digest("7")];
const first = buildName("worker", key);
const second = repeatName("worker", key, "rendered-worker-1", 0);
const there: ImageAnswer = { is: "image", labels: { [imageLabels.content]: "full" } };
const absent: ImageAnswer = { is: "absent", problem: "no such manifest" };
const unreachable: ImageAnswer = { is: "unreachable", problem: "503" };
const denied: ImageAnswer = { is: "denied", problem: "401" };

interface Wanted {
  readonly phase?: string;
  readonly reason?: string;
  readonly key?: string;
  readonly config?: string;
  readonly rendered?: string;
  readonly has?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A build for what is wanted, and what it came to. */
const build = (name: string, wanted: Wanted = {}): MachineOSBuild => {
  const { phase = "Succeeded", reason = "Because" } = wanted;
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineOSBuild",
    metadata: {
      name,
      creationTimestamp: timestampOf(now),
      labels: { ...wanted.labels },
      annotations: {
        [annotations.contentKey]: wanted.key ?? key,
        [annotations.parentKey]: parentKey,
        [annotations.imageContent]: "full",
        [annotations.buildStrategy]: "build",
        ...wanted.has,
      },
    },
    spec: {
      machineConfig: { name: wanted.rendered ?? "rendered-worker-1" },
      machineOSConfig: { name: wanted.config ?? "worker" },
      renderedImagePushSpec: `${repository}:${name}`,
    },
    status: {
      conditions: [{ type: phase, status: "True", reason, message: "as it is", lastTransitionTime: timestampOf(now) }],
      ...(phase === "Succeeded" ? { digestedImagePushSpec: image } : {}),
    },
  };
};

interface Given {
  readonly builds?: readonly MachineOSBuild[];
  readonly current?: string;
  readonly published?: string;
  readonly pool?: Readonly<Record<string, string>>;
  readonly config?: Readonly<Record<string, string>>;
  readonly seeded?: "True";
  readonly images?: Readonly<Record<string, ImageAnswer>>;
  readonly forced?: boolean;
  readonly isBaseParent?: boolean;
  readonly more?: Partial<BuildView>;
}

const configOf = ({ config = {}, published, seeded }: Given): Pick<MachineOSConfig, "metadata" | "status"> => ({
  metadata: { name: "worker", annotations: { ...config } },
  status: {
    ...(published === undefined ? {} : { currentImagePullSpec: published }),
    ...(seeded === undefined
      ? {}
      : {
          conditions: [
            { type: "Seeded", status: seeded, reason: "X", message: "", lastTransitionTime: timestampOf(now) },
          ],
        }),
  },
});

const viewOf = (given: Given): BuildView => ({
  pool: { metadata: { name: "worker", annotations: { ...given.pool } } },
  config: configOf(given),
  facts: {
    machineOSConfig: "worker",
    rendered: "rendered-worker-1",
    repository,
    key,
    parentKey,
    base,
    isBaseParent: given.isBaseParent ?? false,
    holdsConfiguration: true,
    current: given.current,
    builds: given.builds ?? [],
    forced: given.forced ?? false,
  },
  maxRetries: 5,
  now,
  still: { since: 0, now: 5000, ms: 5000 },
  images: new Map(Object.entries(given.images ?? {})),
  isTidy: false,
  preflight: { problem: undefined },
  ...given.more,
});

/** A decision in one line. */
function lineOf(decision: BuildDecision): string {
  switch (decision.do) {
    case "inspect":
      return `inspect ${decision.image}`;
    case "preflight":
      return `preflight ${decision.plan.strategy}`;
    case "tidy":
      return `tidy ${[...decision.clears.map(nameOf), "|", ...decision.cancels.map(nameOf)].join(" ")}`;
    case "closeSeed":
      return `closeSeed ${decision.isTaken} ${decision.reason}`;
    case "adopt":
      return `adopt ${decision.mode} ${decision.seen?.metadata.name ?? "new"}`;
    case "rebuild":
      return `rebuild ${decision.serial} ${decision.request}`;
    case "nothing":
      return `nothing: ${decision.because}`;
    case "wait":
      return `wait ${decision.reason} ${decision.reconcileAfterSeconds ?? "for news"}`;
    case "holdStill":
      return `holdStill ${decision.reconcileAfterSeconds}`;
    case "publish":
      return `publish ${decision.build.metadata.name}`;
    case "giveUp":
      return `giveUp ${decision.reason}: ${decision.because}`;
    case "forget":
      return `forget ${decision.image}`;
    case "recall":
      return `recall ${decision.image}${decision.isPreBuilt ? ", which was pre-built" : ""}`;
    case "reuse":
      return `reuse ${decision.plan.from.metadata.name}`;
    case "attach":
      return `attach ${decision.plan.from.metadata.name}`;
    case "start":
      return `start ${decision.plan.strategy}`;
    case "restart":
      return `restart ${decision.plan.strategy} after ${decision.after.metadata.name}`;
  }
}
const nameOf = ({ metadata }: MachineOSBuild) => metadata.name;

const ended = (phase: string, reason: string, has: Wanted["has"] = {}) => build(first, { phase, reason, has });
const own = (phase: string, reason = "StepContext") => [build(first, { phase, reason })];
const foreign = (phase: string) => [build("infra-1", { phase, config: "infra", rendered: "rendered-infra-1" })];
const lost = [build(first, { has: { [annotations.imageLost]: timestampOf(now) } })];
const parent = [build("worker-0", { key: otherKey })];
const inAMinute = { [annotations.nextAttemptAt]: timestampOf(now + 60_000) };
const aMinuteAgo = { [annotations.nextAttemptAt]: timestampOf(now - 60_000) };
const limit = (retries: string): Given => ({
  builds: [ended("Failed", "RetryLimitReached")],
  pool: { [annotations.buildRetries]: retries },
});
const seeding = (more: Given = {}): Given => ({ ...more, config: { [annotations.preBuiltImage]: seed } });
const asked: Given = { pool: { [annotations.rebuildImage]: "please" } };
const underWay = { [annotations.rebuildActive]: "1:" };
const referenceBuild = (() => {
  const made = build("worker-md5");
  const { [annotations.contentKey]: _, ...rest } = made.metadata.annotations ?? {};
  return { ...made, metadata: { ...made.metadata, annotations: rest } };
})();

describe("an image that came with the installation", () => {
  test.for<{ title: string; given: Given; line: string }>([
    { title: "is looked at first", given: seeding(), line: `inspect ${seed}` },
    {
      title: "waits while the registry is unavailable",
      given: seeding({ images: { [seed]: unreachable } }),
      line: "wait RegistryUnreachable 30",
    },
    { title: "is adopted with its content", given: seeding({ images: { [seed]: there } }), line: "adopt full new" },
    {
      title: "is taken for the operating system alone without a label",
      given: seeding({ images: { [seed]: { is: "image", labels: {} } } }),
      line: "adopt os-only new",
    },
    {
      title: "is adopted by the build that an interrupted pass made",
      given: seeding({
        images: { [seed]: there },
        builds: [build("worker-s", { labels: { [labels.preBuiltImage]: "true" } })],
      }),
      line: "adopt full worker-s",
    },
    {
      title: "is refused when the registry has none",
      given: seeding({ images: { [seed]: absent } }),
      line: "closeSeed false ImageAbsent",
    },
    {
      title: "is refused when the registry does not show it",
      given: seeding({ images: { [seed]: denied } }),
      line: "closeSeed false ImageAbsent",
    },
    {
      title: "is refused without a digest",
      given: { config: { [annotations.preBuiltImage]: "r/os:latest" } },
      line: "closeSeed false ImageNotDigest",
    },
    {
      title: "is refused where an image is published",
      given: seeding({ published: image }),
      line: "closeSeed false ImageThere",
    },
    {
      title: "is closed once it is adopted",
      given: seeding({ published: image, seeded: "True" }),
      line: "closeSeed true PreBuiltImageSeeded",
    },
  ])("$title", ({ given, line }) => {
    expect(lineOf(decideBuild(viewOf(given)))).toBe(line);
  });
});

describe("the build for what is wanted", () => {
  test.for<{ title: string; given: Given; line: string }>([
    { title: "is waited for when it has not begun", given: { builds: own("Initial") }, line: "wait Building for news" },
    { title: "is waited for while it is prepared", given: { builds: own("Prepared") }, line: "wait Building for news" },
    { title: "is waited for while it runs", given: { builds: own("Building") }, line: "wait Building for news" },
    { title: "is published with its image", given: { builds: own("Succeeded") }, line: `publish ${first}` },
    {
      title: "is made again when the registry lost its image",
      given: { builds: lost },
      line: `restart build after ${first}`,
    },
    {
      title: "is given up when it failed",
      given: { builds: own("Failed", "StepFailed") },
      line: `giveUp BuildFailed: ${first}: as it is`,
    },
    {
      title: "is given up while its retries are spent",
      given: limit("5"),
      line: `giveUp BuildFailed: ${first}: as it is`,
    },
    { title: "restarts when its retries are reset", given: limit("0"), line: `restart build after ${first}` },
    {
      title: "restarts after it was cancelled",
      given: { builds: own("Interrupted", "Superseded") },
      line: `restart build after ${first}`,
    },
    {
      title: "is given up when its run was deleted twice",
      given: { builds: own("Interrupted", "UserDeleted") },
      line: `giveUp BuildInterrupted: ${first}: as it is`,
    },
    {
      title: "waits a while after its run was deleted once",
      given: { builds: [ended("Interrupted", "UserDeleted", inAMinute)] },
      line: "wait BuildInterrupted 60",
    },
    {
      title: "restarts after that delay",
      given: { builds: [ended("Interrupted", "UserDeleted", aMinuteAgo)] },
      line: `restart build after ${first}`,
    },
    {
      title: "is the last one that was begun",
      given: { builds: [...own("Interrupted", "Superseded"), build(second, { phase: "Building" })] },
      line: "wait Building for news",
    },
  ])("$title", ({ given, line }) => {
    expect(lineOf(decideBuild(viewOf(given)))).toBe(line);
  });
});

describe("an image without a build", () => {
  test.for<{ title: string; given: Given; line: string }>([
    { title: "is built by steps", given: {}, line: "start build" },
    {
      title: "waits while its inputs may change",
      given: { more: { still: { since: 4000, now: 5000, ms: 5000 } } },
      line: "holdStill 4",
    },
    {
      title: "waits for an answer of what runs steps",
      given: { more: { preflight: "unknown" } },
      line: "preflight build",
    },
    {
      title: "waits for what is missing to run steps",
      given: { more: { preflight: { problem: { code: "SecretMissing", message: "" } } } },
      line: "wait SecretMissing 60",
    },
    {
      title: "is laid on the base alone, without a word from the registry",
      given: { isBaseParent: true },
      line: "start append",
    },
    {
      title: "is laid on an earlier image once the registry is asked",
      given: { builds: parent },
      line: `inspect ${image}`,
    },
    {
      title: "is laid on an earlier image that the registry has",
      given: { builds: parent, images: { [image]: there } },
      line: "start append",
    },
    {
      title: "forgets an earlier image that the registry lost",
      given: { builds: parent, images: { [image]: absent } },
      line: `forget ${image}`,
    },
    {
      title: "waits while the registry does not show the earlier image",
      given: { builds: parent, images: { [image]: denied } },
      line: "wait RegistryUnreachable 30",
    },
    { title: "is attached to a run of another pool", given: { builds: foreign("Building") }, line: "attach infra-1" },
    { title: "asks for the image of another pool", given: { builds: foreign("Succeeded") }, line: `inspect ${image}` },
    {
      title: "takes the image of another pool",
      given: { builds: foreign("Succeeded"), images: { [image]: there } },
      line: "reuse infra-1",
    },
    {
      title: "forgets the image of another pool that the registry lost",
      given: { builds: foreign("Succeeded"), images: { [image]: absent } },
      line: `forget ${image}`,
    },
    {
      title: "waits for the registry with the image of another pool",
      given: { builds: foreign("Succeeded"), images: { [image]: unreachable } },
      line: "wait RegistryUnreachable 30",
    },
    {
      title: "asks for the image of a build that was deleted",
      given: { current: first, published: image },
      line: `inspect ${image}`,
    },
    {
      title: "is recalled after its build was deleted",
      given: { current: first, published: image, images: { [image]: there } },
      line: `recall ${image}`,
    },
    {
      title: "stays one of the installation, though its adoption names no image any more",
      given: { current: first, published: image, images: { [image]: there }, seeded: "True" },
      line: `recall ${image}, which was pre-built`,
    },
    {
      title: "waits for the registry after its build was deleted",
      given: { current: first, published: image, images: { [image]: unreachable } },
      line: "wait RegistryUnreachable 30",
    },
    {
      title: "is built when its build and image are gone",
      given: { current: first, published: image, images: { [image]: absent } },
      line: "start build",
    },
    {
      title: "is what the reference made for this configuration",
      given: {
        current: "worker-md5",
        published: image,
        builds: [referenceBuild],
        more: {
          facts: { ...viewOf({ builds: [referenceBuild], current: "worker-md5" }).facts, holdsConfiguration: false },
        },
      },
      line: "nothing: worker-md5 was made before this suite looked after the pool",
    },
    {
      title: "is rolled out already, by a build with another name",
      given: { current: "worker-9", builds: [build("worker-9")] },
      line: "nothing: worker-9 is rolled out, and is of this key and this configuration",
    },
  ])("$title", ({ given, line }) => {
    expect(lineOf(decideBuild(viewOf(given)))).toBe(line);
  });
});

describe("other builds of the pool", () => {
  const [running, failed] = [
    build("worker-old", { key: otherKey, phase: "Building", reason: "StepPullBase" }),
    build("worker-bad", { key: otherKey, phase: "Failed" }),
  ];
  test.for<{ title: string; given: Given; line: string }>([
    { title: "are cancelled for what is wanted now", given: { builds: [running] }, line: "tidy | worker-old" },
    {
      title: "are left alone once that is done",
      given: { builds: [running], more: { isTidy: true } },
      line: "start build",
    },
    {
      title: "are let finish when they are nearly done",
      given: { builds: [build("worker-old", { key: otherKey, phase: "Building", reason: "StepPush" })] },
      line: "start build",
    },
    {
      title: "keep running for the builds that wait for them",
      given: {
        builds: [
          running,
          build("infra-2", {
            config: "infra",
            key: otherKey,
            phase: "Building",
            has: { [annotations.buildStrategy]: "reuse", [annotations.reusedFrom]: "worker-old" },
          }),
        ],
      },
      line: "start build",
    },
    {
      title: "are attached to when they make the same image",
      given: { builds: [build("worker-old", { phase: "Building", rendered: "rendered-worker-0" })] },
      line: "attach worker-old",
    },
    { title: "that failed stay", given: { builds: [failed] }, line: "start build" },
    {
      title: "that failed are cleared by a rebuild",
      given: { builds: [failed, running], forced: true, config: underWay },
      line: "tidy worker-bad | worker-old",
    },
  ])("$title", ({ given, line }) => {
    expect(lineOf(decideBuild(viewOf(given)))).toBe(line);
  });
});

describe("a rebuild", () => {
  test("begins before anything else becomes of the image", () => {
    expect(lineOf(decideBuild(viewOf({ ...asked, builds: own("Failed"), published: image })))).toBe("rebuild 1 please");
  });

  test.for<{ title: string; given: Given; ends: { succeeded: boolean } | undefined }>([
    { title: "goes on while its build runs", given: { builds: own("Building") }, ends: undefined },
    {
      title: "continues while its build restarts automatically",
      given: { builds: own("Interrupted", "Superseded") },
      ends: undefined,
    },
    { title: "ends with an image", given: { builds: own("Succeeded") }, ends: { succeeded: true } },
    { title: "ends with a failure, though retries are left", given: limit("0"), ends: { succeeded: false } },
    {
      title: "ends with a run that was deleted",
      given: { builds: own("Interrupted", "UserDeleted") },
      ends: { succeeded: false },
    },
  ])("$title", ({ given, ends }) => {
    expect(decideBuild(viewOf({ ...given, config: underWay, forced: true }))).toMatchObject({ endsRebuild: ends });
  });
});
