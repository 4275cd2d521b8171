import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { Kernel } from "../../test/simulation/kernel.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import {
  ControllerConfig,
  type KubeObject,
  MachineConfig,
  MachineConfigPool,
  kubernetes,
  names,
} from "../api/index.ts";
import { runController } from "../controller/run-controller.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import { builtInPools } from "../operator/manifests.ts";
import { silentLogger } from "../ports/logger.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { foldBook } from "../core/books/fold-book.ts";
import { memoryJournal } from "../ports/journal.ts";
import { commandLine, filesSpec } from "../../test/support/command-line.ts";
import { version } from "./version.ts";

const { annotations, labels, namespace } = names;
const apiVersion = "machineconfiguration.openshift.io/v1";

const typed = commandLine("mco-bootstrap-");
const { mco } = typed;

/** Writes manifests, each into a file of its own, in the given order of names. */
function manifests(objects: readonly object[], into = "in"): string {
  const to = join(typed.folder, into);
  mkdirSync(to, { recursive: true });
  objects.forEach((object, index) =>
    writeFileSync(join(to, `${String(index).padStart(3, "0")}.yaml`), JSON.stringify(object)),
  );
  return to;
}

/** Everything below a folder but the story of how it came there: path → text. */
function tree(root: string, below = ""): Record<string, string> {
  const entries = readdirSync(join(root, below), { withFileTypes: true }).filter(
    ({ name }) => name !== "journal" && name !== "journals",
  );
  return Object.assign(
    {},
    ...entries.map((entry) =>
      entry.isDirectory()
        ? tree(root, join(below, entry.name))
        : { [join(below, entry.name)]: readFileSync(join(root, below, entry.name), "utf8") },
    ),
  ) as Record<string, string>;
}

const files = filesSpec;
const config = (name: string, role: string, spec: object): KubeObject & { spec: object } => ({
  apiVersion,
  kind: "MachineConfig",
  metadata: { name, labels: { [labels.role]: role } },
  spec,
});
const infra = {
  apiVersion,
  kind: "MachineConfigPool",
  metadata: { name: "infra" },
  spec: {
    machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }] },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/infra": "" } },
  },
};
const settings = {
  apiVersion,
  kind: "ControllerConfig",
  metadata: {
    name: "machine-config-controller",
    annotations: { [annotations.generatedByVersion]: version, [annotations.releaseImageVersion]: version },
  },
  spec: {
    clusterDNSIP: "10.0.0.10",
    cloudProviderConfig: "",
    kubeAPIServerServingCAData: "",
    rootCAData: "",
    cloudProviderCAData: null,
    additionalTrustBundle: btoa("-- a bundle --\n"),
    images: {},
    baseOSContainerImage: "os@sha256:0",
    releaseImage: "r",
    proxy: null,
    infra: null,
    dns: null,
    ipFamilies: "IPv4",
  },
};
const pullSecret = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "pull-secret", namespace: "openshift-config" },
  type: "kubernetes.io/dockerconfigjson",
  data: { ".dockerconfigjson": btoa('{"auths":{}}') },
};
const members = [
  config("99-worker-chrony", "worker", files({ "/etc/chrony.conf": "server one\n" })),
  config("50-infra", "infra", { ...files({ "/etc/infra.conf": "x\n" }), kernelArguments: ["nosmt"] }),
  config("99-master-ssh", "master", {
    config: {
      ignition: { version: "3.2.0" },
      passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA test"] }] },
    },
  }),
];
const everything = [settings, pullSecret, infra, ...builtInPools(), ...members];

/** A cluster in virtual time that is given objects before its controllers start. */
async function cluster(objects: readonly KubeObject[]) {
  const kernel = new Kernel(3);
  const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
  const act = <T>(work: () => Promise<T>) => kernel.complete(work(), 60_000);
  const resources = [MachineConfigPool, MachineConfig, ControllerConfig, kubernetes.Secret];
  await act(async () => {
    for (const name of [namespace, "openshift-config"])
      await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    for (const object of objects) {
      const resource = resources.find(({ kind }) => kind === object.kind);
      if (resource === undefined) throw new Error(object.kind);
      await kube.apply(resource as typeof MachineConfig, object as never, { owner: "installer" });
      const { status } = object as { status?: object };
      if (status !== undefined)
        await kube.patch(
          resource as typeof MachineConfig,
          object.metadata,
          { type: "merge", body: { status } },
          { subresource: "status" },
        );
    }
  });
  const ports = { clock: kernel.clock, random: kernel.random, log: silentLogger, journal: memoryJournal() };
  void runController(
    {
      ...ports,
      kube,
      events: createEventRecorder({ ...ports, kube, component: "machineconfigcontroller" }),
      identity: "test",
      version,
    },
    new AbortController().signal,
  );
  const pass = (ms: number) => kernel.run({ until: () => false, maxMs: ms });
  await pass(5000);
  const rendered = async () =>
    (await act(() => kube.list(MachineConfig))).items.filter(({ metadata }) => metadata.name.startsWith("rendered-"));
  const pools = async () => (await act(() => kube.list(MachineConfigPool))).items;
  return { kube, act, pass, rendered, pools };
}

