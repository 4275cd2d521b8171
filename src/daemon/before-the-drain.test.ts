import { describe, expect, test } from "vitest";
import { nodeStates } from "../api/names.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";

describe("what no machine takes is refused before the machine is touched, and taking it back ends it", () => {
  test.for<{ title: string; content: Content; says: string }>([
    {
      title: "a file below /usr",
      content: { files: { "/usr/lib/sysctl.d/99-x.conf": "1", "/etc/y": "1" } },
      says: "/usr/lib/sysctl.d/99-x.conf: is below /usr, which machines cannot write: only an OS image holds it; use a path below /etc or /usr/local",
    },
    {
      title: "a file below /usr by another name",
      content: { files: { "/lib/x.conf": "1" } },
      says: "/lib/x.conf: is below /usr",
    },
    {
      title: "an OS image by tag",
      content: { spec: { osImageURL: "registry.example/os:latest" } },
      says: 'spec.osImageURL: "registry.example/os:latest" is a tag, which can come to mean another image: machines take an OS image by its digest only; name it by its digest',
    },
  ])("$title [daemon-before-drain-1]", async ({ content, says }) => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", {});
    harness.effects.length = 0;
    harness.reboots.length = 0;
    await harness.config("rendered-2", content);
    await harness.desire("rendered-2");
    expect(await harness.untilState(nodeStates.unreconcilable)).toContain(says);
    await harness.pass(3_600_000);
    expect(harness.effects).toEqual([]);
    expect(harness.reboots).toEqual([]);
    await harness.config("rendered-3", { files: { "/etc/y": "1" } });
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    expect(await harness.file("/etc/y")).toBe("1");
  });
});
