import { layoutOf } from "../../cluster/layout.ts";
import { runClusterControllers } from "../../cluster/controllers/run-cluster-controllers.ts";
import { createEventRecorder } from "../../kube/event-recorder.ts";
import { systemFiles } from "../../ports/node/index.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect } from "../connect.ts";
import { runProcess } from "../run-process.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, { dir: { type: "string" } });
  if (values.dir === undefined) throw usageError("--dir is required");
  const layout = layoutOf(values.dir);
  return runProcess({ component: "cluster-controllers" }, async (ports, signal) => {
    const { kube, close } = await connect({ kubeconfig: `${layout.pki}/cluster-controllers.kubeconfig`, component: "cluster-controllers" });
    const events = createEventRecorder({ ...ports, kube, component: "cluster-controllers" });
    try {
      await runClusterControllers({ ...ports, kube, events, rootCa: (await systemFiles.readText(layout.trustedAuthorities)) ?? "" }, signal);
    } finally {
      await events.settle();
      close();
    }
  });
}
