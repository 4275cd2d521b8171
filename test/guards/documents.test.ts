import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { annotations } from "../../src/api/names.ts";

const root = join(import.meta.dirname, "../..");
const pages = [
  "README.md",
  "HACKING.md",
  "install/README.md",
  ...["docs", "docs/decisions", "docs/reference"].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `${folder}/${name}`),
  ),
];
const textOf = (page: string) => readFileSync(join(root, page), "utf8");

/** The anchors that GitHub gives to headings. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

describe("documents", () => {
  test.for(pages)("%s: its links have targets", (page) => {
    for (const [, target = ""] of textOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = "", anchor] = target.split("#", 2);
      const file = path === "" ? page : join(dirname(page), path);
      expect(existsSync(join(root, file)), `${page}: ${target}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(textOf(file)), `${page}: ${target}`).toContain(anchor);
    }
  });

  test.for(pages)("%s: its commands exist", (page) => {
    for (const [, verb = ""] of textOf(page).matchAll(/^(?:\$ )?(?:bin\/)?mco ([a-z-]+)/gm))
      expect(Object.keys(commands), `${page}: mco ${verb}`).toContain(verb);
  });

  test.for(["docs/machineconfiguration.md", "docs/os-updates.md", "docs/joining.md", "docs/faq.md"])(
    "%s: some code reads each of its annotations",
    (page) => {
      const known = Object.values<string>(annotations);
      const labelsAndNames = [
        "machineconfiguration.openshift.io/role",
        "machineconfiguration.openshift.io/v1",
        "machineconfiguration.openshift.io/…",
      ];
      for (const [name] of textOf(page)
        .replaceAll("\\.", ".")
        .matchAll(/machineconfiguration\.openshift\.io\/[A-Za-z0-9…-]*[A-Za-z0-9…]/g))
        expect([...known, ...labelsAndNames]).toContain(name);
    },
  );
});
