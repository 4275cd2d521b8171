import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { departuresFrom, shortcomingsOf } from "../support/pod-security-rules.ts";
import { exceptions, templateOf, workloads } from "../support/pod-templates.ts";

const root = join(import.meta.dirname, "../..");

describe("pods with a compromised container", () => {
  describe.for(Object.entries(workloads()))("%s", ([name, workload]) => {
    const { spec } = templateOf(workload);
    if (spec === undefined) throw new Error(`the pod of ${name} has no spec`);

    test("departs from the restricted profile only where the list of exceptions says so [attack-pods-1]", () => {
      expect(departuresFrom(spec)).toEqual(exceptions[name] ?? []);
    });

    test("has a numeric user, a read-only root, a memory request and limit, and a priority class [attack-pods-2]", () => {
      expect(shortcomingsOf(spec)).toEqual([]);
    });
  });

  test("every exception is explained in docs/pod-security.md, and no other [attack-pods-3]", () => {
    const text = readFileSync(join(root, "docs/pod-security.md"), "utf8");
    const explained = [...text.matchAll(/^### `([^`]+)`$/gm)].map(([, name]) => name);
    expect(explained).toEqual(Object.keys(exceptions));
  });

  test("no source of the suite contains a pod template that these tests do not check [attack-pods-4]", () => {
    const sources = ["operator", "os-builder"].flatMap((folder) =>
      readdirSync(join(root, "src", folder), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
        .map((file) => `src/${folder}/${file}`),
    );
    const writing = sources.filter((file) =>
      /\b(containers|initContainers): \[/.test(readFileSync(join(root, file), "utf8")),
    );
    expect(writing).toEqual([
      "src/operator/install-manifests.ts",
      "src/operator/manifests.ts",
      "src/os-builder/build-job.ts",
    ]);
  });
});
