import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const sources = globSync("src/**/*.ts", { cwd: root }).filter((file) => !file.endsWith(".test.ts"));

interface Rule {
  readonly title: string;
  readonly forbids: RegExp;
  /** Files or folders that may. */
  readonly except: readonly string[];
  /** What the rule must find, so that it cannot stop working unnoticed. */
  readonly finds: readonly string[];
  readonly leaves: readonly string[];
}

const rules: readonly Rule[] = [
  {
    title:
      "conditions of pools are read in core alone, where they become answers with reasons; who writes one names it",
    forbids:
      /\bpoolConditions\b|\bpools?\b[\w.?()!\s]*\.status\?*\.(?:conditions|\w*[mM]achineCount)\b|conditionOf\(\s*\w*[pP]ool\w*[.?]/,
    except: ["src/core/", "src/api/", "src/controller/render-controller.ts"],
    finds: [
      'if (conditionOf(pool.status?.conditions, "Updated")?.status === "True") {',
      "pool.status?.updatedMachineCount",
      "import { poolConditions } from",
      "caches.pools.get(name)?.status?.conditions",
    ],
    leaves: ["pod.status?.conditions", "machineConfigNode.status?.conditions", "pool.status?.configuration?.name"],
  },
  {
    title: "no helper answers yes or no about a pool or a roll-out: the typed answers of core do, and say why",
    forbids:
      /(?:function|const)\s+(?:is|has|can|may|should)\w*(?:Pool|Rollout|RollOut|Upgrade)\w*\s*(?:=|\()[^=;{]*(?:boolean|MachineConfigPool)/,
    // Upgrades of Ignition's own versions are another matter.
    except: ["src/ignition/"],
    finds: [
      "function isPoolUpdated(pool: MachineConfigPool): boolean {",
      "const canRolloutPool = (pool: MachineConfigPool) => true",
      "export const mayUpgradeCluster = (facts: Facts): boolean =>",
    ],
    leaves: [
      "export function poolMayRollOut(facts: Facts, pool: string): Answer<Clearance> | undefined {",
      "const isReady = (node: Node): boolean =>",
    ],
  },
];

describe.for(rules)("$title", ({ forbids, except, finds, leaves }) => {
  test("everywhere [guards-yes-no-helpers-1]", () => {
    const found = sources
      .filter((file) => !except.some((allowed) => file.startsWith(allowed)))
      .flatMap((file) =>
        readFileSync(join(root, file), "utf8")
          .split("\n")
          .flatMap((line, index) => (forbids.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
      );
    expect(found).toEqual([]);
  });
  test("and the rule finds what it forbids, and nothing else [guards-yes-no-helpers-2]", () => {
    for (const line of finds) expect(line).toMatch(forbids);
    for (const line of leaves) expect(line).not.toMatch(forbids);
  });
});
