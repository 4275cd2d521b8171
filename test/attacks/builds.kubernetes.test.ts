import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { kubernetes } from "../../src/api/index.ts";
import type { Job, Pod } from "../../src/api/foreign/kubernetes.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import { buildNamespace, namespace, objects } from "../../src/api/names.ts";
import { connect } from "../../src/cli/connect.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { isAlreadyExists, isForbidden } from "../../src/kube/kube-error.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import { builderPolicies } from "../../src/operator/admission-policies.ts";
import { suiteRights } from "../../src/operator/rights.ts";
import { systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { untilAllowed } from "../support/kubernetes/until-allowed.ts";
import { buildJob } from "../support/pod-templates.ts";
import { untilSeen } from "../support/until-seen.ts";
import { attackingJob, attackingPod, platformAnnotations, podAttacks, refusedFor } from "./build-pods.ts";

const image = "suite-with-buildah";

const resourceOf = (object: KubeObject): Resource => {
  const found = Object.values<Resource>(kubernetes).find(({ kind }) => kind === object.kind);
  if (found === undefined) throw new Error(`there is no resource for ${object.kind}`);
  return found;
};

describe.skipIf(!hasKubernetes)("a real API server, called with the builder's token", () => {
  let admin: Awaited<ReturnType<typeof connect>>;
  let builder: KubeClient;
  let close = (): void => undefined;
  const made: KubeObject[] = [];

  async function make(object: KubeObject): Promise<void> {
    await admin.kube.create(resourceOf(object), object).then(
      () => made.push(object),
      (error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      },
    );
  }

  beforeAll(async () => {
    const controlPlane = inject("controlPlane");
    if (controlPlane === undefined) throw new Error("there is no control plane");
    admin = await connect({ kubeconfig: join(controlPlane.directory, "kubeconfig"), component: "test" });
    for (const name of [namespace, buildNamespace])
      await make({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    for (const object of suiteRights().filter(({ metadata }) => metadata.name === objects.osBuilder))
      await make(object);
    for (const object of builderPolicies({ image, isolation: "userNamespace", defaultOptIn: false }))
      await make(object);
    for (const name of [objects.buildAccount, "default"])
      await make({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: buildNamespace } });
    await make({
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: objects.buildPriority },
      value: -1,
    } as KubeObject);
    await untilAllowed(admin.kube, `system:serviceaccount:${namespace}:${objects.osBuilder}`, {
      verb: "list",
      group: "",
      resource: "secrets",
      namespace: buildNamespace,
    });
    await make({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "attack-builds-key", namespace },
    });
    const { status } = (await admin.kube.request({
      method: "POST",
      target: `/api/v1/namespaces/${namespace}/serviceaccounts/${objects.osBuilder}/token`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} }),
    })) as { readonly status: { readonly token: string } };
    const { certificate: _, key: __, ...connection } = admin.connection;
    const transport = httpsTransport({
      connection: { ...connection, token: status.token },
      reread: undefined,
      clock: systemClock,
      files: systemFiles,
      processes: systemProcesses,
      environment: {},
    });
    close = () => transport.close();
    builder = createKubeClient({
      transport: transport.exchange,
      clock: systemClock,
      random: systemRandom,
      userAgent: "attacker",
    });
  });

  afterAll(async () => {
    for (const object of made.toReversed()) await admin.kube.delete(resourceOf(object), object.metadata);
    close();
    admin.close();
  });

  test("refuses Secrets of the suite's namespace, by name or in a list, and allows those of the builds' namespace [attack-builds-5]", async () => {
    const name = "attack-builds-key";
    for (const attack of [
      () => builder.get(kubernetes.Secret, { name, namespace }),
      () => builder.list(kubernetes.Secret, { namespace }),
      () => builder.list(kubernetes.Secret, { namespace, fieldSelector: `metadata.name=${name}` }),
      () => builder.list(kubernetes.Secret),
    ])
      await expect(attack()).rejects.toSatisfy(isForbidden);
    expect((await builder.list(kubernetes.Secret, { namespace: buildNamespace })).items).toEqual([]);
  });

  test("lets the builder create no Job, and nobody a pod, that could leave the confinement of builds [attack-builds-10]", async () => {
    const refusal = (create: Promise<unknown>) =>
      create.then(
        () => "it was created",
        (error: unknown) => (isForbidden(error) && error instanceof Error ? error.message : String(error)),
      );
    const [attack] = podAttacks;
    // An API server takes up a policy a moment after it is stored.
    for (const create of [
      () => builder.create<Job>(kubernetes.Job, attackingJob(attack ?? {}, image), { dryRun: true }),
      () => admin.kube.create<Pod>(kubernetes.Pod, attackingPod(attack ?? {}, image), { dryRun: true }),
    ])
      await untilSeen(
        "the policies are in force",
        () => refusal(create()),
        (told) => told.includes("image-build-"),
      );
    const told: (readonly string[])[] = [];
    for (const { title, says, ...each } of podAttacks)
      told.push([
        title,
        says,
        await refusal(builder.create<Job>(kubernetes.Job, attackingJob(each, image), { dryRun: true })),
        await refusal(admin.kube.create<Pod>(kubernetes.Pod, attackingPod(each, image), { dryRun: true })),
      ]);
    expect(told).toEqual(podAttacks.map(({ title, says }) => [title, says, refusedFor(says), refusedFor(says)]));
    await builder.create<Job>(kubernetes.Job, buildJob(image), { dryRun: true });
    await admin.kube.create<Pod>(kubernetes.Pod, attackingPod({ annotations: platformAnnotations }, image), {
      dryRun: true,
    });
  });

  test("accepts a build's Job unchanged, with the user namespace of its pod [attack-builds-6]", async () => {
    const job = buildJob(image);
    const taken = await builder.create(kubernetes.Job, job, { dryRun: true });
    expect(taken.spec?.template.spec).toMatchObject({
      hostUsers: job.spec?.template.spec?.hostUsers,
      automountServiceAccountToken: false,
    });
    expect(taken.spec?.template.spec?.hostUsers).toBe(false);
  });
});
