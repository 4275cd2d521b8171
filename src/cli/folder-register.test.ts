import { chmod, mkdir, readFile, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import { systemFiles, systemRandom } from "../ports/node/index.ts";
import { layoutOf } from "../standin/index.ts";
import { folderRegister } from "./folder-register.ts";
import { stateHome } from "./state-home.ts";

const isRoot = process.getuid?.() === 0;

async function harness() {
  const root = await temporaryFolder();
  const home = join(root, "state");
  const register = () => folderRegister({ home, files: systemFiles, random: systemRandom });
  /** The folder of a cluster, empty. */
  const made = async (name: string) => {
    await mkdir(join(root, name));
    return layoutOf(join(root, name));
  };
  const entries = async () => (await readdir(join(home, "mco/folders"))).length;
  return { root, home, register, made, entries };
}

describe("the register of folders", () => {
  test("has those that were added, in files that nobody else can read [cli-folder-register-1]", async () => {
    const { home, register, made } = await harness();
    const [one, other] = [await made("one"), await made("other")];
    expect(await register().has(one)).toBe(false);
    await register().add(one);
    expect([await register().has(one), await register().has(other)]).toEqual([true, false]);
    const folder = join(home, "mco/folders");
    for (const path of [join(home, "mco"), folder]) expect((await stat(path)).mode & 0o777).toBe(0o700);
    const [entry = ""] = await readdir(folder);
    for (const path of [join(folder, entry), one.identity]) expect((await stat(path)).mode & 0o777).toBe(0o600);
    await register().remove(one);
    expect(await register().has(one)).toBe(false);
  });

  test("has a folder by each way that leads to it [cli-folder-register-2]", async () => {
    const { root, register, made } = await harness();
    await mkdir(join(root, "real"));
    await symlink(join(root, "real"), join(root, "way"));
    await register().add(await made("real/.mco"));
    expect(await register().has(layoutOf(join(root, "way/.mco")))).toBe(true);
  });

  test("takes out folders that are gone, and no other [cli-folder-register-3]", async () => {
    const { root, register, made, entries } = await harness();
    for (const name of ["stays", "goes", "moves"]) await register().add(await made(name));
    await rm(join(root, "goes"), { recursive: true });
    await rename(join(root, "moves"), join(root, "moved"));
    await register().add(await made("new"));
    expect(await entries()).toBe(2);
    expect(await register().has(layoutOf(join(root, "stays")))).toBe(true);
  });

  test("loses none of those that are added at once [cli-folder-register-4]", async () => {
    const { register, made } = await harness();
    const all = await Promise.all(Array.from({ length: 20 }, (_, index) => made(`at-once-${index}`)));
    await Promise.all(all.map((layout) => register().add(layout)));
    expect(await Promise.all(all.map((layout) => register().has(layout)))).toEqual(all.map(() => true));
  });

  test("takes a file that is no entry for none [cli-folder-register-5]", async () => {
    const { home, register, made } = await harness();
    const layout = await made("one");
    await register().add(layout);
    const [entry = ""] = await readdir(join(home, "mco/folders"));
    const path = join(home, "mco/folders", entry);
    const text = await readFile(path, "utf8");
    for (const contents of [
      "",
      "null",
      "[]",
      text.slice(0, -2),
      text.replace('"v":1,', "").replace(/"inode":"\d+"/, ""),
    ]) {
      await writeFile(path, contents);
      expect(await register().has(layout), contents).toBe(false);
    }
    await register().add(layout);
    expect(await register().has(layout)).toBe(true);
  });

  test.for(["mco", "mco/folders"])("is refused where others may write: %s [cli-folder-register-6]", async (part) => {
    const { home, register, made } = await harness();
    const layout = await made("one");
    await register().add(layout);
    await chmod(join(home, part), 0o770);
    const refused = { code: "MCO_CLUSTER_REGISTER", facts: { path: join(home, part) } };
    await expect(register().has(layout)).rejects.toMatchObject(refused);
    await expect(register().add(layout)).rejects.toMatchObject(refused);
  });

  test("that cannot be written is a failure with a remedy [cli-folder-register-7]", async () => {
    const { home, register, made } = await harness();
    const layout = await made("one");
    // Also root writes no folder below a file.
    await writeFile(home, "");
    const refused = { code: "MCO_CLUSTER_REGISTER" };
    await expect(register().add(layout)).rejects.toMatchObject(refused);
    const noFolder = folderRegister({ home: "/proc/state", files: systemFiles, random: systemRandom });
    await expect(noFolder.add(layout)).rejects.toMatchObject(refused);
    expect(await register().has(layout)).toBe(false);
  });
});

describe("the folder for state", () => {
  const uid = process.geteuid?.() ?? 0;
  const user = (home: string | undefined) => ({ uid, registeredHome: () => home });

  test.for<{ title: string; environment: Record<string, string>; home: string | undefined; is: string }>([
    { title: "is that of the environment", environment: { XDG_STATE_HOME: "/s", HOME: "/h" }, home: "/r", is: "/s" },
    { title: "is no relative one", environment: { XDG_STATE_HOME: "s" }, home: "/r", is: "/r/.local/state" },
    { title: "is in the registered home without HOME", environment: {}, home: "/r", is: "/r/.local/state" },
    {
      title: "is below HOME for a user by number",
      environment: { HOME: "/h" },
      home: undefined,
      is: "/h/.local/state",
    },
  ])("$title [cli-state-home-1]", ({ environment, home, is }) => {
    expect(stateHome(environment, user(home))).toBe(is);
  });

  test("is below the user's own HOME, and not below that of another user [cli-state-home-2]", async () => {
    const own = await temporaryFolder();
    expect(stateHome({ HOME: own }, user("/r"))).toBe(join(own, ".local/state"));
    expect(stateHome({ HOME: own }, { ...user("/r"), uid: uid + 1 })).toBe("/r/.local/state");
  });

  test("is named where there is no home at all [cli-state-home-3]", () => {
    expect(() => stateHome({}, user(undefined))).toThrow("HOME");
  });

  test.skipIf(!isRoot)("is known for root without an environment [cli-state-home-4]", () => {
    expect(stateHome({})).toMatch(/^\/.*\/\.local\/state$/);
  });
});
