import { describe, expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/** A question that one function decides, and a pattern for a second place that decides it. */
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
    title: "what a rendered name is, and whether a MachineConfig is rendered, core/config/is-rendered.ts decides",
    forbids: /startsWith\(["'`]rendered|\^rendered-/,
    // It shortens names for display.
    except: ["src/core/config/is-rendered.ts", "src/cli/draw-status.ts"],
    finds: ['!config.metadata.name.startsWith("rendered-") &&', "/^rendered-(.+)-[0-9a-f]{32}$/.exec(run)"],
    leaves: ["name: `rendered-${pool}-${hash}`,", "!isRendered(config, pools)"],
  },
  {
    title: "whether a running machine can follow, irreconcilableBetween decides, with what the administrator allows",
    forbids: /\breconcile\b.*from ".*reconcilable\.ts"/,
    // The library offers the rules themselves, and the daemon passes what is allowed by name.
    except: ["src/core/index.ts", "src/core/config/", "src/daemon/"],
    finds: ['import { type StorageOverride, reconcile } from "../config/reconcilable.ts";'],
    leaves: ['import { irreconcilableBetween } from "../config/reconcilable.ts";'],
  },
  {
    title: "when a condition last changed its status, api/schema/conditions.ts decides",
    forbids: /status === .*\? \(?\w+\.lastTransitionTime|^\s*\? \(?\w+\.lastTransitionTime/,
    // The API server stands in for Kubernetes' own code.
    except: ["src/apiserver/", "src/os-builder/write-objects.ts"],
    finds: [
      "lastTransitionTime: old?.status === status ? old.lastTransitionTime : stamp,",
      "        ? (before.lastTransitionTime ?? timestamp(now))",
    ],
    leaves: [
      'since: tells ? condition.lastTransitionTime : "",',
      "pod.lastTransitionTime ?? pod.metadata.creationTimestamp",
    ],
  },
];

describe.for(rules)("$title", ({ forbids, except, finds, leaves }) => {
  test("everywhere", () => {
    const found = sourceFiles()
      .filter(({ path }) => !except.some((allowed) => path.startsWith(allowed)))
      .flatMap(({ path, text }) =>
        text.split("\n").flatMap((line, index) => (forbids.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
      );
    expect(found).toEqual([]);
  });

  test("the rule finds what it looks for, and nothing else", () => {
    expect(finds.filter((line) => !forbids.test(line))).toEqual([]);
    expect(leaves.filter((line) => forbids.test(line))).toEqual([]);
  });
});
