import { addressesOf, layoutOf, ports, readRecord } from "../../standin/index.ts";
import { serveApiServer } from "../../standin/api-server.ts";
import { systemFiles, workerThreads } from "../../ports/node/index.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { runProcess } from "../run-process.ts";

async function text(path: string): Promise<string> {
  const contents = await systemFiles.readText(path);
  if (contents === undefined) throw usageError(`${path} does not exist: start the cluster with 'mco up'`);
  return contents;
}

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.apiserver);
  if (values.dir === undefined) throw usageError("--dir is required");
  const layout = layoutOf(values.dir);
  const record = await readRecord(systemFiles, layout);
  if (record === undefined) throw usageError(`there is no cluster in ${layout.directory}: start it with 'mco up'`);
  return runProcess({ component: "apiserver" }, async (process, signal) => {
    const server = await serveApiServer({
      ...process,
      file: layout.store,
      host: addressesOf(record.network).apiServer,
      port: ports.apiServer,
      tls: { certificate: await text(`${layout.pki}/apiserver.crt`), key: await text(`${layout.pki}/apiserver.key`) },
      clusterCA: await text(`${layout.pki}/cluster-ca.crt`),
      tokenKey: await text(`${layout.pki}/tokens.key`),
      kubeletClient: {
        certificate: await text(`${layout.pki}/kubelet-client.crt`),
        key: await text(`${layout.pki}/kubelet-client.key`),
      },
      startThread: workerThreads(),
      signal,
    });
    await server.closed;
  });
}
