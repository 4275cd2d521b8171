import { spawn } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig, MachineConfigNode, MachineConfigPool, kubernetes, names } from "../../src/api/index.ts";
import { version } from "../../src/cli/version.ts";
import { pauseImage } from "../../src/standin/cluster/host/pod-worker.ts";
import type { ClusterForecast, NodeForecast } from "../../src/core/preview/plan-cluster.ts";
import type { UnitModelState } from "../../src/host/unit-model.ts";
import { lintConditions } from "../support/lint-conditions.ts";
import { type CommandResult, TestCluster, hasApiServer, hasKubectl, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { namespace } = names;
const workers = ["worker-0", "worker-1"];
const mc = "machineconfig.machineconfiguration.openshift.io";
const mcp = "machineconfigpool.machineconfiguration.openshift.io";

let cluster: TestCluster;

/** Runs kubectl, expects it to end well, and returns what it printed. */
async function kubectl(args: string, input?: unknown, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args.split(" "), {
    env,
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
  });
  expect(code, `kubectl ${args}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

const refused = (args: string, input: unknown): Promise<CommandResult> =>
  cluster.kubectl(args.split(" "), { input: JSON.stringify(input) });

/** The file as kubectl shows it in a manifest. */
const source = (text: string) => `data:,${encodeURIComponent(text)}`;

const podNamed = async (prefix: string): Promise<string> => {
  const { items } = await cluster.kube.list(kubernetes.Pod, { namespace });
  return items.find(({ metadata }) => metadata.name.startsWith(prefix))?.metadata.name ?? `no pod ${prefix}`;
};

describe.skipIf(!hasKubectl || !hasApiServer)("kubectl on a cluster of one machine", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 2 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("get shows pools, configs, nodes and pods of every namespace in tables", async () => {
    const all = await kubectl("get mcp,mc,nodes,pods -A");
    for (const line of [
      new RegExp(`^${mcp}/master +rendered-master-[0-9a-f]{32} +True +False +False +1 +1 +1 +0 `, "m"),
      new RegExp(`^${mcp}/worker +rendered-worker-[0-9a-f]{32} +True +False +False +2 +2 +2 +0 `, "m"),
      new RegExp(`^${mc}/00-worker +\\S+ +3\\.\\d\\.0 `, "m"),
      new RegExp(`^${mc}/rendered-worker-[0-9a-f]{32} `, "m"),
      /^node\/master-0 +Ready +control-plane,master /m,
      /^node\/worker-1 +Ready +worker /m,
      /^openshift-machine-config-operator +pod\/machine-config-controller-\S+ +1\/1 +Running /m,
      /^openshift-machine-config-operator +pod\/machine-config-daemon-\S+ +1\/1 +Running /m,
      /^openshift-machine-config-operator +pod\/machine-config-operator-\S+ +1\/1 +Running /m,
    ]) {
      expect(all).toMatch(line);
    }
  });

  test.for([
    {
      kind: "KubeletConfig",
      good: { kubeletConfig: { maxPods: 500 } },
      bad: { kubeletConfig: { maxPods: -1 } },
      field: "spec.kubeletConfig.maxPods",
      made: "99-worker-generated-kubelet",
    },
    {
      kind: "ContainerRuntimeConfig",
      good: { containerRuntimeConfig: { pidsLimit: 2048 } },
      bad: { containerRuntimeConfig: { pidsLimit: 3 } },
      field: "spec.containerRuntimeConfig.pidsLimit",
      made: "99-worker-generated-containerruntime",
    },
  ])(
    "a $kind is forecast, judged, applied and deleted",
    { timeout: 240_000 },
    async ({ kind, good, bad, field, made }) => {
      const machineConfigPoolSelector = {
        matchLabels: { "pools.operator.machineconfiguration.openshift.io/worker": "" },
      };
      const apply = (spec: object) => {
        const manifest = {
          apiVersion: "machineconfiguration.openshift.io/v1",
          kind,
          metadata: { name: "a" },
          spec: { machineConfigPoolSelector, ...spec },
        };
        return cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(manifest) });
      };
      const refused = await apply(bad);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(field)]);
      const before = await cluster.target("worker");
      const { code, stderr } = await apply(good);
      expect([code, stderr]).toEqual([0, expect.stringMatching(/^Warning: .*worker/)]);
      await kubectl(`wait ${kind}/a --for=condition=Accepted=True --timeout=400s`);
      await cluster.untilRolledOut("worker", before);
      const changed = await cluster.target("worker");
      expect(await kubectl(`get mc ${made} -o jsonpath={.metadata.ownerReferences[*].kind}`)).toBe(kind);
      await kubectl(`delete ${kind} a`);
      expect((await cluster.kubectl(["get", "mc", made])).stderr).toContain("NotFound");
      await cluster.untilRolledOut("worker", changed);
    },
  );

  test("the columns of pools, MachineConfigNodes and ClusterOperators are the reference's", async () => {
    const head = async (args: string) => (await kubectl(args)).split("\n")[0]?.trim().split(/ {2,}/);
    expect(await head("get mcp")).toEqual([
      "NAME",
      "CONFIG",
      "UPDATED",
      "UPDATING",
      "DEGRADED",
      "MACHINECOUNT",
      "READYMACHINECOUNT",
      "UPDATEDMACHINECOUNT",
      "DEGRADEDMACHINECOUNT",
      "AGE",
    ]);
    expect(await head("get mc")).toEqual(["NAME", "GENERATEDBYCONTROLLER", "IGNITIONVERSION", "AGE"]);
    expect(await head("get machineconfignodes")).toEqual([
      "NAME",
      "POOLNAME",
      "DESIREDCONFIG",
      "CURRENTCONFIG",
      "UPDATED",
      "AGE",
    ]);
    const health = "NAME HEALTHY OPERATOR CONTROLLER DAEMONS STATEKEEPING REASON SINCE ERROR".split(" ");
    expect(await head("get machineconfiguration")).toEqual(health);
    await kubectl("wait machineconfiguration/cluster --for=condition=Healthy=True --timeout=400s");
    expect(await kubectl("get machineconfiguration")).toMatch(/^cluster +(True +){5}AsExpected +\d\S* *$/m);
    const wide = await kubectl("get machineconfignodes -o wide");
    for (const column of [
      "UPDATEPREPARED",
      "UPDATEEXECUTED",
      "UPDATEPOSTACTIONCOMPLETE",
      "UPDATECOMPLETE",
      "RESUMED",
      "UPDATEDFILESANDOS",
      "CORDONEDNODE",
      "DRAINEDNODE",
      "REBOOTEDNODE",
      "UNCORDONEDNODE",
    ])
      expect(wide.split("\n")[0]).toContain(column);
    expect(wide).toMatch(/^worker-0 +worker +(rendered-worker-[0-9a-f]{32}) +\1 +True +\S+ +(True|False) /m);
    expect(await head("get co")).toEqual([
      "NAME",
      "VERSION",
      "AVAILABLE",
      "PROGRESSING",
      "DEGRADED",
      "SINCE",
      "MESSAGE",
    ]);
    expect(await kubectl("get co")).toMatch(
      new RegExp(`^machine-config +${version.replaceAll(".", "\\.")} +True +False +False `, "m"),
    );
  });

  test("describe shows a pool with its counts, conditions and events", async () => {
    const text = await kubectl("describe mcp worker");
    for (const line of [
      /^Name: +worker$/m,
      /^Kind: +MachineConfigPool$/m,
      /Machine Config Selector:/,
      / Machine Count: +2$/m,
      /Ready Machine Count: +2$/m,
      /Unavailable Machine Count: +0$/m,
      /^ +Type: +Updated$/m,
      /^ +Type: +RenderDegraded$/m,
      /^Events:/m,
    ])
      expect(text).toMatch(line);
  });

  test("apply, wait and edit write a config, roll it out, and roll its change out", async () => {
    const [, boot] = [await cluster.target("worker"), cluster.machineState("worker-0").bootId];
    expect(await kubectl("apply -f -", machineConfig("99-worker-kubectl", { "/etc/kubectl.conf": "one\n" }))).toBe(
      `${mc}/99-worker-kubectl created\n`,
    );
    expect(await kubectl("wait mcp/worker --for=condition=Updated=False --timeout=400s")).toBe(
      `${mcp}/worker condition met\n`,
    );
    expect(await kubectl("wait mcp/worker --for=condition=Updated=True --timeout=400s")).toBe(
      `${mcp}/worker condition met\n`,
    );
    for (const worker of workers) expect(cluster.hostFile(worker, "/etc/kubectl.conf")).toBe("one\n");
    expect(cluster.machineState("worker-0").bootId).not.toBe(boot);

    const editor = join(cluster.directory, "editor.sh");
    writeFileSync(editor, `#!/bin/sh\nexec sed -i 's|${source("one\n")}|${source("two\n")}|' "$1"\n`);
    chmodSync(editor, 0o755);
    const before = await cluster.target("worker");
    expect(await kubectl(`edit mc 99-worker-kubectl`, undefined, { EDITOR: editor, KUBE_EDITOR: editor })).toBe(
      `${mc}/99-worker-kubectl edited\n`,
    );
    await cluster.untilRolledOut("worker", before);
    for (const worker of workers) expect(cluster.hostFile(worker, "/etc/kubectl.conf")).toBe("two\n");
    expect(await kubectl(`edit mc 99-worker-kubectl`, undefined, { EDITOR: "true", KUBE_EDITOR: "true" })).toBe("");
  }, 600_000);

  test("apply --server-side creates and changes a config, and takes another owner's field only with force", async () => {
    const paused = { spec: { paused: true } };
    await cluster.kube.patch(MachineConfigPool, { name: "worker" }, { type: "merge", body: paused });
    const config = (text: string) => machineConfig("99-worker-server-side", {}, { more: { kernelArguments: [text] } });
    expect(await kubectl("apply --server-side -f -", config("a=1"))).toBe(
      `${mc}/99-worker-server-side serverside-applied\n`,
    );
    expect(await kubectl("apply --server-side -f -", config("a=2"))).toBe(
      `${mc}/99-worker-server-side serverside-applied\n`,
    );
    expect(await kubectl("get mc 99-worker-server-side -o jsonpath={.spec.kernelArguments}")).toBe('["a=2"]');
    const other = await refused("apply --server-side --field-manager=other -f -", config("a=3"));
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('conflict with "kubectl"');
    expect(other.stderr).toContain(".spec.kernelArguments");
    expect(await kubectl("apply --server-side --field-manager=other --force-conflicts -f -", config("a=3"))).toBe(
      `${mc}/99-worker-server-side serverside-applied\n`,
    );
    expect(await kubectl("delete mc 99-worker-server-side")).toBe(
      `${mc.split(".")[0]}.${mc.split(".").slice(1).join(".")} "99-worker-server-side" deleted\n`,
    );
    await cluster.kube.patch(
      MachineConfigPool,
      { name: "worker" },
      { type: "merge", body: { spec: { paused: false } } },
    );
    await kubectl("wait mcp/worker --for=condition=Updated=True --timeout=400s");
  }, 600_000);

  test("diff shows a manifest's changes and exits with 1, and with 0 without changes", async () => {
    const same = await refused("diff -f -", machineConfig("99-worker-kubectl", { "/etc/kubectl.conf": "two\n" }));
    expect(same.code, same.stderr).toBe(0);
    const { code, stdout, stderr } = await refused(
      "diff -f -",
      machineConfig("99-worker-kubectl", { "/etc/kubectl.conf": "three\n" }),
    );
    expect(code, stderr).toBe(1);
    const changed = stdout
      .split("\n")
      .filter((line) => /^[-+] /.test(line))
      .map((line) => `${line[0]} ${line.slice(1).trim()}`);
    expect(changed).toContain(`- source: ${source("two\n")}`);
    expect(changed).toContain(`+ source: ${source("three\n")}`);
  });

  test("explain documents the fields of a config", async () => {
    const text = await kubectl("explain mc.spec");
    for (const line of [
      /^GROUP: +machineconfiguration\.openshift\.io$/m,
      /^KIND: +MachineConfig$/m,
      /^VERSION: +v1$/m,
      /^FIELD: spec <Object>/m,
      /^ +kernelArguments\t<\[\]string>/m,
      /^ +config\t<Object>/m,
      /^ +osImageURL\t<string>/m,
    ])
      expect(text).toMatch(line);
  });

  test("logs shows the controller's output, and -f follows it until the end", async () => {
    const pod = await podNamed("machine-config-controller");
    const lines = (await kubectl(`logs -n ${namespace} ${pod}`)).trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ component: "controller" });
    expect((await kubectl(`logs -n ${namespace} ${pod} --tail=2`)).trimEnd().split("\n")).toHaveLength(2);

    const child = spawn("kubectl", ["logs", "-n", namespace, "-f", "--tail=1", pod], {
      env: { ...process.env, KUBECONFIG: cluster.kubeconfig, HOME: cluster.directory },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
      child.once("exit", (code, signal) => resolve(signal ?? code)),
    );
    let seen = "";
    const said = (words: () => boolean) =>
      new Promise<void>((resolve, reject) => {
        const check = () => words() && resolve();
        child.stdout.on("data", check);
        child.once("exit", () => reject(new Error(`kubectl logs -f ended by itself after: ${seen}`)));
        check();
      });
    child.stdout.on("data", (chunk: Buffer) => (seen += chunk.toString("utf8")));
    await said(() => seen.includes("\n"));
    const { length } = seen;
    const before = await cluster.target("worker");
    await kubectl(
      "apply -f -",
      machineConfig(
        "99-worker-logs",
        {},
        { config: { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA logs"] }] } } },
      ),
    );
    await said(() => seen.length > length);
    child.kill("SIGTERM");
    // Killed by the signal, or the exit code by which kubectl's wrapper tells of it.
    expect(["SIGTERM", 143, 1]).toContain(await ended);
    await cluster.untilRolledOut("worker", before);
  }, 600_000);

  test("drain empties a machine and keeps it empty until uncordon", async () => {
    const image = pauseImage(version);
    await kubectl("apply -f -", {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "default" },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: "web" } },
        template: {
          metadata: { labels: { app: "web" } },
          spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "c", image }] },
        },
      },
    });
    await kubectl("rollout status deployment/web --timeout=400s");
    const podsOn = async (node: string) =>
      (
        await cluster.kube.list(kubernetes.Pod, { namespace: "default", fieldSelector: `spec.nodeName=${node}` })
      ).items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const [emptied = "", other = ""] = (await podsOn("worker-0")).length > 0 ? workers : workers.toReversed();
    const there = await podsOn(emptied);
    expect(there.length).toBeGreaterThan(0);
    const text = await kubectl(`drain ${emptied} --ignore-daemonsets --timeout=400s`);
    expect(text).toContain(`node/${emptied} cordoned\n`);
    for (const { metadata } of there) expect(text).toMatch(new RegExp(`^pod/${metadata.name} evicted$`, "m"));
    expect(text).toContain(`node/${emptied} drained\n`);
    expect(await podsOn(emptied)).toEqual([]);
    expect(await kubectl(`get node ${emptied}`)).toMatch(new RegExp(`^${emptied} +Ready,SchedulingDisabled `, "m"));
    await kubectl("rollout status deployment/web --timeout=400s");
    expect(await podsOn(other)).toHaveLength(3);
    expect(await kubectl(`uncordon ${emptied}`)).toBe(`node/${emptied} uncordoned\n`);
    await cluster.untilNode(emptied, (node) => node.spec?.unschedulable !== true, "the machine takes pods again");
    await kubectl("delete deployment web --wait=false");
  }, 600_000);

  test("apply refuses an invalid config with field and reason", async () => {
    const path = await refused("apply -f -", machineConfig("99-worker-invalid", { "relative/path": "x" }));
    expect(path.code).toBe(1);
    expect(path.stderr).toMatch(
      /^The MachineConfig "99-worker-invalid" is invalid: spec\.config\.storage\.files\[0\]\.path: must be an absolute path\n$/,
    );
    const future = await refused(
      "apply -f -",
      machineConfig("99-worker-invalid", {}, { config: { ignition: { version: "9.9.0" } } }),
    );
    expect(future.code).toBe(1);
    expect(future.stderr).toMatch(/spec\.config\.ignition\.version/);
    expect((await cluster.kubectl(["get", "mc", "99-worker-invalid"])).stderr).toContain("NotFound");
  });

  test("apply refuses an unknown field and a value of the wrong type", async () => {
    const unknown = await refused(
      "apply -f -",
      machineConfig("99-worker-unknown", {}, { more: { kernelArgs: ["a"] } }),
    );
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringContaining('strict decoding error: unknown field "spec.kernelArgs"'),
    ]);
    const wrong = await refused(
      "apply -f -",
      machineConfig("99-worker-unknown", {}, { more: { kernelArguments: "a" } }),
    );
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("spec.kernelArguments: Invalid value");
  });

  describe("mco plan", () => {
    const write = (name: string, manifest: unknown): string => {
      const file = join(cluster.directory, `${name}.json`);
      writeFileSync(file, JSON.stringify(manifest));
      return file;
    };
    const versions = async () => {
      const [configs, pools] = await Promise.all([
        cluster.kube.list(MachineConfig),
        cluster.kube.list(MachineConfigPool),
      ]);
      return [...configs.items, ...pools.items].map(
        ({ kind, metadata }) => `${kind}/${metadata.name} ${metadata.resourceVersion}`,
      );
    };
    const planJson = async (file: string): Promise<{ code: number; plan: ClusterForecast }> => {
      const { code, stdout, stderr } = await cluster.mco(["plan", "-f", file, "--json"]);
      expect(stderr).toBe("");
      return { code, plan: JSON.parse(stdout) as ClusterForecast };
    };
    const servicesOf = (worker: string) =>
      (JSON.parse(readFileSync(join(cluster.directory, "hosts", worker, "units.json"), "utf8")) as UnitModelState)
        .services;

    /** What a roll-out does to the workers, as seen from outside: reboots, drains, reloads and restarts. */
    async function happens(
      pool: { readonly to: string },
      apply: () => Promise<void>,
    ): Promise<Record<string, { reboots: boolean; drains: boolean; actions: readonly string[] }>> {
      const before = await cluster.target("worker");
      const boots = workers.map((worker) => cluster.machineState(worker).bootId);
      const services = workers.map(servicesOf);
      const stop = new AbortController();
      const cordoned = new Set<string>();
      const list = await cluster.kube.list(kubernetes.Node);
      const watching = (async () => {
        for await (const event of cluster.kube.watch(
          kubernetes.Node,
          {},
          { resourceVersion: list.resourceVersion, timeoutSeconds: 300 },
          stop.signal,
        )) {
          if (event.type !== "BOOKMARK" && event.object.spec?.unschedulable === true)
            cordoned.add(event.object.metadata.name);
        }
      })().catch(() => undefined);
      await apply();
      expect(await cluster.untilRolledOut("worker", before)).toBe(pool.to);
      stop.abort();
      await watching;
      return Object.fromEntries(
        workers.map((worker, index) => {
          const reboots = cluster.machineState(worker).bootId !== boots[index];
          const now = servicesOf(worker);
          const more = (verb: "reloads" | "restarts") =>
            Object.keys(now).filter((unit) => (now[unit]?.[verb] ?? 0) > (services[index]?.[unit]?.[verb] ?? 0));
          // A reboot starts every service; what was reloaded or restarted one by one is told apart only without it.
          return [
            worker,
            {
              reboots,
              drains: cordoned.has(worker),
              actions: reboots
                ? []
                : [
                    ...more("reloads").map((unit) => `reload ${unit}`),
                    ...more("restarts").map((unit) => `restart ${unit}`),
                  ].toSorted(),
            },
          ];
        }),
      );
    }

    const foretold = (nodes: readonly NodeForecast[]) =>
      Object.fromEntries(
        nodes.map(({ node, reboots, drains, actions }) => [
          node,
          { reboots, drains, actions: actions.filter((action) => !action.startsWith("systemctl")).toSorted() },
        ]),
      );

    test.for([
      {
        title: "a file that no policy names: drain and reboot",
        manifest: machineConfig("99-worker-plan-file", { "/etc/plan.conf": "x\n" }),
        says: [
          /^ {2}\+ \/etc\/plan\.conf$/m,
          /^ {2}reboot +because .*\/etc\/plan\.conf/m,
          /^ {2}worker-0, worker-1: drain, reboot$/m,
        ],
        fate: { reboots: true, drains: true, actions: [] },
      },
      {
        title: "an image policy: crio is reloaded",
        manifest: machineConfig("99-worker-plan-policy", {
          "/etc/containers/policy.json": '{"default":[{"type":"insecureAcceptAnything"}]}\n',
        }),
        says: [
          /\/etc\/containers\/policy\.json$/m,
          /^ {2}reload crio\.service +because the policy for \/etc\/containers\/policy\.json/m,
          /^ {2}worker-0, worker-1: reload crio\.service$/m,
        ],
        fate: { reboots: false, drains: false, actions: ["reload crio.service"] },
      },
      {
        title: "a CA bundle: services restart",
        manifest: machineConfig("99-worker-plan-ca", {
          "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt": "none\n",
        }),
        says: [
          /^ {2}restart crio\.service +because the policy for /m,
          /restart coreos-update-ca-trust\.service, restart crio\.service$/m,
        ],
        fate: {
          reboots: false,
          drains: false,
          actions: ["restart coreos-update-ca-trust.service", "restart crio.service"],
        },
      },
      {
        title: "an SSH key: nothing but the change on disk",
        manifest: machineConfig(
          "99-worker-plan-ssh",
          {},
          { config: { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA plan"] }] } } },
        ),
        says: [
          /SSH keys of core$/m,
          /^ {2}nothing +because the policy for SSH keys/m,
          /^ {2}worker-0, worker-1: nothing but the change on disk$/m,
        ],
        fate: { reboots: false, drains: false, actions: [] },
      },
      {
        title: "kernel arguments: drain and reboot",
        manifest: machineConfig("99-worker-plan-kargs", {}, { more: { kernelArguments: ["plan=1"] } }),
        says: [/^ {2}~ kernel arguments$/m, /^ {2}worker-0, worker-1: drain, reboot$/m],
        fate: { reboots: true, drains: true, actions: [] },
      },
    ])(
      "$title; nothing is stored, and applying does what was foretold",
      { timeout: 240_000 },
      async ({ manifest, says, fate }) => {
        const file = write(manifest.metadata.name, manifest);
        const stored = new Set(await versions());
        const spoken = await cluster.mco(["plan", "-f", file]);
        expect([spoken.code, spoken.stderr]).toEqual([2, ""]);
        const master = (await cluster.kube.get(MachineConfigPool, { name: "master" }))?.spec.configuration?.name;
        expect(spoken.stdout).toContain(`pool master: nothing changes (${master})\n`);
        for (const line of says) expect(spoken.stdout).toMatch(line);
        const { code, plan } = await planJson(file);
        expect(code).toBe(2);
        const pool = plan.pools.find((one) => one.pool === "worker");
        if (pool?.verdict !== "changes") throw new Error(`the worker pool would be ${pool?.verdict}`);
        expect(pool.from).toBe(await cluster.target("worker"));
        expect(foretold(pool.nodes)).toEqual({ "worker-0": fate, "worker-1": fate });
        // Configurations that nothing uses are removed meanwhile.
        expect((await versions()).filter((version) => !stored.has(version))).toEqual([]);

        const happened = await happens(pool, async () => void (await kubectl(`apply -f ${file}`)));
        expect(happened).toEqual(foretold(pool.nodes));
        expect((await cluster.mco(["plan", "-f", file])).code).toBe(0);
      },
    );

    test("an invalid change is refused with field and reason; a config that no pool selects gets a warning", async () => {
      const invalid = await cluster.mco([
        "plan",
        "-f",
        write("invalid", machineConfig("99-worker-plan-invalid", { "relative/path": "x" })),
      ]);
      expect(invalid.code).toBe(1);
      expect(invalid.stdout).toMatch(
        /^refused: MachineConfig\/99-worker-plan-invalid: spec\.config\.storage\.files\S*path: /m,
      );
      const unselected = await cluster.mco([
        "plan",
        "-f",
        write("unselected", machineConfig("99-nobody", { "/etc/x": "x" }, { role: "nobody" })),
      ]);
      expect([unselected.code, unselected.stdout]).toEqual([
        0,
        expect.stringMatching(/^warning: MachineConfig\/99-nobody: .*no pool selects it/m),
      ]);
      const irreconcilable = await cluster.mco([
        "plan",
        "-f",
        write("fips", machineConfig("99-worker-plan-fips", {}, { more: { fips: true } })),
      ]);
      expect(irreconcilable.code, irreconcilable.stdout).toBe(1);
    });

    test("a deletion gets a plan", async () => {
      const { code, stdout } = await cluster.mco(["plan", "--delete", "99-worker-plan-file"]);
      expect([code, stdout]).toEqual([2, expect.stringMatching(/^ {2}- \/etc\/plan\.conf$/m)]);
    });
  });

  test("kubectl mco is the same program, asks whom kubectl asks, and acts as --as says [scenario-kubectl-1]", async () => {
    const plugins = join(import.meta.dirname, "../../bin");
    const env = { PATH: `${plugins}:${process.env["PATH"] ?? ""}` };
    const { contexts } = JSON.parse(await kubectl("config view -o json")) as { contexts: { name: string }[] };
    const context = contexts[0]?.name ?? "";
    expect(await kubectl(`mco explain pool/worker --context ${context}`, undefined, env)).toContain("of pool worker");
    const wrong = await cluster.kubectl(["mco", "status", "--context", "elsewhere"], { env });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('it has no context "elsewhere"')]);
    const other = await cluster.kubectl(["mco", "status", "--as", "jane", "--as-group", "visitors"], { env });
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("jane")]);
    const master = "mco status --as jane --as-group system:masters --json";
    expect(JSON.parse(await kubectl(master, undefined, env))).toMatchObject({ kind: "Status" });
  });

  test("conditions are valid at the end, and an idle cluster writes none", async () => {
    await kubectl("wait mcp --all --for=condition=Updated=True --timeout=400s");
    for (const worker of workers)
      await cluster.until(
        MachineConfigNode,
        worker,
        ({ status }) => status?.conditions?.find(({ type }) => type === "Updated")?.status === "True",
        `${worker} is updated`,
      );
    await cluster.untilNode("worker-1", (node) => node.spec?.unschedulable !== true, "no machine is cordoned");
    expect(await lintConditions(cluster.kube, 3)).toEqual([]);
  }, 600_000);
});
