import { expect, test } from "vitest";
import { explainInternalReleaseImage } from "./explain-internal-release-image.ts";

const bundle = "ocp-release-bundle-4.20.0-x86_64";
const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const object = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "InternalReleaseImage",
  metadata: { name: "cluster" },
  spec: { releases: [{ name: bundle }] },
  status: { releases: [{ name: bundle, image: `localhost:22625/openshift/release@${digest("1")}` }] },
};
const running = (image: string) => ({
  apiVersion: "config.openshift.io/v1",
  kind: "ClusterVersion",
  metadata: { name: "version" },
  status: { desired: { image } },
});

test("it says that no machine changes, what to do instead, and whether it can be deleted [explain-internal-release-image-1]", () => {
  const explained = (image: string) => explainInternalReleaseImage(object, running(image), 0);
  const guarded = explained(`quay.io/release@${digest("1")}`);
  expect(guarded.reason).toBe("Guarded");
  expect(guarded.headline).toContain(`it cannot be deleted while the cluster runs ${bundle}`);
  expect(guarded.todo).toEqual([expect.stringContaining("ImageDigestMirrorSet")]);
  expect(guarded.sections.find(({ title }) => title === "Bundles")?.lines).toEqual([bundle]);
  expect(explained(`quay.io/release@${digest("2")}`).reason).toBe("Stored");
  // A release by tag is no release that is known.
  expect(explained("quay.io/release:4.20").reason).toBe("Stored");
  const { status: _, ...fresh } = object;
  expect(explainInternalReleaseImage(fresh, undefined, 0)).toMatchObject({ reason: "Stored" });
});
