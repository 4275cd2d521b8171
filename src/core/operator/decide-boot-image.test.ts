import { describe, expect, test } from "vitest";
import type { MachineSet } from "../../api/foreign/openshift.ts";
import { annotations, labels } from "../../api/names.ts";
import { type BootImageFacts, decideBootImage } from "./decide-boot-image.ts";
import { parseBootImageStream } from "./boot-image-stream.ts";

const stream = {
  stream: "rhel-9",
  architectures: {
    x86_64: {
      images: {
        aws: { regions: { "eu-1": { release: "9.6.2", image: "ami-new" }, "us-1": { image: "ami-us" } } },
        gcp: { release: "9.6.2", project: "rhcos-cloud", name: "rhcos-9-6-new" },
      },
    },
    aarch64: { images: { aws: { regions: { "eu-1": { image: "ami-arm" } } } } },
  },
};
function facts(platform: BootImageFacts["platform"], more: Partial<BootImageFacts> = {}): BootImageFacts {
  const read = parseBootImageStream(JSON.stringify(stream));
  if (read.verdict !== "read") throw new Error(read.problem);
  return { platform, images: read.images, isMultiArchitecture: false, architecture: "amd64", ...more };
}

interface Given {
  readonly value?: unknown;
  readonly metadata?: object;
  readonly templateLabels?: Readonly<Record<string, string>>;
  readonly status?: MachineSet["status"];
}
const machineSet = ({ value, metadata, templateLabels, status }: Given = {}): MachineSet => ({
  apiVersion: "machine.openshift.io/v1beta1",
  kind: "MachineSet",
  metadata: { name: "workers", namespace: "openshift-machine-api", resourceVersion: "7", ...metadata },
  spec: {
    template: {
      ...(templateLabels === undefined ? {} : { metadata: { labels: templateLabels } }),
      spec: { providerSpec: { value } },
    },
  },
  ...(status === undefined ? {} : { status }),
});
const aws = (ami: unknown, region = "eu-1") => ({
  kind: "AWSMachineProviderConfig",
  ami,
  instanceType: "m6i.large",
  placement: { region },
  userDataSecret: { name: "worker-user-data" },
});
const gcp = (...images: readonly string[]) => ({
  kind: "GCPMachineProviderSpec",
  disks: [
    { boot: false, image: "projects/x/global/images/data" },
    ...images.map((image) => ({ boot: true, sizeGb: 128, image })),
  ],
});
const vouched = (image: string) => ({ annotations: { [annotations.managedBootImage]: image } });
const value = "/spec/template/spec/providerSpec/value";
const note = `/metadata/annotations/machineconfiguration.openshift.io~1managed-boot-image`;
const publicImage = (name: string) => `projects/rhcos-cloud/global/images/${name}`;

