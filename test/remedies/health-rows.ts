import { ClusterOperator } from "../../src/api/foreign/cluster-operator.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { type ReportReason, healthReasons, reasonText } from "../../src/api/books/report-table.ts";
import { namespace, objects, poolConditions } from "../../src/api/names.ts";
import { timestampOf } from "../../src/api/schema/object.ts";
import { explainMachineConfiguration } from "../../src/core/operator/explain-settings.ts";
import { factsOf } from "../../src/core/pool/pool-queries.ts";
import { StateHarness, updateLines } from "../support/state-harness.ts";
import { type Row, type State, type Step, type TextRow, byItself } from "./row.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const status = { subresource: "status" } as const;

/** A cluster whose parts are well, and a state process that has seen them. */
async function well(before: (harness: StateHarness) => void = () => undefined): Promise<StateHarness> {
  const harness = await StateHarness.make();
  await harness.act(() => harness.well());
  before(harness);
  harness.start();
  await harness.pass(60_000);
  return harness;
}

const state = (harness: StateHarness, says: readonly Step[], remedy: State["remedy"]): State => ({
  harness,
  subject: "machineconfiguration/cluster",
  says,
  remedy,
});

/** How many copies of a Deployment are up: in place of their kubelet. */
async function scale(harness: StateHarness, name: string, availableReplicas: number): Promise<void> {
  await harness.act(() =>
    harness.kube.patch(kubernetes.Deployment, { name, namespace }, merge({ status: { availableReplicas } }), status),
  );
  await harness.pass(60_000);
}

async function clusterOperator(harness: StateHarness, body: object): Promise<void> {
  const key = { name: objects.clusterOperator };
  await harness.act(() => harness.kube.patch(ClusterOperator, key, merge({ status: body }), status));
  await harness.pass(60_000);
}

const degraded = (harness: StateHarness, is: boolean) => ({
  conditions: [
    {
      type: "Degraded",
      status: is ? "True" : "False",
      reason: is ? "RBACFailed" : "AsExpected",
      message: is ? "RBAC: a role may not be written" : "",
      lastTransitionTime: timestampOf(harness.kernel.clock.now()),
    },
  ],
});

/** The renderer's word on a pool: in place of the controller. */
async function refused(harness: StateHarness, is: boolean): Promise<void> {
  const condition = {
    type: poolConditions.renderDegraded,
    status: is ? "True" : "False",
    reason: is ? "RenderRefused" : "AsExpected",
    message: is ? "70-bad: no such version" : "",
    lastTransitionTime: timestampOf(harness.kernel.clock.now()),
  };
  await harness.act(() =>
    harness.kube.patch(MachineConfigPool, { name: "worker" }, merge({ status: { conditions: [condition] } }), status),
  );
  await harness.pass(60_000);
}

const podsOf = (name: string) => `kubectl get pods -n ${namespace} -l k8s-app=${name}`;
const says = (reason: ReportReason) => reasonText(reason).next;

/** Health that the state process reports, with the parts that it watches. */
export const healthRows: readonly Row[] = [
  {
    reasons: ["health/OperatorHealthy/NotAvailable", "kind/MachineConfiguration"],
    title: "the operator's pod is gone",
    async make() {
      const harness = await well();
      await scale(harness, objects.operator, 0);
      return state(harness, [says("NotAvailable"), podsOf(objects.operator)], () =>
        scale(harness, objects.operator, 1),
      );
    },
  },
  {
    reasons: ["health/OperatorHealthy/VersionSkew"],
    title: "the suite is of two versions",
    async make() {
      const harness = await well();
      await clusterOperator(harness, { versions: [{ name: "operator", version: "0.9.0" }] });
      return state(harness, [says("VersionSkew")], () =>
        clusterOperator(harness, { versions: [{ name: "operator", version: "1.0.0" }] }),
      );
    },
  },
  {
    reasons: ["health/OperatorHealthy/SyncFailing"],
    title: "a task of the operator fails",
    isLong: true,
    async make() {
      const harness = await well();
      await clusterOperator(harness, degraded(harness, true));
      return state(harness, ["mco explain co/machine-config"], () =>
        clusterOperator(harness, degraded(harness, false)),
      );
    },
  },
  {
    reasons: ["kind/ClusterOperator"],
    title: "the ClusterOperator while a task of the operator fails",
    async make() {
      const harness = await well();
      await clusterOperator(harness, degraded(harness, true));
      const command = `kubectl logs -n ${namespace} deployment/${objects.operator}`;
      return {
        ...state(harness, [command], () => clusterOperator(harness, degraded(harness, false))),
        subject: "co",
      };
    },
  },
  {
    reasons: ["health/ControllerHealthy/NotAvailable"],
    title: "the controller's pod is gone",
    isLong: true,
    async make() {
      const harness = await well();
      await scale(harness, objects.controller, 0);
      return state(harness, [says("NotAvailable"), podsOf(objects.controller)], () =>
        scale(harness, objects.controller, 1),
      );
    },
  },
  {
    reasons: ["health/ControllerHealthy/RenderFailing"],
    title: "a pool cannot be rendered",
    isLong: true,
    async make() {
      const harness = await well();
      await refused(harness, true);
      return state(harness, [says("RenderFailing"), "mco explain pool/worker"], () => refused(harness, false));
    },
  },
  {
    reasons: ["health/StateKeeping/Off"],
    title: "a part of the history is switched off",
    async make() {
      const harness = await well();
      await harness.act(() => harness.settings({ "children.nodes": "off" }));
      await harness.pass(5000);
      return state(harness, [says("Off")], async () => {
        await harness.act(() => harness.settings({ mode: "on", "children.nodes": "on" }));
        await harness.pass(60_000);
      });
    },
  },
  {
    reasons: ["health/StateKeeping/Off", "health/OperatorHealthy/Off", "health/DaemonsHealthy/Off"],
    title: "all history is switched off",
    isLong: true,
    async make() {
      const harness = await well();
      await harness.act(() => harness.settings({ mode: "off" }));
      await harness.pass(60_000);
      return state(harness, [`OperatorHealthy: ${says("Off")}`, `StateKeeping: ${says("Off")}`], async () => {
        await harness.act(() => harness.settings({ mode: "on" }));
        await harness.pass(60_000);
      });
    },
  },
  {
    reasons: ["health/StateKeeping/ChildDown"],
    title: "a part of the state process does not run",
    async make() {
      const harness = await well((made) => {
        made.plant = { nodes: () => ({ name: "nodes", run: () => Promise.reject(new Error("planted")) }) };
      });
      return state(harness, [says("ChildDown"), podsOf(objects.state)], async () => {
        harness.plant = {};
        await harness.pass(400_000);
      });
    },
  },
];

