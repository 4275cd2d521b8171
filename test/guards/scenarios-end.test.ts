import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "./source-files.ts";

/** What a file that starts clusters does wrong at their end; `undefined`: nothing. */
function wrongEnd(text: string): string | undefined {
  const starts = text.match(/\bTestCluster\.start\(/g)?.length ?? 0;
  if (starts === 0) return undefined;
  if (/\bcluster\??\.stop\(/.test(text)) return "stops a cluster itself";
  const ends = text.match(/\bendScenario\((?!\))/g)?.length ?? 0;
  if (ends < 1) return "does not end through endScenario";
  const own = text.match(/\boperator: false\b/g)?.length ?? 0;
  const plants = text.match(/\.plantCanaries\(\)/g)?.length ?? 0;
  return own > plants ? "installs the suite and plants no secrets" : undefined;
}

describe("the end of scenarios", () => {
  test("every test that starts a cluster ends it through endScenario, which looks for secrets [guards-scenarios-1]", () => {
    const files = globSync("test/**/*.test.ts", { cwd: root }).toSorted();
    const offences = files.flatMap((path) => {
      if (path.startsWith("test/guards/")) return [];
      const wrong = wrongEnd(readFileSync(join(root, path), "utf8"));
      return wrong === undefined ? [] : [`${path} ${wrong}`];
    });
    expect(offences).toEqual([]);
    // Those that start no cluster say why here.
    const without = files.filter(
      (path) =>
        /^test\/(scenario|faults)\//.test(path) && !/endScenario\(/.test(readFileSync(join(root, path), "utf8")),
    );
    expect(without).toEqual(["test/scenario/rights.kubernetes.test.ts"]);
  });

  test("endScenario fails on leaks, and where no secret was planted [guards-scenarios-2]", () => {
    const text = readFileSync(join(root, "test/support/end-scenario.ts"), "utf8");
    expect(text).toContain("expect(await cluster.leaks()).toEqual([]);");
    expect(text).toContain("expect(disagreements, await booksOf(cluster, disagreements)).toEqual([]);");
    expect(readFileSync(join(root, "test/support/test-cluster.ts"), "utf8")).toMatch(/leaks\(\)[^}]*throw new Error/);
  });

  test.for([
    { title: "that stops it", text: "cluster = await TestCluster.start({}); await cluster.stop(); endScenario(c);" },
    { title: "that leaves it", text: "cluster = await TestCluster.start({});" },
    { title: "that plants none", text: "await TestCluster.start({ operator: false }); endScenario(c);" },
  ])("the guard finds a file $title", ({ text }) => expect(wrongEnd(text)).toBeDefined());
});
