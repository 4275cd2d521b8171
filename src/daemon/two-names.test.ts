import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nodeStates } from "../api/names.ts";
import type { Originals } from "../core/machine/observed-content.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";
import { wantsAll } from "../../test/support/how-much.ts";

const folderLinks = { "/usr/local": "/var/usrlocal", "/home": "/var/home", "/srv/data": "/var/data" };
const make = () => MachineHarness.make({ folderLinks });
const [byLink, byPlace] = ["/usr/local/bin/x", "/var/usrlocal/bin/x"] as const;

/** Files that configurations bring, by where they lie. */
const contentOf = (harness: MachineHarness) =>
  Object.fromEntries([...harness.host.snapshot()].filter(([path]) => /^\/var\/(usrlocal|data)\//.test(path)));

describe("one file of a machine by two names", () => {
  test("in one configuration is refused before the machine is touched, and taking it back ends it [daemon-two-names-1]", async () => {
    const harness = await make();
    await harness.updatedTo("rendered-1", {});
    harness.effects.length = 0;
    harness.reboots.length = 0;
    await harness.config("rendered-2", { files: { [byLink]: "one", [byPlace]: "other" } });
    await harness.desire("rendered-2");
    const said = await harness.untilState(nodeStates.unreconcilable);
    expect(said).toContain(`${byLink}: is the same file as ${byPlace} on this machine`);
    await harness.pass(3_600_000);
    expect(harness.effects).toEqual([]);
    expect(harness.reboots).toEqual([]);
    await harness.config("rendered-3", {});
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    expect(contentOf(harness)).toEqual({});
  });

  test("in one after the other is one file, whose original is what was there before both [daemon-two-names-2]", async () => {
    const names = [byLink, byPlace, "/srv/data/y", "/var/data/y"] as const;
    const layout: fc.Arbitrary<Content> = fc
      .tuple(
        fc.constantFrom(undefined, ...names.slice(0, 2)),
        fc.constantFrom(undefined, ...names.slice(2)),
        fc.constantFrom("one", "other"),
      )
      .map(([x, y, text]) => ({
        files: Object.fromEntries([x, y].flatMap((path) => (path === undefined ? [] : [[path, text]]))),
      }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(layout, { minLength: 2, maxLength: 4 }),
        fc.array(fc.nat({ max: 20 }), { minLength: 4, maxLength: 4 }),
        async (layouts, kills) => {
          const harness = await make();
          await harness.put("/var/data/y", "somebody's");
          await harness.updatedTo("rendered-0", {});
          const before = contentOf(harness);
          for (const [index, content] of [...layouts, {}].entries()) {
            const name = `rendered-${index + 1}`;
            harness.reboots.length = 0;
            harness.countEffectsFromHere();
            harness.killAt = { effect: kills[index] ?? 0, when: "after" };
            await harness.config(name, content);
            await harness.desire(name);
            await harness.untilDone(name);
            expect(harness.reboots.length).toBeLessThanOrEqual(1);
            for (const [path, text] of Object.entries(content.files ?? {})) expect(await harness.file(path)).toBe(text);
          }
          expect(contentOf(harness)).toEqual(before);
        },
      ),
      { numRuns: wantsAll ? 400 : 12 },
    );
  });

  test("of which an earlier release recorded each as the other's original is gone with both [daemon-two-names-3]", async () => {
    const harness = await make();
    await harness.updatedTo("rendered-1", { files: { [byPlace]: "other" } });
    const originals = await harness.ledgerDocument<Originals & { v: number }>("originals.json");
    const entry = { kind: "file", contents: "b3RoZXI=", digest: "", mode: 0o644, uid: 0, gid: 0 } as const;
    harness.kill();
    await harness.host.ledger.write(
      "originals.json",
      JSON.stringify({ ...originals, paths: { [byPlace]: entry, [byLink]: null } }),
      new AbortController().signal,
    );
    harness.start();
    harness.reboots.length = 0;
    await harness.config("rendered-2", {});
    await harness.desire("rendered-2");
    await harness.untilDone("rendered-2");
    expect(contentOf(harness)).toEqual({});
    expect(harness.reboots).toHaveLength(1);
  });
});
