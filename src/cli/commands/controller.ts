import type { ControllerOptions } from "../../controller/run-controller.ts";
import { runController } from "../../controller/run-controller.ts";
import { kubernetes } from "../../api/kubernetes.ts";
import { journals } from "../../api/names.ts";
import { McoError } from "../../api/errors.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { httpsListen, systemFiles } from "../../ports/node/index.ts";
import { bootstrapOptions } from "../bootstrap-options.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { podPath } from "../connect.ts";
import { processIdentity, runComponent } from "../run-process.ts";
import { version } from "../version.ts";

const seconds = (text: string | undefined, name: string) => (text === undefined ? {} : { [name]: countOf(text, `--${name}`, 1, 3600) });

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    args,
    {
      kubeconfig: { type: "string" },
      // The controller starts nothing; it takes the flag so that all components can be given the same arguments.
      image: { type: "string" },
      "admission-address": { type: "string" },
      "admission-port": { type: "string", default: "9443" },
      "admission-tls": { type: "string" },
      "lease-seconds": { type: "string" },
      "renew-seconds": { type: "string" },
      "retry-seconds": { type: "string" },
      ...bootstrapOptions,
    },
    { positionals: true },
  );
  // Loaded when asked for: what runs for years must not carry it.
  if (positionals[0] === "bootstrap") return (await import("../bootstrap.ts")).bootstrap(values, (await import("../../core/bootstrap.ts")).bootstrapController);
  if (positionals[0] !== "start") throw usageError("the controller knows two verbs: start and bootstrap");
  const port = countOf(values["admission-port"], "--admission-port", 0, 65_535);
  const lease = { ...seconds(values["lease-seconds"], "leaseSeconds"), ...seconds(values["renew-seconds"], "renewSeconds"), ...seconds(values["retry-seconds"], "retrySeconds") };
  return runComponent({ component: "controller", kubeconfig: values.kubeconfig, reporter: "machineconfigcontroller", journal: journals.controller }, async (ports, signal) => {
    const folder = values["admission-tls"];
    const admission = folder === undefined ? undefined : await admissionAt(ports.kube, { address: values["admission-address"] ?? "", port, folder: podPath(folder) });
    await runController({ ...ports, identity: processIdentity("controller"), version, lease, ...(admission === undefined ? {} : { admission }) }, signal);
  });
}

/** A pod's environment may be made before its status knows the host's address; then the node tells it. */
async function admissionAt(kube: KubeClient, { address, port, folder }: { readonly address: string; readonly port: number; readonly folder: string }): Promise<NonNullable<ControllerOptions["admission"]>> {
  const [certificate, key] = await Promise.all([systemFiles.readText(`${folder}/tls.crt`), systemFiles.readText(`${folder}/tls.key`)]);
  if (certificate === undefined || key === undefined) throw new McoError("MCO_USAGE", {}, { message: `--admission-tls: ${folder} holds no tls.crt and tls.key` });
  const host = address === "" || address.startsWith("$(") ? await addressOfNode(kube) : address;
  // The address is one that was given for this, or the node's own: on a cluster the API server is another machine.
  return { listen: httpsListen, host, port, network: true, tls: { certificate, key } };
}

async function addressOfNode(kube: KubeClient): Promise<string> {
  const name = process.env["NODE_NAME"] ?? "";
  const node = name === "" ? undefined : await kube.get(kubernetes.Node, { name });
  const address = node?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  if (address === undefined) throw usageError("--admission-address is required: neither it nor the node says which address to listen on");
  return address;
}
