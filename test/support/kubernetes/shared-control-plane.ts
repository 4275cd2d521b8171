import type { TestProject } from "vitest/node";
import { type ControlPlaneAddress, hasKubernetes, startControlPlane } from "./control-plane.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The control plane that all files of a run share; `undefined` where none is available. */
    readonly controlPlane: ControlPlaneAddress | undefined;
  }
}

/** One control plane for a whole run: `inject("controlPlane")` finds it. A test that breaks servers starts its own. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (!hasKubernetes) {
    process.stdout.write(
      "Kubernetes' programs are not built: tests on the real control plane are skipped. 'hack/kubernetes build' builds them.\n",
    );
    project.provide("controlPlane", undefined);
    return undefined;
  }
  const { directory, url, stop } = await startControlPlane();
  project.provide("controlPlane", { directory, url });
  return stop;
}
