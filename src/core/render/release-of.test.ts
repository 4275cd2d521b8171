import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { releaseOf, withRelease } from "./release-of.ts";

const before = {
  baseOSContainerImage: "os@sha256:1",
  baseOSExtensionsContainerImage: "extensions@sha256:1",
} as ControllerConfig["spec"];

describe("the OS image of a release", () => {
  test.for([
    {
      title: "is what its ConfigMap names",
      data: { releaseVersion: "2", baseOSContainerImage: "os@sha256:2" },
      has: before,
      is: { verdict: "known", images: { baseOSContainerImage: "os@sha256:2", baseOSExtensionsContainerImage: "" } },
    },
    {
      title: "needs no version",
      data: { baseOSContainerImage: "os@sha256:2", baseOSExtensionsContainerImage: "e" },
      has: undefined,
      is: { verdict: "known", images: { baseOSContainerImage: "os@sha256:2", baseOSExtensionsContainerImage: "e" } },
    },
    {
      title: "stays what it was while another version's is there",
      data: { releaseVersion: "3", baseOSContainerImage: "os@sha256:3" },
      has: before,
      is: {
        verdict: "ahead",
        images: { baseOSContainerImage: "os@sha256:1", baseOSExtensionsContainerImage: "extensions@sha256:1" },
      },
    },
    {
      title: "is waited for on a cluster that has none yet",
      data: { releaseVersion: "3", baseOSContainerImage: "os@sha256:3" },
      has: undefined,
      is: { verdict: "unknown", lasting: false },
    },
    {
      title: "must be named",
      data: { releaseVersion: "2", baseOSContainerImage: "" },
      has: before,
      is: { verdict: "unknown", lasting: true },
    },
    { title: "has a ConfigMap", data: undefined, has: before, is: { verdict: "unknown", lasting: true } },
  ])("$title [render-release-of-1]", ({ data, has, is }) => {
    expect(releaseOf(data, "2", has)).toMatchObject(is);
  });

  test("in a plan is what the ControllerConfig would say, and nothing where the ConfigMap does not name one [render-release-of-2]", () => {
    const config = {
      apiVersion: "v1",
      kind: "ControllerConfig",
      metadata: { name: "c" },
      spec: before,
    } as ControllerConfig;
    expect(withRelease(config, { baseOSContainerImage: "os@sha256:2" }).spec).toEqual({
      baseOSContainerImage: "os@sha256:2",
    });
    expect(withRelease(config, { releaseVersion: "2" })).toBe(config);
  });
});
