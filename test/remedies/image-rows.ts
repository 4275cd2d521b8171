import { McoError } from "../../src/api/errors.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import { annotations, labels, namespace, objects } from "../../src/api/names.ts";
import { type BuildOptions, buildCommand } from "../../src/cli/commands/build.ts";
import type { Io } from "../../src/cli/io.ts";
import { type FailureClass, failureClasses, nextActionOf } from "../../src/core/build/build-failures.ts";
import { BuilderHarness } from "../support/builder-harness.ts";
import type { FakeTime } from "../support/fake-backend.ts";
import { type Row, type State, type Step, byItself } from "./row.ts";

const options: BuildOptions = {
  json: false,
  wait: false,
  follow: false,
  dryRun: false,
  step: undefined,
  tail: undefined,
};
const merge = (body: object) => ({ type: "merge", body }) as const;
const long: readonly FakeTime[] = [{ forMs: 3_600_000, is: "running", step: "push" }, { is: "succeeds" }];
const quick: readonly FakeTime[] = [{ forMs: 500, is: "running", step: "push" }, { is: "succeeds" }];

/** A run that ends with a failure of a class. */
const failing = (class_: FailureClass): readonly FakeTime[] => [
  { forMs: 500, is: "running", step: "user:2" },
  { is: "fails", failure: { class: class_, step: "user:2", exitCode: 1, cause: "it went wrong", excerpt: "…" } },
];

/** What a person types: `mco build VERB worker`. */
async function build(harness: BuilderHarness, verb: "start" | "retry", pool = "worker"): Promise<void> {
  const io: Io = { out: () => undefined, err: () => undefined, screen: undefined };
  const { signal } = new AbortController();
  const code = await harness.act(() => buildCommand(harness.kube, io, verb, pool, options, signal));
  if (code !== 0) throw new Error(`mco build ${verb} ${pool} ended with ${code}`);
  await harness.pass(20_000);
}

/** A pool that opts in, with runs by a script. */
async function opted(
  scripts: readonly (readonly FakeTime[])[],
  {
    has = {},
    spec = {},
    pool = "worker",
    before = () => Promise.resolve(),
  }: {
    readonly has?: Readonly<Record<string, string>>;
    readonly spec?: Partial<MachineOSConfig["spec"]>;
    readonly pool?: string;
    readonly before?: (harness: BuilderHarness) => Promise<unknown>;
  } = {},
): Promise<BuilderHarness> {
  const harness = await BuilderHarness.make([pool]);
  harness.backend.scripts = scripts;
  await before(harness);
  await harness.act(() => harness.optIn(pool, has, spec));
  harness.start();
  await harness.pass(4000);
  return harness;
}

/** A machine of the pool, which runs what its configuration names. */
async function machine(harness: BuilderHarness, name = "w0", pool = "worker"): Promise<void> {
  const target = (await harness.pool(pool)).pool?.spec.configuration?.name ?? "";
  const has = {
    [annotations.currentConfig]: target,
    [annotations.desiredConfig]: target,
    [annotations.state]: "Done",
  };
  await harness.act(async () => {
    await harness.node(name, pool, { annotations: has });
    const conditions = [{ type: "Ready", status: "True" }];
    await harness.kube.patch(kubernetes.Node, { name }, merge({ status: { conditions } }), { subresource: "status" });
  });
}

const state = (
  harness: BuilderHarness,
  subject: string,
  says: readonly Step[],
  remedy: State["remedy"],
  more: Partial<State> = {},
): State => ({ harness, subject, says, remedy, ...more });
/** No node controller runs here: it gives machines what the builder publishes. */
const given = { leaves: "it is given the target now" };

const buildName = async (harness: BuilderHarness) => (await harness.builds()).at(-1)?.metadata.name ?? "";

/** A class whose failure ends the build at once: a person corrects the cause, and asks for another build. */
const permanent = (class_: FailureClass): Row => ({
  reasons: [`failure/${class_}`],
  title: `a build that ended with ${class_}`,
  async make() {
    const harness = await opted([failing(class_), quick]);
    const says = [failureClasses[class_].next, "then: mco build start worker"];
    return state(harness, "machineosconfig/worker", says, () => build(harness, "start"));
  },
});

