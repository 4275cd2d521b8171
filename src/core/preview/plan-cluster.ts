import { pushAll } from "../../api/schema/push-all.ts";
import { poolSelects } from "../config/pool-selector.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { OSImageStream } from "../../api/kinds/os-image-stream.ts";
import type { PinnedImageSet } from "../../api/kinds/pinned-image-set.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, labels } from "../../api/names.ts";
import { type Because, describeConsequence } from "../config/change.ts";
import { packagesOf } from "../machine/deployment.ts";
import { type ConfigChange, diffConfigs } from "../config/diff-configs.ts";
import { fieldRules } from "../config/merge-fields.ts";
import { listText } from "../text/list-text.ts";
import { membersOf } from "../config/is-rendered.ts";
import { mergePolicies } from "../config/disruption-policy.ts";
import { contentModeOf } from "../build/build-intent.ts";
import { type Data, buildSettings, defaultOptInOf } from "../build/build-settings.ts";
import { contentDigest } from "../config/image-content.ts";
import { withImage } from "../machine/image-target.ts";
import type { Problem } from "../../ignition/problem.ts";
import { isControlPlane } from "../pool/member-facts.ts";
import { type NodeConfig, emptyNodeConfig, filledPlaces, type ContentMode } from "../config/node-config.ts";
import type { ObservedEntry } from "../machine/observed-content.ts";
import { type Step, planNode } from "../machine/plan-node.ts";
import { type ServiceProblem, problemOfService, problemsOfServices } from "../config/policy-services.ts";
import { readConfig } from "../machine/read-config.ts";
import { optInOf } from "../config/opt-in.ts";
import { poolOfNode } from "../pool/pool-of-node.ts";
import { type Irreconcilable, irreconcilableBetween } from "../config/reconcilable.ts";
import { problemsOfTarget } from "../machine/judge-target.ts";
import { renderForPool, storageOverridesOf } from "../render/render-for-pool.ts";
import { renderStreamOf } from "../render/os-streams.ts";
import type { RenderInputs, RenderRefusal, RenderResult, RenderWarning } from "../render/render-pool.ts";
import { tooLargeTogether } from "../render/too-large-together.ts";
import type { RegistryObjects } from "../runtime/registry-objects.ts";
import { ignitionOf, kernelTypes } from "../config/validate-machine-config.ts";
import type { ObservedNode } from "../machine/observed-node.ts";
import { isOfPeople, overriddenFiles, overriddenText } from "../render/overridden-files.ts";
import { problemsOfObject } from "./object-rules.ts";
import { type OSImageQuestion, questionOf } from "./os-image-demands.ts";
import { type SettingsObjects, planSettings } from "./plan-settings.ts";

/** The objects that determine the configuration of machines. */
export interface ClusterObjects {
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigs: readonly MachineConfig[];
  readonly machineConfiguration: MachineConfiguration | undefined;
  readonly controllerConfig: ControllerConfig | undefined;
  readonly nodes: readonly Node[];
  /** The build inputs of pools whose machines boot images; absent: none. */
  readonly machineOSConfigs?: readonly MachineOSConfig[];
  /** `data` of the ConfigMap on-cluster-build-config; absent: there is none. */
  readonly buildConfig?: Data | undefined;
  /** Milliseconds since the epoch; absent: before the end of every delay. */
  readonly now?: number;
  /** What controllers make MachineConfigs of; absent: nothing. */
  readonly settings?: SettingsObjects;
  /** Images that machines fetch in advance; absent: none. */
  readonly pinnedImageSets?: readonly PinnedImageSet[];
  /** The OS image streams of the cluster; absent: it has none. */
  readonly osImageStream?: OSImageStream | undefined;
  /** Where machines pull images from; absent: what the MachineConfigs say. */
  readonly registries?: RegistryObjects;
}

/** The effects on one machine. */
export interface NodeForecast {
  readonly node: string;
  readonly drains: boolean;
  readonly reboots: boolean;
  /** `reload crio.service`, `restart a.service`, `systemctl daemon-reload`, in order. */
  readonly actions: readonly string[];
  /** `nothing` | `reload` | `reboot`: the machine's consequence in one word, the worst. */
  readonly disruption: "nothing" | "services" | "reboot";
}

