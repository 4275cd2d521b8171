import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { McoError } from "../../api/errors.ts";
import type { HostWrite } from "../host.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { heldBelow, heldDisk } from "./held-disk.ts";
import { recordedOwners } from "./ownership.ts";
import { rootFiles } from "./root-files.ts";
import { resolveInRoot } from "./root-folder.ts";

const never = new AbortController().signal;

let root = "";
beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), "mco-failing-"));
  await fs.mkdir(join(root, "etc/zz"), { recursive: true });
});
afterEach(() => fs.rm(root, { recursive: true, force: true }));

/** `fails`: the operation of the disk that fails with this code. */
function files(fails?: { readonly verb: keyof Disk; readonly at: RegExp; readonly code: string }) {
  const disk = heldDisk(root, systemDisk);
  const failing = new Proxy(disk, {
    get: (target, verb: keyof Disk) =>
      verb !== fails?.verb
        ? target[verb]
        : async (...paths: readonly unknown[]) => {
            if (paths.some((path) => fails.at.test(String(path))))
              throw Object.assign(new Error(`${fails.code}: ${String(paths[0])}`), { code: fails.code });
            return (target[verb] as (...all: readonly unknown[]) => Promise<unknown>)(...paths);
          },
  });
  return rootFiles({
    locate: (path) => resolveInRoot(root, path),
    disk: failing,
    hold: heldBelow(root),
    owners: recordedOwners(failing, root, join(root, "owners.json")),
    recordPath: async () => join(root, "made.json"),
  });
}

const write = (path: string): HostWrite => ({
  path,
  entry: { kind: "file", contents: new TextEncoder().encode("new"), mode: 0o644, uid: 0, gid: 0 },
});
const failureOf = async (work: Promise<unknown>): Promise<McoError> => {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof McoError)) throw new Error(`no McoError: ${String(error)}`);
  return error;
};

test("a file is written and read whatever its name is, a word of the language among them [host-failing-path-4]", async () => {
  const root_ = files();
  await root_.write([write("/constructor")], never);
  expect(await fs.readFile(join(root, "constructor"), "utf8")).toBe("new");
  expect(await resolveInRoot(root, "/constructor", { var: join(root, "var") })).toBe(join(root, "constructor"));
});

describe("of many writes, the one that fails is named", () => {
  test("where a file is in place of its folder, and none of the others is carried out [host-failing-path-1]", async () => {
    await fs.writeFile(join(root, "etc/zz/blocked"), "");
    const writes = ["/etc/a.conf", "/etc/zz/blocked/inner.conf", "/etc/z.conf"].map(write);
    const { message, facts } = await failureOf(files().write(writes, never));
    expect(facts).toMatchObject({ path: "/etc/zz/blocked/inner.conf", problem: "ENOTDIR" });
    expect(message).not.toContain("/etc/a.conf");
    expect(await fs.readdir(join(root, "etc"))).toEqual(["zz"]);
  });

  test.for([
    { verb: "rename", at: /b\.conf$/, code: "EROFS" },
    { verb: "create", at: /\/etc\/b\//, code: "ENOSPC" },
    { verb: "mkdir", at: /\.mco-/, code: "EACCES", path: "/etc/b/b.conf" },
  ] as const)("at $verb [host-failing-path-2]", async ({ verb, at, code }) => {
    const b = verb === "rename" ? "/etc/b.conf" : "/etc/b/b.conf";
    if (verb === "create") await fs.mkdir(join(root, "etc/b"));
    const { facts } = await failureOf(files({ verb, at, code }).write([write("/etc/a.conf"), write(b)], never));
    expect(facts).toMatchObject({ path: b, problem: code });
  });
});
