import { type Pod, kubernetes } from "../../api/foreign/kubernetes.ts";
import { namespace } from "../../api/names.ts";
import { isMirror } from "../../core/pool/mirror-pods.ts";
import { applyManifest } from "../apply-manifest.ts";
import { ours } from "../cluster-sources.ts";
import { isLoopbackAddress } from "../components.ts";
import {
  admission as served,
  admissionService,
  admissionWebhook,
  builderService,
  configServerService,
  stateService,
} from "../manifests.ts";
import { type OperatorTask, taskDone, progressing } from "../operator-task.ts";
import { watchControllerPods, watchSecrets } from "../operator-watches.ts";

interface View {
  /** Address of the machine that the controller runs on. */
  readonly hostIP: string | undefined;
  /** Authority of the controller's certificate, in base64. */
  readonly ca: string | undefined;
}

type Decision =
  | { readonly do: "wait" }
  /** `address`: the webhook is reached there; `undefined`: by its Service. */
  | { readonly do: "serve"; readonly address: string | undefined; readonly ca: string };

/** The kubelet of any node makes pods with the labels of the controller's. */
const isRunning = (pod: Pod) =>
  pod.metadata.deletionTimestamp === undefined &&
  pod.status?.phase === "Running" &&
  (pod.status.hostIP ?? "") !== "" &&
  !isMirror(pod);

/** The webhook by which the controller admits objects. */
export const admissionTask: OperatorTask<View, Decision> = {
  name: "Admission",
  watches: [watchControllerPods, watchSecrets],

  observe: ({ caches }) => ({
    hostIP: caches.of(kubernetes.Pod).list().find(isRunning)?.status?.hostIP,
    ca: caches.of(kubernetes.Secret, ours).get(`${namespace}/${served.secret}`)?.data?.["ca.crt"],
  }),

  decide({ hostIP, ca }) {
    if (hostIP === undefined || ca === undefined) return { do: "wait" };
    return { do: "serve", address: isLoopbackAddress(hostIP) ? hostIP : undefined, ca: atob(ca) };
  },

  async perform(decision, context) {
    switch (decision.do) {
      case "wait":
        return progressing("waiting for the controller's pod");
      case "serve":
        if (decision.address === undefined)
          for (const service of [admissionService(), stateService(), configServerService(), builderService()])
            await applyManifest(kubernetes.Service, service, context);
        await applyManifest(kubernetes.ValidatingWebhookConfiguration, admissionWebhook(decision), context);
        return taskDone;
    }
  },
};
