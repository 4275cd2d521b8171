import { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { type ConfigMap, kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { annotations, fieldManagers, objects } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import type { MergedPullSecret } from "../../core/build/internal-pull-secret.ts";
import { publishedApiServerHosts } from "../../core/join/config-server.ts";
import { reachedVersion } from "../../core/operator/version-step.ts";
import { textOfBase64 } from "../../core/render/base-configs.ts";
import {
  type ClusterSources,
  controllerConfigOf,
  failureOf,
  inputRefusedIn,
  isCompleted,
  mergedRegistryCa,
  mergedRegistryCas,
} from "../../core/render/controller-config-of.ts";
import { releaseOf } from "../../core/render/release-of.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { applyManifest } from "../apply-manifest.ts";
import {
  observeApiServerAddresses,
  observeClusterInfo,
  observeMisplaced,
  observePullSecret,
  observeSources,
  ownMap,
  publishedRegistryCa,
} from "../cluster-sources.ts";
import { controllerRuns } from "../components.ts";
import { settingsIn } from "../operator-options.ts";
import {
  type OperatorTask,
  type TaskContext,
  type TaskResult,
  taskDone,
  failed,
  progressing,
} from "../operator-task.ts";
import {
  watchClusterOperators,
  watchControllerConfigs,
  watchDeployments,
  watchSecrets,
  watchSources,
} from "../operator-watches.ts";
import { inputsMisplaced } from "../reports.ts";

type Release = ReturnType<typeof releaseOf>;

interface Inputs {
  readonly sources: Omit<ClusterSources, "release" | "suiteImage" | "releaseImage" | "internalRegistryPullSecret">;
  /** Credentials for the cluster's own registry; `undefined` while the cluster starts. */
  readonly secret: MergedPullSecret | undefined;
}

interface View {
  readonly existing: ControllerConfig | undefined;
  readonly release: Release;
  readonly version: string;
  readonly image: string;
  readonly controllerRuns: boolean;
  /** `undefined`: nothing can be written yet, and nothing else was read. */
  readonly inputs: Inputs | undefined;
}

type Decision =
  | { readonly do: "nothing"; readonly result: TaskResult }
  /** `result`: what the task has found once everything is written. */
  | { readonly do: "write"; readonly spec: ControllerConfig["spec"]; readonly result: TaskResult };

/** A new release renders only once its controller has taken over from the old one. */
const waitsForController = ({ existing, version, controllerRuns: runs }: Omit<View, "inputs">): boolean => {
  const by = existing?.metadata.annotations?.[annotations.generatedByVersion];
  return by !== undefined && by !== version && !runs;
};

/** The inputs of base configurations: the release, and the cluster's settings. */
export const controllerConfig: OperatorTask<View, Decision> = {
  name: "ControllerConfig",
  watches: [watchClusterOperators, watchControllerConfigs, watchDeployments, watchSecrets, watchSources],

  async observe(context) {
    const { caches, options } = context;
    const existing = caches.of(ControllerConfig).get(objects.controllerConfig);
    const view = {
      existing,
      release: releaseOf(ownMap(objects.osImageConfigMap, context)?.data, options.version, existing?.spec),
      version: options.version,
      image: options.image,
      controllerRuns: controllerRuns(context),
    };
    const isOpen = view.release.verdict !== "unknown" && !waitsForController(view);
    return { ...view, inputs: isOpen ? await observeInputs(context) : undefined };
  },

  decide,

  async perform(decision, context) {
    switch (decision.do) {
      case "nothing":
        return decision.result;
      case "write":
        reportMisplaced(context);
        await writeSettings(decision.spec, context);
        await publishRegistryCas(decision.spec, context);
        return decision.result;
    }
  },
};

async function observeInputs(context: TaskContext): Promise<Inputs> {
  const sources = await observeSources(context);
  const bringUp = reachedVersion(context.caches.of(ClusterOperator).get(objects.clusterOperator)) === undefined;
  return {
    sources: { ...sources, bringUp },
    secret: bringUp ? undefined : observePullSecret(context, sources.dns?.spec?.baseDomain),
  };
}

function decide(view: View): Decision {
  const { existing, release, image, inputs } = view;
  if (release.verdict === "unknown")
    return { do: "nothing", result: release.lasting ? failed(release.message) : progressing(release.message) };
  if (inputs === undefined)
    return { do: "nothing", result: progressing("waiting for the new controller before its settings are written") };
  const { sources, secret } = inputs;
  const kept = existing?.spec.internalRegistryPullSecret;
  const internalRegistryPullSecret =
    secret?.verdict === "merged" ? secret.json : kept === undefined || kept === null ? undefined : textOfBase64(kept);
  const made = controllerConfigOf(
    { ...sources, internalRegistryPullSecret, release: release.images, suiteImage: image, releaseImage: image },
    existing?.spec,
  );
  if (made.verdict === "waiting") return { do: "nothing", result: progressing(made.message) };
  const problems = [...made.problems, ...(secret?.verdict === "refused" ? [secret.problem] : [])];
  return { do: "write", spec: made.spec, result: resultOf(existing, release, problems) };
}

/** The task's findings: problems first, then waits. */
function resultOf(
  existing: ControllerConfig | undefined,
  release: Exclude<Release, { readonly verdict: "unknown" }>,
  problems: readonly string[],
): TaskResult {
  if (problems.length > 0) return failed(problems.join("; "));
  const failure = existing === undefined ? undefined : failureOf(existing);
  if (failure !== undefined) return failed(`the base configurations cannot be made: ${failure}`);
  const refused = existing === undefined ? undefined : inputRefusedIn(existing);
  if (refused !== undefined) return failed(refused);
  if (release.verdict === "ahead") return progressing(release.message);
  if (existing === undefined || !isCompleted(existing)) return progressing("waiting for the base configurations");
  return taskDone;
}

/** Says once of each input in a namespace of OpenShift's where it would be read. */
function reportMisplaced(context: TaskContext): void {
  const { caches, memory, report } = context;
  const about = caches.of(ClusterOperator).get(objects.clusterOperator);
  const message = observeMisplaced(context).join("; ");
  if (about === undefined || message === memory.misplaced) return;
  memory.misplaced = message;
  if (message !== "") report(inputsMisplaced(about, message));
}

function writeSettings(spec: ControllerConfig["spec"], context: TaskContext): Promise<void> {
  const { memory, options } = context;
  const manifest = {
    apiVersion: ControllerConfig.apiVersion,
    kind: ControllerConfig.kind,
    metadata: {
      name: objects.controllerConfig,
      annotations: {
        [annotations.generatedByVersion]: options.version,
        [annotations.releaseImageVersion]: options.version,
        [annotations.serviceCaRotate]: String(memory.isHandingOver),
        [annotations.apiServerHosts]: publishedApiServerHosts({
          controllerConfig: { spec },
          machineConfiguration: settingsIn(context),
          clusterInfo: observeClusterInfo(context),
          ownServer: options.apiServer,
          installedAddress: options.configServerAddress,
          apiServerAddresses: observeApiServerAddresses(context),
        }).join(","),
      },
    },
    spec,
  } as KubeObject;
  return applyManifest(ControllerConfig, manifest, context, { watched: true });
}

/** The union of the registries' certificates, for others; also when the last one is gone. */
async function publishRegistryCas(spec: ControllerConfig["spec"], context: TaskContext): Promise<void> {
  const { kube, signal } = context;
  const published = publishedRegistryCa(context);
  if (published === "nowhere") return;
  const data = mergedRegistryCas(spec);
  if (published !== "absent" && equalValues(published.data ?? {}, data)) return;
  const by = { owner: fieldManagers.operator, signal };
  if (published === "absent") {
    await kube.apply(kubernetes.ConfigMap, { metadata: mergedRegistryCa, data }, by);
    return;
  }
  const body = { data: { ...data, ...goneFiles(published, data) } };
  await kube.patch(kubernetes.ConfigMap, mergedRegistryCa, { type: "merge", body }, by);
}

/** The reference may have created the ConfigMap: its keys that are no longer desired are removed as well. */
const goneFiles = (published: ConfigMap, data: Readonly<Record<string, string>>): Readonly<Record<string, null>> =>
  Object.fromEntries(
    Object.keys(published.data ?? {}).flatMap((file) => (Object.hasOwn(data, file) ? [] : [[file, null]])),
  );
