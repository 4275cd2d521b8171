import { kubernetes } from "../../api/kubernetes.ts";
import { namespace, objects } from "../../api/names.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { createEventRecorder } from "../../kube/event-recorder.ts";
import { runOperator } from "../../operator/run-operator.ts";
import { readArguments, usageError } from "../arguments.ts";
import { connect } from "../connect.ts";
import { processIdentity, runProcess } from "../run-process.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { kubeconfig: { type: "string" }, image: { type: "string" } }, { positionals: true });
  if (positionals[0] !== "start") throw usageError("the operator knows one verb: start");
  return runProcess({ component: "operator" }, async (ports, signal) => {
    const { kube, close } = await connect({ kubeconfig: values.kubeconfig, component: "operator" });
    const events = createEventRecorder({ ...ports, kube, component: "machine-config-operator" });
    try {
      const image = values.image ?? (await ownImage(kube));
      await runOperator({ ...ports, kube, events, identity: processIdentity("operator"), version, image }, signal);
    } finally {
      await events.settle();
      close();
    }
  });
}

/** Components run from the image that the operator runs from, which its own pod names. */
async function ownImage(kube: KubeClient): Promise<string> {
  const name = process.env["POD_NAME"];
  if (name === undefined) throw usageError("--image is required outside of a pod: the pullspec that the components run from");
  const pod = await kube.get(kubernetes.Pod, { name, namespace });
  const image = pod?.spec?.containers.find((container) => container.name === objects.operator)?.image;
  if (image === undefined) throw usageError(`the pod ${namespace}/${name} names no image in its container ${objects.operator}: give --image`);
  return image;
}
