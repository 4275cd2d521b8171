import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import { namespace, objects } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { connect } from "../../src/cli/connect.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { builderPolicies } from "../../src/operator/admission-policies.ts";
import { suiteRights } from "../../src/operator/rights.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { untilAllowed } from "../support/kubernetes/until-allowed.ts";
import { untilSeen } from "../support/until-seen.ts";
import {
  allAre,
  allowedWrites,
  definitionOfAnotherRelease,
  outcomesOf,
  prepareBuilderWrites,
  refusedOnOtherDefinitions,
  refusedWrites,
} from "./builder-writes.ts";

const account = `system:serviceaccount:${namespace}:${objects.osBuilder}`;
const kinds = [MachineConfigPool, MachineOSConfig] as const;

const resourceOf = (object: KubeObject): Resource => {
  const found = Object.values<Resource>(kubernetes).find(({ kind }) => kind === object.kind);
  if (found === undefined) throw new Error(`there is no resource for ${object.kind}`);
  return found;
};

describe.skipIf(!hasKubernetes)("a real API server, called by the builder", () => {
  const closing: (() => void | Promise<void>)[] = [];
  let kube: KubeClient;
  let builder: KubeClient;

  beforeAll(async () => {
    const controlPlane = await startBareControlPlane();
    closing.push(() => controlPlane.stop());
    const admin = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "attack" });
    closing.push(() => admin.close());
    ({ kube } = admin);
    const transport = httpsTransport({
      connection: admin.connection,
      reread: undefined,
      clock: systemClock,
      files: systemFiles,
      processes: systemProcesses,
      environment: {},
    });
    closing.push(() => transport.close());
    builder = createKubeClient({
      // As whom an administrator acts: the builder's account.
      transport: (request, signal) =>
        transport.exchange({ ...request, headers: { ...request.headers, "impersonate-user": account } }, signal),
      clock: systemClock,
      random: systemRandom,
      userAgent: "attacker",
    });
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    for (const kind of kinds)
      await kube.apply(kubernetes.CustomResourceDefinition, definitionOfAnotherRelease(kind) as never, {
        owner: "attack",
      });
    const rights = suiteRights().filter(
      ({ metadata }) => metadata.name === objects.osBuilder && [undefined, namespace].includes(metadata.namespace),
    );
    const policies = builderPolicies({ image: "suite", isolation: "userNamespace", defaultOptIn: false });
    for (const object of [...rights, ...policies]) await kube.create(resourceOf(object), object);
    for (const { plural, group } of kinds)
      await untilAllowed(kube, account, { verb: "patch", group, resource: plural });
    await untilAllowed(kube, account, { verb: "delete", group: "", resource: "configmaps", namespace });
    for (const kind of kinds)
      await untilSeen(
        `${kind.plural} are served`,
        () =>
          kube.list<KubeObject>(kind as Resource).then(
            () => true,
            () => false,
          ),
        (isServed) => isServed,
      );
    await prepareBuilderWrites(kube);
  });

  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });

  test("lets it write of pools and MachineOSConfigs what its work needs, and opt in no pool that nobody opted in [attack-builds-15]", async () => {
    // An API server takes up each policy a moment after it is stored.
    const refused = [...refusedWrites, ...refusedOnOtherDefinitions];
    for (const write of refused)
      await untilSeen(
        `the policy against it is in force: ${write.title}`,
        () => outcomesOf([write], builder),
        ([outcome]) => outcome?.[1] !== "written",
      );
    expect(await outcomesOf(refused, builder)).toEqual(allAre(refused, "refused"));
    expect(await outcomesOf(allowedWrites, builder)).toEqual(allAre(allowedWrites, "written"));
  });
});
