import { existsSync, readFileSync, statSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  JoinPlace,
  MachineConfig,
  MachineConfigPool,
  MachineOSConfig,
  MachineStateJournal,
  NodeBinding,
  ProvisioningToken,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { conditionOf, timestampOf } from "../../src/api/schema/object.ts";
import { pushSecretName } from "../../src/cli/image-mode.ts";
import { addressesOf, ports } from "../../src/standin/cluster/layout.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations, hostPaths, journals, labels, namespace, objects } = names;
let cluster: TestCluster;
let authority: string;

const network = () => addressesOf(cluster.record().network);
const secretText = "swordfish-7f3a";

interface Got {
  readonly status: number;
  readonly text: string;
}

/** Asks the config server. */
function ask(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: network().configServer, port: ports.configServer, path, headers, ca: authority, agent: false },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        incoming.once("end", () => resolve({ status: incoming.statusCode ?? 0, text }));
      },
    );
    outgoing.once("error", reject);
    outgoing.end();
  });
}

const bearer = (token: string) => ({
  authorization: `Bearer ${token}`,
  accept: "application/vnd.coreos.ignition+json;version=3.4.0",
});

async function newToken(pool: string, ...more: readonly string[]): Promise<string> {
  const { stdout, code, stderr } = await cluster.mco(["token", "create", "--pool", pool, "--json", ...more]);
  expect([code, stderr]).toEqual([0, ""]);
  return (JSON.parse(stdout) as { readonly token: string }).token;
}

