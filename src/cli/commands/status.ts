import { ports } from "../../standin/index.ts";
import type { ClusterStatus } from "../../core/preview/cluster-status.ts";
import { systemFiles } from "../../ports/node/index.ts";
import { readArguments } from "../arguments.ts";
import { flags } from "../flags.ts";
import { connect } from "../connect.ts";
import { drawStatus } from "../draw-status.ts";
import { localAddresses } from "../local-cluster.ts";
import { readClusterStatus, watchCluster } from "../watch-cluster.ts";
import { processIo, processScreen } from "../io.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.status);
  const { kube, connection, close } = await connect({
    kubeconfig: values.kubeconfig,
    directory: values.dir,
    component: "status",
  });
  const addresses = await localAddresses(systemFiles, connection.server, {
    directory: values.dir,
    kubeconfig: values.kubeconfig ?? process.env["KUBECONFIG"],
  });
  const place = { configServerAddress: addresses?.configServer };

  const asJson = (status: ClusterStatus) => ({
    apiVersion: "cli.mco/v1",
    kind: "Status",
    apiServer: { url: connection.server },
    configServer: status.configServer,
    registry: { url: addresses === undefined ? "" : `https://${addresses.registry}:${ports.registry}` },
    operator: status.operator,
    parts: status.parts,
    absentKinds: status.absentKinds,
    pools: status.pools,
    nodes: status.nodes,
  });
  const canvas = processScreen();
  const show = (status: ClusterStatus) => {
    if (values.json) processIo().out(`${JSON.stringify(asJson(status))}\n`);
    else canvas.draw(drawStatus(status, canvas));
  };
  try {
    if (!values.watch) {
      show(await readClusterStatus(kube, place));
      return 0;
    }
    const stopping = new AbortController();
    process.once("SIGINT", () => stopping.abort(new Error("SIGINT")));
    process.once("SIGTERM", () => stopping.abort(new Error("SIGTERM")));
    await watchCluster(
      kube,
      (status) => {
        show(status);
        return undefined;
      },
      stopping.signal,
      place,
    );
    return 0;
  } finally {
    close();
  }
}
