import { existsSync, globSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { version } from "../../src/cli/version.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

test("the program and the package carry the same version", () => {
  expect(version).toBe((JSON.parse(read("package.json")) as { version: string }).version);
});

test("the lockfile pins packages and names no registry", () => {
  const lock = read("package-lock.json");
  expect(lock).not.toContain('"resolved"');
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read("package.json")) as Record<
    string,
    Record<string, string>
  >;
  for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }))
    expect(`${name} ${range}`).toMatch(/ \d+\.\d+\.\d+/);
});

test("every folder of src has a page that describes it", () => {
  const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).filter((name) => !existsSync(join(root, "src", name, "README.md")))).toEqual(
    [],
  );
});

test("CI runs the README's test command", () => {
  expect(read(".ci/run")).toContain("make test");
  expect(read("README.md")).toContain("make test");
});

test("links in the documents have targets", () => {
  const pages = globSync(["*.md", "docs/**/*.md", "src/**/*.md", "test/**/*.md"], { cwd: root });
  const broken = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map((match) => match[1] ?? "")
      .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(root, page, "..", target)))
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test("no generated file is out of date", async () => {
  const { execFileSync } = await import("node:child_process");
  expect(() =>
    execFileSync(process.execPath, ["hack/generate.ts", "--check"], { cwd: root, stdio: "pipe" }),
  ).not.toThrow();
});
