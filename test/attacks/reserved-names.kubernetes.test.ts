import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { connect } from "../../src/cli/connect.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { untilAllowed } from "../support/kubernetes/until-allowed.ts";
import { author, controller, outcomes, prepareReservedNames, takeReservedNames } from "./reserved-names.ts";

describe.skipIf(!hasKubernetes)("a real API server, asked by somebody who may write MachineConfigs", () => {
  const closing: (() => void | Promise<void>)[] = [];
  let admin: KubeClient;
  let as: (user: string) => KubeClient;

  beforeAll(async () => {
    const controlPlane = await startBareControlPlane();
    closing.push(() => controlPlane.stop());
    const connected = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "attack" });
    closing.push(() => connected.close());
    admin = connected.kube;
    const transport = httpsTransport({
      connection: connected.connection,
      reread: undefined,
      clock: systemClock,
      files: systemFiles,
      processes: systemProcesses,
      environment: {},
    });
    closing.push(() => transport.close());
    as = (user) =>
      createKubeClient({
        // As whom an administrator acts.
        transport: (request, signal) =>
          transport.exchange({ ...request, headers: { ...request.headers, "impersonate-user": user } }, signal),
        clock: systemClock,
        random: systemRandom,
        userAgent: "attacker",
      });
    await prepareReservedNames(admin);
    const { group, plural: resource } = MachineConfig;
    for (const user of [author, controller])
      for (const verb of ["create", "patch"]) await untilAllowed(admin, user, { verb, group, resource });
  });

  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });

  test("gives the names of rendered and generated configs to the controller alone [attack-names-2]", async () => {
    expect(await takeReservedNames({ admin, as })).toEqual(outcomes);
  });
});