describe("the boot image of a MachineSet", () => {
  test("on AWS becomes the release's AMI for its region, by a patch of the AMI alone [operator-decide-boot-image-1]", () => {
    const before = { id: "ami-old", filters: [{ name: "n" }] };
    expect(decideBootImage(machineSet({ value: aws(before), metadata: vouched("ami-old") }), facts("AWS"))).toEqual({
      verdict: "update",
      from: "ami-old",
      to: "ami-new",
      userData: "worker-user-data",
      operations: [
        { op: "test", path: `${value}/ami`, value: before },
        { op: "replace", path: `${value}/ami`, value: { id: "ami-new" } },
        { op: "add", path: note, value: "ami-new" },
      ],
    });
  });

  test("on GCP becomes the release's image in each boot disk, and in no other disk [operator-decide-boot-image-2]", () => {
    const [old, now] = [publicImage("rhcos-9-4"), publicImage("rhcos-9-6-new")];
    expect(decideBootImage(machineSet({ value: gcp(old, now, old) }), facts("GCP"))).toEqual({
      verdict: "update",
      from: old,
      to: now,
      userData: undefined,
      operations: [
        { op: "test", path: `${value}/disks/1/image`, value: old },
        { op: "test", path: `${value}/disks/3/image`, value: old },
        { op: "replace", path: `${value}/disks/1/image`, value: now },
        { op: "replace", path: `${value}/disks/3/image`, value: now },
        // Without annotations, the set as it was read: nobody else's are lost.
        { op: "test", path: "/metadata/resourceVersion", value: "7" },
        { op: "add", path: "/metadata/annotations", value: { [annotations.managedBootImage]: now } },
      ],
    });
  });

  test.for<{ what: string; given: Given; platform?: BootImageFacts["platform"]; more?: Partial<BootImageFacts> }>([
    { what: "the one of the release", given: { value: aws({ id: "ami-new" }) } },
    { what: "the one of the release on GCP", given: { value: gcp(publicImage("rhcos-9-6-new")) }, platform: "GCP" },
    {
      what: "the one of its own architecture",
      given: {
        value: aws({ id: "ami-arm" }),
        metadata: { annotations: { [annotations.capacityLabels]: "zone=a, kubernetes.io/arch=arm64" } },
      },
      more: { isMultiArchitecture: true },
    },
  ])("stays where it is $what [operator-decide-boot-image-3]", ({ given, platform = "AWS", more }) => {
    expect(decideBootImage(machineSet(given), facts(platform, more)).verdict).toBe("current");
  });

  test("one of the release's other AMIs is replaced by the one of the set [operator-decide-boot-image-4]", () => {
    expect(decideBootImage(machineSet({ value: aws({ id: "ami-us" }) }), facts("AWS"))).toMatchObject({
      verdict: "update",
      to: "ami-new",
    });
  });

  test.for<{ what: string; given: Given; platform?: BootImageFacts["platform"] }>([
    { what: "the release", given: { value: aws({ id: "ami-arm" }) } },
    { what: "its name", given: { value: gcp(publicImage("rhcos-9-4-gcp-aarch64")) }, platform: "GCP" },
  ])(
    "a set of another architecture than the control plane's, which $what says of its image, gets none of that [operator-decide-boot-image-11]",
    ({ given, platform = "AWS" }) => {
      const decision = decideBootImage(machineSet(given), facts(platform));
      expect(["current", "skipped"]).toContain(decision.verdict);
      expect(JSON.stringify(decision)).not.toMatch(/ami-new|x86/);
    },
  );

  test.for<{ what: string; given: Given }>([
    { what: "is deleted", given: { metadata: { deletionTimestamp: "2030-01-01T00:00:00Z" } } },
    { what: "is the cluster API's", given: { status: { authoritativeAPI: "ClusterAPI" } } },
    { what: "has another stream", given: { metadata: { labels: { [labels.osStream]: "rhel-10" } } } },
    { what: "runs Windows", given: { templateLabels: { [labels.osId]: "Windows" } } },
  ])("a set that $what is none of the suite's [operator-decide-boot-image-5]", ({ given }) => {
    expect(decideBootImage(machineSet({ value: aws({ id: "ami-us" }), ...given }), facts("AWS")).verdict).toBe(
      "ignored",
    );
  });

  test.for<{
    what: string;
    given: Given;
    says: string;
    platform?: BootImageFacts["platform"];
    more?: Partial<BootImageFacts>;
  }>([
    {
      what: "that belongs to somebody",
      given: { metadata: { ownerReferences: [{ kind: "MachinePool", name: "p", apiVersion: "v1", uid: "1" }] } },
      says: "belongs to MachinePool p",
    },
    { what: "without an architecture", given: {}, more: { isMultiArchitecture: true }, says: "which architecture" },
    {
      what: "of an unknown control plane",
      given: { value: aws({ id: "ami-old" }) },
      more: { architecture: "vax" },
      says: "of the control plane",
    },
    { what: "without a providerSpec", given: { value: null }, says: "no value" },
    { what: "with an AMI by filters", given: { value: aws({ filters: [] }) }, says: "something else than an id" },
    { what: "with no AMI at all", given: { value: { placement: { region: "eu-1" } } }, says: "something else" },
    { what: "without a region", given: { value: { ami: { id: "ami-us" } } }, says: "no region" },
    {
      what: "in an unknown region",
      given: { value: aws({ id: "ami-us" }, "moon-1") },
      says: "no AMI for x86_64 in moon-1",
    },
    {
      what: "with an unknown AMI",
      given: { value: aws({ id: "ami-mine" }) },
      says: "ami-mine may belong to another user",
    },
    {
      what: "with a disk of somebody's own",
      given: { value: gcp("projects/x/global/images/y") },
      platform: "GCP",
      says: "may belong to another user",
    },
    { what: "without a boot disk", given: { value: gcp() }, platform: "GCP", says: "none of its disks" },
    {
      what: "with disks of another form",
      given: { value: { disks: { boot: true } } },
      platform: "GCP",
      says: "none of its disks",
    },
    {
      what: "that the release has no image for",
      given: {
        value: gcp(publicImage("old")),
        metadata: { annotations: { [annotations.capacityLabels]: "kubernetes.io/arch=arm64" } },
      },
      platform: "GCP",
      says: "no image for aarch64",
    },
  ])(
    "a set $what keeps it, with the reason and what to do [operator-decide-boot-image-6]",
    ({ given, says, platform = "AWS", more }) => {
      const decision = decideBootImage(machineSet({ value: aws({ id: "ami-us" }), ...given }), facts(platform, more));
      expect(decision).toMatchObject({ verdict: "skipped" });
      expect(decision.verdict === "skipped" ? decision.because : "").toContain(says);
      expect(decision.verdict === "skipped" ? decision.remedy : "").not.toBe("");
    },
  );

  test.for(["constructor", "toString", "__proto__"])(
    "%s is no architecture and no region, as it is no name of the release's [operator-decide-boot-image-10]",
    (word) => {
      const named = { annotations: { [annotations.capacityLabels]: `kubernetes.io/arch=${word}` } };
      expect(
        decideBootImage(machineSet({ value: aws({ id: "ami-us" }), metadata: named }), facts("AWS")),
      ).toMatchObject({
        verdict: "refused",
        because: expect.stringContaining(`names an unknown architecture, ${word}`),
      });
      expect(
        decideBootImage(machineSet({ value: aws({ id: "ami-old" }) }), facts("AWS", { architecture: word })),
      ).toMatchObject({ verdict: "skipped", because: "the architecture of the control plane is not known" });
      expect(decideBootImage(machineSet({ value: aws({ id: "ami-us" }, word) }), facts("AWS"))).toMatchObject({
        verdict: "skipped",
        because: `the release has no AMI for x86_64 in ${word}`,
      });
    },
  );

  test("an AMI that an administrator vouches for is replaced, and no other one [operator-decide-boot-image-7]", () => {
    const decide = (metadata: object) =>
      decideBootImage(machineSet({ value: aws({ id: "ami-mine" }), metadata }), facts("AWS"));
    expect(decide(vouched("ami-mine")).verdict).toBe("update");
    expect(decide(vouched("ami-other")).verdict).toBe("skipped");
  });

  test("what somebody sets back is not written again until an administrator says so [operator-decide-boot-image-8]", () => {
    const old = publicImage("rhcos-9-4");
    const decide = (image: string) =>
      decideBootImage(machineSet({ value: gcp(old), metadata: vouched(image) }), facts("GCP"));
    const decision = decide(publicImage("rhcos-9-6-new"));
    expect(decision).toMatchObject({ verdict: "refused" });
    expect(decision.verdict === "refused" ? decision.because : "").toContain(`set it back to ${old}`);
    expect(decide(old).verdict).toBe("update");
  });

  test.for(["", "arch=arm64", "kubernetes.io/arch=vax"])(
    "a set with the capacity labels <%s> is refused [operator-decide-boot-image-9]",
    (written) => {
      const metadata = { annotations: { [annotations.capacityLabels]: written } };
      expect(decideBootImage(machineSet({ value: aws({ id: "ami-us" }), metadata }), facts("AWS")).verdict).toBe(
        "refused",
      );
    },
  );
});

describe("the metadata of a stream", () => {
  test.for<[string | undefined, string]>([
    [undefined, "has no key stream"],
    ["{", "no JSON"],
    ["null", "names no architectures"],
    ["[]", "names no architectures"],
    ['{"architectures":[]}', "names no architectures"],
  ])("%s is refused [operator-boot-image-stream-1]", ([text, says]) => {
    const read = parseBootImageStream(text);
    expect(read.verdict === "refused" ? read.problem : "").toContain(says);
  });

  test("parts of unexpected form count as absent [operator-boot-image-stream-2]", () => {
    const text = JSON.stringify({
      architectures: {
        x86_64: { images: { aws: { regions: { a: null, b: { image: 7 } } }, gcp: { name: "n" } } },
        s390x: 1,
      },
    });
    expect(parseBootImageStream(text)).toEqual({
      verdict: "read",
      images: { x86_64: { amis: {}, gcp: undefined }, s390x: { amis: {}, gcp: undefined } },
    });
  });
});
