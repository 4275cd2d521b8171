import { McoError } from "../../api/errors.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { httpsListen, jsonLogger, systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { StateController, type StateControllerOptions } from "../../state/state-controller.ts";
import { addressToListenOn } from "../address-of-node.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { connect, podPath } from "../connect.ts";
import { processIo } from "../io.ts";
import { processIdentity, runComponent, runProcess } from "../run-process.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.state, { positionals: true });
  if (positionals[0] === "bootstrap") return bootstrap(values["journal-dir"], values["dest-dir"], values.once);
  if (positionals[0] === "hand-over") return handOver(values["journal-dir"], values.kubeconfig);
  if (positionals[0] !== "start") throw usageError("name a verb: start, bootstrap or hand-over");
  const port = countOf(values["metrics-port"], "--metrics-port", 0, 65_535);
  return runComponent(
    { component: "state", kubeconfig: values.kubeconfig, reporter: "machine-state-controller" },
    async (ports, signal) => {
      const folder = values["metrics-tls"];
      const metrics =
        folder === undefined
          ? undefined
          : await metricsAt(ports.kube, { address: values["metrics-address"], port, folder: podPath(folder) });
      await new StateController({
        ...ports,
        identity: identity(),
        version,
        ...(metrics === undefined ? {} : { metrics }),
      }).run(signal);
    },
  );
}

/**
 * A container that is started again in its pod has no other beside it: it takes the lease up at once where the one
 * before left it.
 */
const identity = () =>
  process.env["POD_NAME"] === undefined ? processIdentity("state") : `${process.env["POD_NAME"]}_state`;

async function metricsAt(
  kube: KubeClient,
  { address, port, folder }: { readonly address: string | undefined; readonly port: number; readonly folder: string },
): Promise<NonNullable<StateControllerOptions["metrics"]>> {
  const [certificate, key] = await Promise.all([
    systemFiles.readText(`${folder}/tls.crt`),
    systemFiles.readText(`${folder}/tls.key`),
  ]);
  if (certificate === undefined || key === undefined)
    throw new McoError("MCO_USAGE", {}, { message: `--metrics-tls: ${folder} holds no tls.crt and tls.key` });
  return {
    listen: httpsListen,
    host: await addressToListenOn(kube, address, "--metrics-address"),
    port,
    network: true,
    tls: { certificate, key },
  };
}

/** How often files of journal lines are read. */
const everyMs = 1000;

async function bootstrap(from: string | undefined, to: string | undefined, isOnce: boolean): Promise<number> {
  if (from === undefined || to === undefined)
    throw usageError(
      "bootstrap wants --journal-dir, where the bootstrap's programs write their lines, and --dest-dir, where the books are kept",
    );
  const { keepFolder } = await import("../../state/keep-folder.ts");
  return runProcess({ component: "state" }, async ({ clock, log }, signal) => {
    const lines = await keepFolder(
      { files: systemFiles, clock, log, from, to, version, ...(isOnce ? {} : { everyMs }) },
      signal,
    );
    log.info({ lines, from, to }, "journal lines read into books");
  });
}

/** How long a cluster may take until it serves the kind of the journal. */
const handOverPatienceMs = 15 * 60_000;

async function handOver(folder: string | undefined, kubeconfig: string | undefined): Promise<number> {
  if (folder === undefined)
    throw usageError("hand-over wants --journal-dir, where the bootstrap's programs have written their lines");
  const give = (await import("../hand-over.ts")).handOver;
  const { kube, close } = await connect({ kubeconfig, component: "state" });
  const log = jsonLogger({ component: "state", level: "warn" });
  const patience = systemClock.deadline(handOverPatienceMs);
  try {
    const lines = await give({ kube, folder, clock: systemClock, random: systemRandom, log }, patience.signal);
    if (lines === 0) throw usageError(`--journal-dir: ${folder} holds no journal lines`);
    processIo().out(`the cluster has ${lines} journal lines of its bootstrap\n`);
    return 0;
  } finally {
    patience.cancel();
    close();
  }
}
