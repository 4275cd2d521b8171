import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseUnit } from "../../../src/ignition/parse-unit.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { freeUnits } from "./grammar.ts";
import { mutated } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(600, 10_000);

const units = mutated(
  fc.constantFrom(
    "[Unit]\nDescription=a\n\n[Service]\nExecStart=/bin/true \\\n  --x\n\n[Install]\nWantedBy=multi-user.target\n",
    "# comment \\\ngoes on\n[Socket]\nListenStream=80\n[Install]\n",
    `[A]\nb=${"c".repeat(2030)}\n[D]\ne=f\n`,
    `[A]\r\nb=c\r\n${"# x\n".repeat(1200)}[D]\r\ne=f`,
    `[A]\n${"b=c\n".repeat(1100)}d=${"é".repeat(1030)}\n`,
    "",
  ),
  [
    "[",
    "]",
    "=",
    "\n",
    "\r",
    "\r\n",
    "\\",
    "\\\n",
    "\\ \n",
    "#",
    ";",
    " ",
    "\t",
    "\u00a0",
    "\u0085",
    "\u2028",
    "\u0000",
    "é",
    "\u{1f600}",
    "\ufeff",
    "[X]\n",
    "[]\nk=v\n",
    "k\n",
    "=v\n",
    "x".repeat(2048),
    "y".repeat(2100),
    "\n".repeat(50),
  ],
);

/** No section with a meaning has a long name, or one beyond ASCII: ours keeps 200 bytes of a name, as bytes. */
const shortened = (section: string) => Buffer.from(section).subarray(0, 200).toString("latin1");

/** Units of configurations: Ignition reads them with go-systemd before it writes them. */
describe.skipIf(program === undefined)("systemd units, as go-systemd reads them", () => {
  let go: GoReaders;

  beforeAll(() => {
    go = startGoReaders(program ?? "");
  });
  afterAll(() => go.close());

  async function compare(texts: fc.Arbitrary<string>) {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(texts, async (unit) => {
        const ours = parseUnit(unit);
        const { sections, error } = await go.ask("unit", unit.toWellFormed());
        expect(ours.verdict === "parsed" ? [...ours.sections] : undefined).toEqual(
          error === undefined ? [...new Set((sections ?? []).map(shortened))] : undefined,
        );
        read += ours.verdict === "parsed" ? 1 : 0;
      }),
      sample,
    );
    expect(read).toBeGreaterThan(sample.numRuns / 20);
  }

  test("both read the same units, with the same sections [readers-unit-1]", { timeout: 300_000 }, () => compare(units));

  test("so do they where each line is written freely [readers-unit-2]", { timeout: 300_000 }, () =>
    compare(freeUnits()),
  );
});
