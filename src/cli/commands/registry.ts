import { addressesOf, layoutOf, ports, readRecord } from "../../standin/index.ts";
import { systemFiles } from "../../ports/node/index.ts";
import { blobFolder, deriveKey, listenRegistry, readUsers, registryServer } from "../../standin/registry.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { runProcess } from "../run-process.ts";

const garbageMs = 3_600_000;

/** The registry of a one-machine cluster, in a process of its own, behind the supervisor's port. */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.registry);
  if (values.dir === undefined) throw usageError("--dir is required");
  const layout = layoutOf(values.dir);
  const record = await readRecord(systemFiles, layout);
  if (record === undefined) throw usageError(`there is no cluster in ${layout.directory}: start it with 'mco up'`);
  const text = async (path: string): Promise<string> => {
    const contents = await systemFiles.readText(path);
    if (contents === undefined) throw usageError(`${path} does not exist: start a new cluster with 'mco up'`);
    return contents;
  };
  return runProcess({ component: "registry" }, async ({ clock, random, log }, signal) => {
    const server = registryServer({
      folder: layout.registry,
      files: systemFiles,
      blobs: await blobFolder(layout.registry, clock),
      clock,
      random,
      users: readUsers(await text(`${layout.registry}/users.json`)),
      deriveKey,
    });
    const tls = {
      certificate: await text(`${layout.pki}/registry.crt`),
      key: await text(`${layout.pki}/registry.key`),
    };
    const { port } = await listenRegistry(
      { host: addressesOf(record.network).registry, port: ports.registryProcess, tls, log },
      server,
      signal,
    );
    log.info({ port }, "registry listens");
    while (!signal.aborted) {
      await clock.sleep(garbageMs, signal).catch(() => undefined);
      if (!signal.aborted)
        await server
          .collectGarbage()
          .catch((error: unknown) => log.warn({ error }, "what no image needs was not removed"));
    }
  });
}
