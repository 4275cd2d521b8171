import {
  ControllerConfig,
  MachineConfig,
  MachineConfigPool,
  ProvisioningToken,
  type Secret,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { timestampOf } from "../../src/api/schema/object.ts";
import { pushSecretName } from "../../src/cli/image-mode.ts";
import { isOpenShiftBy } from "../../src/core/render/openshift-inputs.ts";
import { pullSecretKey } from "../../src/core/render/pull-secret.ts";
import { tokenHash } from "../../src/core/join/provisioning-token.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { type Canaries, canariesOf, leaksIn, newCanaries } from "./canary.ts";
import { untilSeen } from "./until-seen.ts";

/** Files below it change without an action on the machine: planting disturbs no workload. */
const folder = "/etc/nmstate/openshift";
const registry = "probe.example.com";
const dockerConfig = ".dockerconfigjson";
/** Id of the planted token. */
export const probeToken = "probe00000";
export const probeConfig = (pool: string) => `01-probe-${pool}`;

export interface Planted {
  readonly canaries: Canaries;
  /** Pool → its targets before and after the secrets came. */
  readonly targets: ReadonlyMap<string, { readonly before: string; readonly after: string }>;
}

/** What planting needs of a cluster. */
interface Ground {
  readonly kube: KubeClient;
  target(pool: string): Promise<string>;
  untilRolledOut(pool: string, before: string, seconds?: number): Promise<string>;
  hostFile(node: string, path: string): string | undefined;
  record(): { readonly hosts: readonly { readonly name: string; readonly pool: string }[] };
}

/**
 * Gives a cluster's machines secrets of every sort, and waits until they have them. Nothing drains, reboots or restarts
 * for it. A token is made only when the sinks are read: scenarios count theirs.
 */
export async function plantCanaries(cluster: Ground): Promise<Planted> {
  const { kube } = cluster;
  const canaries = newCanaries();
  const { items } = await kube.list(MachineConfigPool);
  const pools = items.flatMap(({ metadata: { name }, spec }) =>
    spec.paused === true || !["master", "worker"].includes(name) ? [] : [name],
  );
  const before = new Map<string, string>();
  for (const pool of pools) before.set(pool, await cluster.target(pool));
  const config = await kube.get(ControllerConfig, { name: names.objects.controllerConfig });
  const pullSecret = pullSecretKey(isOpenShiftBy(config));
  await addCredential(kube, pullSecret.namespace, pullSecret.name, canaries["pull secret"]);
  await addCredential(kube, names.namespace, pushSecretName, canaries["push credential"]);
  for (const pool of pools) await kube.create(MachineConfig, secretConfig(pool, canaries));
  await haveBaseConfigsMade(kube);
  const targets = new Map<string, { readonly before: string; readonly after: string }>();
  for (const pool of pools) {
    const was = before.get(pool) ?? "";
    await untilSeen(
      `pool ${pool} has a target with the planted secrets`,
      async () => kube.get(MachineConfig, { name: await cluster.target(pool) }),
      (rendered) => hasSecrets(rendered, canaries),
    );
    targets.set(pool, { before: was, after: await cluster.untilRolledOut(pool, was) });
  }
  for (const { name, pool } of cluster.record().hosts)
    if (
      pools.includes(pool) &&
      cluster.hostFile(name, `${folder}/probe.conf`)?.includes(canaries["file content"]) !== true
    )
      throw new Error(`${name} has not got the planted secrets`);
  return { canaries, targets };
}

/** The controller reads the cluster's pull secret again when a base configuration was changed, or ten minutes later. */
async function haveBaseConfigsMade(kube: KubeClient): Promise<void> {
  const { items } = await kube.list(MachineConfig);
  const base = items.find(({ metadata }) =>
    metadata.ownerReferences?.some(({ kind }) => kind === ControllerConfig.kind),
  );
  if (base === undefined) throw new Error("there is no base configuration");
  const body = { metadata: { annotations: { "probe.test/pull-secret": "planted" } } };
  await kube.patch(MachineConfig, { name: base.metadata.name }, { type: "merge", body });
}

function hasSecrets(rendered: MachineConfig | undefined, canaries: Canaries): boolean {
  const found = leaksIn([{ where: "it", text: JSON.stringify(rendered ?? {}) }], canariesOf(canaries));
  return ["file content", "pull secret"].every((name) => found.some((leak) => leak.includes(` the ${name} `)));
}

function secretConfig(pool: string, canaries: Canaries): MachineConfig {
  const file = (name: string, mode: number, text: string) => ({
    path: `${folder}/${name}`,
    mode,
    overwrite: true,
    contents: { source: `data:,${encodeURIComponent(text)}` },
  });
  return {
    apiVersion: MachineConfig.apiVersion,
    kind: MachineConfig.kind,
    metadata: { name: probeConfig(pool), labels: { [names.labels.role]: pool } },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        passwd: { users: [{ name: "core", passwordHash: `$6$salt$${canaries["password hash"]}` }] },
        storage: {
          files: [
            file("probe.conf", 0o600, `${canaries["file content"]}\n`),
            file("probe-setting.conf", 0o644, `listen = 1\npassword = ${canaries["setting in a file"]}\n`),
            file("probe.kubeconfig", 0o644, `users:\n- user:\n    token: ${canaries["kubelet token"]}\n`),
          ],
        },
      },
    },
  } as MachineConfig;
}

/** Adds a registry's credential to a Secret, which is made where it does not exist. */
async function addCredential(kube: KubeClient, namespace: string, name: string, password: string): Promise<void> {
  const known = await kube.get(kubernetes.Secret, { name, namespace });
  const stored = JSON.parse(atob(known?.data?.[dockerConfig] ?? btoa("{}"))) as {
    readonly auths?: Readonly<Record<string, unknown>>;
  };
  const merged = { ...stored, auths: { ...stored.auths, [registry]: { auth: btoa(`probe:${password}`) } } };
  const data = { [dockerConfig]: btoa(JSON.stringify(merged)) };
  if (known !== undefined) {
    await kube.patch(kubernetes.Secret, { name, namespace }, { type: "merge", body: { data } });
    return;
  }
  if ((await kube.get(kubernetes.Namespace, { name: namespace })) === undefined)
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  await kube.create(kubernetes.Secret, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type: "kubernetes.io/dockerconfigjson",
    data,
  } as Secret);
}

/** Makes the token whose secret is a canary, for the pool worker. */
export async function plantToken(kube: KubeClient, canaries: Canaries): Promise<string> {
  await kube.create(ProvisioningToken, {
    apiVersion: ProvisioningToken.apiVersion,
    kind: ProvisioningToken.kind,
    metadata: { name: probeToken },
    spec: {
      pool: "worker",
      tokenHash: tokenHash(canaries["provisioning token"]),
      expiresAt: timestampOf(Date.now() + 3_600_000),
    },
  });
  return `${probeToken}.${canaries["provisioning token"]}`;
}
