import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { annotations, nodeStates } from "../api/names.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";
import { wantsAll } from "../../test/support/how-much.ts";

const unit = "a.service";
const dropinFolder = `/etc/systemd/system/${unit}.d`;
/** No two in one list contain each other. */
const layouts: readonly Content[] = [
  {},
  { files: { "/etc/p": "file" } },
  { files: { "/etc/p/q": "below" } },
  { files: { "/etc/p/q/r": "deep", "/etc/p/s": "beside" } },
  { files: { [dropinFolder]: "file" } },
  { units: [{ name: unit, dropins: [{ name: "10-x.conf", contents: "[Service]\n" }] }] },
  { files: { "/etc/p": "file", [`${dropinFolder}/20-y.conf`]: "[Service]\n" } },
];

const contentOf = (harness: MachineHarness) =>
  Object.fromEntries(
    [...harness.host.snapshot()].filter(([path]) => path.startsWith("/etc/p") || path.startsWith(dropinFolder)),
  );

describe("paths that contain each other in two configurations", () => {
  test("replace each other in every order, whenever the daemon is killed, and leave nothing behind [daemon-paths-1]", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...layouts), { minLength: 2, maxLength: 4 }),
        fc.array(fc.nat({ max: 25 }), { minLength: 4, maxLength: 4 }),
        fc.boolean(),
        async (contents, kills, isAfter) => {
          const harness = await MachineHarness.make();
          await harness.updatedTo("rendered-0", {});
          for (const [index, content] of [...contents, {}].entries()) {
            const name = `rendered-${index + 1}`;
            harness.countEffectsFromHere();
            harness.killAt = { effect: kills[index] ?? 0, when: isAfter ? "after" : "before" };
            await harness.config(name, content);
            await harness.desire(name);
            await harness.untilDone(name);
            for (const [path, text] of Object.entries(content.files ?? {})) expect(await harness.file(path)).toBe(text);
          }
          expect(contentOf(harness)).toEqual({});
        },
      ),
      { numRuns: wantsAll ? 400 : 15 },
    );
  });

  test("are taken back before the first one is complete [daemon-paths-2]", async () => {
    for (const [index, first] of layouts.entries())
      for (const second of layouts.slice(index + 1)) {
        const harness = await MachineHarness.make();
        await harness.updatedTo("rendered-1", first);
        const before = contentOf(harness);
        await harness.config("rendered-2", second);
        await harness.config("rendered-3", first);
        await harness.desire("rendered-2");
        await harness.until(async () => harness.effects.includes("files.write") || second === layouts[0], "a write");
        await harness.desire("rendered-3");
        await harness.untilDone("rendered-3");
        expect(contentOf(harness)).toEqual(before);
      }
  });

  test.for([
    { title: "a file of the system above an entry", at: "/etc/p", wanted: "/etc/p/q", says: "/etc/p is a file" },
    { title: "a folder of somebody with files", at: "/etc/p/other", wanted: "/etc/p", says: "is a folder" },
  ])(
    "$title is refused before the machine is touched, and taking back ends it [daemon-paths-3]",
    async ({ at, wanted, says }) => {
      const harness = await MachineHarness.make();
      await harness.updatedTo("rendered-1", {});
      await harness.put(at, "somebody's");
      harness.effects.length = 0;
      await harness.config("rendered-2", { files: { [wanted]: "ours" } });
      await harness.desire("rendered-2");
      expect(await harness.untilState(nodeStates.unreconcilable)).toContain(says);
      expect(harness.effects).toEqual([]);
      await harness.desire("rendered-1");
      await harness.untilDone("rendered-1");
      expect(await harness.annotation(annotations.state)).toBe(nodeStates.done);
      expect(await harness.file(at)).toBe("somebody's");
    },
  );

  test.for([
    { title: "a file of the system above an entry", at: "/etc/p", wanted: "/etc/p/q" },
    { title: "a folder of somebody", at: "/etc/p/other", wanted: "/etc/p" },
  ])("$title goes by hand, and the machine goes on by itself [daemon-paths-4]", async ({ at, wanted }) => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", {});
    await harness.put(at, "somebody's");
    await harness.config("rendered-2", { files: { [wanted]: "ours" } });
    await harness.desire("rendered-2");
    await harness.untilState(nodeStates.unreconcilable);
    await harness.host.files.remove(at, new AbortController().signal);
    await harness.untilDone("rendered-2");
    expect(await harness.file(wanted)).toBe("ours");
  });
});
