import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { Kernel } from "../../test/simulation/kernel.ts";
import { servedMasters } from "../../test/support/bootstrap-reports.ts";
import { administrator, inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import {
  ContainerRuntimeConfig,
  ControllerConfig,
  KubeletConfig,
  type KubeObject,
  MachineConfig,
  MachineConfigPool,
  kubernetes,
  names,
} from "../api/index.ts";
import { openshift } from "../api/foreign/openshift.ts";
import { openshiftKinds } from "../standin/cluster/openshift-kinds.ts";
import { runController } from "../controller/run-controller.ts";
import { createApiServer } from "../standin/apiserver/server.ts";
import { memoryStore } from "../standin/apiserver/storage/memory-store.ts";
import type { JournalEntry } from "../api/books/report-table.ts";
import { lineOf } from "../core/books/journal.ts";
import { createKubeClient } from "../kube/kube-client.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { handOver } from "./hand-over.ts";
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
    pullSecret: { kind: "Secret", namespace: "openshift-config", name: "pull-secret" },
    images: {},
    baseOSContainerImage: "os@sha256:0",
    releaseImage: "r",
    proxy: null,
    infra: { apiVersion: "config.openshift.io/v1", kind: "Infrastructure", metadata: { name: "cluster" }, spec: {} },
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
const mirrorSet = {
  apiVersion: "config.openshift.io/v1",
  kind: "ImageDigestMirrorSet",
  metadata: { name: "team" },
  spec: { imageDigestMirrors: [{ source: "quay.io/team", mirrors: ["mirror.example.com/team"] }] },
};
const everything = [settings, pullSecret, infra, ...builtInPools(), ...members];

/** A cluster in virtual time that is given objects before its controllers start. */
async function cluster(objects: readonly KubeObject[]) {
  const kernel = new Kernel(3);
  const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
  const act = <T>(work: () => Promise<T>) => kernel.complete(work(), 60_000);
  const resources = [
    MachineConfigPool,
    MachineConfig,
    ControllerConfig,
    kubernetes.Secret,
    openshift.ImageDigestMirrorSet,
    openshift.CRIOCredentialProviderConfig,
    openshift.FeatureGate,
    openshift.ConfigNode,
    KubeletConfig,
    ContainerRuntimeConfig,
  ];
  await act(async () => {
    for (const definition of openshiftKinds) await kube.create(kubernetes.CustomResourceDefinition, definition);
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

  test("a cluster that starts from the output adopts it and renders nothing again [cli-bootstrap-1]", async () => {
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

  /** With more objects in the folder, workers' first configuration says a text, and a cluster renders nothing else. */
  async function rendersTheSame(objects: readonly KubeObject[], says: string): Promise<void> {
    const to = join(typed.folder, "out");
    const list = [...everything, ...objects];
    const run = await mco("controller", "bootstrap", "--manifest-dir", manifests(list), "--dest-dir", to);
    expect(run).toMatchObject({ code: 0 });
    const made = Object.values(tree(to)).map((text) => parse(text, { version: "1.1" }) as KubeObject);
    const named = made.filter(({ metadata }) => metadata.name.startsWith("rendered-"));
    const worker = named.find(({ metadata }) => metadata.name.startsWith("rendered-worker-"));
    expect(decodeURIComponent(JSON.stringify(worker))).toContain(says);
    const { rendered } = await cluster([...made, pullSecret as KubeObject, ...members, ...objects]);
    expect((await rendered()).map(({ metadata }) => metadata.name).sort()).toEqual(
      named.map(({ metadata }) => metadata.name).sort(),
    );
  }

  test("the pull secret of a cluster that is not OpenShift's is the one of the suite's namespace, in the folder and on the cluster [cli-bootstrap-14]", async () => {
    const pem = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    const map = (namespaceOf: string, name: string, data: Record<string, string>) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { namespace: namespaceOf, name },
      data,
    });
    const own = { ...pullSecret, metadata: { name: "pull-secret", namespace } };
    const inputs = [
      map(namespace, "machine-config-osimageurl", { releaseVersion: version, baseOSContainerImage: "os@sha256:1" }),
      map("kube-system", "root-ca", { "ca.crt": pem }),
      map("kube-system", "extension-apiserver-authentication", { "client-ca-file": pem }),
      map(namespace, "kube-root-ca.crt", { "ca.crt": pem }),
      own,
    ];
    const [first, to] = [join(typed.folder, "first"), join(typed.folder, "out")];
    const asked = await mco("operator", "bootstrap", "--manifest-dir", manifests(inputs), "--dest-dir", first);
    expect(asked).toMatchObject({ code: 0, err: "" });
    const run = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      join(first, "bootstrap/manifests"),
      "--dest-dir",
      to,
    );
    expect(run).toMatchObject({ code: 0 });
    const made = Object.values(tree(to)).map((text) => parse(text, { version: "1.1" }) as KubeObject);
    const named = made.filter(({ metadata }) => metadata.name.startsWith("rendered-"));
    for (const config of named) expect(JSON.stringify(config)).toContain("/var/lib/kubelet/config.json");
    const { rendered } = await cluster([...made, own as KubeObject]);
    expect((await rendered()).map(({ metadata }) => metadata.name).sort()).toEqual(
      named.map(({ metadata }) => metadata.name).sort(),
    );
  });

  test("mirror sets of the folder are in the first configurations, and a cluster that starts from them renders nothing again [cli-bootstrap-mirrors-1]", async () => {
    await rendersTheSame([mirrorSet], "mirror.example.com/team");
  });

  const openshiftOne = (kind: string, spec: object) => ({
    apiVersion: "config.openshift.io/v1",
    kind,
    metadata: { name: "cluster" },
    spec,
  });
  const gates = openshiftOne("FeatureGate", {
    featureSet: "CustomNoUpgrade",
    customNoUpgrade: { disabled: ["KubeletServiceAccountTokenForCredentialProviders"] },
  });
  test.for([
    {
      what: "a CRIOCredentialProviderConfig",
      objects: [openshiftOne("CRIOCredentialProviderConfig", { matchImages: ["quay.io/team"] })],
      says: "- quay.io/team",
    },
    {
      what: "a KubeletConfig of workers",
      objects: [
        {
          apiVersion,
          kind: "KubeletConfig",
          metadata: { name: "pods" },
          spec: {
            machineConfigPoolSelector: {
              matchLabels: { "pools.operator.machineconfiguration.openshift.io/worker": "" },
            },
            kubeletConfig: { maxPods: 123 },
          },
        },
      ],
      says: "maxPods: 123",
    },
    {
      what: "a ContainerRuntimeConfig of workers",
      objects: [
        {
          apiVersion,
          kind: "ContainerRuntimeConfig",
          metadata: { name: "pids" },
          spec: {
            machineConfigPoolSelector: {
              matchLabels: { "pools.operator.machineconfiguration.openshift.io/worker": "" },
            },
            containerRuntimeConfig: { pidsLimit: 4321 },
          },
        },
      ],
      says: "4321",
    },
    {
      what: "a config Node and gates",
      objects: [openshiftOne("Node", { workerLatencyProfile: "LowUpdateSlowReaction" }), gates],
      says: "KubeletServiceAccountTokenForCredentialProviders: false",
    },
  ])(
    "$what of the folder is in the first configurations, as a cluster makes it [cli-bootstrap-settings-1]",
    async ({ objects, says }) => {
      await rendersTheSame(objects, says);
    },
  );

  test("a CRIOCredentialProviderConfig with which no kubelet would start is refused, with its file and field [cli-bootstrap-settings-2]", async () => {
    const list = [settings, openshiftOne("CRIOCredentialProviderConfig", { matchImages: ["quay.io/team"] }), gates];
    const to = join(typed.folder, "out");
    const { code, err } = await mco("controller", "bootstrap", "--manifest-dir", manifests(list), "--dest-dir", to);
    expect(code).toBe(1);
    expect(err).toMatch(
      /001\.yaml, document 1: FeatureGate\/cluster KubeletServiceAccountTokenForCredentialProviders: CRIOCredentialProviderConfig\/cluster: is off/,
    );
  });

  test("a mirror set that is wrong is refused, with its file and field [cli-bootstrap-mirrors-2]", async () => {
    const wrong = {
      ...mirrorSet,
      metadata: { name: "wrong" },
      spec: {
        imageDigestMirrors: [{ ...mirrorSet.spec.imageDigestMirrors[0], mirrorSourcePolicy: "NeverContactSource" }],
      },
    };
    const { code, err } = await mco(
      "controller",
      "bootstrap",
      "--manifest-dir",
      manifests([settings, mirrorSet, wrong]),
      "--dest-dir",
      join(typed.folder, "out"),
    );
    expect(code).toBe(1);
    expect(err).toMatch(
      /002\.yaml, document 1: spec\.imageDigestMirrors\[0\]\.mirrorSourcePolicy: ImageDigestMirrorSet\/wrong: must be the same/,
    );
  });

  test("the order of files, a duplicate manifest, and a built-in pool beside the administrator's make no difference [cli-bootstrap-5]", async () => {
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
      says: /001\.yaml:1:\d+: spec\.config\.storage\.files\[0\]\.path: MachineConfig 99-bad: /,
    },
    {
      title: "a field of the wrong type",
      list: [settings, config("99-bad", "worker", { fips: "yes" })],
      says: /001\.yaml:1:\d+: spec\.fips: MachineConfig 99-bad: /,
    },
    {
      title: "a selector that selects everything",
      list: [settings, { ...infra, spec: { ...infra.spec, nodeSelector: {} } }],
      says: /001\.yaml:1:\d+: spec\.nodeSelector: MachineConfigPool infra: is empty and would select every node; name a label/,
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

  test("every problem is reported at once, also of files that are not YAML; --json prints them as data [cli-bootstrap-8]", async () => {
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
    expect(problems.map(({ place }) => place.slice(from.length + 1))).toEqual(["001.yaml:1:244", "zzz.yaml:2:1"]);
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
      says: /the cluster would be waiting for .*; add the missing objects to the folder/,
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

describe("the journal of a bootstrap", () => {
  const map = (name: string, data: object) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace },
    data,
  });
  /** As a program of a bootstrap leaves its lines in the folder. */
  const writeLines = (folder: string, component: string, entries: readonly JournalEntry[], more = "") => {
    mkdirSync(folder, { recursive: true });
    const lines = entries.map((entry, index) =>
      lineOf(entry, {
        writer: { component, instance: "bootstrap", version },
        boot: "b",
        number: { seq: index + 1 },
        at: Date.now(),
        mono: index,
      }),
    );
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    writeFileSync(join(folder, `${component}-b.jsonl`), `${text}${more}`);
  };
  const journalIn = (to: string) =>
    parse(readFileSync(join(to, "journals/bootstrap.yaml"), "utf8"), { version: "1.1" }) as MachineStateJournal;

  test("is in one folder, and reaches the cluster as a manifest from which the first chapter is made [cli-bootstrap-10]", async () => {
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
    const rendered = [
      "operator ManifestsRendered ManifestsRendered",
      ...["infra", "master", "worker"].map((pool) => `controller ControllerRendered/${pool} PoolRendered`),
    ];
    const said = ({ spec }: Pick<MachineStateJournal, "spec">) =>
      spec.lines.map(({ writer, path, reason }) => `${writer.component} ${path} ${reason}`);
    expect(said(object)).toEqual(rendered);
    expect(foldBook("cluster", object.spec.lines, { now: Date.now() })).toMatchObject([
      { chapter: "Bootstrap", state: "Open" },
    ]);

    // The cluster takes it with the other manifests; meanwhile the server has served a machine.
    const { kube } = await inProcessCluster({ clock: systemClock, random: systemRandom });
    expect((await kube.create(MachineStateJournal, object)).spec).toEqual(object.spec);
    writeLines(journal, "server", servedMasters(["master-0"], "rendered-master-1"));
    const given = { kube, folder: journal, clock: systemClock, random: systemRandom, log: silentLogger };
    const { signal } = new AbortController();
    const whole = [...rendered, "server Served Served", "server Served/master Served", "state HandedOver HandedOver"];
    // Again and again, as an installer that was killed would: nothing is there twice.
    for (let turn = 0; turn < 2; turn += 1) expect(await handOver(given, signal)).toBe(whole.length);
    const stored = await kube.get(MachineStateJournal, { name: "bootstrap" });
    expect(said(stored ?? object)).toEqual(whole);
    expect(foldBook("cluster", stored?.spec.lines ?? [], { now: Date.now() })).toMatchObject([
      { chapter: "Bootstrap", state: "Closed", outcome: "Succeeded" },
    ]);
    expect(foldBook("node/master-0", stored?.spec.lines ?? [], { now: Date.now() })).toMatchObject([
      { chapter: "Bootstrap", state: "Closed", outcome: "Succeeded" },
    ]);
  });

  test("waits for a cluster that does not serve the kind yet, and says when nobody may write it [cli-bootstrap-13]", async () => {
    const folder = join(typed.folder, "story");
    const server = createApiServer({
      store: memoryStore(),
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
    });
    const as = (user: { readonly name: string; readonly groups: readonly string[] }) =>
      createKubeClient({
        transport: server.as(user),
        clock: systemClock,
        random: systemRandom,
        userAgent: "test",
      });
    const kube = as(administrator);
    let waits = 0;
    const clock = {
      ...systemClock,
      sleep: async () => {
        waits += 1;
        if (waits === 2)
          await kube.apply(kubernetes.CustomResourceDefinition, MachineStateJournal.crd(), { owner: "test" });
      },
    };
    const given = { kube, folder, clock, random: systemRandom, log: silentLogger };
    const { signal } = new AbortController();
    expect(await handOver(given, signal)).toBe(0);
    writeLines(folder, "server", servedMasters(["master-0"], "rendered-master-1"));
    expect(await handOver(given, signal)).toBe(3);
    expect(waits).toBe(2);
    await expect(
      handOver({ ...given, kube: as({ name: "nobody", groups: ["system:authenticated"] }) }, signal),
    ).rejects.toThrow("forbidden");
  });

  test("is written to the named folder even if the bootstrap writes nothing else [cli-bootstrap-11]", async () => {
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
    const machines = Array.from({ length: 200 }, (_, index) => `master-${index}`);
    const name = `rendered-master-${"x".repeat(32)}`;
    const lines = [0, 100].flatMap((from) => servedMasters(machines.slice(from, from + 100), name));
    expect(lines).toHaveLength(400);
    writeLines(journal, "server", lines, '{"v":1,"cut o');
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
    const { kube } = await inProcessCluster({ clock: systemClock, random: systemRandom });
    await handOver(
      { kube, folder: journal, clock: systemClock, random: systemRandom, log: silentLogger },
      new AbortController().signal,
    );
    const { spec } = (await kube.get(MachineStateJournal, { name: "bootstrap" })) ?? journalIn(typed.folder);
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
