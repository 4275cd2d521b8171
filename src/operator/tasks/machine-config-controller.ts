import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { objects } from "../../api/names.ts";
import { applyManifest } from "../apply-manifest.ts";
import { ownMap } from "../cluster-sources.ts";
import { controllerRuns, manifestInputs } from "../components.ts";
import { type AdmissionClients, admission, clientCaKey, controllerDeployment } from "../manifests.ts";
import { type OperatorTask, type TaskContext, taskDone, progressing } from "../operator-task.ts";
import {
  watchDeployments,
  watchMachineConfigurations,
  watchMachines,
  watchSecrets,
  watchSources,
} from "../operator-watches.ts";
import { controlPlaneAddresses, servingSecret } from "../serving-certificate.ts";

/** The administrator's settings for the API server's client certificate; `undefined` if there are none. */
function admissionClients(context: TaskContext): AdmissionClients | undefined {
  const data = ownMap(objects.admissionClientCa, context)?.data;
  const bundle = data?.[clientCaKey];
  if (bundle === undefined) return undefined;
  const names = (data?.["names"] ?? "").split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  return { hash: bytesToHex(sha256(utf8ToBytes(bundle))).slice(0, 16), names };
}

type Decision = { readonly do: "wait"; readonly message: string } | { readonly do: "deploy" };

const noMachine = "waiting for a control-plane machine to run on";

/** The process that renders configurations and rolls them out, with the certificate that it serves admission with. */
export const machineConfigController: OperatorTask<readonly string[], Decision> = {
  name: "MachineConfigController",
  watches: [watchMachineConfigurations, watchMachines, watchDeployments, watchSecrets, watchSources],
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
          controllerDeployment(manifestInputs(context, certificate.hash), admissionClients(context)),
          context,
          { watched: true },
        );
        return controllerRuns(context) ? taskDone : progressing("the controller is being started");
      }
    }
  },
};