/** A class that is tried again: by itself at first, and by a person when it was tried as often as it may be. */
const tried = (class_: FailureClass): readonly Row[] => [
  {
    reasons: [`failure/${class_}`],
    title: `a build that is tried again after ${class_}`,
    async make() {
      const harness = await opted([failing(class_), quick]);
      const action = nextActionOf({ class: class_ }, "again");
      const says = [byItself("it is tried again at"), ...(action.startsWith("Nothing") ? [] : [action])];
      return state(harness, `machineosbuild/${await buildName(harness)}`, says, () => harness.pass(120_000));
    },
  },
  ...(failureClasses[class_].retry === "wait"
    ? []
    : [
        {
          reasons: [`failure/${class_}`, "failure/RetryLimitReached"],
          title: `a build that was tried as often as it may be after ${class_}`,
          async make() {
            const attempts = failureClasses[class_].retry === "infrastructure" ? 4 : 3;
            const scripts = Array.from({ length: attempts }, () => failing(class_));
            const harness = await opted([...scripts, quick], { has: { [annotations.maxBuildRetries]: "0" } });
            await harness.pass(400_000);
            harness.backend.scripts = [quick];
            const says = [failureClasses[class_].next, "then: mco build start worker"];
            return state(harness, "machineosconfig/worker", says, () => build(harness, "start"));
          },
        } satisfies Row,
      ]),
];

/** Reported before a run begins. */
const beforeRuns: ReadonlySet<FailureClass> = new Set(["RetryLimitReached", "BuilderBinaryMissing", "InputChanged"]);

/** Every class of build failure that a run can end with. */
export const failureRows: readonly Row[] = (Object.keys(failureClasses) as FailureClass[])
  .filter((class_) => !beforeRuns.has(class_))
  .flatMap((class_) => (failureClasses[class_].retry === "permanent" ? [permanent(class_)] : tried(class_)));

/** Machines that wait for the image of their pool. */
export const imageWaitRows: readonly Row[] = [
  {
    reasons: ["wait/WaitingForBuild", "kind/MachineOSBuild"],
    title: "a machine whose image is being built",
    async make() {
      const harness = await opted([[{ forMs: 30_000, is: "running", step: "push" }, { is: "succeeds" }]]);
      await machine(harness);
      const says = [byItself(`it continues when ${await buildName(harness)} is done: mco build status`)];
      return state(harness, "node/w0", says, () => harness.pass(60_000), given);
    },
  },
  {
    reasons: ["failure/InputChanged", "wait/WaitingForBuild"],
    title: "a machine whose image lacks an input",
    async make() {
      const missing = { kind: "Secret", name: "push", problem: "it is gone" };
      const harness = await opted([quick], {
        async before({ backend }) {
          backend.startFails = new McoError("MCO_BUILD_INPUT_MISSING", missing);
          return Promise.resolve();
        },
      });
      await machine(harness);
      const says = [`provide what ${await buildName(harness)} waits for: mco build explain worker`];
      return state(
        harness,
        "node/w0",
        says,
        async () => {
          harness.backend.startFails = undefined;
          await harness.pass(120_000);
        },
        given,
      );
    },
  },
  {
    reasons: ["failure/BuilderBinaryMissing", "wait/WaitingForBuild"],
    title: "a machine whose image nothing can build",
    async make() {
      const harness = await opted([quick], {
        spec: { containerFile: [{ containerfileArch: "NoArch", content: "FROM configs\nRUN true" }] },
        async before({ backend }) {
          backend.canRun = false;
          return Promise.resolve();
        },
      });
      await machine(harness);
      await harness.pass(60_000);
      return state(
        harness,
        "node/w0",
        ["provide what the build needs: mco build explain worker"],
        async () => {
          harness.backend.canRun = true;
          await harness.pass(200_000);
        },
        given,
      );
    },
  },
  {
    reasons: ["wait/BuildFailed", "blocker/BuildFailed", "upgrade/BuildFailed"],
    title: "a machine whose image could not be built",
    async make() {
      const harness = await opted([failing("PackageNotFound"), quick]);
      await machine(harness);
      const says = ["mco build explain worker says what to do; then: mco build start worker"];
      return state(harness, "node/w0", says, () => build(harness, "start"), given);
    },
  },
  {
    reasons: ["wait/BuildFailed"],
    title: "a machine of a pool whose push secret is missing",
    async make() {
      const harness = await opted([quick], {
        before: (made) => made.act(() => made.kube.delete(kubernetes.Secret, { name: "push", namespace })),
      });
      await machine(harness);
      const says = ["correct the inputs that MachineOSConfig worker names: mco build explain worker"];
      const remedy = async () => {
        await harness.act(() => harness.secret("push", "r.example.com"));
        await harness.pass(60_000);
      };
      return state(harness, "pool/worker", says, remedy, { leaves: "given the target now" });
    },
  },
  {
    reasons: ["wait/BuildFailed"],
    title: "a pool that opted in by its label, without the settings of builds",
    async make() {
      const harness = await BuilderHarness.make();
      await machine(harness);
      await harness.act(() => harness.labelPool({ [annotations.layeringEnabled]: "" }));
      harness.start();
      await harness.pass(20_000);
      return state(
        harness,
        "pool/worker",
        [`correct the ConfigMap ${objects.buildConfig}`],
        async () => {
          await harness.act(() => harness.buildConfig());
          await harness.pass(60_000);
        },
        { leaves: "given the target now" },
      );
    },
  },
  {
    reasons: ["wait/BuildInterrupted", "blocker/BuildInterrupted", "upgrade/InterruptedBuild"],
    title: "a machine whose build was ended",
    async make() {
      const harness = await opted([long]);
      await machine(harness);
      for (let attempt = 0; attempt < 10; attempt += 1) {
        const run = harness.backend.started.at(-1);
        if (run !== undefined) harness.backend.deleteRun(run.id);
        await harness.pass(700_000);
      }
      harness.backend.scripts = [quick];
      const says = ["to have it built after all: mco build start worker"];
      return state(harness, "node/w0", says, () => build(harness, "start"), given);
    },
  },
  {
    reasons: ["wait/OptOutGrace"],
    title: "a machine of a pool whose MachineOSConfig was deleted",
    async make() {
      const harness = await opted([quick]);
      await harness.pass(20_000);
      await machine(harness);
      await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "worker" }));
      await harness.pass(10_000);
      return state(
        harness,
        "node/w0",
        ["make the MachineOSConfig again to keep the images"],
        async () => {
          await harness.act(() => harness.optIn());
          await harness.pass(20_000);
        },
        given,
      );
    },
  },
];

