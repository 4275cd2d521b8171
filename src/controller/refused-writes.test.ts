import { describe, expect, test } from "vitest";
import { WriteFaults } from "./refused-writes.ts";

const minute = 60_000;
const object = { name: "w0", kind: "Node" } as const;
const other = { name: "w1", kind: "Node" } as const;

/** Whose failures of `object` are, in passes at these minutes. `others`: a write of another object succeeds before each. */
function failing(
  minutes: readonly number[],
  { others = true, between = () => undefined }: { others?: boolean; between?: (faults: WriteFaults) => void } = {},
): { readonly faults: WriteFaults; readonly verdicts: readonly string[] } {
  const faults = new WriteFaults();
  const verdicts = minutes.map((at) => {
    faults.begin();
    between(faults);
    const verdict = faults.failed(object, new Error("refused"), at * minute);
    if (others) faults.wrote(other);
    return verdict;
  });
  return { faults, verdicts };
}

describe("failures of one machine's writes", () => {
  test.for([
    {
      title: "three within ten minutes are its own",
      minutes: [0, 4, 8, 9],
      verdicts: ["later", "later", "own", "own"],
    },
    { title: "each expires by itself", minutes: [0, 5, 11, 14], verdicts: ["later", "later", "later", "own"] },
    {
      title: "two in ten minutes may be races",
      minutes: [0, 9, 18, 27],
      verdicts: ["later", "later", "later", "later"],
    },
  ])("$title [refused-writes-1]", ({ minutes, verdicts }) => {
    expect(failing(minutes).verdicts).toEqual(verdicts);
  });

  test("count whatever of it succeeds in between, which is no write of others [refused-writes-2]", () => {
    const between = (faults: WriteFaults) => faults.wrote(object);
    const minutes = [0, 1, 2, 3];
    expect(failing(minutes, { between }).verdicts).toEqual(["later", "later", "own", "own"]);
    expect(failing(minutes, { between, others: false }).verdicts).toEqual(["later", "later", "later", "later"]);
  });

  test("stay its own while they go on and nobody else has anything to write [refused-writes-3]", () => {
    const { faults } = failing([0, 1, 2]);
    for (let at = 3; at < 60; at += 1) {
      faults.begin();
      if (at % 3 === 0) faults.wrote(object);
      expect(faults.failed(object, new Error("refused"), at * minute)).toBe("own");
      faults.end();
    }
  });

  test("delay the next attempt, until one succeeds [refused-writes-4]", () => {
    const { faults } = failing([0, 1, 2]);
    expect(faults.rests(object, 2.5 * minute)).toBe(true);
    expect(faults.rests(object, 3.5 * minute)).toBe(false);
    faults.wrote(object);
    expect(faults.rests(object, 2.5 * minute)).toBe(false);
  });

  test("that are ten minutes old are forgotten, of machines that are gone, too [refused-writes-5]", () => {
    const faults = new WriteFaults();
    for (let at = 0; at < 100; at += 1) {
      faults.begin();
      faults.failed({ name: `gone-${at}`, kind: "Node" }, new Error("refused"), at * minute);
    }
    expect(faults.size).toBe(10);
  });

  test("of all objects of one kind are the API server's, until it takes one of them [refused-writes-6]", () => {
    const faults = new WriteFaults();
    const names = ["w0", "w1", "w2", "w3"];
    const of = (name: string) => ({ name, kind: "MachineConfigNode" }) as const;
    /** A pass in which every Node is written, and these MachineConfigNodes. It ends where the API server fails at everything. */
    const pass = (at: number, taken: readonly string[] = []) => {
      faults.begin();
      const verdicts: string[] = [];
      for (const name of names) {
        faults.wrote({ name, kind: "Node" });
        if (taken.includes(name)) faults.wrote(of(name));
        else verdicts.push(faults.failed(of(name), new Error("500"), at * minute));
        if (verdicts.at(-1) === "now") break;
      }
      return verdicts;
    };
    for (let at = 0; at < 6; at += 1) expect(pass(at)).not.toContain("own");
    expect(pass(6)).toEqual(["later", "later", "later", "later"]);
    expect(() => faults.end()).toThrow("500");

    pass(7, ["w3"]);
    expect(pass(8, ["w3"])).toEqual(["own", "own", "own"]);
    expect(() => faults.end()).not.toThrow();
  });

  test("of everything end the pass [refused-writes-7]", () => {
    const faults = new WriteFaults();
    for (let at = 0; at < 4; at += 1) {
      faults.begin();
      const verdicts = ["w0", "w1", "w2"].map((name) =>
        faults.failed({ name, kind: "MachineConfigNode" }, new Error("500"), at * minute),
      );
      expect(verdicts).toEqual(["later", "later", "now"]);
    }
  });
});
