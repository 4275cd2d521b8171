import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { objects } from "../../api/names.ts";
import { stateSettings } from "../../core/operator/state-settings.ts";
import { applyManifest } from "../apply-manifest.ts";
import { ownMap } from "../cluster-sources.ts";
import { manifestInputs } from "../components.ts";
import { stateDeployment, stateMetrics } from "../manifests.ts";
import { type OperatorTask, taskDone } from "../operator-task.ts";
import {
  watchDeployments,
  watchMachineConfigurations,
  watchMachines,
  watchSecrets,
  watchSources,
} from "../operator-watches.ts";
import { servingSecret } from "../serving-certificate.ts";

interface Decision {
  readonly replicas: 0 | 1;
}

/**
 * The process that keeps the books, on or off as the administrator has set it. Nothing waits for it, and nothing
 * depends on its objects.
 */
export const stateController: OperatorTask<Readonly<Record<string, string>> | undefined, Decision> = {
  name: "StateController",
  watches: [watchMachineConfigurations, watchMachines, watchDeployments, watchSecrets, watchSources],
  observe: (context) => ownMap(objects.stateConfig, context)?.data,
  decide: (settings) => ({ replicas: stateSettings(settings).mode === "off" ? 0 : 1 }),

  async perform({ replicas }, context) {
    const certificate = await servingSecret({ component: objects.state, secret: stateMetrics.secret }, context);
    if (certificate !== undefined)
      await applyManifest(
        kubernetes.Deployment,
        stateDeployment(manifestInputs(context, certificate.hash), replicas),
        context,
        { watched: true },
      );
    return taskDone;
  },
};
