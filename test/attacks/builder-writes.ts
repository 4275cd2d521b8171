import { type ConfigMap, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import { annotations, finalizers, labels, namespace, objects, poolConditions } from "../../src/api/names.ts";
import type { KubeObject, Resource } from "../../src/api/schema/object.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";

/** Something that the builder's rights allow; none of it changes anything. */
interface Write {
  readonly title: string;
  readonly write: (builder: KubeClient) => Promise<unknown>;
}

interface Definition extends KubeObject {
  readonly spec: {
    readonly versions: readonly {
      readonly schema: {
        readonly openAPIV3Schema: {
          readonly properties: { readonly status: { readonly properties: Record<string, object> } };
        };
      };
    }[];
  };
}

const dry = { dryRun: true } as const;
const at = "2026-01-01T00:00:00Z";
const pools = {
  plain: {},
  asked: { labels: { [annotations.layeringEnabled]: "" } },
  refusing: { annotations: { [annotations.layeringEnabled]: "false" } },
  own: { labels: { [annotations.layeringEnabled]: "" } },
  user: {},
} as const;
type PoolName = keyof typeof pools;
const nameOf = (pool: PoolName) => `attack-builds-${pool}`;

const configFor = (pool: PoolName, has: Readonly<Record<string, string>> = {}) => ({
  apiVersion: MachineOSConfig.apiVersion,
  kind: MachineOSConfig.kind,
  metadata: { name: nameOf(pool), annotations: { ...has }, finalizers: [finalizers.osBuildCleanup] },
  spec: {
    machineConfigPool: { name: nameOf(pool) },
    imageBuilder: { imageBuilderType: "Job" as const },
    renderedImagePushSecret: { name: "push" },
    renderedImagePushSpec: "registry.example.com/os:latest",
  },
});

const condition = (type: string) => ({
  type,
  status: "True" as const,
  reason: "x",
  message: "",
  lastTransitionTime: at,
});
const digests = (name: string, has: Readonly<Record<string, string>>): ConfigMap => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: `attack-builds-${name}`, namespace, labels: { ...has } },
});

/** Pools of every kind, a MachineOSConfig of a user and one of the builder's own, and ConfigMaps. */
export async function prepareBuilderWrites(kube: KubeClient): Promise<void> {
  for (const pool of Object.keys(pools) as PoolName[]) {
    await kube.create(MachineConfigPool, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: MachineConfigPool.kind,
      metadata: { name: nameOf(pool), ...pools[pool] },
      spec: {
        machineConfigSelector: {
          matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", nameOf(pool)] }],
        },
      },
    });
    await kube.patch(
      MachineConfigPool,
      { name: nameOf(pool) },
      {
        type: "merge",
        body: {
          status: { machineCount: 1, ofAnotherRelease: "a", conditions: [condition(poolConditions.updated)] },
        },
      },
      { subresource: "status" },
    );
  }
  await kube.create(MachineOSConfig, configFor("user", { [annotations.preBuiltImage]: "a" }));
  await kube.create(MachineOSConfig, configFor("own", { [annotations.optInSource]: "PoolLabel" }));
  await kube.create<ConfigMap>(kubernetes.ConfigMap, digests("settings", {}));
  const left = digests("left", { [labels.onClusterLayering]: "" });
  await kube.create<ConfigMap>(kubernetes.ConfigMap, {
    ...left,
    metadata: { ...left.metadata, name: "digest-attack-builds" },
  });
}

const merge = (body: object) => ({ type: "merge", body }) as const;
const pool = (title: string, body: object, subresource?: "status"): Write => ({
  title: `a pool: ${title}`,
  write: (builder) =>
    builder.patch(MachineConfigPool, { name: nameOf("plain") }, merge(body), {
      ...dry,
      ...(subresource === undefined ? {} : { subresource }),
    }),
});
const config = (title: string, of: PoolName, body: object): Write => ({
  title: `a MachineOSConfig: ${title}`,
  write: (builder) => builder.patch(MachineOSConfig, { name: nameOf(of) }, merge(body), dry),
});
export const optIn = (of: PoolName, source: string | undefined): Write => ({
  title: `opts in the pool ${of} as ${source ?? "a user"}`,
  write: (builder) =>
    builder.create(
      MachineOSConfig,
      configFor(of, source === undefined ? {} : { [annotations.optInSource]: source }),
      dry,
    ),
});
const notes = (changes: object) => ({ metadata: { annotations: changes } });