export type PoolForecast =
  | { readonly pool: string; readonly verdict: "unchanged"; readonly rendered: string }
  | {
      readonly pool: string;
      readonly verdict: "refused";
      readonly refusals: readonly RenderRefusal[];
      /** The reasons for which it did not render before the change either. */
      readonly stood: readonly string[];
    }
  | {
      readonly pool: string;
      readonly verdict: "changes";
      readonly from: string;
      readonly to: string;
      readonly paused: boolean;
      readonly changes: readonly ConfigChange[];
      readonly because: readonly Because[];
      /** Services that machines are to reload or restart, and probably do not have. */
      readonly services: readonly ServiceProblem[];
      /** Why machines would refuse the config before a drain, although the pool renders. */
      readonly irreconcilable: readonly Irreconcilable[];
      /** What rendering warns of now, and did not before the change. */
      readonly warnings: readonly RenderWarning[];
      /** What the change newly needs of the pool's OS image; absent: nothing. */
      readonly osImage?: OSImageQuestion;
      readonly nodes: readonly NodeForecast[];
    };

export interface ClusterForecast {
  /** Objects that could never be applied, with field, reason and remedy. */
  readonly refusals: readonly {
    readonly object: string;
    readonly path: string;
    readonly reason: string;
    readonly remedy?: string;
  }[];
  readonly warnings: readonly string[];
  readonly pools: readonly PoolForecast[];
  /** Of the warnings, those about machines that cannot have what their pool gets. */
  readonly unfitMachines?: readonly string[];
}

/** A machine that holds exactly one configuration: the start of a plan if no machine can be queried. */
export function observedAs(
  config: NodeConfig,
  machine: { readonly image: string; readonly onlyControlPlane: boolean },
): ObservedNode {
  const entries = new Map<string, ObservedEntry>();
  for (const [path, wanted] of config.entries) {
    if (wanted.kind === "file")
      entries.set(path, {
        kind: "file",
        digest: wanted.digest,
        mode: wanted.mode,
        uid: wanted.user.id ?? 0,
        gid: wanted.group.id ?? 0,
      });
    else if (wanted.kind === "link") entries.set(path, wanted);
  }
  return {
    bootId: "",
    booted: {
      image: machine.image,
      kernelArguments: config.kernelArguments,
      packages: packagesOf(config.extensions),
      kernelType: config.kernelType,
    },
    staged: undefined,
    can: { images: true, kernelArguments: true, packages: true, kernelTypes: [...kernelTypes] },
    fips: config.fips,
    twice: [],
    entries,
    enablement: new Map(
      [...config.enablement].map(([name, { enabled, installable }]) => [
        name,
        !installable ? "static" : enabled === false ? "disabled" : "enabled",
      ]),
    ),
    passwords: config.passwords,
    users: new Map(),
    groups: new Map(),
    originals: {
      paths: Object.fromEntries([...config.entries.keys()].map((path) => [path, null])),
      enablement: Object.fromEntries([...config.enablement.keys()].map((name) => [name, "absent"])),
      passwords: {},
      kernelArguments: [],
      ownKernelArguments: [...config.kernelArguments],
    },
    ledger: undefined,
    previous: config,
    inService: true,
    forced: false,
    onlyControlPlane: machine.onlyControlPlane,
  };
}

/** A configuration as machines apply it. */
function decoded(config: MachineConfig | undefined): NodeConfig | undefined {
  const read = config === undefined ? undefined : readConfig(config);
  return read?.verdict === "read" ? read.wanted.config : undefined;
}

/** What images of a pool contain; `undefined`: its machines boot no image built on the cluster. */
function imageContentOf(
  pool: MachineConfigPool,
  { machineOSConfigs = [], buildConfig, now = -Infinity }: ClusterObjects,
): ContentMode | undefined {
  const optIn = optInOf(pool, {
    configs: machineOSConfigs,
    defaultOptIn: defaultOptInOf(buildConfig),
    graceMs: buildSettings(buildConfig).optOutGraceMs,
    now,
  });
  if (optIn.opted === "out") return undefined;
  const mode = contentModeOf(pool, optIn.config);
  return mode.verdict === "mode" ? mode.mode : "full";
}

