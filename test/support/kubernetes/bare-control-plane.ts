import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kubernetesFolder } from "../../../src/cli/kubernetes-binaries.ts";
import { clusterCredentials } from "../../../src/standin/cluster/credentials.ts";
import { kubernetesProcesses } from "../../../src/standin/cluster/kubernetes-processes.ts";
import { addressesOf, layoutOf, networkFor } from "../../../src/standin/cluster/layout.ts";
import { systemClock, systemFiles, systemRandom } from "../../../src/ports/node/index.ts";
import { type ControlPlaneAddress, kubernetesTarget } from "./control-plane.ts";

const servers: readonly string[] = ["etcd", "kube-apiserver"];
const patienceMs = 60_000;

/**
 * A kube-apiserver on its etcd and nothing else: it holds only what the test wrote, because no controller and no
 * scheduler runs.
 *
 * @param options.auditPolicy text of the policy of `logs/audit.log`, in place of the cluster's own.
 */
export async function startBareControlPlane(
  options: { readonly auditPolicy?: string } = {},
): Promise<ControlPlaneAddress & { stop(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), "mco-bare-kubernetes-"));
  const layout = layoutOf(directory);
  const addresses = addressesOf(networkFor(directory, 0));
  mkdirSync(layout.logs, { recursive: true });
  const given = { files: systemFiles, clock: systemClock, random: systemRandom, layout, addresses };
  const credentials = await clusterCredentials(given);
  const parts = await kubernetesProcesses({ ...given, credentials, binaries: kubernetesFolder(process.env) });
  if (options.auditPolicy !== undefined) {
    const file = parts.flatMap(({ args }) => args).find((argument) => argument.startsWith("--audit-policy-file="));
    await systemFiles.write(file?.slice("--audit-policy-file=".length) ?? "", options.auditPolicy);
  }
  const children = parts
    .filter(({ name }) => servers.includes(name))
    .map(({ name, program, args }) => {
      const log = openSync(join(layout.logs, `${name}.log`), "a");
      // The kernel ends them with this process (prctl(2) PR_SET_PDEATHSIG).
      return spawn("setpriv", ["--pdeathsig", "TERM", "--", program, ...args], { stdio: ["ignore", log, log] });
    });
  const address = { directory, url: credentials.serverUrl };
  const target = await kubernetesTarget(address);
  const stop = async () => {
    for (const child of children.toReversed()) await ended(child);
    rmSync(directory, { recursive: true, force: true });
  };
  const began = systemClock.monotonic();
  try {
    while (!(await isReady(target))) {
      if (systemClock.monotonic() - began > patienceMs)
        throw new Error(`kube-apiserver was not ready in time, see ${layout.logs}`);
      await systemClock.sleep(100);
    }
  } catch (error) {
    await stop();
    throw error;
  } finally {
    target.close();
  }
  return { ...address, stop };
}

async function isReady(target: Awaited<ReturnType<typeof kubernetesTarget>>): Promise<boolean> {
  try {
    const answers = await Promise.all(
      ["/readyz", "/api/v1/namespaces/default"].map((path) => target.request({ method: "GET", path })),
    );
    return answers.every(({ status }) => status === 200);
  } catch {
    return false;
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await exit;
}
