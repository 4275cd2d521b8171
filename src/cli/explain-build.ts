import {
  ControllerConfig,
  MachineConfig,
  type MachineConfigPool,
  type MachineOSConfig,
  kubernetes,
} from "../api/index.ts";
import type { ConfigMap, Node, Secret } from "../api/foreign/kubernetes.ts";
import { annotations, labels, namespace, objects } from "../api/names.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import { type BuildInputs, type BuildSources, buildInputs, contextConfigMapOf } from "../core/build/build-inputs.ts";
import {
  architectureOf,
  compileIntent,
  containerfileOf,
  contentModeOf,
  readCustom,
} from "../core/build/build-intent.ts";
import { type Forecast, explainBuild, forecastText } from "../core/preview/build-explain.ts";
import { keyDifferences } from "../core/build/build-key.ts";
import { planBuild } from "../core/build/build-plan.ts";
import type { BuildRowObjects } from "../core/build/build-rows.ts";
import { explanationText } from "../core/preview/explanation.ts";
import { readBook } from "../core/books/read-book.ts";
import { isControlPlane } from "../core/pool/member-facts.ts";
import { poolOfNode } from "../core/pool/pool-of-node.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { systemClock } from "../ports/node/index.ts";
import { readCluster } from "./commands/explain.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { readStoredBooks } from "./read-stored-books.ts";
import { readComponents } from "../core/config/key-components.ts";
import { own } from "../api/schema/own.ts";

type Data = Readonly<Record<string, string>> | undefined;

export async function forecastBuild(
  kube: KubeClient,
  { pools, configs, builds }: BuildRowObjects,
  pool: MachineConfigPool,
): Promise<Forecast> {
  const map = async (name: string | undefined): Promise<ConfigMap | undefined> =>
    name === undefined ? undefined : kube.get(kubernetes.ConfigMap, { name, namespace });
  const [buildConfig, customs, repos, gpg, controllerConfig, nodes] = await Promise.all([
    map(objects.buildConfig),
    map(objects.customContainerfiles),
    map(objects.yumRepos),
    // The user may not be allowed to read Secrets: its digest is then not shown.
    kube.get(kubernetes.Secret, { name: objects.rpmGpg, namespace }).catch((): Secret | undefined => undefined),
    kube.get(ControllerConfig, { name: objects.controllerConfig }),
    kube.list(kubernetes.Node).then(({ items }) => items),
  ]);
  const intent = compileIntent({
    pool,
    machineOSConfigs: configs,
    buildConfig: buildConfig?.data,
    customContainerfiles: customs?.data,
  });
  if (intent.opted === "out") return { verdict: "out", because: intent.because };
  const config = intent.config ?? made(pool, intent.materialised);
  const errors = intent.problems.filter(({ severity }) => severity === "error").map(({ message }) => message);
  const mode = contentModeOf(pool, config);
  const rendered = await kube.get(MachineConfig, { name: pool.spec.configuration?.name ?? "" });
  if (mode.verdict === "refused") errors.push(mode.problem.message);
  if (rendered === undefined) errors.push("no configuration has been rendered for the pool yet");
  if (errors.length > 0 || mode.verdict === "refused" || rendered === undefined || config === undefined)
    return { verdict: "refused", problems: errors };
  const architecture = architectureOf(
    architecturesOf(nodes, pools, pool),
    nodes.filter(isControlPlane).map(({ metadata }) => ({ architecture: metadata.labels?.[labels.arch] ?? "" })),
  );
  const context = await map(contextConfigMapOf(config));
  const custom = readCustom(
    containerfileOf({ config, source: intent.source }, architecture, own(customs?.data, pool.metadata.name)),
  );
  const trust = textOfBase64(controllerConfig?.spec.additionalTrustBundle ?? "");
  const given = <K extends string>(key: K, value: Data | string) =>
    value === undefined || value === "" ? {} : { [key]: value };
  const sources = {
    rendered,
    config,
    mode: mode.mode,
    architecture,
    base: rendered.spec?.osImageURL ?? "",
    ...given("extensionsImage", rendered.spec?.baseOSExtensionsContainerImage),
    custom,
    ...given("context", context?.data),
    ...given("trust", trust),
    ...given("repos", repos?.data),
    ...given("gpg", gpg?.data),
  } as BuildSources;
  const inputs = buildInputs(sources);
  if (inputs.verdict === "refused") return { verdict: "refused", problems: [inputs.reason] };
  return { verdict: "planned", because: intent.because, ...planned(inputs, config, rendered, sources, builds) };
}

