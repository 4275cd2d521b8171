import { expect, test } from "vitest";
import { systemClock } from "../../src/ports/node/index.ts";
import { seededRandom } from "../simulation/kernel.ts";
import { type Content, unitText } from "./contents.ts";
import type { Violation } from "./invariants.ts";
import { KilledMachine } from "./killed-machine.ts";

/** `KILLS=n`: the number of kills; `SEED=n`: other points in time. */
const kills = Number(process.env["KILLS"] ?? (process.env["MCO_LONG"] === undefined ? 15 : 40));
const seed = Number(process.env["SEED"] ?? 1);

/** Contents of many files, and in turn something that reloads, restarts, or reboots. */
function contentOf(round: number): Content {
  const version = (every: number) => String(Math.floor(round / every));
  return {
    files: {
      ...Object.fromEntries(
        Array.from({ length: 10 }, (_, index) => [`/etc/quiet/${(round + index) % 14}`, `${round}`]),
      ),
      "/etc/containers/registries.conf": Array.from(
        { length: 1 + (Math.floor(round / 3) % 10) },
        (_, index) => `[[registry]]\nprefix = "${index}.example"\nlocation = "${index}.example"\n`,
      ).join(""),
      "/etc/app/reboots": version(4),
    },
    units: [{ name: "app.service", contents: unitText(`app-${version(2)}`), enabled: true }],
    kernelArguments: [`round=${version(8)}`],
  };
}

test(
  `a daemon that is killed ${kills} times leaves no machine between two configurations`,
  { timeout: 60_000 + kills * 5000 },
  async () => {
    const random = seededRandom(seed);
    const mixed: Violation[] = [];
    const machine = await KilledMachine.start(random);
    try {
      await machine.converged(await machine.target(contentOf(0)));
      for (let round = 1; machine.counts.kills < kills; round += 1) {
        const target = await machine.target(contentOf(round));
        // Several kills on the way to one target, each at another time; the times are part of the test.
        for (let left = 1 + Math.floor(random.next() * 4); left > 0 && machine.counts.kills < kills; left -= 1) {
          await systemClock.sleep(random.next() * 350);
          await machine.kill();
        }
        // Some targets are replaced before they are reached.
        if (random.next() < 0.7) await machine.converged(target);
      }
      const last = await machine.target(contentOf(9999));
      await machine.converged(last);
      await machine.untilReported(last);
      await machine.keeper.after();
      mixed.push(...machine.keeper.violations);
      // The check finds a machine between two configurations.
      await machine.subject.host.files.write(
        [{ path: "/etc/quiet/0", entry: { kind: "link", target: "/etc/elsewhere" } }],
        machine.never,
      );
      await machine.keeper.after();
      expect(machine.keeper.violations.length).toBeGreaterThan(mixed.length);
    } finally {
      await machine.close();
    }
    const { counts, keeper } = machine;
    const secrets = keeper.violations.filter(({ invariant }) => invariant === "secrets");
    process.stdout.write(
      `real kills: ${counts.kills} kills, ${counts.targets} targets, ${counts.reboots} reboots (${counts.cutReboots} of them cut short), ${counts.cuts} power cuts, ${counts.wentBack} times gone back, ${keeper.checks.whole ?? 0} whole and ${keeper.checks.named ?? 0} unfinished machines seen, ${mixed.length} mixed\n`,
    );
    expect([...mixed, ...secrets]).toEqual([]);
  },
);
