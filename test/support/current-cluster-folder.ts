import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { recordFolder } from "../../src/cli/own-folder.ts";
import { layoutOf } from "../../src/standin/index.ts";
import { temporaryFolder } from "./registry/pull-harness.ts";

/**
 * Makes a current folder with a `.mco` like that of a cluster, which commands without flags find, until the test ends.
 *
 * @param record the text of the cluster's record. @param isRecorded whether an `mco up` of this user made the folder.
 * @returns the path of `.mco`.
 */
export async function currentClusterFolder({
  kubeconfig,
  record,
  isRecorded,
}: {
  readonly kubeconfig: string;
  readonly record: string;
  readonly isRecorded: boolean;
}): Promise<string> {
  const folder = await temporaryFolder();
  const here = process.cwd();
  process.chdir(folder);
  onTestFinished(() => process.chdir(here));
  vi.stubEnv("KUBECONFIG", "");
  onTestFinished(() => void vi.unstubAllEnvs());
  const cluster = join(folder, ".mco");
  await mkdir(cluster, { mode: 0o700 });
  await writeFile(join(cluster, "cluster.json"), record, { mode: 0o600 });
  await writeFile(join(cluster, "kubeconfig"), kubeconfig, { mode: 0o600 });
  if (isRecorded) await recordFolder(layoutOf(cluster));
  return cluster;
}