/** Whether two configurations have the same image. */
function sharesImage(a: NodeConfig, b: NodeConfig, content: ContentMode): boolean {
  const system = ({ osImage, extensions, kernelType }: NodeConfig) => JSON.stringify([osImage, extensions, kernelType]);
  return system(a) === system(b) && (content === "os-only" || contentDigest(a) === contentDigest(b));
}

/** The images of two configurations, for a comparison only: their names are unknown until they are built. */
const [imageNow, imageToBuild] = ["0", "1"].map((digit) => `built-on-this-cluster@sha256:${digit.repeat(64)}`) as [
  string,
  string,
];

/** The inputs of `renderPool` for a pool, out of all objects. */
export function renderInputsOf(
  pool: MachineConfigPool,
  objects: Pick<ClusterObjects, "pools" | "machineConfigs" | "controllerConfig" | "osImageStream">,
): RenderInputs {
  return {
    pool,
    members: membersOf(pool, objects.pools, objects.machineConfigs),
    ...renderStreamOf(pool, objects.pools, objects.osImageStream),
    controllerConfig: {
      spec: objects.controllerConfig?.spec ?? {},
      ...(objects.controllerConfig === undefined ? {} : { metadata: objects.controllerConfig.metadata }),
    },
  };
}

/** What the steps of a plan mean for the machine's workload. */
export function forecastOf(node: string, steps: readonly Step[]): NodeForecast {
  const actions = steps.flatMap((step) =>
    step.do === "daemonReload"
      ? [describeConsequence({ kind: "daemonReload" })]
      : step.do === "reload" || step.do === "restart"
        ? [`${step.do} ${step.unit}`]
        : [],
  );
  const reboots = steps.some((step) => step.do === "reboot");
  return {
    node,
    drains: steps.some((step) => step.do === "drain"),
    reboots,
    actions,
    disruption: reboots ? "reboot" : actions.length > 0 ? "services" : "nothing",
  };
}

/**
 * The effects of replacing the objects `before` by others: which pools re-render, and what happens to each of their
 * machines. The daemons compute the machines' part with the same function.
 */
export function planCluster(before: ClusterObjects, changed: ClusterObjects): ClusterForecast {
  const { machineConfigs, ...settings } = planSettings(before, changed);
  const after = { ...changed, machineConfigs };
  const findings = findingsOf(before, after);
  const pools = after.pools.map((pool) => ({
    forecast: forecastPool(pool, before, after),
    ofImages: imageWarnings(pool, before, after),
    ofKernels: kernelWarnings(pool, before, after),
  }));
  const unfitMachines = pools.flatMap(({ ofKernels }) => ofKernels);
  const forecasts = pools.map(({ forecast }) => forecast);
  return {
    refusals: [...settings.refusals, ...findings.refusals],
    warnings: [
      ...settings.warnings,
      ...findings.warnings,
      ...pools.flatMap(({ ofImages, ofKernels }) => [...ofImages, ...ofKernels]),
      ...serviceWarnings(forecasts, before, after),
    ],
    pools: forecasts,
    ...(unfitMachines.length === 0 ? {} : { unfitMachines }),
  };
}

/** Services that machines are asked to reload or restart, and those of new policies that nothing asks for yet. */
function serviceWarnings(
  pools: readonly PoolForecast[],
  before: ClusterObjects,
  after: ClusterObjects,
): readonly string[] {
  const asked = pools.flatMap((pool) =>
    pool.verdict === "changes"
      ? pool.services.map((one) => ({ ...one, text: missingServiceText(pool.pool, one) }))
      : [],
  );
  const stood = new Set(serviceProblemsIn(before).map(keyOfService));
  const askedFor = new Set(asked.map(({ service }) => service));
  const isNew = (problem: Problem & ServiceProblem) =>
    !askedFor.has(problem.service) && !stood.has(keyOfService(problem));
  return [
    ...asked.map(({ text }) => text),
    ...serviceProblemsIn(after)
      .filter(isNew)
      .map(({ path, reason, remedy }) => `MachineConfiguration/cluster: ${path}: ${reason}; ${remedy}`),
  ];
}