function planned(
  inputs: BuildInputs & { readonly verdict: "inputs" },
  config: MachineOSConfig,
  rendered: MachineConfig,
  { base, mode }: BuildSources,
  builds: BuildRowObjects["builds"],
) {
  const current = config.status?.machineOSBuild?.name;
  const plan = planBuild({
    machineOSConfig: config.metadata.name,
    rendered: rendered.metadata.name,
    repository: inputs.repository,
    key: inputs.key.key,
    parentKey: inputs.key.parentKey,
    base,
    isBaseParent: inputs.isBaseParent,
    holdsConfiguration: mode === "full",
    current,
    builds,
    forced: config.metadata.annotations?.[annotations.rebuildActive] !== undefined,
  });
  const before = readComponents(
    builds.find(({ metadata }) => metadata.name === current)?.metadata.annotations?.[annotations.keyInputs],
  );
  return {
    config: rendered.metadata.name,
    key: inputs.key.key,
    components: inputs.key.components,
    differences: before === undefined ? [] : keyDifferences(before, inputs.key.components),
    plan,
    containerfile: inputs.containerfile,
  };
}

function architecturesOf(
  nodes: readonly Node[],
  pools: readonly MachineConfigPool[],
  pool: MachineConfigPool,
): readonly { readonly architecture: string }[] {
  return nodes.flatMap((node) => {
    const membership = poolOfNode(node, pools);
    return membership.verdict === "member" && membership.pool === pool.metadata.name
      ? [{ architecture: node.metadata.labels?.[labels.arch] ?? "" }]
      : [];
  });
}

/** What the os-builder would decide from a pool's switch. */
function made(pool: MachineConfigPool, spec: MachineOSConfig["spec"] | undefined): MachineOSConfig | undefined {
  return spec === undefined
    ? undefined
    : ({
        apiVersion: "machineconfiguration.openshift.io/v1",
        kind: "MachineOSConfig",
        metadata: { name: pool.metadata.name },
        spec,
      } as MachineOSConfig);
}

/**
 * Prints what would be built, without building it. @returns the exit code: 0 no build needed, 2 a build needed, 1 it
 * cannot be built.
 */
export async function planOfPool(
  kube: KubeClient,
  objects_: BuildRowObjects,
  pool: MachineConfigPool,
  io: Io,
  { json }: { readonly json: boolean },
): Promise<number> {
  const forecast = await forecastBuild(kube, objects_, pool);
  const code =
    forecast.verdict === "refused"
      ? exitCodes.failed
      : forecast.verdict === "planned" && (forecast.plan.strategy === "append" || forecast.plan.strategy === "build")
        ? exitCodes.change
        : exitCodes.ok;
  if (json)
    io.out(
      `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "BuildPlan", pool: pool.metadata.name, ...forecast })}\n`,
    );
  else io.out(forecastText(pool.metadata.name, forecast));
  return code;
}

/** Prints where the image of a pool stands and why. @returns the exit code. */
export async function explainBuildOf(
  kube: KubeClient,
  objects_: BuildRowObjects,
  pool: MachineConfigPool,
  io: Io,
  { json }: { readonly json: boolean },
): Promise<number> {
  const {
    metadata: { name },
  } = pool;
  const [forecast, { facts }, storedBooks] = await Promise.all([
    forecastBuild(kube, objects_, pool),
    readCluster(kube),
    readStoredBooks(kube, `pool/${name}`),
  ]);
  const history = readBook(storedBooks, `pool/${name}`, systemClock.now()).chapters;
  const explanation = explainBuild(forecast, { pool, objects: objects_, facts, history });
  io.out(
    json
      ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "BuildExplanation", ...explanation })}\n`
      : explanationText(explanation),
  );
  return exitCodes.ok;
}
