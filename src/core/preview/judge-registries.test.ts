import { describe, expect, test } from "vitest";
import type { ImageMirrors } from "../../api/foreign/openshift.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { withRegistryManifests } from "../runtime/registry-objects.ts";
import { isJudgedRegistryKind, judgeRegistryObject, registryManifestProblems } from "./judge-registries.ts";

const object = (kind: string, name: string, spec: object): KubeObject & { readonly spec: object } => ({
  apiVersion: "config.openshift.io/v1",
  kind,
  metadata: { name },
  spec,
});
const digests = (name: string, ...imageDigestMirrors: readonly ImageMirrors[]) =>
  object("ImageDigestMirrorSet", name, { imageDigestMirrors });
const tags = (name: string, ...imageTagMirrors: readonly ImageMirrors[]) =>
  object("ImageTagMirrorSet", name, { imageTagMirrors });
const image = (registrySources: object) => object("Image", "cluster", { registrySources });

const release = `quay.io/openshift/release@sha256:${"a".repeat(64)}`;
const version = Object.assign(object("ClusterVersion", "version", {}), { status: { desired: { image: release } } });
const pools = ["master", "worker"].map(
  (name) => ({ metadata: { name, labels: { [labels.builtInPool]: "" } }, spec: {} }) as unknown as MachineConfigPool,
);

const openshift = { source: "quay.io/openshift", mirrors: ["mirror.example.com/openshift"] };
const team = { source: "quay.io/team", mirrors: ["mirror.example.com/team"] };
const never = { mirrorSourcePolicy: "NeverContactSource" } as const;
/** Mirrors for tags do not help a pull by digest, and the source is not asked. */
const cutting = tags("cutting", { ...openshift, ...never });
const mirrored = digests("mirrored", { ...openshift, ...never });

/** What admission says of a change in a cluster with these objects, as lines. */
function verdictOn(
  change: { readonly before?: KubeObject; readonly after?: KubeObject },
  objects: readonly KubeObject[] | undefined,
): { readonly verdict: string; readonly says: readonly string[] } {
  const registries = withRegistryManifests(objects ?? []);
  const result = judgeRegistryObject(
    { before: change.before, after: change.after },
    objects === undefined
      ? undefined
      : { registries, around: { pools, machineConfigs: [], controllerConfig: undefined } },
  );
  const causes = result.verdict === "refused" ? result.causes.map(({ field, message }) => `${field}: ${message}`) : [];
  return { verdict: result.verdict, says: [...causes, ...result.warnings] };
}

const cutOff = `spec.imageTagMirrors[0].mirrorSourcePolicy: cuts the cluster off from the image of its release, ${release}`;

