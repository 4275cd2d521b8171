import { describe, expect, test } from "vitest";
import { heavyContents } from "../../../test/support/heavy-contents.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, labels } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { type ClusterObjects, planCluster } from "./plan-cluster.ts";
import { renderPool } from "../render/render-pool.ts";

const config = (
  name: string,
  role: string,
  files: Readonly<Record<string, string>>,
  more: object = {},
): MachineConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name, labels: { [labels.role]: role } },
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: {
        files: Object.entries(files).map(([path, text]) => ({
          path,
          mode: 0o644,
          contents: { source: encodeDataUrl(text) },
        })),
      },
    },
    ...more,
  },
});

const pool = (name: string, more: object = {}): MachineConfigPool => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name },
  spec: {
    machineConfigSelector: { matchLabels: { [labels.role]: name } },
    nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: "" } },
    ...more,
  },
});

const deleted = Date.parse("2029-01-01T00:00:00Z");
const osConfig = (metadata: object) =>
  ({
    metadata: { name: "worker", ...metadata },
    spec: { machineConfigPool: { name: "worker" } },
  }) as unknown as NonNullable<ClusterObjects["machineOSConfigs"]>[number];

/** Policies that restart a service when a file changes. */
const policies = (services: readonly (readonly [path: string, service: string])[]) =>
  ({
    metadata: { name: "cluster" },
    spec: {
      nodeDisruptionPolicy: {
        files: services.map(([path, serviceName]) => ({
          path,
          actions: [{ type: "Restart", restart: { serviceName } }],
        })),
      },
    },
  }) as unknown as MachineConfiguration;

const controllerConfig = {
  metadata: { name: "machine-config-controller" },
  spec: { baseOSContainerImage: "os@sha256:1" },
} as ClusterObjects["controllerConfig"];
const base = [config("00-worker", "worker", { "/etc/a": "1" }), config("00-master", "master", { "/etc/a": "1" })];
const renderedName = (name: string, members: readonly MachineConfig[]) => {
  const result = renderPool({
    pool: pool(name),
    members,
    controllerConfig: { spec: { baseOSContainerImage: "os@sha256:1" } },
  });
  if (result.verdict === "refused") throw new Error(JSON.stringify(result.refusals));
  return result.config;
};
const workers = renderedName("worker", [base[0] as MachineConfig]);
const masters = renderedName("master", [base[1] as MachineConfig]);
const node = (name: string, role: string, current: string): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name,
    labels: { [`node-role.kubernetes.io/${role}`]: "" },
    annotations: { [annotations.currentConfig]: current },
  },
});

const before: ClusterObjects = {
  pools: [
    pool("master", { configuration: { name: masters.metadata.name } }),
    pool("worker", { configuration: { name: workers.metadata.name } }),
  ],
  machineConfigs: [...base, workers, masters],
  machineConfiguration: undefined,
  controllerConfig,
  nodes: [
    node("m0", "master", masters.metadata.name),
    node("w0", "worker", workers.metadata.name),
    node("w1", "worker", workers.metadata.name),
  ],
};
const with_ = (config_: MachineConfig): ClusterObjects => ({
  ...before,
  machineConfigs: [...before.machineConfigs, config_],
});
const poolOf = (after: ClusterObjects, name: string) =>
  planCluster(before, after).pools.find((each) => each.pool === name);

