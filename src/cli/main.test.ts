import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../test/support/registry/pull-harness.ts";

const main = join(import.meta.dirname, "main.ts");
const root = join(import.meta.dirname, "../..");

const toolPath = (name: string) => spawnSync("sh", ["-c", 'command -v "$0"', name], { encoding: "utf8" }).stdout.trim();

/** Many objects with as many problems: `mco validate` says more of them than a pipe takes at once, 64 KiB. */
async function wrongObjects(): Promise<string> {
  const path = join(await temporaryFolder(), "wrong.yaml");
  const documents = Array.from(
    { length: 1000 },
    (_, index) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: wrong-${index}, labels: {machineconfiguration.openshift.io/role: worker}}
spec: {kernelArguments: "quiet"}
`,
  );
  await writeFile(path, documents.join("---\n"));
  return path;
}

/** What a shell hears of `mco validate` and of the program that reads its output. */
async function piped(into: string) {
  const command = `"$0" --disable-warning=ExperimentalWarning "$1" validate --json -f "$2"; echo "ended with $?" >&2`;
  const { stdout, stderr } = spawnSync(
    "sh",
    ["-c", `{ ${command}; } | ${into}`, process.execPath, main, await wrongObjects()],
    { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 },
  );
  return { stdout, stderr };
}

test("a command ends once the reader of its output has all of it [cli-main-1]", async () => {
  const { stdout, stderr } = await piped("cat");
  const { problems } = JSON.parse(stdout) as { problems: readonly unknown[] };
  expect({ problems: problems.length, stderr }).toEqual({ problems: 1000, stderr: "ended with 1\n" });
  expect(stdout.length).toBeGreaterThan(2 ** 17);
});

test("a command whose reader has read enough ends without a word, as other programs do [cli-main-2]", async () => {
  const { stdout, stderr } = await piped("head -c 10");
  expect({ length: stdout.length, stderr }).toEqual({ length: 10, stderr: "ended with 141\n" });
});

test.for(["bin/mco", "hack/kubernetes"])(
  "%s says one sentence on a machine without Node.js 24 [cli-main-3]",
  async (program) => {
    const folder = await temporaryFolder();
    for (const path of [program, "hack/node-path"]) await cp(join(root, path), join(folder, path), { recursive: true });
    await mkdir(join(folder, "node_modules"));
    await writeFile(join(folder, "node_modules/.installed"), "");
    // Where coreutils are, and nothing else: a machine's own Node.js may be beside them.
    const tools = join(folder, "tools");
    await mkdir(tools);
    for (const tool of ["sh", "dirname", "readlink"]) await symlink(toolPath(tool), join(tools, tool));
    const { status, stdout, stderr } = spawnSync(join(tools, "sh"), [join(folder, program)], {
      encoding: "utf8",
      env: { PATH: tools },
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(/^Node\.js 24 is missing: [^\n]+\n$/);
  },
);

test("hack/kubernetes runs no plug-in of a kubeconfig that came with a repository [cli-main-6]", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, ".kubernetes"));
  const ran = join(folder, "ran");
  const exec = `{ command: touch, args: [${ran}], apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never }`;
  await writeFile(
    join(folder, ".kubernetes/kubeconfig"),
    `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:1" } }]
users: [{ name: u, user: { exec: ${exec} } }]
`,
  );
  const { status, stderr } = spawnSync(join(root, "hack/kubernetes"), ["status"], { cwd: folder, encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toContain(`part: ${join(folder, ".kubernetes/kubeconfig")}`);
  expect(existsSync(ran)).toBe(false);
});

test("mco help COMMAND says what mco COMMAND --help says, and knows no other word [cli-main-5]", () => {
  const mco = (...words: readonly string[]) =>
    spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...words], { encoding: "utf8" });
  const [help, flag, wrong] = [mco("help", "plan"), mco("plan", "--help"), mco("help", "plna")];
  expect([help.status, help.stdout]).toEqual([0, flag.stdout]);
  expect([wrong.status, wrong.stderr]).toEqual([
    64,
    expect.stringContaining('no command, topic or code "plna"; did you mean plan?'),
  ]);
});

test("--color takes one of three words [cli-main-4]", () => {
  const lines = (color: string) => {
    const args = ["--disable-warning=ExperimentalWarning", main, "validate", "--color", color, "none.yaml"];
    return spawnSync(process.execPath, args, { encoding: "utf8" });
  };
  expect(lines("red")).toMatchObject({
    status: 64,
    stderr: expect.stringContaining('--color must be auto, always, never, not "red"') as string,
  });
  expect(lines("never").stdout).toContain("none.yaml");
});
