import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { annotations, namespace, objects } from "../../api/names.ts";
import { componentHealth, factsAbout } from "../../core/pool/pool-queries.ts";
import { daemonSetFacts } from "../../core/pool/component-facts.ts";
import { applyManifest } from "../apply-manifest.ts";
import { manifestInputs } from "../components.ts";
import { daemonSet } from "../manifests.ts";
import { isOfVersion } from "../operator-options.ts";
import { type OperatorTask, type TaskContext, type TaskResult, done, progressing } from "../operator-task.ts";
import { watchControllerConfigs, watchDaemonSets, watchMachineConfigurations } from "../operator-watches.ts";

interface View {
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

  observe({ caches, options: { version } }) {
    const running = caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.daemon}`);
    const settings = caches.of(ControllerConfig).get(objects.controllerConfig);
    return {
      isOtherRelease: running !== undefined && !isOfVersion(running, version),
      hasSettings: settings?.metadata.annotations?.[annotations.generatedByVersion] === version,
    };
  },

  decide: ({ isOtherRelease, hasSettings }) =>
    isOtherRelease && !hasSettings
      ? { do: "wait", message: "the daemons wait for the settings of the new release" }
      : { do: "deploy" },

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
    ? done
    : progressing(health.because.message);
}
