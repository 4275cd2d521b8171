import { anyDefinition } from "../../test/support/any-definition.ts";
import { describe, expect, test } from "vitest";
import { Harness } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { type MachineSet, openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, machineNamespace, namespace, objects } from "../api/names.ts";
import { type Condition, conditionOf } from "../api/schema/object.ts";
import type { HttpResponse } from "../ports/http.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const settings = { name: objects.machineConfiguration };

const streamOf = (version: string) =>
  JSON.stringify({
    architectures: {
      x86_64: {
        images: {
          aws: { regions: { "eu-1": { image: `ami-${version}` }, "us-1": { image: `ami-us-${version}` } } },
          gcp: { project: "rhcos-cloud", name: `rhcos-${version}` },
        },
      },
    },
  });
const aws = (ami: string, userData = "worker-user-data-managed") => ({
  apiVersion: "machine.openshift.io/v1beta1",
  kind: "AWSMachineProviderConfig",
  ami: { id: ami },
  instanceType: "m6i.large",
  placement: { region: "eu-1", availabilityZone: "eu-1a" },
  blockDevices: [{ ebs: { volumeSize: 120 } }],
  userDataSecret: { name: userData },
});
const all = { managedBootImages: { machineManagers: [manager({ mode: "All" })] } };
function manager(selection: object) {
  return { resource: "machinesets", apiGroup: "machine.openshift.io", selection };
}

/** A failure of the API server. */
function failed(code: number, reason: string): HttpResponse {
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", message: "it is broken", reason, code };
  return { status: code, headers: {}, body: JSON.stringify(status) };
}

class Cluster {
  readonly harness: Harness;
  constructor(harness: Harness) {
    this.harness = harness;
  }

  /** A cluster on a platform, whose control plane has its configuration. */
  static async on(type: string, { withApi = true, spec = {} as object } = {}): Promise<Cluster> {
    const harness = await Harness.make();
    const cluster = new Cluster(harness);
    const { kube } = harness;
    await cluster.act(async () => {
      await kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        merge({
          spec: {
            infra: {
              apiVersion: openshift.Infrastructure.apiVersion,
              kind: "Infrastructure",
              spec: {},
              status: { platformStatus: { type } },
            },
          },
        }),
      );
      await kube.create(MachineConfiguration, {
        apiVersion: MachineConfiguration.apiVersion,
        kind: MachineConfiguration.kind,
        metadata: settings,
        spec: { managementState: "Managed", ...spec },
      } as MachineConfiguration);
      await kube.create(kubernetes.Namespace, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: machineNamespace },
      });
      if (withApi)
        for (const kind of [openshift.MachineSet, openshift.ClusterVersion])
          await kube.create(kubernetes.CustomResourceDefinition, anyDefinition(kind));
      await harness.config("50-master", "master", { "/etc/a": "1" });
    });
    harness.start("test", { architecture: "amd64" });
    await harness.pass(5000);
    return cluster;
  }

  act = <T>(work: () => Promise<T>): Promise<T> => this.harness.act(work);

  async bring(version: string): Promise<void> {
    const data = { releaseVersion: version, stream: streamOf(version) };
    await this.act(() =>
      this.harness.kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: objects.bootImages, namespace }, data },
        { owner: "release" },
      ),
    );
    await this.harness.pass(5000);
  }

  async machineSet(name: string, value: unknown, metadata: object = {}): Promise<void> {
    const { apiVersion, kind } = openshift.MachineSet;
    await this.act(() =>
      this.harness.kube.create(openshift.MachineSet, {
        apiVersion,
        kind,
        metadata: { name, namespace: machineNamespace, ...metadata },
        spec: { replicas: 2, template: { spec: { providerSpec: { value } } } },
      } as MachineSet),
    );
    await this.harness.pass(5000);
  }

  async change(name: string, body: object): Promise<void> {
    await this.act(() =>
      this.harness.kube.patch(openshift.MachineSet, { name, namespace: machineNamespace }, merge(body)),
    );
    await this.harness.pass(5000);
  }

  set = (name: string) =>
    this.act(() => this.harness.kube.get(openshift.MachineSet, { name, namespace: machineNamespace }));
  spec = async (name: string) => (await this.set(name))?.spec?.template?.spec?.providerSpec?.value;
  ami = async (name: string) => ((await this.spec(name)) as ReturnType<typeof aws>).ami.id;

  async ask(spec: object): Promise<void> {
    await this.act(() => this.harness.kube.patch(MachineConfiguration, settings, merge({ spec })));
    await this.harness.pass(5000);
  }

  async conditions() {
    const object = await this.act(() => this.harness.kube.get(MachineConfiguration, settings));
    const conditions = (object?.status?.conditions ?? []) as readonly Condition[];
    return {
      progressing: conditionOf(conditions, "BootImageUpdateProgressing"),
      degraded: conditionOf(conditions, "BootImageUpdateDegraded"),
      all: conditions,
    };
  }
}