/**
 * The services of the cluster's policies that no pool's MachineConfigs bring. Those of a pool that are too large to be
 * merged reach no machine, and are not read.
 */
function serviceProblemsIn({
  machineConfiguration,
  machineConfigs,
  pools,
}: ClusterObjects): readonly (Problem & ServiceProblem)[] {
  const policies = machineConfiguration?.spec?.nodeDisruptionPolicy;
  if (policies === undefined) return [];
  const members = pools
    .map((pool) => membersOf(pool, pools, machineConfigs))
    .filter((ofPool) => tooLargeTogether(ofPool) === undefined);
  const configs = [...new Set(members.flat())].flatMap((config) => {
    const ignition = ignitionOf(config);
    return ignition?.verdict === "valid" ? [filledPlaces(ignition.config)] : [];
  });
  return problemsOfServices(policies, configs, "the cluster");
}

const keyOfService = ({ path, reason, remedy }: Problem & ServiceProblem): string =>
  JSON.stringify([path, reason, remedy]);

/** A warning about a service that machines of a pool are asked to reload or restart. */
export const missingServiceText = (pool: string, { reason, remedy }: ServiceProblem): string =>
  `pool ${pool}: ${reason}; ${remedy}`;

/** The findings about each new or changed MachineConfig and pool by itself. */
function findingsOf(before: ClusterObjects, after: ClusterObjects): Pick<ClusterForecast, "refusals" | "warnings"> {
  const known = new Map(before.machineConfigs.map((config) => [config.metadata.name, config]));
  const pools = () => [...before.pools, ...after.pools];
  const refusals: ClusterForecast["refusals"][number][] = [];
  const warnings: string[] = [];
  const add = (object: string, problems: readonly Problem[]) => {
    for (const { path, reason, remedy, severity } of problems) {
      const shown = remedy === undefined ? {} : { remedy };
      if (severity === "error") refusals.push({ object, path, reason, ...shown });
      else warnings.push(`${object}: ${path}: ${reason}${remedy === undefined ? "" : `; ${remedy}`}`);
    }
  };
  for (const pool of after.pools) {
    const problems = problemsOfObject(MachineConfigPool.kind, pool, { before: earlierOf(pool, before) });
    add(`MachineConfigPool/${pool.metadata.name}`, problems);
  }
  for (const config of after.machineConfigs) {
    if (known.get(config.metadata.name) === config) continue;
    const object = `MachineConfig/${config.metadata.name}`;
    // Whether a pool selects it is known here, and its label does not decide that alone.
    add(
      object,
      problemsOfObject(MachineConfig.kind, config, { before: known.get(config.metadata.name), pools }).filter(
        ({ path }) => path !== "metadata.labels",
      ),
    );
    if (!isOfPeople(config))
      pushAll(
        warnings,
        overriddenFiles(config, after).map((file) => `${object}: ${overriddenText(file)}`),
      );
    if (!after.pools.some((pool) => poolSelects(pool.spec.machineConfigSelector, config.metadata.labels)))
      warnings.push(`${object}: no pool selects it; give it the label ${labels.role}`);
  }
  return { refusals, warnings };
}

/** The previous pool; `undefined`: it is new. */
const earlierOf = (pool: MachineConfigPool, before: ClusterObjects) =>
  before.pools.find(({ metadata }) => metadata.name === pool.metadata.name);

/** The effect on a pool's machines when the pool begins or ceases to boot images. */
function imageWarnings(pool: MachineConfigPool, before: ClusterObjects, after: ClusterObjects): readonly string[] {
  const earlier = earlierOf(pool, before);
  if (earlier === undefined) return [];
  const content = imageContentOf(pool, after);
  if (content === imageContentOf(earlier, before)) return [];
  const into =
    content === undefined
      ? "the stock OS"
      : content === "full"
        ? "an image that holds its configuration"
        : "an image of its own, and files are written as before";
  return [
    `pool ${pool.metadata.name} opts ${content === undefined ? "out of" : "in to"} images: every machine of it drains and reboots into ${into}`,
  ];
}

