import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { journals, namespace, objects } from "../../api/names.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { runOperator } from "../../operator/run-operator.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { processIdentity, runComponent, setLogLevel } from "../run-process.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.operator, { positionals: true });
  // Loaded on demand: a long-running process must not keep it in memory.
  if (positionals[0] === "bootstrap")
    return (await import("../bootstrap.ts")).bootstrap(
      "operator",
      values,
      (await import("../../core/operator/bootstrap.ts")).bootstrapOperator,
    );
  if (positionals[0] !== "start") throw usageError("name a verb: start or bootstrap");
  return runComponent(
    {
      component: "operator",
      kubeconfig: values.kubeconfig,
      reporter: "machine-config-operator",
      journalName: journals.operator,
    },
    async (ports, signal) =>
      runOperator(
        {
          ...ports,
          identity: processIdentity("operator"),
          version,
          setLogLevel,
          image: values.image ?? (await ownImage(ports.kube)),
          ...(values["builder-image"] === undefined ? {} : { builderImage: values["builder-image"] }),
          ...(values["config-server-address"] === undefined
            ? {}
            : { configServerAddress: values["config-server-address"] }),
        },
        signal,
      ),
  );
}

/** Components run from the image that the operator runs from, which its own pod names. */
async function ownImage(kube: KubeClient): Promise<string> {
  const name = process.env["POD_NAME"];
  if (name === undefined)
    throw usageError("--image is required outside of a pod: the pullspec that the components run from");
  const pod = await kube.get(kubernetes.Pod, { name, namespace });
  const image = pod?.spec?.containers.find((container) => container.name === objects.operator)?.image;
  if (image === undefined)
    throw usageError(`the pod ${namespace}/${name} has no image in its container ${objects.operator}: set --image`);
  return image;
}