/** The kinds of the builder. */
export const imageKindRows: readonly Row[] = [
  {
    reasons: ["failure/InputChanged", "kind/MachineOSBuild"],
    title: "a build that lacks an input",
    async make() {
      const missing = { kind: "Secret", name: "push", problem: "it is gone" };
      const harness = await opted([quick], {
        async before({ backend }) {
          backend.startFails = new McoError("MCO_BUILD_INPUT_MISSING", missing);
          return Promise.resolve();
        },
      });
      const says = [failureClasses.InputChanged.next];
      return state(harness, `machineosbuild/${await buildName(harness)}`, says, async () => {
        harness.backend.startFails = undefined;
        await harness.pass(120_000);
      });
    },
  },
  {
    reasons: ["failure/BuilderBinaryMissing", "kind/MachineOSConfig"],
    title: "a MachineOSConfig whose steps nothing can run",
    async make() {
      const harness = await opted([quick], {
        spec: { containerFile: [{ containerfileArch: "NoArch", content: "FROM configs\nRUN true" }] },
        async before({ backend }) {
          backend.canRun = false;
          return Promise.resolve();
        },
      });
      await harness.pass(60_000);
      return state(harness, "machineosconfig/worker", ["Install buildah where builds run"], async () => {
        harness.backend.canRun = true;
        await harness.pass(200_000);
      });
    },
  },
  {
    reasons: ["kind/MachineOSConfig"],
    title: "a MachineOSConfig of a pool that does not exist",
    async make() {
      const harness = await opted([quick]);
      await harness.act(() => harness.optIn("ghost"));
      await harness.pass(5000);
      return state(
        harness,
        "machineosconfig/ghost",
        ["make the pool ghost, or delete this one: kubectl delete machineosconfig ghost"],
        async () => {
          await harness.act(() => harness.kube.delete(MachineOSConfig, { name: "ghost" }));
          await harness.pass(10_000);
        },
        { isGone: true },
      );
    },
  },
  {
    reasons: ["kind/MachineOSConfig"],
    title: "a MachineOSConfig of a pool that says no",
    async make() {
      const harness = await opted([quick]);
      await harness.act(() => harness.annotatePool({ [annotations.layeringEnabled]: "false" }));
      await harness.pass(10_000);
      return state(harness, "machineosconfig/worker", ["take the annotation or label away"], async () => {
        await harness.act(() => harness.annotatePool({ [annotations.layeringEnabled]: null }));
        await harness.pass(60_000);
      });
    },
  },
  {
    reasons: ["kind/MachineOSConfig"],
    title: "a MachineOSConfig without its Secret",
    async make() {
      const secret = { name: "push", namespace };
      const harness = await opted([quick], {
        before: (made) => made.act(() => made.kube.delete(kubernetes.Secret, secret)),
      });
      return state(
        harness,
        "machineosconfig/worker",
        ["correct what the condition InputsValid of MachineOSConfig worker names"],
        async () => {
          await harness.act(() => harness.secret("push", "r.example.com"));
          await harness.pass(60_000);
        },
      );
    },
  },
  {
    reasons: ["kind/MachineOSConfig"],
    title: "a MachineOSConfig whose registry does not answer",
    async make() {
      const harness = await opted([quick], {
        async before({ registry }) {
          registry.is = "down";
          return Promise.resolve();
        },
      });
      return state(harness, "machineosconfig/worker", ["Check the registry, the network and the proxy"], async () => {
        harness.registry.is = "up";
        await harness.pass(200_000);
      });
    },
  },
  {
    reasons: ["kind/MachineOSConfig"],
    title: "a MachineOSConfig of a pool without a configuration",
    async make() {
      const harness = await opted([quick], {
        before: (made) =>
          made.act(() =>
            made.kube.patch(MachineConfigPool, { name: "worker" }, merge({ spec: { configuration: null } })),
          ),
      });
      return state(harness, "machineosconfig/worker", [byItself("mco explain pool/worker")], async () => {
        await harness.act(() => harness.render("worker", { files: { "/etc/b": "2" } }));
        await harness.pass(60_000);
      });
    },
  },
];