describe("boot images of MachineSets", () => {
  test("follow the release, and nothing else of a set changes [boot-images-1]", async () => {
    const cluster = await Cluster.on("AWS");
    await cluster.bring("1");
    await cluster.machineSet("workers", aws("ami-us-1"));
    expect(await cluster.spec("workers")).toEqual(aws("ami-1"));
    expect((await cluster.set("workers"))?.spec).toMatchObject({ replicas: 2 });
    await cluster.bring("2");
    expect(await cluster.spec("workers")).toEqual(aws("ami-2"));
    expect(await cluster.conditions()).toMatchObject({
      progressing: { status: "False", reason: "Reconciled", message: "Reconciled 1 of 1 MAPI MachineSets" },
      degraded: { status: "False", reason: "AsExpected", message: "" },
    });
    expect((await cluster.harness.events("BootImageUpdated")).toSorted()).toEqual([
      "new machines start from ami-1, and no longer from ami-us-1",
      "new machines start from ami-2, and no longer from ami-1",
    ]);
  });

  test("of sets with an image of their own stay until an administrator vouches for it; conditions of others stay [boot-images-2]", async () => {
    const cluster = await Cluster.on("AWS");
    const health = {
      type: "OperatorHealthy",
      status: "True",
      reason: "AsExpected",
      message: "",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    };
    await cluster.act(() =>
      cluster.harness.kube.patch(MachineConfiguration, settings, merge({ status: { conditions: [health] } }), {
        subresource: "status",
      }),
    );
    await cluster.bring("1");
    await cluster.machineSet("old", aws("ami-old"));
    await cluster.machineSet("other", aws("ami-us-1"));
    const { progressing, degraded, all: conditions } = await cluster.conditions();
    expect(progressing).toMatchObject({ status: "False", reason: "Skipped" });
    expect(progressing?.message).toMatch(
      /^Reconciled 1 of 2 MAPI MachineSets \(1 skipped\); MachineSet old: the AMI ami-old may belong to another user \(if it is one of CoreOS/,
    );
    expect(degraded).toMatchObject({ status: "False" });
    expect(conditions).toContainEqual(health);
    expect(await cluster.ami("old")).toBe("ami-old");
    await cluster.change("old", { metadata: { annotations: { [annotations.managedBootImage]: "ami-old" } } });
    expect(await cluster.ami("old")).toBe("ami-1");
    expect((await cluster.conditions()).progressing).toMatchObject({ reason: "Reconciled" });
  });

  test("that somebody sets back are not written again, and the condition says so until the set is taken out [boot-images-3]", async () => {
    const cluster = await Cluster.on("AWS", { spec: all });
    await cluster.bring("1");
    await cluster.machineSet("workers", aws("ami-us-1"));
    await cluster.change("workers", { spec: { template: { spec: { providerSpec: { value: aws("ami-us-1") } } } } });
    const { degraded } = await cluster.conditions();
    expect(degraded).toMatchObject({ status: "True", reason: "Failing" });
    expect(degraded?.message).toContain(
      "MachineSet workers: it was given ami-1, and another writer set it back to ami-us-1",
    );
    expect(await cluster.harness.events("BootImageUpdated")).toHaveLength(1);
    await cluster.ask({ managedBootImages: { machineManagers: [manager({ mode: "None" })] } });
    expect(await cluster.conditions()).toMatchObject({
      progressing: { status: "False", reason: "NA", message: "" },
      degraded: { status: "False", reason: "NA", message: "" },
    });
    expect(await cluster.ami("workers")).toBe("ami-us-1");
  });

  test("are those of the sets alone that are selected [boot-images-4]", async () => {
    const partial = { machineResourceSelector: { matchLabels: { update: "yes" } } };
    const cluster = await Cluster.on("GCP", {
      spec: { managedBootImages: { machineManagers: [manager({ mode: "Partial", partial })] } },
    });
    const gcp = (name: string) => ({
      disks: [{ boot: true, image: `projects/rhcos-cloud/global/images/${name}`, sizeGb: 128 }],
      userDataSecret: { name: "worker-user-data-managed" },
    });
    await cluster.bring("1");
    await cluster.machineSet("in", gcp("rhcos-0"), { labels: { update: "yes" } });
    await cluster.machineSet("out", gcp("rhcos-0"));
    expect(await cluster.spec("in")).toEqual(gcp("rhcos-1"));
    expect(await cluster.spec("out")).toEqual(gcp("rhcos-0"));
    expect((await cluster.conditions()).progressing?.message).toBe("Reconciled 1 of 1 MAPI MachineSets");
  });

  test("wait until the cluster's upgrade is over [boot-images-5]", async () => {
    const cluster = await Cluster.on("AWS");
    const { kube } = cluster.harness;
    const upgrade = async (state: string) => {
      await cluster.act(() =>
        kube.apply(
          openshift.ClusterVersion,
          { metadata: { name: "version" }, spec: {}, status: { history: [{ state, version: "1" }] } } as never,
          { owner: "release" },
        ),
      );
      await cluster.harness.pass(5000);
    };
    await upgrade("Partial");
    await cluster.bring("1");
    await cluster.machineSet("workers", aws("ami-us-1"));
    expect(await cluster.ami("workers")).toBe("ami-us-1");
    expect((await cluster.conditions()).progressing).toMatchObject({
      status: "True",
      reason: "WaitingForRelease",
      message: "Reconciled 0 of 1 MAPI MachineSets; 1 wait: the cluster is being upgraded",
    });
    await upgrade("Completed");
    expect(await cluster.ami("workers")).toBe("ami-1");
  });

  test("are given once the machines can read their user data, which is upgraded where that is possible [boot-images-6]", async () => {
    const cluster = await Cluster.on("AWS");
    const secret = (name: string, userData: string) =>
      cluster.act(() =>
        cluster.harness.kube.create(kubernetes.Secret, {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name, namespace: machineNamespace },
          data: { userData: btoa(userData), disableTemplating: btoa("true") },
        }),
      );
    const source = "https://api-int:22623/config/worker";
    await secret(
      "worker-user-data",
      JSON.stringify({ ignition: { version: "2.2.0", config: { append: [{ source }] } } }),
    );
    await secret("broken", "#cloud-config");
    await cluster.bring("1");
    await cluster.machineSet("a", aws("ami-us-1", "worker-user-data"));
    await cluster.machineSet("b", aws("ami-us-1", "broken"));
    await cluster.machineSet("c", aws("ami-us-1", "absent"));
    expect([await cluster.ami("a"), await cluster.ami("b"), await cluster.ami("c")]).toEqual([
      "ami-1",
      "ami-us-1",
      "ami-us-1",
    ]);
    const upgraded = await cluster.act(() =>
      cluster.harness.kube.get(kubernetes.Secret, { name: "worker-user-data", namespace: machineNamespace }),
    );
    expect(JSON.parse(atob(upgraded?.data?.["userData"] ?? ""))).toMatchObject({
      ignition: { version: "3.2.0", config: { merge: [{ source }] } },
    });
    expect(upgraded?.data?.["disableTemplating"]).toBe(btoa("true"));
    expect(upgraded?.metadata.annotations?.[annotations.stubUpgradedTo]).toBe("3.2.0");
    const { degraded } = await cluster.conditions();
    expect(degraded?.message).toContain("MachineSet b: the boot images of the release cannot read the Secret broken");
    expect(degraded?.message).toContain("MachineSet c: the Secret absent with its user data is missing");
  });

  test("a release whose boot images cannot be read is told, and one without keeps the sets as they are [boot-images-7]", async () => {
    const cluster = await Cluster.on("AWS");
    await cluster.machineSet("workers", aws("ami-us-1"));
    const first = await cluster.conditions();
    expect(first.progressing?.message).toContain("the cluster has no ConfigMap coreos-bootimages");
    expect(first.degraded).toMatchObject({ status: "False" });
    await cluster.act(() =>
      cluster.harness.kube.apply(
        kubernetes.ConfigMap,
        { metadata: { name: objects.bootImages, namespace }, data: { stream: "{" } },
        { owner: "release" },
      ),
    );
    await cluster.harness.pass(5000);
    expect((await cluster.conditions()).degraded).toMatchObject({
      status: "True",
      reason: "Failing",
      message: "the ConfigMap coreos-bootimages is not read: its key stream is no JSON",
    });
    await cluster.bring("1");
    expect(await cluster.ami("workers")).toBe("ami-1");
  });

  test.for([
    { code: 500, reason: "InternalError", degraded: "False" },
    { code: 413, reason: "RequestEntityTooLarge", degraded: "True" },
    { code: 409, reason: "Conflict", degraded: "False" },
  ])(
    "of other sets are given where the API server answers $code for one, which is tried again [boot-images-9]",
    async ({ code, reason, degraded }) => {
      const cluster = await Cluster.on("AWS");
      await cluster.bring("1");
      let isBroken = true;
      cluster.harness.intercept = (next) => async (request, signal) =>
        isBroken && request.method === "PATCH" && request.target.includes("/machinesets/a-first")
          ? failed(code, reason)
          : next(request, signal);
      for (const name of ["a-first", "b-second"]) await cluster.machineSet(name, aws("ami-us-1"));
      expect([await cluster.ami("a-first"), await cluster.ami("b-second")]).toEqual(["ami-us-1", "ami-1"]);
      const during = await cluster.conditions();
      expect(during.progressing?.message).toBe("Reconciled 1 of 2 MAPI MachineSets");
      expect(during.progressing).toMatchObject(
        degraded === "True" ? { status: "False" } : { status: "True", reason: "Updating" },
      );
      expect(during.degraded).toMatchObject({ status: degraded });
      if (degraded === "True")
        expect(during.degraded?.message).toContain("MachineSet a-first: its update to ami-1 failed");
      isBroken = false;
      await cluster.harness.pass(120_000);
      expect(await cluster.ami("a-first")).toBe("ami-1");
      expect(await cluster.conditions()).toMatchObject({
        progressing: { status: "False", reason: "Reconciled" },
        degraded: { status: "False" },
      });
    },
  );

  test("of a set with user data of a pool that does not exist stay until it does [boot-images-10]", async () => {
    const cluster = await Cluster.on("AWS");
    await cluster.bring("1");
    await cluster.machineSet("workers", aws("ami-us-1", "infra-user-data-managed"));
    expect(await cluster.ami("workers")).toBe("ami-us-1");
    expect((await cluster.conditions()).degraded?.message).toContain(
      "MachineSet workers: the Secret infra-user-data-managed with its user data is missing",
    );
    await cluster.act(() => cluster.harness.pool("infra"));
    await cluster.harness.pass(5000);
    expect(await cluster.ami("workers")).toBe("ami-1");
  });

  test.for([
    { what: "without MachineSets", platform: "AWS", withApi: false },
    { what: "on another platform", platform: "BareMetal", withApi: true },
  ])("a cluster $what gets no word about them from the controller [boot-images-8]", async ({ platform, withApi }) => {
    const cluster = await Cluster.on(platform, { withApi });
    await cluster.bring("1");
    if (withApi) await cluster.machineSet("workers", aws("ami-us-1"));
    expect((await cluster.conditions()).all.filter(({ type }) => type.startsWith("BootImage"))).toEqual([]);
  });
});
