import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { objects } from "../../api/names.ts";
import { applyManifest } from "../apply-manifest.ts";
import { controllerRuns, manifestInputs } from "../components.ts";
import { admission, controllerDeployment } from "../manifests.ts";
import { type OperatorTask, done, progressing } from "../operator-task.ts";
import { watchDeployments, watchMachineConfigurations, watchMachines, watchSecrets } from "../operator-watches.ts";
import { controlPlaneAddresses, servingSecret } from "../serving-certificate.ts";

type Decision = { readonly do: "wait"; readonly message: string } | { readonly do: "deploy" };

const noMachine = "waiting for a control-plane machine to run on";

/** The process that renders configurations and rolls them out, with the certificate that it serves admission with. */
export const machineConfigController: OperatorTask<readonly string[], Decision> = {
  name: "MachineConfigController",
  watches: [watchMachineConfigurations, watchMachines, watchDeployments, watchSecrets],
  observe: (context) => controlPlaneAddresses(context),
  decide: (addresses) => (addresses.length === 0 ? { do: "wait", message: noMachine } : { do: "deploy" }),

  async perform(decision, context) {
    switch (decision.do) {
      case "wait":
        return progressing(decision.message);
      case "deploy": {
        const certificate = await servingSecret({ component: objects.controller, secret: admission.secret }, context);
        if (certificate === undefined) return progressing(noMachine);
        await applyManifest(
          kubernetes.Deployment,
          controllerDeployment(manifestInputs(context, certificate.hash)),
          context,
          { watched: true },
        );
        return controllerRuns(context) ? done : progressing("the controller is being started");
      }
    }
  },
};
