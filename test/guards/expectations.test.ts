import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { testsWithoutExpectation } from "./expectations.ts";
import { root } from "./source-files.ts";

/** Imported functions that state an expectation. A function of the test's own file needs no place here. */
const expectingHelpers = new Set(["readForeignConfigs", "checkRow", "checkText"]);

const lacks = (body: string, around = "") =>
  testsWithoutExpectation(`${around}\ntest("a title", ${body});`, new Set(["rollsOut"])).length === 1;

describe("every test states what it expects", () => {
  test("no test ends without an expectation: a wait that times out is not a verdict", () => {
    const offences = globSync("{src,test}/**/*.ts", { cwd: root })
      .toSorted()
      .flatMap((path) => {
        const text = readFileSync(join(root, path), "utf8");
        if (!text.includes('from "vitest"')) return [];
        return testsWithoutExpectation(text, expectingHelpers).map((found) => `${path}:${found}`);
      });
    expect(offences).toEqual([]);
  });

  test.for([
    { body: "async () => { await until(() => done); }" },
    { body: "{ timeout: 5 }, async () => { await waitFor(); }" },
    { body: "async () => { await harness.check(); }", around: "const check = () => expect(1).toBe(1);" },
    { body: "async () => { await waits(); }", around: "async function waits() { await until(); }" },
    { body: "works", around: "const works = async () => { await until(); };" },
  ])("the guard finds $body", ({ body, around }) => expect(lacks(body, around)).toBe(true));

  test.for([
    { body: "async () => { expect(await until()).toBe(1); }" },
    { body: "async () => { await expect.poll(read).toBe(1); }" },
    { body: "() => fc.assert(fc.property(law))" },
    { body: "async () => { await refused(); }", around: "const refused = () => expect(1).rejects.toThrow();" },
    { body: "async () => { await rollsOut(); }" },
  ])("the guard leaves $body", ({ body, around }) => expect(lacks(body, around)).toBe(false));

  test("the guard finds tests behind conditions, tables and names of their own", () => {
    const found = testsWithoutExpectation(
      [
        "const onlyAsRoot = test.skipIf(!isRoot);",
        'onlyAsRoot("one", async () => wait());',
        'test.skipIf(x).for([1])("two", async () => wait());',
        'it("three", async () => wait());',
        'describe("no test", () => wait());',
      ].join("\n"),
      new Set(),
    );
    expect(found.map((line) => line.slice(0, 8))).toEqual(['2: "one"', '3: "two"', '4: "thre']);
  });
});
