import { inject } from "vitest";
import { hasKubernetes, kubernetesTarget } from "../support/kubernetes/control-plane.ts";
import { contractSuite } from "./contract-suite.ts";

contractSuite(
  "a real kube-apiserver",
  "kubernetes",
  async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    const target = await kubernetesTarget(controlPlane);
    return { target, close: () => target.close() };
  },
  { skip: !hasKubernetes },
);