/** What keeps a cluster from an upgrade, as the ClusterOperator is explained. */
export const upgradeRows: readonly Row[] = [
  {
    reasons: ["upgrade/BuildFailed", "kind/ClusterOperator"],
    title: "an upgrade behind an image that could not be built",
    async make() {
      const harness = await opted([failing("PackageNotFound"), quick], { before: required("worker") });
      return state(harness, "co", ["mco build explain worker"], () => build(harness, "start"));
    },
  },
  {
    reasons: ["upgrade/InterruptedBuild"],
    title: "an upgrade behind a build that was ended",
    async make() {
      const harness = await opted([long], { before: required("worker") });
      for (let attempt = 0; attempt < 10; attempt += 1) {
        const run = harness.backend.started.at(-1);
        if (run !== undefined) harness.backend.deleteRun(run.id);
        await harness.pass(700_000);
      }
      harness.backend.scripts = [quick];
      return state(harness, "co", ["mco build explain worker"], () => build(harness, "start"));
    },
  },
  {
    reasons: ["upgrade/BuildRunning"],
    title: "an upgrade behind a build of the control plane",
    async make() {
      const slow: readonly FakeTime[] = [{ forMs: 60_000, is: "running", step: "push" }, { is: "succeeds" }];
      const harness = await opted([slow], { pool: "master", before: required("master") });
      return state(harness, "co", ["mco build status"], () => harness.pass(120_000));
    },
  },
];

/** A pool that upgrades need, and the ClusterOperator, which no operator keeps here. */
function required(pool: string): (harness: BuilderHarness) => Promise<void> {
  return (harness) =>
    harness.act(async () => {
      await harness.labelPool({ [labels.requiredForUpgrade]: "" }, pool);
      await harness.kube.create(ClusterOperator, {
        apiVersion: ClusterOperator.apiVersion,
        kind: ClusterOperator.kind,
        metadata: { name: objects.clusterOperator },
        spec: {},
      });
    });
}

/** One class for each way in which a build ends or goes on; the long suites go through all of them. */
export const someFailureRows: readonly Row[] = [permanent("RegistryTLS"), ...tried("NodeLost")];