describe("an object about registries at admission", () => {
  test.for([
    {
      title: "is accepted without a word where it harms nothing",
      change: { after: digests("a", team) },
      objects: [version],
      verdict: "allowed",
      says: [],
    },
    {
      title: "is refused where it leaves no place to pull the release from",
      change: { after: cutting },
      objects: [version],
      verdict: "refused",
      says: [cutOff],
    },
    {
      title: "is refused where it takes away the mirror that was left",
      change: { before: mirrored, after: digests("mirrored", { ...team, ...never }) },
      objects: [version, cutting, mirrored],
      verdict: "refused",
      says: [`ImageTagMirrorSet/cutting: ${cutOff.replace("Policy:", "Policy")}`],
    },
    {
      title: "is deleted with a warning of the same: machines keep what they have",
      change: { before: mirrored },
      objects: [version, cutting, mirrored],
      verdict: "allowed",
      says: [`ImageTagMirrorSet/cutting: ${cutOff.replace("Policy:", "Policy").slice(0, 100)}`],
    },
    {
      title: "is accepted on a cluster that was cut off before, so that it can be corrected in steps",
      change: { after: tags("more", { ...openshift, source: "quay.io/openshift/release", ...never }) },
      objects: [version, cutting],
      verdict: "allowed",
      says: ["spec.imageTagMirrors[0].mirrorSourcePolicy: cuts the cluster off"],
    },
    {
      title: "warns of the image where only mirrors are left",
      change: { after: mirrored },
      objects: [version],
      verdict: "allowed",
      says: [
        `spec.imageDigestMirrors[0].mirrorSourcePolicy: lets machines pull the image of the release, ${release}, only as mirror`,
      ],
    },
    {
      title: "warns of a block that is not one, because the release comes from there",
      change: { after: image({ blockedRegistries: ["quay.io"] }) },
      objects: [version],
      verdict: "allowed",
      says: [
        "spec.registrySources.blockedRegistries[0]: has no effect: quay.io is not blocked, because machines pull the image of the release from there",
      ],
    },
    {
      title: "is refused where a block and NeverContactSource leave no mirror",
      change: { after: cutting },
      objects: [version, image({ blockedRegistries: ["quay.io"] })],
      verdict: "refused",
      says: [cutOff, "Image/cluster: spec.registrySources.blockedRegistries[0] cuts the cluster off"],
    },
    {
      title: "says nothing of a release on a cluster without one",
      change: { after: cutting },
      objects: [],
      verdict: "allowed",
      says: [],
    },
    {
      title: "that contradicts another one is told so, but can be stored: the other one may be changed next",
      change: { after: tags("b", { ...team, ...never }) },
      objects: [digests("a", team)],
      verdict: "allowed",
      says: [
        "spec.imageTagMirrors[0].mirrorSourcePolicy: must be the same in every rule for quay.io/team; ImageDigestMirrorSet/a spec.imageDigestMirrors[0] says otherwise",
      ],
    },
    {
      title: "is told of the same, with what to do, where the other one forbids",
      change: { after: digests("a", team) },
      objects: [tags("b", { ...team, ...never })],
      verdict: "allowed",
      says: [
        "spec.imageDigestMirrors[0].mirrorSourcePolicy: must be the same in every rule for quay.io/team; ImageTagMirrorSet/b spec.imageTagMirrors[0] says otherwise; write NeverContactSource here, or AllowContactingSource there",
      ],
    },
    {
      title: "is told that a block leaves its mirrors without effect",
      change: { after: digests("a", team) },
      objects: [image({ blockedRegistries: ["quay.io"] })],
      verdict: "allowed",
      says: [
        "spec.imageDigestMirrors[0].source: has no effect: machines refuse images of quay.io/team, from mirrors as well, because Image/cluster spec.registrySources.blockedRegistries[0] blocks quay.io; take the block out",
      ],
    },
    {
      title: "is told what its block does to mirrors of another object",
      change: { after: image({ blockedRegistries: ["mirror.example.com"] }) },
      objects: [digests("a", team)],
      verdict: "allowed",
      says: [
        "ImageDigestMirrorSet/a: spec.imageDigestMirrors[0].mirrors[0] is never asked: Image/cluster spec.registrySources.blockedRegistries[0] blocks mirror.example.com; take the mirror out, or the block",
      ],
    },
    {
      title: "that is wrong by itself is refused, whether the cluster is known",
      change: { after: digests("a", { source: "quay.io/a", mirrors: ["quay.io/a", "m.example.com/a"], ...never }) },
      objects: undefined,
      verdict: "refused",
      says: ["spec.imageDigestMirrors[0].mirrorSourcePolicy: must not be NeverContactSource where the source is one"],
    },
    {
      title: "that was stored with a fault can be changed elsewhere",
      change: {
        before: digests("a", { source: "quay.io/a", mirrors: ["quay.io/a", "m.example.com/a"], ...never }),
        after: digests("a", { source: "quay.io/a", mirrors: ["quay.io/a", "m.example.com/a"], ...never }, team),
      },
      objects: undefined,
      verdict: "allowed",
      says: [],
    },
  ])("$title [judge-registries-1]", ({ change, objects, verdict, says }) => {
    const result = verdictOn(change, objects);
    expect(result).toEqual({
      verdict,
      says: says.map((text) => expect.stringContaining(text) as string),
    });
  });

  test("of the kinds that are asked about: an image of the image API is none of them [judge-registries-2]", () => {
    expect(isJudgedRegistryKind({ group: "config.openshift.io", kind: "Image" })).toBe(true);
    expect(isJudgedRegistryKind({ group: "operator.openshift.io", kind: "ImageContentSourcePolicy" })).toBe(true);
    expect(isJudgedRegistryKind({ group: "config.openshift.io", kind: "ClusterImagePolicy" })).toBe(true);
    expect(isJudgedRegistryKind({ group: "image.openshift.io", kind: "Image" })).toBe(false);
    expect(isJudgedRegistryKind(undefined)).toBe(false);
  });
});

test("manifests are judged with each other, by the release among them [judge-registries-3]", () => {
  const found = registryManifestProblems([version, cutting, digests("a", team), tags("b", { ...team, ...never })]);
  expect([...found.keys()]).toEqual(["ImageTagMirrorSet/b", "ImageDigestMirrorSet/a"]);
  const cut = registryManifestProblems([version, cutting]);
  expect(cut.get("ImageTagMirrorSet/cutting")).toMatchObject([
    { severity: "error", path: "spec.imageTagMirrors[0].mirrorSourcePolicy" },
  ]);
  expect(registryManifestProblems([cutting]).size).toBe(0);
  const only = registryManifestProblems([version, mirrored]).get("ImageDigestMirrorSet/mirrored");
  expect(only).toMatchObject([{ severity: "warning" }]);
});

test("an object with thousands of errors is refused with the first of them [judge-registries-4]", () => {
  const wrong = { source: "Not a repository", mirrors: [`not one ${"x".repeat(2000)}`] };
  const result = judgeRegistryObject(
    { before: undefined, after: digests("a", ...Array<typeof wrong>(20_000).fill(wrong)) },
    undefined,
  );
  if (result.verdict !== "refused") throw new Error(result.verdict);
  expect(result.causes).toHaveLength(100);
  expect(result.message).toMatch(/; and 39900 more$/);
  expect(result.message.length).toBeLessThan(128 * 1024);
});

test("the largest objects of registries get a verdict with the first of their problems, whatever the number of them [judge-registries-5]", () => {
  const entries = Array.from({ length: 390_000 }, () => "*");
  const blocked = verdictOn({ after: image({ blockedRegistries: entries }) }, undefined);
  expect(blocked.verdict).toBe("refused");
  expect(blocked.says[0]).toContain("spec.registrySources.blockedRegistries[0]");
  const mirrors = verdictOn({ after: digests("a", { source: "a.example.com", mirrors: entries }) }, undefined);
  expect(mirrors.verdict).toBe("refused");
  expect(mirrors.says[0]).toContain("spec.imageDigestMirrors[0].mirrors[0]");
  const many = Array.from({ length: 70_000 }, (_, i) => ({ source: "a.example.com", ...(i === 0 ? never : {}) }));
  expect(verdictOn({ after: digests("a", ...many) }, undefined).verdict).toBe("refused");
});
