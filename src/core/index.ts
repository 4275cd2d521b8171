/**
 * The decisions of the suite as a library: pure functions over plain data, for Node.js and browsers alike. What they
 * take and give is documented at each of them; the kinds are in `machine-config-operator/api`, Ignition in
 * `machine-config-operator/ignition`.
 */
export { type Because, type Change, type Consequence, type Op, describeChange, describeConsequence } from "./change.ts";
export { type ReferenceResult, classifyAsReference } from "./classify-as-reference.ts";
export { type ClusterFacts, type ClusterStatus, clusterStatus, isSettled } from "./cluster-status.ts";
export { type Blame, type BlameQuestion, blame } from "./blame.ts";
export { type DescribedChange, describeDiff, maskChange } from "./describe-diff.ts";
export { type Originals } from "./content-gap.ts";
export { type ConfigChange, diffConfigs } from "./diff-configs.ts";
export { type EffectivePolicies, consequencesOf, defaultPolicies, mergePolicies } from "./disruption-policy.ts";
export { forecastSummary } from "./forecast-summary.ts";
export { type FieldOrigin, inMergeOrder } from "./merge-fields.ts";
export { type NodeConfig, compareNodeConfigs, emptyNodeConfig, nodeConfigOf } from "./node-config.ts";
export {
  type ClusterForecast,
  type ClusterObjects,
  type NodeForecast,
  type PoolForecast,
  observedAs,
  planCluster,
  renderInputsOf,
} from "./plan-cluster.ts";
export { type NodePlan, type ObservedNode, type Step, planNode } from "./plan-node.ts";
export { type AfterDeadline, type PoolPolicy, type Protection, defaultPoolPolicy, poolPolicy } from "./pool-policy.ts";
export { type PoolOfNode, poolOfNode } from "./pool-of-node.ts";
export { type Irreconcilable, reconcile } from "./reconcilable.ts";
export { renderForPool, storageOverridesOf } from "./render-for-pool.ts";
export { type Refusal, type RenderInputs, type RenderResult, type RenderWarning, renderPool } from "./render-pool.ts";
export { renderedName } from "./rendered-name.ts";
export {
  type Answer,
  type Facts,
  type MayOrNot,
  type NodePosition,
  clusterMayUpgrade,
  factsOf,
  nodePair,
  nodePosition,
  nodeWait,
  poolIsAt,
  poolMayBuild,
  poolMayRollOut,
  poolProgressOf,
} from "./answers.ts";
export { type ReadBook, type ReadChapter, bookText, lineText } from "./book-text.ts";
export { type ChapterRecord, foldBook } from "./fold-book.ts";
export { type Estimate, type Past, estimateMachine, estimateRollOut, noPast, pastOf, spreads } from "./past.ts";
export { type Shelves, booksOn, readBook, readBooks } from "./read-book.ts";
export { type Timeline, drawTimeline, timelineOf, timelineOfBook } from "./timeline.ts";
export { ClusterMembers } from "./cluster-members.ts";
export { type Phase, phaseOf } from "./phase.ts";
export { PoolMembers } from "./pool-members.ts";
export { type PoolFacts, type PoolProgress, poolProgress } from "./pool-progress.ts";
export { type PoolStatusFields, poolStatus } from "./pool-status.ts";
export {
  type NodeSelection,
  type RolloutPolicy,
  type RolloutPool,
  type Wait,
  budgetOf,
  selectNodes,
} from "./select-nodes.ts";
export { ignitionOf, supportedExtensions, validateMachineConfig } from "./validate-machine-config.ts";
export {
  type Problem,
  convertIgnition,
  decodeContents,
  encodeDataUrl,
  mergeIgnition,
  parseIgnition,
} from "../ignition/index.ts";
