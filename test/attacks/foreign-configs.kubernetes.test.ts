import { join } from "node:path";
import { inject, onTestFinished, test } from "vitest";
import { connect } from "../../src/cli/connect.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses } from "../../src/ports/node/index.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { readForeignConfigs } from "./foreign-configs.ts";

test.skipIf(!hasKubernetes)(
  "root on a machine reads the configurations of that machine only, before a real API server [attack-configs-2]",
  async ({ signal }) => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    const admin = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "test" });
    const { certificate: _, key: __, ...connection } = admin.connection;
    const closing = [() => admin.close()];
    onTestFinished(() => {
      for (const close of closing) close();
    });
    const withToken = (token: string) => {
      const transport = httpsTransport({
        connection: { ...connection, token },
        clock: systemClock,
        files: systemFiles,
        processes: systemProcesses,
        environment: {},
      });
      closing.push(() => transport.close());
      return transport.exchange;
    };
    await readForeignConfigs({ admin: admin.kube, withToken, isShared: true }, signal);
  },
  60_000,
);
