import { onTestFinished, test } from "vitest";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { authorityOf, hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { readForeignConfigs } from "./foreign-configs.ts";

// On a control plane of its own: other files use the same namespaces and definitions.
test.skipIf(!hasKubernetes)(
  "root on a machine reads the configurations of that machine only, before a real API server [attack-configs-2]",
  async ({ signal }) => {
    const controlPlane = await startBareControlPlane();
    onTestFinished(() => controlPlane.stop(), 60_000);
    const authority = await authorityOf(controlPlane);
    const exchangeAs = (
      identity: { readonly token: string } | { readonly certificate: string; readonly key: string },
    ) => {
      const transport = httpsTransport({
        connection: { server: controlPlane.url, ca: authority.certificate, ...identity },
        clock: systemClock,
        files: systemFiles,
        processes: systemProcesses,
        environment: {},
      });
      onTestFinished(() => transport.close());
      return transport.exchange;
    };
    const admin = createKubeClient({
      transport: exchangeAs(
        await authority.issue({ commonName: "admin", organizations: ["system:masters"], usage: "client" }),
      ),
      clock: systemClock,
      random: systemRandom,
      userAgent: "test",
    });
    await readForeignConfigs({ admin, withToken: (token) => exchangeAs({ token }), actsLater: true }, signal);
  },
  600_000,
);
