import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
let folder: string;

const run = (program: string, args: readonly string[], cwd: string) =>
  execFileSync(program, [...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, npm_config_update_notifier: "false" },
  });

/** The packed tarball, installed as by `npm install`, beside the libraries that it needs. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "mco-library-"));
  run(join(root, "hack/build-library"), [], root);
  const tarball =
    run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], root)
      .trim()
      .split("\n")
      .at(-1) ?? "";
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "machine-config-operator"), { recursive: true });
  run(
    "tar",
    ["-xzf", join(folder, tarball), "-C", join(modules, "machine-config-operator"), "--strip-components=1"],
    folder,
  );
  for (const name of ["typebox", "yaml", "smol-toml", "diff", "fflate", "@noble"])
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
}, 600_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = `
import { convertIgnition, diffConfigs, planNode, renderPool, validateMachineConfig, observedAs, nodeConfigOf, ignitionOf } from "machine-config-operator";
import { MachineConfig } from "machine-config-operator/api";
import { parseIgnition } from "machine-config-operator/ignition";
const config = (name, files) => ({ apiVersion: "machineconfiguration.openshift.io/v1", kind: "MachineConfig", metadata: { name, labels: { "machineconfiguration.openshift.io/role": "worker" } }, spec: { config: { ignition: { version: "3.4.0" }, storage: { files } } } });
const member = config("99-a", [{ path: "/etc/a", mode: 420, contents: { source: "data:,1" } }]);
const rendered = renderPool({ pool: { metadata: { name: "worker" } }, members: [member], controllerConfig: { spec: { baseOSContainerImage: "os" } } });
const name = rendered.verdict === "rendered" ? rendered.config.metadata.name : "refused";
const read = (mc) => { const ignition = ignitionOf(mc); const result = nodeConfigOf(mc, ignition?.verdict === "valid" ? ignition.config : undefined); return result.verdict === "decoded" ? result.config : undefined; };
const plan = planNode(observedAs(read(config("old", [])), { image: "os", onlyControlPlane: false }), read(member), undefined);
console.log(JSON.stringify([name, validateMachineConfig(member).length, diffConfigs(undefined, member).length, plan.verdict, typeof convertIgnition, MachineConfig.kind, parseIgnition({ ignition: { version: "3.4.0" } }).verdict]));
`;

describe("the packed library", () => {
  test("can be imported by a program and decides as the suite does", () => {
    writeFileSync(join(folder, "use.mjs"), program);
    expect(JSON.parse(run(process.execPath, ["use.mjs"], folder))).toEqual([
      expect.stringMatching(/^rendered-worker-[0-9a-f]{32}$/),
      0,
      1,
      "change",
      "function",
      "MachineConfig",
      "valid",
    ]);
  });

  test("has types that a strict compiler accepts", () => {
    writeFileSync(
      join(folder, "use.ts"),
      'import { diffConfigs, renderPool, type RenderResult } from "machine-config-operator";\nimport type { MachineConfig } from "machine-config-operator/api";\nexport const name = (result: RenderResult): string => (result.verdict === "rendered" ? result.config.metadata.name : "");\nexport const count = (a: MachineConfig, b: MachineConfig): number => diffConfigs(a, b).length;\nexport { renderPool };\n',
    );
    writeFileSync(
      join(folder, "tsconfig.json"),
      '{"compilerOptions":{"strict":true,"module":"nodenext","target":"es2024","noEmit":true,"types":[]},"files":["use.ts"]}',
    );
    expect(run(join(root, "node_modules/.bin/tsc"), ["-p", "."], folder)).toBe("");
  });

  test("bundles for a browser: nothing in it needs Node.js", async () => {
    const { build } = await import("esbuild");
    const { errors, outputFiles } = await build({
      stdin: { contents: 'export * from "machine-config-operator"', resolveDir: folder },
      bundle: true,
      platform: "browser",
      format: "esm",
      write: false,
      logLevel: "silent",
    });
    expect(errors).toEqual([]);
    expect(outputFiles[0]?.text).not.toMatch(/from\s*"node:/);
  });

  test("contains nothing but the library", () => {
    expect(readdirSync(join(folder, "node_modules/machine-config-operator")).sort()).toEqual([
      "LICENSE",
      "README.md",
      "dist",
      "docs",
      "package.json",
    ]);
  });
});
