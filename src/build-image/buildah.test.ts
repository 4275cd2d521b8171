import { describe, expect, test } from "vitest";
import { renderContainerfile, stepsOfContainerfile } from "../core/build/build-containerfile.ts";
import { readsHeredocs, stepFollower, storeArguments, timeArguments } from "./buildah.ts";

const rendered = (custom: string) =>
  renderContainerfile({
    base: "quay.example/os@sha256:1",
    extensions: ["usbguard"],
    kernelType: "default",
    extensionsImage: "quay.example/ext@sha256:2",
    custom,
    configsHoldConfiguration: true,
    hasTrust: true,
  });

describe("what buildah says that it does", () => {
  test("is followed through the instructions, over stages that it leaves out and names that it replaces", () => {
    const steps = stepsOfContainerfile(
      rendered("FROM configs AS tools\nRUN a\nFROM os AS final\nRUN a && \\\n    b\nCOPY x /x\n"),
    );
    const stepAt = stepFollower(steps);
    const told = (line: string) => stepAt(line);
    expect(told("[1/4] STEP 1/3: FROM quay.example/os@sha256:1 AS os")).toBe("pull-base");
    expect(
      told(
        "[1/4] STEP 2/3: COPY openshift-config-user-ca-bundle.crt /etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
      ),
    ).toBe("ca");
    const install = steps.find(({ instruction }) => instruction.includes("rpm-ostree install"))?.instruction ?? "";
    expect(told(`[1/4] STEP 3/3: ${install.replaceAll(/\s+/g, " ")}`)).toBe("extensions");
    expect(told("installed 12 packages")).toBeUndefined();
    expect(told("[4/4] STEP 2/3: RUN a &&     b")).toBe("user:4");
    expect(told("[4/4] STEP 3/3: COPY x /x")).toBe("user:5");
  });
});

test("each version gets options that it supports", () => {
  expect([readsHeredocs([1, 28]), readsHeredocs([1, 33]), readsHeredocs([2, 0])]).toEqual([false, true, true]);
  expect(timeArguments([1, 28], 7)).toEqual(["--timestamp", "7"]);
  expect(timeArguments([1, 41], 7)).toEqual(["--source-date-epoch", "7", "--rewrite-timestamp"]);
  expect(storeArguments({ folder: "/c", driver: "vfs" })).toEqual([
    "--root",
    "/c/root",
    "--runroot",
    "/c/run",
    "--storage-driver",
    "vfs",
  ]);
});
