/**
 * The decisions of the suite as a library: pure functions over plain data, for Node.js and browsers alike. What they
 * take and give is documented at each of them; the kinds are in `machine-config-operator/api`, Ignition in
 * `machine-config-operator/ignition`.
 */
export {
  type Because,
  type Change,
  type Consequence,
  type Op,
  describeChange,
  describeConsequence,
} from "./config/change.ts";
export { type ReferenceResult, classifyAsReference } from "./config/classify-as-reference.ts";
export { type ClusterFacts, type ClusterStatus, clusterStatus, allPoolsUpdated } from "./preview/cluster-status.ts";
export { type Blame, type BlameQuestion, blame } from "./preview/blame.ts";
export { type DescribedChange, describeDiff, maskChange } from "./config/describe-diff.ts";
export type { Originals } from "./machine/observed-content.ts";
export { type ConfigChange, diffConfigs } from "./config/diff-configs.ts";
export { type EffectivePolicies, consequencesOf, defaultPolicies, mergePolicies } from "./config/disruption-policy.ts";
export { forecastSummary } from "./preview/forecast-summary.ts";
export { type FieldOrigin, inMergeOrder } from "./config/merge-fields.ts";
export { type NodeConfig, compareNodeConfigs, emptyNodeConfig, nodeConfigOf } from "./config/node-config.ts";
export {
  type ClusterForecast,
  type ClusterObjects,
  type NodeForecast,
  type PoolForecast,
  observedAs,
  planCluster,
  renderInputsOf,
} from "./preview/plan-cluster.ts";
export { type NodePlan, type Step, planNode } from "./machine/plan-node.ts";
export { type ObservedNode } from "./machine/observed-node.ts";
export {
  type AfterDeadline,
  type PoolPolicy,
  type Protection,
  defaultPoolPolicy,
  poolPolicy,
} from "./pool/pool-policy.ts";
export { type PoolOfNode, poolOfNode } from "./pool/pool-of-node.ts";
export { type Irreconcilable, reconcile } from "./config/reconcilable.ts";
export { renderForPool, storageOverridesOf } from "./render/render-for-pool.ts";
export {
  type RenderRefusal,
  type RenderInputs,
  type RenderResult,
  type RenderWarning,
  renderPool,
} from "./render/render-pool.ts";
export { renderedName } from "./render/rendered-name.ts";
export {
  type Answer,
  type Facts,
  type Clearance,
  type NodePosition,
  clusterMayUpgrade,
  factsOf,
  nodePair,
  nodePosition,
  nodeWait,
  poolRunsConfig,
  poolMayBuild,
  poolMayRollOut,
  poolProgressOf,
} from "./pool/pool-queries.ts";
export { type ReadBook, type ReadChapter, bookText, lineText } from "./books/book-text.ts";
export { type ChapterRecord, foldBook } from "./books/fold-book.ts";
export { type Estimate, type Past, estimateMachine, estimateRollOut, noPast, pastOf, spreads } from "./books/past.ts";
export { type StoredBooks, bookNames, readBook, readBooks } from "./books/read-book.ts";
export { type Timeline, drawTimeline, timelineOf, timelineOfBook } from "./books/timeline.ts";
export { ClusterMembers } from "./pool/cluster-members.ts";
export { type Phase, phaseOf } from "./books/phase.ts";
export { PoolMembers } from "./pool/pool-members.ts";
export { type PoolFacts, type PoolProgress, poolProgress } from "./pool/pool-progress.ts";
export { type PoolStatusFields, poolStatus } from "./pool/pool-status.ts";
export { type NodeSelection, type Wait, budgetOf, selectNodes } from "./pool/select-nodes.ts";
export { type RolloutPolicy, type RolloutPool } from "./pool/rollout-holds.ts";
export { ignitionOf, supportedExtensions, validateMachineConfig } from "./config/validate-machine-config.ts";
export {
  type Problem,
  convertIgnition,
  decodeContents,
  encodeDataUrl,
  mergeIgnition,
  parseIgnition,
} from "../ignition/index.ts";