/** How many machines a warning names. */
const mostNamedMachines = 5;

/** The machines that cannot have the kernel that the pool newly gets. */
function kernelWarnings(pool: MachineConfigPool, before: ClusterObjects, after: ClusterObjects): readonly string[] {
  const kernelOf = (objects: ClusterObjects) =>
    fieldRules.kernelType.merge(membersOf(pool, objects.pools, objects.machineConfigs)).value;
  if (kernelOf(after) !== "64k-pages" || kernelOf(before) === "64k-pages") return [];
  const others = after.nodes.filter((node) => {
    const member = poolOfNode(node, after.pools);
    const architecture = node.metadata.labels?.[labels.arch];
    return member.verdict === "member" && member.pool === pool.metadata.name && (architecture ?? "arm64") !== "arm64";
  });
  const names = listText(
    others.map(({ metadata }) => metadata.name),
    mostNamedMachines,
  );
  return others.length === 0
    ? []
    : [`pool ${pool.metadata.name}: the kernel type 64k-pages exists on arm64 only; of another architecture: ${names}`];
}

function forecastPool(pool: MachineConfigPool, before: ClusterObjects, after: ClusterObjects): PoolForecast {
  const { name } = pool.metadata;
  const earlier = earlierOf(pool, before);
  const overrides = storageOverridesOf(after.machineConfiguration);
  // A pool that was already refused keeps its current config, and changes are compared with that one.
  const current = before.machineConfigs.find((config) => config.metadata.name === pool.spec.configuration?.name);
  const then =
    earlier === undefined
      ? undefined
      : renderForPool(renderInputsOf(earlier, before), current, storageOverridesOf(before.machineConfiguration));
  const from = then?.verdict === "rendered" ? then.config : current;
  const now = renderForPool(renderInputsOf(pool, after), current ?? from, overrides);
  if (now.verdict === "refused") {
    const stood = then?.verdict === "refused" ? then.refusals.map(({ reason }) => reason) : [];
    return { pool: name, verdict: "refused", refusals: now.refusals, stood };
  }
  const to = now.config;
  if (from?.metadata.name === to.metadata.name) return { pool: name, verdict: "unchanged", rendered: to.metadata.name };
  const machines = forecastMachines(pool, from, to, before, after);
  const osImage = questionOf(from, to, imageContentOf(pool, after) !== undefined);
  return {
    pool: name,
    verdict: "changes",
    from: from?.metadata.name ?? "",
    to: to.metadata.name,
    paused: pool.spec.paused === true,
    changes: diffConfigs(from, to),
    ...machines,
    services: servicesOf(name, machines.because, decoded(to)),
    irreconcilable: [
      ...irreconcilableBetween(from, to, overrides),
      ...refusedBeforeDrain(from, to, imageContentOf(pool, after)),
    ],
    warnings: newWarnings(then, now, { before, after }),
    ...(osImage === undefined ? {} : { osImage }),
  };
}

/** Services that an update asks for and that machines of the pool probably do not have. */
function servicesOf(
  pool: string,
  because: readonly Because[],
  target: NodeConfig | undefined,
): readonly ServiceProblem[] {
  if (target === undefined || because.some(({ consequence }) => consequence.kind === "reboot")) return [];
  return because.flatMap(({ consequence }) => {
    if (consequence.kind !== "reload" && consequence.kind !== "restart") return [];
    const problem = problemOfService(consequence.unit, [target], `pool ${pool}`);
    return problem === undefined ? [] : [problem];
  });
}

/** What machines refuse of the config before they drain. @param content what images of the pool contain. */
function refusedBeforeDrain(
  from: MachineConfig | undefined,
  to: MachineConfig,
  content: ContentMode | undefined,
): readonly Irreconcilable[] {
  const target = decoded(to);
  if (target === undefined) return [];
  const wanted = content === undefined ? target : withImage(target, { image: imageToBuild, content });
  return problemsOfTarget(decoded(from), wanted).map(({ where, reason, remedy }) => ({
    field: where,
    reason,
    remedy,
    rule: "ours",
  }));
}