describe("mco controller bootstrap", () => {
  test("writes what a cluster of the same manifests renders: names, specs and annotations [cli-bootstrap-2]", async () => {
    const to = join(typed.folder, "out");
    const { code, out } = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests(everything),
      "--dest-dir",
      to,
    );
    expect(code).toBe(0);
    const output = tree(to);
    expect(
      out
        .trim()
        .split("\n")
        .map((path) => path.slice(to.length + 1)),
    ).toEqual([...Object.keys(output).sort(), "journals/bootstrap.yaml"]);
    const { rendered, pools } = await cluster(everything as readonly KubeObject[]);
    const targets = Object.fromEntries(
      (await pools()).map(({ metadata, spec }) => [metadata.name, spec.configuration?.name]),
    );
    expect(Object.keys(targets).sort()).toEqual(["infra", "master", "worker"]);
    expect(Object.keys(output).sort()).toEqual(
      [
        "controller-config/machine-config-controller.yaml",
        ...Object.values(targets).map((name) => `machine-configs/${name}.yaml`),
        ...Object.keys(targets).map((name) => `machine-pools/${name}.yaml`),
      ].sort(),
    );
    for (const inCluster of await rendered()) {
      const offline = parse(output[`machine-configs/${inCluster.metadata.name}.yaml`] ?? "", {
        version: "1.1",
      }) as MachineConfig;
      expect(JSON.stringify(sorted(offline.spec))).toBe(JSON.stringify(sorted(inCluster.spec)));
      expect(inCluster.metadata.annotations).toMatchObject(offline.metadata.annotations ?? { none: "" });
    }
    for (const { metadata, spec } of await pools()) {
      const offline = parse(output[`machine-pools/${metadata.name}.yaml`] ?? "", {
        version: "1.1",
      }) as MachineConfigPool;
      expect(offline.status?.configuration).toEqual(offline.spec.configuration);
      const sources = (of: MachineConfigPool["spec"]) =>
        (of.configuration as { source?: { name: string }[] } | undefined)?.source?.map(({ name }) => name);
      expect(sources(offline.spec)).toEqual(sources(spec));
    }
  });

  test("a cluster that begins with the output renders nothing anew, takes it over, and goes on from there [cli-bootstrap-1]", async () => {
    const to = join(typed.folder, "out");
    await mco("controller", "bootstrap", "--manifest-dir", manifests(everything), "--dest-dir", to);
    const made = Object.values(tree(to)).map((text) => parse(text, { version: "1.1" }) as KubeObject);
    const names_ = made
      .filter(({ metadata }) => metadata.name.startsWith("rendered-"))
      .map(({ metadata }) => metadata.name);
    const { kube, act, pass, rendered, pools } = await cluster([...made, pullSecret as KubeObject, ...members]);
    expect((await rendered()).map(({ metadata }) => metadata.name).sort()).toEqual(names_.sort());
    const uids = new Map((await pools()).map(({ metadata }) => [metadata.name, metadata.uid]));
    for (const { metadata } of await rendered()) {
      const [owner] = metadata.ownerReferences ?? [];
      expect(owner).toMatchObject({ kind: "MachineConfigPool", controller: true });
      expect(owner?.uid).toBe(uids.get(owner?.name ?? ""));
    }
    await act(() =>
      kube.create(MachineConfig, config("99-worker-more", "worker", files({ "/etc/more": "x" })) as never),
    );
    await pass(3000);
    const worker = (await pools()).find(({ metadata }) => metadata.name === "worker");
    expect(worker?.spec.configuration?.name).toMatch(/^rendered-worker-/);
    expect(names_).not.toContain(worker?.spec.configuration?.name);
  });

  test("the order of files makes no difference, nor does a manifest that comes twice or a built-in pool beside the administrator's [cli-bootstrap-5]", async () => {
    await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests(everything),
      "--dest-dir",
      join(typed.folder, "a"),
    );
    const wide = { ...builtInPools()[1], spec: { ...builtInPools()[1]?.spec, maxUnavailable: 3 } };
    await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests([...everything.toReversed(), members[0] ?? {}], "again"),
      "--dest-dir",
      join(typed.folder, "b"),
    );
    expect(tree(join(typed.folder, "b"))).toEqual(tree(join(typed.folder, "a")));
    for (const [index, list] of [
      [wide, ...everything],
      [...everything, wide],
    ].entries()) {
      expect(
        (
          await mco(
            "controller",
            "bootstrap",
            "--manifest-dir",
            manifests(list, `wide-${index}`),
            "--dest-dir",
            join(typed.folder, `w${index}`),
          )
        ).code,
      ).toBe(0);
      expect(parse(readFileSync(join(typed.folder, `w${index}`, "machine-pools/worker.yaml"), "utf8"))).toMatchObject({
        spec: { maxUnavailable: 3 },
      });
    }
  });

  test("pools that every cluster has are rendered though the folder does not name them [cli-bootstrap-6]", async () => {
    const { code } = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests([settings]),
      "--dest-dir",
      join(typed.folder, "out"),
    );
    expect(code).toBe(0);
    expect(readdirSync(join(typed.folder, "out/machine-pools"))).toEqual(["master.yaml", "worker.yaml"]);
  });

  test.for([
    {
      title: "no ControllerConfig",
      list: [infra],
      says: /^error: the folder holds no ControllerConfig machine-config-controller; make one with `mco operator bootstrap`$/m,
    },
    {
      title: "a ControllerConfig of another version",
      list: [
        { ...settings, metadata: { ...settings.metadata, annotations: { [annotations.generatedByVersion]: "0.1" } } },
      ],
      says: /000\.yaml, document 1: metadata\.annotations\[machineconfiguration\.openshift\.io\/generated-by-version\]: the ControllerConfig is of version 0\.1, .*; make it with/,
    },
    {
      title: "a MachineConfig that no machine could follow",
      list: [settings, config("99-bad", "worker", files({ "etc/relative": "x" }))],
      says: /001\.yaml:1: spec\.config\.storage\.files\[0\]\.path: MachineConfig 99-bad: /,
    },
    {
      title: "a field of the wrong type",
      list: [settings, config("99-bad", "worker", { fips: "yes" })],
      says: /001\.yaml:1: spec\.fips: MachineConfig 99-bad: /,
    },
    {
      title: "a selector that selects everything",
      list: [settings, { ...infra, spec: { ...infra.spec, nodeSelector: {} } }],
      says: /001\.yaml:1: spec\.nodeSelector: MachineConfigPool infra: is empty and would select every node; name a label/,
    },
    {
      title: "two objects of one name",
      list: [
        settings,
        config("99-x", "worker", files({ "/etc/a": "1" })),
        config("99-x", "worker", files({ "/etc/a": "2" })),
      ],
      says: /002\.yaml, document 1: metadata\.name: MachineConfig 99-x stands in .*001\.yaml, document 1 too, with other contents, and only one of the two can count; take one of them out/,
    },
    {
      title: "a name that the cluster gives itself",
      list: [settings, config("00-worker", "worker", files({ "/etc/a": "1" }))],
      says: /001\.yaml, document 1: metadata\.name: the cluster makes the MachineConfig 00-worker itself; give yours another name/,
    },
    {
      title: "what is refused only when it is merged",
      list: [
        settings,
        config("99-a", "worker", { extensions: ["kernel-devel"] }),
        config("99-b", "worker", { kernelType: "realtime" }),
      ],
      says: /001\.yaml, document 1: spec\.extensions: pool worker: the extension kernel-devel does not go with the kernel type realtime of 99-b; take one of the two away/,
    },
  ])(
    "is refused with place, field, reason and remedy, and nothing is written: $title [cli-bootstrap-7]",
    async ({ list, says }) => {
      const to = join(typed.folder, "out");
      const { code, err } = await mco("controller", "bootstrap", "--manifest-dir", manifests(list), "--dest-dir", to);
      expect(err).toMatch(says);
      expect(code).toBe(1);
      expect(existsSync(to)).toBe(false);
    },
  );

  test("every problem is told at once, also of files that are no YAML; --json gives them as data [cli-bootstrap-8]", async () => {
    const from = manifests([settings, config("99-bad", "worker", files({ "etc/relative": "x" }))]);
    writeFileSync(join(from, "zzz.yaml"), "a: [\n");
    const { code, out } = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      from,
      "--dest-dir",
      join(typed.folder, "out"),
      "--json",
    );
    expect(code).toBe(1);
    const { problems, ...rest } = JSON.parse(out) as { problems: { place: string; reason: string }[] };
    expect(rest).toMatchObject({ apiVersion: "cli.mco/v1", kind: "Bootstrap", verdict: "refused" });
    expect(problems.map(({ place }) => place.slice(from.length + 1))).toEqual(["001.yaml:1", "zzz.yaml:2"]);
  });

  test("folders that are not named are a matter of usage [cli-bootstrap-9]", async () => {
    expect((await mco("controller", "bootstrap", "--dest-dir", "x")).code).toBe("MCO_USAGE");
    expect((await mco("operator", "bootstrap", "--manifest-dir", "x")).code).toBe("MCO_USAGE");
    expect((await mco("controller", "dance")).code).toBe("MCO_USAGE");
  });
});

