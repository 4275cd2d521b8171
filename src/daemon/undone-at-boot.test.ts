import fc from "fast-check";
import { expect, test } from "vitest";
import { annotations, nodeStates } from "../api/names.ts";
import { mostReboots } from "../core/machine/plan-node.ts";
import { MachineHarness } from "../../test/support/machine-harness.ts";
import { wantsAll } from "../../test/support/how-much.ts";

const paths = ["/etc/a.conf", "/etc/b.conf", "/etc/c.d/c.conf"] as const;
type Path = (typeof paths)[number];

/** What a service of the machine does to a file when it boots. */
interface Undone {
  readonly path: Path;
  readonly how: "writes" | "opens" | "removes";
  /** At so many boots. */
  readonly boots: number;
}

const undone: fc.Arbitrary<Undone> = fc.record({
  path: fc.constantFrom(...paths),
  how: fc.constantFrom("writes", "opens", "removes"),
  boots: fc.constantFrom(1, 2, 3, 50),
});

async function act(harness: MachineHarness, { path, how }: Undone): Promise<void> {
  // It has nothing to do with what is not there.
  if ((await harness.file(path)) === undefined) return;
  if (how === "removes") await harness.host.files.remove(path, new AbortController().signal);
  else await harness.put(path, how === "writes" ? "of a service" : "new", how === "opens" ? 0o666 : 0o644);
}

test("a machine that undoes its target at boot reboots three times at most, says so, and every way back is open [daemon-undone-1]", async () => {
  const harness = await MachineHarness.make();
  await harness.updatedTo("rendered-1", { files: { "/etc/a.conf": "old" } });
  const before = harness.host.snapshot();
  let round = 1;
  await fc.assert(
    fc.asyncProperty(fc.array(undone, { maxLength: 3 }), async (services) => {
      round += 1;
      const [target, back] = [`rendered-${round}`, `rendered-${round}-back`];
      let boots = 0;
      harness.atBoot = async () => {
        boots += 1;
        for (const service of services) if (boots <= service.boots) await act(harness, service);
      };
      harness.reboots.length = 0;
      await harness.config(target, { files: Object.fromEntries(paths.map((path) => [path, "new"])) });
      await harness.desire(target);
      const lasts = Math.max(0, ...services.map((service) => service.boots));
      if (lasts < mostReboots) await harness.untilDone(target);
      else {
        expect(await harness.untilState(nodeStates.degraded)).toMatch(/^after 3 reboots for .* differs? from it again/);
        expect(await harness.condition("NodeDegraded")).toBe("True BootUndoes");
        expect(harness.facts.boots.size).toBeGreaterThan(mostReboots);
        // Nothing more happens, however long it is waited.
        await harness.pass(3_600_000);
      }
      expect(harness.reboots.length).toBeLessThanOrEqual(mostReboots);
      await harness.config(back, { files: { "/etc/a.conf": "old" } });
      harness.atBoot = async () => {
        for (const service of services) if (service.path !== "/etc/a.conf") await act(harness, service);
      };
      await harness.desire(back);
      await harness.untilDone(back);
      expect(await harness.annotation(annotations.state)).toBe(nodeStates.done);
      expect(contentOf(harness.host.snapshot())).toEqual(contentOf(before));
    }),
    { numRuns: wantsAll ? 200 : 12 },
  );
});

/** Of the machine's files, those that configurations name. */
const contentOf = (snapshot: ReadonlyMap<string, string>) =>
  Object.fromEntries(paths.map((path) => [path, snapshot.get(path)]));