/** Books, which the state process writes while a machine is updated. */
export const bookRows: readonly Row[] = (
  [
    ["MachineStateBook", "machinestatebook/node.worker-0", "chapter Update goes on: mco book node/worker-0"],
    ["MachineStateChapter", "machinestatechapter/node.worker-0.000001", "it goes on: mco explain node/worker-0"],
  ] as const
).map(([kind, subject, step]) => ({
  reasons: [`kind/${kind}`],
  title: `a ${kind} of a machine in its update`,
  ...(kind === "MachineStateChapter" ? {} : { isLong: true }),
  async make() {
    const harness = await StateHarness.make();
    const daemon = await harness.act(() => harness.node("worker-0"));
    harness.start();
    await harness.pass(30_000);
    const { begun, rest } = updateLines("worker-0", "rendered-worker-2");
    await harness.act(() => daemon.report(...begun));
    await harness.pass(60_000);
    return {
      ...state(harness, [byItself(step)], async () => {
        await harness.act(() => daemon.report(...rest));
        // The index of a book is written every ten minutes.
        await harness.pass(660_000);
      }),
      subject,
    };
  },
}));

/** How a reason that names a part is written. */
const withPart: Readonly<Record<string, string>> = {
  SyncFailing: "SyncRBACFailing",
  ChildFailing: "NodeFailing",
  ChildStalled: "RenderStalled",
  ChildDown: "ChildNodesDown",
};
const settled: ReadonlySet<string> = new Set(["AsExpected", "NotNeeded", "PoolsUpdating"]);

/** Reasons of health that say something of the suite, as `CONDITION/REASON`. */
export const healthPairs: readonly `${string}/${ReportReason}`[] = Object.entries(healthReasons)
  .filter(([type]) => type !== "UpdateProgressing")
  .flatMap(([type, reasons]) =>
    reasons.flatMap((reason) => (settled.has(reason) ? [] : [`${type}/${reason}` as const])),
  );

/** What is explained of one condition, as the state process writes it. */
function explainCondition(type: string, reason: ReportReason) {
  const isUnknown = reason === "NotKnown" || reason === "InProgress" || (reason === "Off" && type !== "StateKeeping");
  const configuration = {
    apiVersion: MachineConfiguration.apiVersion,
    kind: MachineConfiguration.kind,
    metadata: { name: objects.machineConfiguration, generation: 1 },
    spec: {},
    status: {
      observedGeneration: 1,
      conditions: [
        {
          type,
          status: isUnknown ? "Unknown" : "False",
          reason: withPart[reason] ?? reason,
          message: "what it is",
          lastTransitionTime: "2030-01-01T00:00:00Z",
        },
      ],
    },
  } as MachineConfiguration;
  return explainMachineConfiguration(
    configuration,
    factsOf({ pools: [], nodes: [], machineConfigNodes: [] }, Date.UTC(2030, 0, 2)),
  );
}

/** What is said of a condition. */
function textOf(type: string, reason: ReportReason): Step {
  const { next } = reasonText(reason);
  if (reason === "InProgress") return byItself(`${type}: it continues on its own`);
  return next.startsWith("Nothing:") ? byItself(`${type}: ${next}`) : `${type}: ${next}`;
}

/**
 * The text of every reason of health. A person looks at pods, logs, leases and certificates; no program corrects them, and
 * the rows above end those states that objects end.
 */
export const healthTexts: readonly TextRow[] = healthPairs.map((pair): TextRow => {
  const [type = "", name = ""] = pair.split("/");
  const reason = name as ReportReason;
  return {
    reasons: [`health/${pair}`],
    title: pair,
    explain: () => explainCondition(type, reason),
    says: [textOf(type, reason)],
  };
});