describe("mco operator bootstrap", () => {
  const map = (where: string, name: string, data: object) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: where },
    data,
  });
  const pem = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
  const release = map(namespace, "machine-config-osimageurl", {
    releaseVersion: version,
    baseOSContainerImage: "os@sha256:1",
  });
  const inputs = [
    release,
    map("kube-system", "root-ca", { "ca.crt": pem }),
    map("openshift-config", "initial-kube-apiserver-server-ca", { "ca-bundle.crt": pem }),
    pullSecret,
  ];

  test("makes ControllerConfig, pools and pull secret, from which the controller renders [cli-bootstrap-3]", async () => {
    const to = join(typed.folder, "out");
    const made = await mco(
      "operator",
      "bootstrap",
      "--manifest-dir",
      manifests(inputs),
      "--dest-dir",
      to,
      "--release-image",
      "release@sha256:2",
    );
    expect(made).toMatchObject({ code: 0, err: "" });
    const output = tree(to);
    expect(Object.keys(output).sort()).toEqual(
      ["controllerconfig", "pull-secret"]
        .map((name) => `bootstrap/manifests/machineconfigcontroller-${name}.yaml`)
        .concat(["master", "worker"].map((name) => `bootstrap/manifests/${name}.machineconfigpool.yaml`)),
    );
    const controllerConfig = parse(
      output["bootstrap/manifests/machineconfigcontroller-controllerconfig.yaml"] ?? "",
    ) as ControllerConfig;
    expect(controllerConfig.metadata.annotations).toEqual({
      [annotations.generatedByVersion]: version,
      [annotations.releaseImageVersion]: version,
    });
    expect(controllerConfig.spec).toMatchObject({
      baseOSContainerImage: "os@sha256:1",
      releaseImage: "release@sha256:2",
      rootCAData: btoa(pem),
      kubeAPIServerServingCAData: btoa(pem),
    });
    const next = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      join(to, "bootstrap/manifests"),
      "--dest-dir",
      join(typed.folder, "rendered"),
    );
    expect(next.code).toBe(0);
    expect(readdirSync(join(typed.folder, "rendered/machine-pools"))).toEqual(["master.yaml", "worker.yaml"]);
  });

  test.for([
    {
      title: "no release",
      list: inputs.slice(1),
      says: /the OS image of the cluster is not known; put the ConfigMap .*machine-config-osimageurl of release .* into the folder/,
    },
    {
      title: "another release",
      list: [
        map(namespace, "machine-config-osimageurl", { releaseVersion: "0.1", baseOSContainerImage: "os@sha256:1" }),
        ...inputs.slice(1),
      ],
      says: /000\.yaml, document 1: data: .*are of release 0\.1/,
    },
    {
      title: "no certificates",
      list: [release],
      says: /the cluster would be waiting for .*; put what is missing into the folder/,
    },
  ])("is refused, and nothing is written: $title [cli-bootstrap-4]", async ({ list, says }) => {
    const { code, err } = await mco(
      "operator",
      "bootstrap",
      "--manifest-dir",
      manifests(list),
      "--dest-dir",
      join(typed.folder, "out"),
    );
    expect(err).toMatch(says);
    expect(code).toBe(1);
    expect(existsSync(join(typed.folder, "out"))).toBe(false);
  });
});

