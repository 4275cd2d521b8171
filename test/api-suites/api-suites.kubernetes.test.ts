import { inject } from "vitest";
import { hasKubernetes, kubernetesTarget } from "../support/kubernetes/control-plane.ts";
import { apiSuites } from "./api-suites.ts";

apiSuites(
  "a real kube-apiserver",
  async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    const target = await kubernetesTarget(controlPlane);
    return { target, close: () => target.close() };
  },
  { skip: !hasKubernetes },
);