/** What a builder that was taken over would do with its rights. */
export const refusedWrites: readonly Write[] = [
  pool("pauses it", { spec: { paused: true } }),
  pool("gives it other machines", { spec: { nodeSelector: { matchLabels: { a: "b" } } } }),
  pool("gives it the configuration of the control plane", {
    spec: { machineConfigSelector: { matchExpressions: null, matchLabels: { [labels.role]: "master" } } },
  }),
  pool("gives it a target", { spec: { configuration: { name: "rendered-worker-1" } } }),
  pool("has all its machines updated at once", { spec: { maxUnavailable: "100%" } }),
  pool("opts it in by annotation", notes({ [annotations.layeringEnabled]: "" })),
  pool("opts it in by label", { metadata: { labels: { [annotations.layeringEnabled]: "" } } }),
  pool("asks for a rebuild by label", { metadata: { labels: { [annotations.rebuildImage]: "" } } }),
  pool("quarantines a target", notes({ [annotations.quarantined]: "[]" })),
  pool("keeps it from being deleted", { metadata: { finalizers: ["example.com/stay"] } }),
  pool("says that its machines have a configuration", { status: { configuration: { name: "x" } } }, "status"),
  pool("counts its machines", { status: { machineCount: 0 } }, "status"),
  pool("loses the count of its machines", { status: { machineCount: null } }, "status"),
  pool(
    "says that it is degraded",
    { status: { conditions: [condition(poolConditions.updated), condition(poolConditions.degraded)] } },
    "status",
  ),
  pool("says no longer that it is updated", { status: { conditions: [] } }, "status"),
  optIn("plain", undefined),
  optIn("plain", "PoolLabel"),
  optIn("plain", "ClusterDefault"),
  optIn("refusing", "PoolLabel"),
  optIn("asked", "ClusterDefault"),
  optIn("asked", "Anything"),
  config("sends a user's images elsewhere", "user", { spec: { renderedImagePushSpec: "evil.example/os:latest" } }),
  config("has a user's images pushed with another Secret", "user", {
    spec: { renderedImagePushSecret: { name: "x" } },
  }),
  config("takes a user's over", "user", notes({ [annotations.optInSource]: "PoolLabel" })),
  config("gives its own away", "own", notes({ [annotations.optInSource]: null })),
  config("has another image adopted", "user", notes({ [annotations.preBuiltImage]: "b" })),
  config("annotates it", "user", notes({ "example.com/a": "" })),
  config("labels it", "user", { metadata: { labels: { a: "b" } } }),
  config("keeps it from being deleted", "user", {
    metadata: { finalizers: [finalizers.osBuildCleanup, "example.com/stay"] },
  }),
  {
    title: "a MachineOSConfig: deletes a user's",
    write: (builder) => builder.delete(MachineOSConfig, { name: nameOf("user") }, dry),
  },
  {
    title: "a ConfigMap: deletes settings",
    write: (builder) => builder.delete(kubernetes.ConfigMap, { name: "attack-builds-settings", namespace }, dry),
  },
];

/** What it would do where definitions of another release have fields and lack rules. */
export const refusedOnOtherDefinitions: readonly Write[] = [
  config("leads its own to another pool", "own", { spec: { machineConfigPool: { name: nameOf("plain") } } }),
  pool("reports in a field of another release", { status: { ofAnotherRelease: "b" } }, "status"),
  pool("removes what another release reports", { status: { ofAnotherRelease: null } }, "status"),
];

/** The definition of a kind as another release may have it: without rules, and with one more field in its status. */
export function definitionOfAnotherRelease(kind: Resource & { readonly crd: () => unknown }): KubeObject {
  const text = JSON.stringify(kind.crd(), (key, value: unknown) =>
    key === "x-kubernetes-validations" ? undefined : value,
  );
  const definition = JSON.parse(text) as Definition;
  for (const { schema } of definition.spec.versions)
    schema.openAPIV3Schema.properties.status.properties["ofAnotherRelease"] = { type: "string" };
  return definition;
}

/** What a builder does. */
export const allowedWrites: readonly Write[] = [
  pool("counts retries", notes({ [annotations.buildRetries]: "1", [annotations.optOutAfter]: at })),
  pool("names the newest image", notes({ [annotations.newestImageEquivalentConfig]: "x" })),
  pool("ends a rebuild", {
    metadata: { annotations: { [annotations.rebuildImage]: null }, labels: { [annotations.rebuildImage]: null } },
  }),
  pool(
    "reports on builds",
    {
      status: {
        conditions: [
          condition(poolConditions.updated),
          condition(poolConditions.imageBuildDegraded),
          condition(poolConditions.buildPending),
        ],
      },
    },
    "status",
  ),
  optIn("asked", "PoolLabel"),
  config(
    "notes its build",
    "user",
    notes({ [annotations.currentMachineOSBuild]: "x", [annotations.rebuildSerial]: "1" }),
  ),
  config(
    "has adopted an image",
    "user",
    notes({ [annotations.preBuiltImage]: null, [annotations.imageContent]: "os-only" }),
  ),
  config("lets it go", "user", { metadata: { finalizers: [] } }),
  config("has its own follow its ConfigMap", "own", { spec: { renderedImagePushSpec: "other.example/os:latest" } }),
  {
    title: "a MachineOSConfig: applies its own",
    write: async (builder) => {
      const owner = await builder.get(MachineConfigPool, { name: nameOf("own") });
      const { metadata, spec } = configFor("own", { [annotations.optInSource]: "PoolLabel" });
      const ownerReferences = [
        {
          apiVersion: MachineConfigPool.apiVersion,
          kind: MachineConfigPool.kind,
          name: nameOf("own"),
          uid: owner?.metadata.uid ?? "",
        },
      ];
      return builder.apply(
        MachineOSConfig,
        { metadata: { ...metadata, ownerReferences }, spec },
        { ...dry, owner: objects.osBuilder, force: true },
      );
    },
  },
  {
    title: "a MachineOSConfig: deletes its own",
    write: (builder) => builder.delete(MachineOSConfig, { name: nameOf("own") }, dry),
  },
  {
    title: "a ConfigMap: deletes what the reference left",
    write: (builder) => builder.delete(kubernetes.ConfigMap, { name: "digest-attack-builds", namespace }, dry),
  },
];

/** How each of the writes ends. */
export async function outcomesOf(
  writes: readonly Write[],
  builder: KubeClient,
): Promise<readonly (readonly [string, string])[]> {
  const told: (readonly [string, string])[] = [];
  for (const { title, write } of writes) {
    const outcome = await write(builder).then(
      () => "written",
      (error: unknown) =>
        isForbidden(error) && String(error).includes("ValidatingAdmissionPolicy 'os-builder-")
          ? "refused"
          : String(error),
    );
    told.push([title, outcome]);
  }
  return told;
}

export const allAre = (writes: readonly Write[], outcome: "written" | "refused") =>
  writes.map(({ title }) => [title, outcome]);