describe("planCluster", () => {
  test("a user's configuration that is called rendered is merged and shown like any other", () => {
    const after = {
      ...before,
      machineConfigs: [...before.machineConfigs, config("rendered-x", "worker", { "/etc/x": "1" })],
    };
    expect(planCluster(before, after).pools.map(({ pool: name, verdict }) => `${name} ${verdict}`)).toEqual([
      "master unchanged",
      "worker changes",
    ]);
  });

  test("says that nothing changes when nothing does", () => {
    expect(planCluster(before, before)).toMatchObject({
      refusals: [],
      warnings: [],
      pools: [
        { pool: "master", verdict: "unchanged" },
        { pool: "worker", verdict: "unchanged" },
      ],
    });
  });

  test("names the pool that re-renders, with the name that the cluster will give it, and leaves the other alone", () => {
    const extra = config("99-worker-x", "worker", { "/etc/x": "1" });
    const forecast = poolOf(with_(extra), "worker");
    expect(forecast).toMatchObject({
      verdict: "changes",
      from: workers.metadata.name,
      to: renderedName("worker", [base[0] as MachineConfig, extra]).metadata.name,
      changes: [{ kind: "file", path: "/etc/x", op: "create" }],
    });
    expect(poolOf(with_(extra), "master")).toMatchObject({ verdict: "unchanged" });
  });

  test("lists the effects on every machine, and their reasons", () => {
    const forecast = poolOf(with_(config("99-worker-x", "worker", { "/etc/x": "1" })), "worker");
    expect(forecast).toMatchObject({
      nodes: [
        { node: "w0", drains: true, reboots: true, disruption: "reboot" },
        { node: "w1", drains: true, reboots: true, disruption: "reboot" },
      ],
      because: [{ consequence: { kind: "reboot" }, why: "/etc/x has no disruption policy" }],
    });
  });

  test("the only control-plane machine reboots undrained", () => {
    expect(poolOf(with_(config("99-master-x", "master", { "/etc/x": "1" })), "master")).toMatchObject({
      nodes: [{ node: "m0", drains: false, reboots: true }],
    });
  });

  test("counts with the policies that the change itself brings", () => {
    const machineConfiguration = {
      metadata: { name: "cluster" },
      spec: {
        nodeDisruptionPolicy: {
          files: [{ path: "/etc/x", actions: [{ type: "Restart", restart: { serviceName: "x.service" } }] }],
        },
      },
    } as MachineConfiguration;
    const forecast = poolOf(
      { ...with_(config("99-worker-x", "worker", { "/etc/x": "1" })), machineConfiguration },
      "worker",
    );
    expect(forecast).toMatchObject({
      nodes: [{ drains: false, reboots: false, actions: ["restart x.service"], disruption: "services" }, {}],
    });
  });

  const restarting = (service: string) =>
    ({
      metadata: { name: "cluster" },
      spec: {
        nodeDisruptionPolicy: {
          files: [{ path: "/etc/x", actions: [{ type: "Restart", restart: { serviceName: service } }] }],
        },
      },
    }) as MachineConfiguration;
  const field = "spec.nodeDisruptionPolicy.files[0].actions[0].restart.serviceName";

  test("a service that no machine has is named before an update restarts it [plan-services-1]", () => {
    const standing = { ...before, machineConfiguration: restarting("app-typo.service") };
    const x = config("99-worker-x", "worker", { "/etc/x": "1" });
    const after = { ...standing, machineConfigs: [...standing.machineConfigs, x] };
    expect(planCluster(standing, after).warnings).toEqual([
      expect.stringMatching(/^pool worker: no MachineConfig of pool worker brings app-typo\.service: .* degraded; /),
    ]);
    // The policy and what it concerns in one change: said once.
    expect(planCluster(before, after).warnings).toHaveLength(1);
  });

  test("a policy that names such a service is named with its field, once [plan-services-2]", () => {
    const after = { ...before, machineConfiguration: restarting("chornyd.service") };
    expect(planCluster(before, after).warnings).toEqual([
      expect.stringMatching(
        new RegExp(`^MachineConfiguration/cluster: ${field.replace(/[.[\]]/g, "\\$&")}: .*did you mean chronyd`),
      ),
    ]);
    expect(planCluster(after, after).warnings).toEqual([]);
  });

  test("an outdated machine gets all changes that it missed", () => {
    const stale = renderedName("worker", [config("00-worker", "worker", { "/etc/old": "1" })]);
    const objects: ClusterObjects = {
      ...before,
      machineConfigs: [...before.machineConfigs, stale],
      nodes: [...before.nodes, node("w2", "worker", stale.metadata.name)],
    };
    const forecast = planCluster(objects, {
      ...objects,
      machineConfigs: [
        ...objects.machineConfigs,
        config(
          "99-worker-ssh",
          "worker",
          {},
          {
            config: {
              ignition: { version: "3.4.0" },
              passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 A"] }] },
            },
          },
        ),
      ],
    }).pools.find((each) => each.pool === "worker");
    expect(
      forecast?.verdict === "changes"
        ? forecast.nodes.map(({ node: name, disruption }) => [name, disruption])
        : forecast,
    ).toEqual([
      ["w0", "nothing"],
      ["w1", "nothing"],
      ["w2", "reboot"],
    ]);
  });

  test("refuses what could never be rendered, with field and reason", () => {
    const bad = config("99-worker-bad", "worker", {}, { kernelType: "fast" });
    const forecast = planCluster(before, with_(bad));
    expect(forecast.refusals[0]).toMatchObject({ object: "MachineConfig/99-worker-bad", path: "spec.kernelType" });
    expect(forecast.pools.find((each) => each.pool === "worker")).toMatchObject({ verdict: "refused" });
  });

  test("a pool that is refused already stays refused, whatever else is changed beside it", () => {
    const refused = with_(config("90-fips", "worker", {}, { fips: true }));
    const more: ClusterObjects = {
      ...refused,
      machineConfigs: [...refused.machineConfigs, config("95-b", "worker", { "/etc/b": "1" })],
    };
    for (const after of [refused, more])
      expect(planCluster(refused, after).pools[1]).toMatchObject({
        pool: "worker",
        verdict: "refused",
        refusals: [{ code: "Irreconcilable", member: "90-fips" }],
      });
    expect(planCluster(refused, before).pools[1]).toMatchObject({ verdict: "unchanged" });
  });

  test("a conflict is told of the change that brings it, and of no change after it [preview-plan-cluster-3]", () => {
    const conflicting = with_(config("95-a", "worker", { "/etc/a": "2" }));
    const more = {
      ...conflicting,
      machineConfigs: [...conflicting.machineConfigs, config("96-b", "worker", { "/etc/b": "1" })],
    };
    const warningsOf = (from: ClusterObjects, to: ClusterObjects) =>
      planCluster(from, to).pools.flatMap((each) => (each.verdict === "changes" ? each.warnings : []));
    expect(warningsOf(before, conflicting)).toMatchObject([{ code: "Conflict", member: "95-a" }]);
    expect(warningsOf(conflicting, more)).toEqual([]);
    expect(planCluster(conflicting, more).pools[1]).toMatchObject({ verdict: "changes" });
  });

  test("warns of a MachineConfig that no pool selects", () => {
    expect(planCluster(before, with_(config("99-lost", "infra", {}))).warnings[0]).toContain("no pool selects it");
  });

  test("where machines boot images that hold their configuration, any change of it is another image and a reboot, kernel arguments a reboot, and credentials neither [preview-plan-cluster-1]", () => {
    const machineOSConfigs = [
      { metadata: { name: "worker" }, spec: { machineConfigPool: { name: "worker" } } },
    ] as unknown as NonNullable<ClusterObjects["machineOSConfigs"]>;
    const forecast = (machineConfig: MachineConfig, mode?: string) => {
      const configs = machineOSConfigs.map((one) => ({
        ...one,
        metadata: {
          ...one.metadata,
          ...(mode === undefined ? {} : { annotations: { [annotations.imageContent]: mode } }),
        },
      }));
      const made = planCluster(
        { ...before, machineOSConfigs: configs },
        { ...with_(machineConfig), machineOSConfigs: configs },
      ).pools.find((each) => each.pool === "worker");
      return made?.verdict === "changes" ? made.nodes.map(({ disruption }) => disruption) : made?.verdict;
    };
    const keys = config(
      "99-worker-ssh",
      "worker",
      {},
      {
        config: {
          ignition: { version: "3.4.0" },
          passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 A"] }] },
        },
      },
    );
    expect([forecast(keys), forecast(keys, "os-only")]).toEqual([
      ["reboot", "reboot"],
      ["nothing", "nothing"],
    ]);
    expect(forecast(config("99-kargs", "worker", {}, { kernelArguments: ["quiet"] }))).toEqual(["reboot", "reboot"]);
    expect(forecast(config("99-pull", "worker", { "/var/lib/kubelet/config.json": "{}" }))).toEqual([
      "nothing",
      "nothing",
    ]);
  });

  test("opting in and out of images is reported, even without a configuration change [preview-plan-cluster-2]", () => {
    const machineOSConfigs = [
      { metadata: { name: "worker" }, spec: { machineConfigPool: { name: "worker" } } },
    ] as unknown as NonNullable<ClusterObjects["machineOSConfigs"]>;
    expect(planCluster(before, { ...before, machineOSConfigs }).warnings).toEqual([
      "pool worker opts in to images: every machine of it drains and reboots into an image that holds its configuration",
    ]);
    expect(planCluster({ ...before, machineOSConfigs }, before).warnings).toEqual([
      "pool worker opts out of images: every machine of it drains and reboots into the stock OS",
    ]);
  });

  test.for([
    {
      title: "the cluster's default opts it in",
      objects: { buildConfig: { defaultOptIn: "true" } },
      disruption: "reboot",
    },
    {
      title: "the ConfigMap of the default is gone, and the pool keeps what it was opted in with",
      objects: { machineOSConfigs: [osConfig({ annotations: { [annotations.optInSource]: "ClusterDefault" } })] },
      disruption: "reboot",
    },
    {
      title: "its MachineOSConfig is being deleted, within the delay",
      objects: { machineOSConfigs: [osConfig({ deletionTimestamp: "2029-01-01T00:00:00Z" })], now: deleted + 1_000 },
      disruption: "reboot",
    },
    {
      title: "its MachineOSConfig is being deleted, and the delay is over",
      objects: {
        machineOSConfigs: [osConfig({ deletionTimestamp: "2029-01-01T00:00:00Z" })],
        now: deleted + 24 * 3_600_000,
      },
      disruption: "nothing",
    },
    {
      title: "its MachineOSConfig was made for a switch that it no longer has",
      objects: { machineOSConfigs: [osConfig({ annotations: { [annotations.optInSource]: "PoolLabel" } })] },
      disruption: "nothing",
    },
  ])("a file without a reboot, on a pool that boots images or not: $title [preview-plan-cluster-4]", (row) => {
    const keys = {
      ignition: { version: "3.4.0" },
      passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 A"] }] },
    };
    const after = { ...with_(config("99-ssh", "worker", {}, { config: keys })), ...row.objects };
    const made = planCluster({ ...before, ...row.objects }, after).pools.find((each) => each.pool === "worker");
    const nodes = made?.verdict === "changes" ? made.nodes : [];
    expect(nodes.map(({ disruption, drains, reboots }) => ({ disruption, drains, reboots }))).toEqual(
      [1, 2].map(() => ({
        disruption: row.disruption,
        drains: row.disruption === "reboot",
        reboots: row.disruption === "reboot",
      })),
    );
  });

  test("opting in all pools by the cluster's default, and a pool out by its label, is reported [preview-plan-cluster-5]", () => {
    const byDefault = { ...before, buildConfig: { defaultOptIn: "true" } };
    expect(planCluster(before, byDefault).warnings).toEqual(
      ["master", "worker"].map(
        (name) =>
          `pool ${name} opts in to images: every machine of it drains and reboots into an image that holds its configuration`,
      ),
    );
    const optedOut = byDefault.pools.map((one) =>
      one.metadata.name === "worker"
        ? { ...one, metadata: { ...one.metadata, labels: { [annotations.layeringEnabled]: "false" } } }
        : one,
    );
    expect(planCluster(byDefault, { ...byDefault, pools: optedOut }).warnings).toEqual([
      "pool worker opts out of images: every machine of it drains and reboots into the stock OS",
    ]);
  });

  test("MachineConfigs of a pool that are too large together are not read, before a change or after it [preview-plan-cluster-6]", () => {
    const many = (k: number) => Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`/etc/k${k}/f${i}`, "a"]));
    const first = config("50-infra", "infra", many(0));
    const large = [first, ...Array.from({ length: 24 }, (_, k) => config(`50-infra-${k}`, "infra", many(k + 1)))];
    const stored = {
      ...before,
      pools: [...before.pools, pool("infra")],
      machineConfigs: [...before.machineConfigs, ...large],
      machineConfiguration: policies([["/etc/a", "my-app.service"]]),
    };
    const changed = { ...first, spec: { ...first.spec, kernelArguments: ["a"] } };
    const after = { ...stored, machineConfigs: stored.machineConfigs.map((one) => (one === first ? changed : one)) };
    const began = process.cpuUsage();
    const { pools } = planCluster(stored, after);
    // The changed one is judged by itself, and nothing else is parsed.
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
    expect(pools.find((each) => each.pool === "infra")).toMatchObject({
      verdict: "refused",
      refusals: [{ code: "TooLarge" }],
      stood: [expect.stringContaining("of which 6291456 are merged")],
    });
    expect(pools.find((each) => each.pool === "worker")).toMatchObject({ verdict: "unchanged" });
  });

  test("services of policies are looked for without the contents of any MachineConfig [preview-plan-cluster-8]", () => {
    const heavy = Array.from({ length: 30 }, (_, i) => {
      const one = config(`50-infra-${i}`, "infra", {});
      const storage = { files: [{ path: "/etc/f", contents: heavyContents(i) }] };
      const systemd = { units: [{ name: `u${i}.service`, contents: "[Service]\nExecStart=/bin/true\n" }] };
      return { ...one, spec: { config: { ignition: { version: "3.4.0" }, storage, systemd } } };
    });
    const stored = {
      ...before,
      pools: [...before.pools, pool("infra")],
      machineConfigs: [...before.machineConfigs, ...heavy],
    };
    const restarts = policies([
      ["/etc/a", "u7.service"],
      ["/etc/b", "u77.service"],
    ]);
    const began = process.cpuUsage();
    const { warnings } = planCluster(stored, { ...stored, machineConfiguration: restarts });
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1.5);
    expect(warnings).toEqual([expect.stringContaining("no MachineConfig of the cluster brings u77.service")]);
  });

  describe("MachineConfigs that a change leaves as they are", () => {
    /** A MachineConfig with a finding, and how often it was validated, which alone looks at arguments by their entries. */
    const counted = (name: string) => {
      let asked = 0;
      const kernelArguments = Object.assign([" "], {
        entries(this: string[]) {
          asked += 1;
          return [...this].map((each, i) => [i, each] as const).values();
        },
      });
      return { config: config(name, "infra", {}, { kernelArguments }), asked: () => asked };
    };
    const members = [counted("50-infra-0"), counted("50-infra-1")];
    const standing = members.map((member) => member.config);
    const fips = config("60-infra-fips", "infra", {}, { fips: true });
    const added = config("99-infra-x", "infra", {}, { kernelArguments: [""] });
    const withInfra = (configs: readonly MachineConfig[]): ClusterObjects => ({
      ...before,
      pools: [
        ...before.pools,
        pool("infra", { configuration: { name: renderedName("infra", standing).metadata.name } }),
      ],
      machineConfigs: [...before.machineConfigs, renderedName("infra", standing), ...configs],
    });
    const found = { code: "Finding", member: "99-infra-x", path: "spec.kernelArguments[0]" };

    test.for([
      { title: "one more is made", from: withInfra(standing), configs: [...standing, added], warnings: [found] },
      { title: "one is deleted", from: withInfra([...standing, added]), configs: standing, warnings: [] },
      {
        title: "what a pool is refused for is replaced",
        from: withInfra([...standing, fips]),
        configs: [...standing, added],
        warnings: [found],
      },
      {
        title: "a pool is made for them",
        from: { ...before, machineConfigs: [...before.machineConfigs, ...standing, added] },
        configs: [...standing, added],
        warnings: [],
      },
    ])("are not validated again when $title [preview-plan-cluster-9]", ({ from, configs, warnings }) => {
      const asked = () => members.map((member) => member.asked());
      const askedBefore = asked();
      const infra = planCluster(from, withInfra(configs)).pools.find((each) => each.pool === "infra");
      expect(infra?.verdict === "changes" ? infra.warnings : infra).toMatchObject(warnings);
      expect(asked()).toEqual(askedBefore);
    });
  });

  test("services of policies that stood are told from new ones, whatever the number of them [preview-plan-cluster-7]", () => {
    // No known service has a name as long, so that hardly a spelling is compared.
    const services = (from: number) =>
      policies(Array.from({ length: 5_000 }, (_, i) => [`/etc/f${i}`, `${"s".repeat(100)}-${i + from}.service`]));
    const began = process.cpuUsage();
    const { warnings } = planCluster(
      { ...before, machineConfiguration: services(0) },
      { ...before, machineConfiguration: services(1) },
    );
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1.5);
    expect(warnings).toHaveLength(5_000);
    const [one, two] = [services(0), services(0)];
    expect(
      planCluster({ ...before, machineConfiguration: one }, { ...before, machineConfiguration: two }).warnings,
    ).toEqual([]);
  });

  test("removal is a change like any other", () => {
    const objects = with_(config("99-worker-x", "worker", { "/etc/x": "1" }));
    expect(planCluster(objects, before).pools.find((each) => each.pool === "worker")).toMatchObject({
      verdict: "changes",
      changes: [{ kind: "file", path: "/etc/x", op: "delete" }],
    });
  });
});