/**
 * The warnings of rendering that a change brings. What is found in a MachineConfig by itself is news only of those that the
 * change makes or alters: the contents of all others are not decoded.
 */
function newWarnings(
  then: RenderResult | undefined,
  now: Extract<RenderResult, { verdict: "rendered" }>,
  { before, after }: { readonly before: ClusterObjects; readonly after: ClusterObjects },
): readonly RenderWarning[] {
  const standing = then?.verdict === "rendered" ? then.warningsBeside(new Set(after.machineConfigs)) : [];
  return now.warningsBeside(new Set(before.machineConfigs)).filter(isNewSince(standing));
}

/** Tells the warnings that a change brings from those that stand without it. */
function isNewSince(standing: readonly RenderWarning[]): (warning: RenderWarning) => boolean {
  const keyOf = ({ code, member, reason }: RenderWarning) => [code, member, reason].join("\0");
  const known = new Set(standing.map(keyOf));
  return (warning) => !known.has(keyOf(warning));
}

/** The effects on each machine of a pool on the way to a rendered config, and their reasons. */
function forecastMachines(
  pool: MachineConfigPool,
  from: MachineConfig | undefined,
  to: MachineConfig,
  before: ClusterObjects,
  after: ClusterObjects,
): { readonly nodes: readonly NodeForecast[]; readonly because: readonly Because[] } {
  const content = imageContentOf(pool, after);
  const policies = mergePolicies(after.machineConfiguration?.spec.nodeDisruptionPolicy);
  const known = new Map(before.machineConfigs.map((config) => [config.metadata.name, config]));
  const target = decoded(to);
  const planFrom = (has: NodeConfig, onlyControlPlane: boolean) =>
    target === undefined ? undefined : planBetween(has, target, content, policies, onlyControlPlane);
  // Machines with the same config share one plan.
  const plans = new Map<string, ReturnType<typeof planFrom>>();
  const planOf = (current: string, onlyControlPlane: boolean) => {
    const id = `${onlyControlPlane ? "only " : ""}${current}`;
    if (!plans.has(id)) {
      const has = current === from?.metadata.name ? from : known.get(current);
      plans.set(id, planFrom(decoded(has) ?? decoded(from) ?? emptyNodeConfig, onlyControlPlane));
    }
    return plans.get(id);
  };
  const controlPlaneNodes = after.nodes.filter(isControlPlane).length;
  const members = after.nodes.filter((node) => {
    const member = poolOfNode(node, after.pools);
    return member.verdict === "member" && member.pool === pool.metadata.name;
  });
  // Each machine starts from its own config, which may differ from the pool's.
  const made = members.map((node) =>
    planOf(
      node.metadata.annotations?.[annotations.currentConfig] ?? "",
      isControlPlane(node) && controlPlaneNodes === 1,
    ),
  );
  const whole = members.length === 0 ? [planFrom(decoded(from) ?? emptyNodeConfig, false)] : made;
  const reason = whole.findLast((plan) => plan?.verdict === "change");
  return {
    nodes: members.map((node, index) => {
      const plan = made[index];
      return forecastOf(node.metadata.name, plan?.verdict === "change" ? plan.steps : []);
    }),
    because: reason?.verdict === "change" ? reason.because : [],
  };
}

/** The plan of a machine from one configuration to another. @param content what images of its pool contain. */
function planBetween(
  has: NodeConfig,
  wanted: NodeConfig,
  content: ContentMode | undefined,
  policies: ReturnType<typeof mergePolicies>,
  onlyControlPlane: boolean,
): ReturnType<typeof planNode> {
  if (content === undefined) {
    const image = has.osImage === "" ? wanted.osImage : has.osImage;
    return planNode(observedAs(has, { image, onlyControlPlane }), wanted, policies);
  }
  const image = sharesImage(has, wanted, content) ? imageNow : imageToBuild;
  return planNode(
    observedAs(withImage(has, { image: imageNow, content }), { image: imageNow, onlyControlPlane }),
    withImage(wanted, { image, content }),
    policies,
  );
}