async function addHost(pool: string): Promise<string> {
  const { stdout, code, stderr } = await cluster.mco(["host", "add", pool, "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  return (JSON.parse(stdout) as { readonly name: string }).name;
}

/** A machine is in service with what its pool wants. */
async function untilInService(name: string, pool: string): Promise<void> {
  const target = await cluster.target(pool);
  await cluster.untilNode(
    name,
    (node) =>
      annotation(node, annotations.currentConfig) === target &&
      annotation(node, annotations.state) === "Done" &&
      conditionOf(node.status?.conditions, "Ready")?.status === "True" &&
      node.spec?.unschedulable !== true &&
      !(node.spec?.taints ?? []).some(({ key }) => key === "node.kubernetes.io/not-ready"),
    `${name} is in service`,
    150,
  );
}

describe.skipIf(!hasApiServer)("a machine that joins", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
    await cluster.kube.apply(
      MachineConfig,
      machineConfig(
        "50-secret",
        { "/etc/secret.conf": `${secretText}\n` },
        { more: { kernelArguments: ["nosmt"] } },
      ) as never,
      { owner: "test" },
    );
    await cluster.untilRolledOut("worker", await cluster.target("worker"), 120);
    await cluster.until(
      kubernetes.DaemonSet,
      objects.configServer,
      ({ status }) => (status?.numberReady ?? 0) > 0,
      "the config server is ready",
      { namespace },
    );
    authority =
      (await cluster.kube.get(kubernetes.ConfigMap, { name: objects.configServerCa, namespace }))?.data?.[
        "ca-bundle.crt"
      ] ?? "";
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test(
    "enters service in one boot with its pool's configuration and its own certificate",
    { timeout: 200_000 },
    async () => {
      const name = await addHost("worker");
      await untilInService(name, "worker");
      expect(cluster.hostFile(name, "/etc/secret.conf")).toBe(`${secretText}\n`);
      const { booted, deployments } = cluster.machineState(name);
      expect(deployments[booted]?.kernelArguments).toContain("nosmt");
      const root = join(cluster.directory, "hosts", name, "rootfs");
      expect(statSync(join(root, hostPaths.kubeconfig)).mode & 0o777).toBe(0o600);
      // What the server gave it on its way has been taken over.
      expect(existsSync(join(root, hostPaths.nodeAnnotations))).toBe(false);
      expect(existsSync(join(root, hostPaths.encapsulated))).toBe(false);

      const node = await cluster.kube.get(kubernetes.Node, { name });
      expect(node?.metadata.labels).toHaveProperty([labels.workerRole]);
      // In service it gets a certificate for longer than the first hour.
      const approvals = async () =>
        (await cluster.kube.list(kubernetes.CertificateSigningRequest)).items
          .filter(
            ({ spec }) =>
              spec.username ===
                `system:serviceaccount:${names.joinNamespace}:${objects.nodeBootstrapperPrefix}worker` ||
              spec.username === `system:node:${name}`,
          )
          .map(({ status }) => status?.conditions?.map(({ type, reason }) => `${type} ${reason}`).join())
          .sort();
      await expect
        .poll(approvals, { timeout: 90_000, interval: 500 })
        .toEqual(["Approved NodeJoins", "Approved NodeRenews", "Approved NodeServes"]);
      const [binding] = (await cluster.kube.list(NodeBinding)).items;
      expect(binding).toMatchObject({ metadata: { name }, spec: { pool: "worker", nodeUID: node?.metadata.uid } });
      // The token was for this machine alone.
      const [token] = (await cluster.kube.list(ProvisioningToken, { labelSelector: `${labels.hostname}=${name}` }))
        .items;
      expect([token?.status?.uses, token?.spec.maxUses]).toEqual([1, 1]);

      const listed = (
        JSON.parse((await cluster.mco(["host", "list", "--json"])).stdout) as {
          readonly hosts: readonly { readonly name: string; readonly power: string }[];
        }
      ).hosts;
      expect(listed.find((host) => host.name === name)?.power).toBe("on");
      const journal = await cluster.until(
        MachineStateJournal,
        journals.server,
        ({ spec }) => spec.lines.some(({ reason, data }) => reason === "Served" && data?.["pool"] === "worker"),
        "the server tells of it",
      );
      const line = journal.spec.lines.find(({ reason }) => reason === "Served");
      expect(line?.data).toMatchObject({ pool: "worker", config: await cluster.target("worker") });
      expect(Object.keys(line?.data ?? {})).toEqual(expect.arrayContaining(["version", "sizeBytes", "durationMs"]));
    },
  );

  test(
    "gets nothing without a credential, for another pool, or with a used or revoked token",
    { timeout: 120_000 },
    async () => {
      const once = await newToken("worker", "--uses", "1");
      const first = await ask("/config/worker", bearer(once));
      expect(first.status).toBe(200);
      expect(first.text).toContain(secretText);
      const refused: Got[] = [
        await ask("/config/worker"),
        await ask("/config/worker", bearer("aaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")),
        await ask("/config/worker", bearer(once)),
      ];
      expect(refused.map(({ status }) => status)).toEqual([401, 401, 401]);
      const forMasters = await newToken("master", "--uses", "5");
      refused.push(await ask("/config/worker", bearer(forMasters)));
      expect(refused.at(-1)?.status).toBe(403);
      const { code } = await cluster.mco(["token", "revoke", forMasters]);
      expect(code).toBe(0);
      await expect
        .poll(async () => (await ask("/config/master", bearer(forMasters))).status, { timeout: 300_000, interval: 100 })
        .toBe(401);
      for (const path of ["/config/..%2fworker", "/config/a/b/worker", "/config/nowhere", "/"])
        refused.push(await ask(path), await ask(path, bearer(once)));
      for (const { status, text } of refused) {
        expect(status).toBeGreaterThanOrEqual(400);
        expect(text).not.toContain(secretText);
        expect(text).not.toContain("token:");
      }
      const logs = readFileSync(join(cluster.directory, "logs", "apiserver.log"), { encoding: "utf8", flag: "a+" });
      expect(logs).not.toContain(once);
    },
  );

  test("boots its pool's image in one boot", { timeout: 300_000 }, async () => {
    const registry = `${network().registry}:${ports.registry}`;
    await cluster.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { metadata: { annotations: { [annotations.canarySeconds]: "1" } } } },
    );
    await cluster.kube.apply(
      MachineOSConfig,
      {
        metadata: { name: "worker" },
        spec: {
          machineConfigPool: { name: "worker" },
          imageBuilder: { imageBuilderType: "Job" },
          renderedImagePushSecret: { name: pushSecretName },
          renderedImagePushSpec: `${registry}/os/worker:latest`,
        },
      },
      { owner: "test" },
    );
    const published = await cluster.until(
      MachineOSConfig,
      "worker",
      ({ status }) => (status?.currentImagePullSpec ?? "") !== "",
      "an image is published",
      { seconds: 420 },
    );
    const image = published.status?.currentImagePullSpec ?? "";
    await cluster.until(
      MachineConfigPool,
      "worker",
      ({ status, metadata }) =>
        status?.observedGeneration === metadata.generation &&
        conditionOf(
          status?.conditions as { type: string; status: string; message: string }[] | undefined,
          "Updated",
        )?.message.includes(" in image ") === true,
      "the pool boots it",
      { seconds: 420 },
    );
    const name = await addHost("worker");
    await cluster.untilNode(
      name,
      (node) => annotation(node, annotations.currentImage) === image && annotation(node, annotations.state) === "Done",
      `${name} boots the image of its pool`,
      150,
    );
    const { booted, deployments } = cluster.machineState(name);
    expect(deployments[booted]?.image).toBe(image);
    // Installed on the stock system, and booted once from what the first boot staged.
    expect(Object.keys(deployments).length).toBeLessThanOrEqual(2);
    expect(cluster.hostFile(name, "/etc/secret.conf")).toBe(`${secretText}\n`);
    const events = (await cluster.kube.list(kubernetes.Event)).items.filter(
      ({ involvedObject, reason }) => involvedObject.name === name && reason === "Reboot",
    );
    expect(events).toEqual([]);
  });

  test(
    "loses an unused place after its time; a deleted Node frees its name, and its machine may return",
    { timeout: 600_000 },
    async () => {
      await cluster.kube.create(JoinPlace, {
        apiVersion: JoinPlace.apiVersion,
        kind: JoinPlace.kind,
        metadata: { name: "late" },
        spec: { pool: "worker", expiresAt: timestampOf(Date.now() - 1000) },
      });
      const isThere = async (name: string) =>
        (await cluster.kube.list(JoinPlace)).items.some(({ metadata }) => metadata.name === name);
      await expect.poll(() => isThere("late"), { timeout: 300_000 }).toBe(false);
      const [binding] = (await cluster.kube.list(NodeBinding)).items;
      const name = binding?.metadata.name ?? "";
      expect((await cluster.mco(["host", "fail", name])).code).toBe(0);
      await cluster.kube.delete(kubernetes.Node, { name });
      const bound = async () => (await cluster.kube.get(NodeBinding, { name }))?.spec;
      await expect.poll(async () => (await bound())?.releasedAt, { timeout: 120_000 }).toBeDefined();
      expect(await bound()).toMatchObject({ pool: "worker", lastPool: "worker" });
      expect((await bound())?.nodeUID).toBeUndefined();

      // As its kubelet registers, if it was not gone after all.
      await cluster.kube.create(kubernetes.Node, { apiVersion: "v1", kind: "Node", metadata: { name } });
      const labelsNow = async () => (await cluster.kube.get(kubernetes.Node, { name }))?.metadata.labels ?? {};
      await expect.poll(labelsNow, { timeout: 120_000 }).toHaveProperty([labels.workerRole]);
      await expect.poll(async () => (await bound())?.releasedAt, { timeout: 120_000 }).toBeUndefined();
      await cluster.kube.delete(kubernetes.Node, { name });
      await expect.poll(async () => (await bound())?.releasedAt, { timeout: 120_000 }).toBeDefined();
      // An administrator says that the machine is not to come back.
      const released = await cluster.mco(["node", "release", name]);
      expect(released).toMatchObject({ code: 0 });
      const refused = async () =>
        (await cluster.kube.get(kubernetes.ConfigMap, { namespace, name: objects.refusedCertificates }))?.data ?? {};
      await expect.poll(refused, { timeout: 120_000 }).toHaveProperty([`node.${name}`]);
      // Its certificate ends, and with it the record and the refusal.
      const expiresAt = timestampOf(Date.now() - 1000);
      await cluster.kube.patch(NodeBinding, { name }, { type: "merge", body: { spec: { expiresAt } } });
      await expect.poll(bound, { timeout: 120_000 }).toBeUndefined();
      await expect.poll(refused, { timeout: 120_000 }).not.toHaveProperty([`node.${name}`]);
    },
  );
});
