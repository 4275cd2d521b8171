import { onTestFinished } from "vitest";
import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { sharedSecretKeys } from "../../src/standin/apiserver/access/service-account-tokens.ts";
import { createApiServer } from "../../src/standin/apiserver/server.ts";
import { definedResources } from "../../src/api/index.ts";
import { kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { labels, namespace, objects } from "../../src/api/names.ts";
import { type KubeObject, type Resource, keyOf } from "../../src/api/schema/object.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import { installManifests } from "../../src/operator/install-manifests.ts";
import { type RunOperatorOptions, runOperator } from "../../src/operator/run-operator.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { notWithin } from "./not-within.ts";

export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The machine's clock, whose date a test moves forward; timers keep their pace. */
export function movableClock(): Clock & { moveTo(milliseconds: number): void } {
  let ahead = 0;
  return {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    moveTo: (milliseconds) => void (ahead = milliseconds - systemClock.now()),
  };
}

/** An operator that runs against a server in this process until the test ends, with real certificates. */
export async function startOperator(
  prepare: (kube: KubeClient) => Promise<unknown> = () => Promise.resolve(),
  more: Partial<Pick<RunOperatorOptions, "clock" | "configServerAddress">> & {
    /** The account that the operator has; an administrator's when absent. */
    readonly account?: User;
  } = {},
) {
  const server = createApiServer({
    store: memoryStore(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tokenKeys: sharedSecretKeys(systemRandom.bytes(32)),
    bootstrap: { rootCertificates: "-----BEGIN CERTIFICATE-----\n" },
  });
  const as = (user: User) =>
    createKubeClient({ transport: server.as(user), clock: systemClock, random: systemRandom, userAgent: "test" });
  const kube = as({ name: "admin", groups: ["system:masters"] });
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await kube.create(kubernetes.ConfigMap, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: objects.osImageConfigMap, namespace },
    data: { baseOSContainerImage: "os@sha256:0" },
  });
  for (const [name, role] of [
    ["master-0", "master"],
    ["worker-0", "worker"],
  ] as const)
    await addNode(kube, name, role, "127.9.9.10");
  await giveRights(kube);
  await prepare(kube);
  const journal = memoryJournal();
  const { account, ...given } = more;
  const ports = { clock: systemClock, random: systemRandom, log: silentLogger, journal, ...given };
  const kubeOfOperator = account === undefined ? kube : as(account);
  let logLevel = "";
  /** Runs an operator of a version; returns a function that stops it. */
  const operator = (version: string, image: string) => {
    const stopping = new AbortController();
    const running = runOperator(
      {
        ...ports,
        kube: kubeOfOperator,
        events: createEventRecorder({ ...ports, kube: kubeOfOperator, component: "operator" }),
        identity: `test-${version}`,
        version,
        image,
        apiServer: "https://127.9.9.1:6443",
        authoritiesWaitMs: 1000,
        setLogLevel: (level) => (logLevel = level),
      },
      stopping.signal,
    );
    return async () => {
      stopping.abort(new Error("the test is over"));
      await running;
    };
  };
  let end = operator("1.0.0", "suite:1");
  onTestFinished(async () => {
    await end();
    server.close();
  });
  const replaceOperator = async (version: string, image: string) => {
    await end();
    end = operator(version, image);
  };
  return { kube, as, replaceOperator, logLevel: () => logLevel, lines: () => journal.lines };
}

/** What an administrator applies of install/ beside the operator itself. */
async function giveRights(kube: KubeClient): Promise<void> {
  const install = installManifests({ image: "suite:1", osImage: "os@sha256:0", version: "1.0.0" });
  for (const manifest of install) {
    if (manifest.kind === "Deployment" || manifest.kind === "ConfigMap") continue;
    const resource = Object.values<Resource>(kubernetes).find(({ kind }) => kind === manifest.kind);
    if (resource === undefined) throw new Error(`the harness cannot apply a ${manifest.kind}`);
    await kube.apply(resource, manifest, { owner: "administrator", force: true });
  }
}

/** A machine that reports an address. */
export async function addNode(kube: KubeClient, name: string, role: string, address: string): Promise<void> {
  await kube.create(kubernetes.Node, {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { [`node-role.kubernetes.io/${role}`]: "" } },
  });
  await kube.patch(
    kubernetes.Node,
    { name },
    { type: "merge", body: { status: { addresses: [{ type: "InternalIP", address }] } } },
    { subresource: "status" },
  );
}

/** Watches until an object is as wanted. */
export async function until<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  key: { name: string; namespace?: string },
  isWanted: (object: T) => boolean,
): Promise<T> {
  const seconds = 100;
  const deadline = systemClock.deadline(seconds * 1000);
  let last: T | undefined;
  try {
    const { items, resourceVersion } = await kube.list(
      resource,
      key.namespace === undefined ? {} : { namespace: key.namespace },
    );
    last = items.find((item) => keyOf(item) === keyOf({ metadata: key }));
    if (last !== undefined && isWanted(last)) return last;
    for await (const event of kube.watch(
      resource,
      key.namespace === undefined ? {} : { namespace: key.namespace },
      { resourceVersion, timeoutSeconds: 60 },
      deadline.signal,
    )) {
      if (event.type === "BOOKMARK" || keyOf(event.object) !== keyOf({ metadata: key })) continue;
      last = event.type === "DELETED" ? undefined : event.object;
      if (last !== undefined && isWanted(last)) return last;
    }
    throw notWithin(seconds, `${resource.kind}/${key.name} is as wanted`, last);
  } catch (error) {
    if (!deadline.signal.aborted) throw error;
    throw notWithin(seconds, `${resource.kind}/${key.name} is as wanted`, last);
  } finally {
    deadline.cancel();
  }
}

/** Waits for the operator's kinds, which every other request needs. */
export async function installed(kube: KubeClient): Promise<void> {
  const last = definedResources.at(-1);
  if (last !== undefined) await until(kube, kubernetes.CustomResourceDefinition, last.crd().metadata, () => true);
}

/**
 * Waits until the operator has run all its tasks on the present state: it restores the first pool's label in a pass
 * that has seen everything, and the second pool's label in the pass after that.
 */
export async function lookedAgain(kube: KubeClient): Promise<void> {
  for (const name of ["worker", "master", "worker"]) {
    await until(kube, MachineConfigPool, { name }, ({ metadata }) => metadata.labels?.[labels.builtInPool] === "");
    await kube.patch(
      MachineConfigPool,
      { name },
      { type: "merge", body: { metadata: { labels: { [labels.builtInPool]: null } } } },
    );
    await until(kube, MachineConfigPool, { name }, ({ metadata }) => metadata.labels?.[labels.builtInPool] === "");
  }
}
