import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeBundle } from "./bundle.ts";

const root = join(import.meta.dirname, "../..");
let folder: string;

/** As in the image: only the folder of Node.js is on the path. */
const run = (name: string, ...args: readonly string[]) =>
  spawnSync(join(folder, "bin", name), [...args], {
    encoding: "utf8",
    env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` },
  });

describe("what the Containerfile puts into the image", () => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mco-image-"));
    execFileSync(process.execPath, [join(root, "hack/bundle.ts"), folder]);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("is the program, by its own name and by those of its processes", () => {
    expect(readdirSync(join(folder, "bin")).sort()).toEqual([
      "kubectl-mco",
      "machine-config-controller",
      "machine-config-daemon",
      "machine-config-operator",
      "machine-config-server",
      "machine-os-builder",
      "machine-state-controller",
      "mco",
    ]);
    const { status, stdout } = run("mco", "version", "--json");
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      apiVersion: "cli.mco/v1",
      drivers: expect.arrayContaining([
        { name: "rpm-ostree", proven: false, note: expect.stringContaining("not proven on hardware") as unknown },
      ]) as unknown,
    });
  });

  test.for([
    ["machine-config-operator", "mco operator: name a verb: start or bootstrap"],
    ["machine-config-controller", "mco controller: name a verb: start or bootstrap"],
    ["machine-config-daemon", "mco daemon:"],
    ["machine-config-server", "mco server: name a verb: start or bootstrap"],
    ["machine-state-controller", "mco state:"],
  ] as const)("%s is that process", ([name, says]) => {
    const { status, stderr } = run(name, "stop");
    expect(status).toBe(64);
    expect(stderr).toContain(says);
  });
});

/** Command lines of the processes that this one has started and that still run. */
function children(): readonly string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        const parent = readFileSync(`/proc/${pid}/stat`, "utf8")
          .replace(/^.*\) /s, "")
          .split(" ")[1];
        return Number(parent) === process.pid
          ? [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")]
          : [];
      } catch {
        return []; // It ended meanwhile.
      }
    });
}

test("writing a bundle leaves no process behind", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-bundle-"));
  try {
    await writeBundle(join(folder, "bin"));
    expect(readdirSync(join(folder, "bin"))).toContain("mco.mjs");
    await expect.poll(() => children().filter((line) => line.includes("--service="))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
