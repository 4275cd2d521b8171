import { createEventRecorder } from "../../kube/event-recorder.ts";
import { runOperator } from "../../operator/run-operator.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect } from "../connect.ts";
import { processIdentity, runProcess } from "../run-process.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { kubeconfig: { type: "string" }, image: { type: "string" } }, { positionals: true });
  if (positionals[0] !== "start") throw usageError("the operator knows one verb: start");
  const { image } = values;
  if (image === undefined) throw usageError("--image is required: the pullspec that the components run from");
  return runProcess({ component: "operator" }, async (ports, signal) => {
    const { kube, close } = await connect({ kubeconfig: values.kubeconfig, component: "operator" });
    const events = createEventRecorder({ ...ports, kube, component: "machine-config-operator" });
    try {
      await runOperator({ ...ports, kube, events, identity: processIdentity("operator"), version, image }, signal);
    } finally {
      await events.settle();
      close();
    }
  });
}
