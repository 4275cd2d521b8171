import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { annotations, namespace, objects } from "../../api/names.ts";
import { componentHealth, factsAbout } from "../../core/pool/pool-queries.ts";
import { daemonSetFacts } from "../../core/pool/component-facts.ts";
import { applyManifest, isApplied } from "../apply-manifest.ts";
import { manifestInputs } from "../components.ts";
import { daemonSet, gate } from "../manifests.ts";
import { isOfVersion } from "../operator-options.ts";
import { type OperatorTask, type TaskContext, type TaskResult, taskDone, progressing } from "../operator-task.ts";
import { watchControllerConfigs, watchDaemonSets, watchMachineConfigurations } from "../operator-watches.ts";

interface View {
  /** The policy is in force that keeps each daemon to its own machine. */
  readonly isBound: boolean;
  /** Daemons of another release run. */
  readonly isOtherRelease: boolean;
  /** ControllerConfig was written by this release. */
  readonly hasSettings: boolean;
}

type Decision = { readonly do: "wait"; readonly message: string } | { readonly do: "deploy" };

/** The daemons. A new release reaches machines last: once its controller has taken over and its settings are written. */
export const machineConfigDaemon: OperatorTask<View, Decision> = {
  name: "MachineConfigDaemon",
  watches: [watchMachineConfigurations, watchControllerConfigs, watchDaemonSets],

  observe(context) {
    const { caches, options } = context;
    const { version } = options;
    const running = caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.daemon}`);
    const settings = caches.of(ControllerConfig).get(objects.controllerConfig);
    return {
      isBound: gate().every((manifest) => isApplied(manifest, context)),
      isOtherRelease: running !== undefined && !isOfVersion(running, version),
      hasSettings: settings?.metadata.annotations?.[annotations.generatedByVersion] === version,
    };
  },

  decide({ isBound, isOtherRelease, hasSettings }) {
    // Their account may patch every Node: without the policy, root on one machine is root on all.
    if (!isBound) return { do: "wait", message: "the daemons wait for the policy that keeps each to its own machine" };
    return isOtherRelease && !hasSettings
      ? { do: "wait", message: "the daemons wait for the settings of the new release" }
      : { do: "deploy" };
  },

  async perform(decision, context) {
    switch (decision.do) {
      case "wait":
        return progressing(decision.message);
      case "deploy":
        await applyManifest(kubernetes.DaemonSet, daemonSet(manifestInputs(context)), context, { watched: true });
        return healthOfDaemons(context);
    }
  },
};

function healthOfDaemons({ caches, clock, memory, options }: TaskContext): TaskResult {
  const health = componentHealth(
    factsAbout(memory.cluster, clock.now()),
    objects.daemon,
    daemonSetFacts(caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.daemon}`), options.version),
  );
  // Daemons that are away belong to machines, and pools report those.
  return health.value.is === "Healthy" || health.because.reason === "NotAvailable"
    ? taskDone
    : progressing(health.because.message);
}
