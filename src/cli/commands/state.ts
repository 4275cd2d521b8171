import { McoError } from "../../api/errors.ts";
import { httpsListen, systemFiles } from "../../ports/node/index.ts";
import { StateController, type StateControllerOptions } from "../../state/state-controller.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { podPath } from "../connect.ts";
import { processIdentity, runComponent } from "../run-process.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    args,
    {
      kubeconfig: { type: "string" },
      "metrics-address": { type: "string" },
      "metrics-port": { type: "string", default: "9444" },
      "metrics-tls": { type: "string" },
    },
    { positionals: true },
  );
  if (positionals[0] !== "start") throw usageError("the state process knows one verb: start");
  const port = countOf(values["metrics-port"], "--metrics-port", 0, 65_535);
  return runComponent({ component: "state", kubeconfig: values.kubeconfig, reporter: "machine-state-controller" }, async (ports, signal) => {
    const folder = values["metrics-tls"];
    const metrics = folder === undefined ? undefined : await metricsAt({ address: values["metrics-address"] ?? "", port, folder: podPath(folder) });
    await new StateController({ ...ports, identity: processIdentity("state"), version, ...(metrics === undefined ? {} : { metrics }) }).run(signal);
  });
}

async function metricsAt({ address, port, folder }: { readonly address: string; readonly port: number; readonly folder: string }): Promise<NonNullable<StateControllerOptions["metrics"]>> {
  const [certificate, key] = await Promise.all([systemFiles.readText(`${folder}/tls.crt`), systemFiles.readText(`${folder}/tls.key`)]);
  if (certificate === undefined || key === undefined) throw new McoError("MCO_USAGE", {}, { message: `--metrics-tls: ${folder} holds no tls.crt and tls.key` });
  // Nothing depends on figures: where the pod's address is not known yet, none are shown.
  const host = address === "" || address.startsWith("$(") ? "127.0.0.1" : address;
  return { listen: httpsListen, host, port, network: true, tls: { certificate, key } };
}