describe("what a bootstrap tells", () => {
  const map = (name: string, data: object) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace },
    data,
  });
  const journalIn = (to: string) =>
    parse(readFileSync(join(to, "journals/bootstrap.yaml"), "utf8"), { version: "1.1" }) as MachineStateJournal;

  test("lies in one folder, and comes to the cluster as one more manifest, from which its first chapter follows [cli-bootstrap-10]", async () => {
    const journal = join(typed.folder, "story");
    const ready = [settings, pullSecret, ...members];
    const pem = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    const asked = [
      map("machine-config-osimageurl", { releaseVersion: version, baseOSContainerImage: "os@sha256:1" }),
      { ...map("root-ca", { "ca.crt": pem }), metadata: { name: "root-ca", namespace: "kube-system" } },
      {
        ...map("initial-kube-apiserver-server-ca", { "ca-bundle.crt": pem }),
        metadata: { name: "initial-kube-apiserver-server-ca", namespace: "openshift-config" },
      },
      pullSecret,
    ];
    expect(
      (
        await mco(
          "operator",
          "bootstrap",
          "--manifest-dir",
          manifests(asked, "first"),
          "--dest-dir",
          join(typed.folder, "one"),
          "--journal-dir",
          journal,
        )
      ).code,
    ).toBe(0);
    expect(
      (
        await mco(
          "controller",
          "bootstrap",
          "--manifest-dir",
          manifests([...ready, infra]),
          "--dest-dir",
          join(typed.folder, "two"),
          "--journal-dir",
          journal,
        )
      ).code,
    ).toBe(0);
    expect(readdirSync(journal).map((name) => name.replace(/-.*/, ""))).toEqual(["controller", "operator"]);
    const object = journalIn(join(typed.folder, "two"));
    expect(MachineStateJournal.is(object)).toBe(true);
    expect(object.metadata.name).toBe("bootstrap");
    expect(object.spec.lines.map(({ writer, path, reason }) => `${writer.component} ${path} ${reason}`)).toEqual([
      "operator ManifestsRendered ManifestsRendered",
      ...["infra", "master", "worker"].map((pool) => `controller ControllerRendered/${pool} PoolRendered`),
      "controller HandedOver HandedOver",
    ]);
    const [chapter, ...others] = foldBook("cluster", object.spec.lines, { now: Date.now() });
    expect(others).toEqual([]);
    expect(chapter).toMatchObject({ chapter: "Bootstrap", state: "Closed", outcome: "Succeeded" });
    // As the cluster takes it.
    const kernel = new Kernel(4);
    const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
    expect((await kernel.complete(kube.create(MachineStateJournal, object), 60_000)).spec).toEqual(object.spec);
  });

  test("is not lost when nothing is made, where somebody named a folder for it [cli-bootstrap-11]", async () => {
    const journal = join(typed.folder, "story");
    const { code } = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests([pullSecret]),
      "--dest-dir",
      join(typed.folder, "out"),
      "--journal-dir",
      journal,
    );
    expect(code).toBe(1);
    expect(existsSync(join(typed.folder, "out"))).toBe(false);
    const [name = ""] = readdirSync(journal);
    expect(JSON.parse(readFileSync(join(journal, name), "utf8"))).toMatchObject({
      path: "ManifestsRendered",
      mark: "fail",
      reason: "ManifestsRefused",
      msg: expect.stringContaining("the folder holds no ControllerConfig") as string,
      next: { action: "make one with `mco operator bootstrap`" },
    });
  });

  test("holds the newest lines where there are more than a journal takes, and says how many there were [cli-bootstrap-12]", async () => {
    const journal = join(typed.folder, "story");
    mkdirSync(journal);
    const line = (seq: number) => ({
      v: 1,
      writer: { component: "server", instance: "bootstrap" },
      boot: "b",
      seq,
      at: seq,
      mono: seq,
      book: "cluster",
      chapter: "Bootstrap",
      path: "Served/master",
      mark: "note",
      level: "boundary",
      reason: "Served",
      msg: "x".repeat(900),
      via: "told",
    });
    writeFileSync(
      join(journal, "server-b.jsonl"),
      `${Array.from({ length: 400 }, (_, index) => JSON.stringify(line(index + 1))).join("\n")}\n{"v":1,"cut o`,
    );
    await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests(everything),
      "--dest-dir",
      join(typed.folder, "out"),
      "--journal-dir",
      journal,
    );
    const { spec } = journalIn(join(typed.folder, "out"));
    expect(JSON.stringify(spec).length).toBeLessThanOrEqual(128 * 1024);
    expect(spec.lines.at(-1)).toMatchObject({ path: "HandedOver", data: { lines: "403" } });
    expect(
      spec.lines
        .filter(({ path }) => path === "Served/master")
        .map(({ seq }) => seq)
        .at(-1),
    ).toBe(400);
  });
});

/** Keys in order, all the way down. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}
