import { layoutOf } from "../../standin/index.ts";
import { runClusterControllers } from "../../standin/cluster-controllers.ts";
import { systemFiles } from "../../ports/node/index.ts";
import { certificateAuthority } from "../../kube/certificates.ts";
import { clusterAuthority, clusterAuthorityPair } from "../../standin/cluster.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { runComponent } from "../run-process.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags["cluster-controllers"]);
  if (values.dir === undefined) throw usageError("--dir is required");
  const layout = layoutOf(values.dir);
  return runComponent(
    {
      component: "cluster-controllers",
      kubeconfig: `${layout.pki}/cluster-controllers.kubeconfig`,
      reporter: "cluster-controllers",
    },
    async (ports, signal) => {
      const authority = await certificateAuthority({
        name: clusterAuthority,
        ...ports,
        existing: await clusterAuthorityPair(systemFiles, layout, ports),
      });
      return runClusterControllers(
        { ...ports, rootCa: (await systemFiles.readText(layout.trustedAuthorities)) ?? "", authority },
        signal,
      );
    },
  );
}
