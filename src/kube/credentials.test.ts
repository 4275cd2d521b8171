import { describe, expect, test } from "vitest";
import { Kernel } from "../../test/simulation/kernel.ts";
import { keepCredentials } from "./credentials.ts";
import type { Connection } from "./kubeconfig.ts";

const signal = new AbortController().signal;

function start(options: { readonly files?: Record<string, string>; readonly connection?: Connection } = {}) {
  const kernel = new Kernel(1);
  const files: Record<string, string> = options.files ?? { "/token": "one\n" };
  const disk = { connection: options.connection ?? { server: "https://s", ca: "CA", tokenFile: "/token" } };
  let reads = 0;
  const keeper = keepCredentials({
    connection: disk.connection,
    reread: async () => disk.connection,
    clock: kernel.clock,
    files: {
      readText: async (path) => {
        reads += 1;
        return files[path];
      },
    },
    execToken: () => Promise.resolve("from the plug-in"),
  });
  function pass(ms: number) {
    kernel.schedule(ms, "time passes", () => undefined);
    return kernel.run({ until: () => false, maxMs: ms });
  }
  return { keeper, files, disk, pass, reads: () => reads };
}

describe("credentials", () => {
  test("are read once a minute, and are the same object while nothing has changed", async () => {
    const { keeper, files, pass, reads } = start();
    const first = await keeper.current(signal);
    expect(first.token).toBe("one");
    for (let turn = 0; turn < 10; turn += 1) await keeper.current(signal);
    expect(reads()).toBe(1);
    await pass(60_000);
    expect(await keeper.current(signal)).toBe(first);
    files["/token"] = "two";
    expect((await keeper.current(signal)).token).toBe("one");
    await pass(60_000);
    expect((await keeper.current(signal)).token).toBe("two");
  });

  test("that were refused are read again at once, by one reader for all who were refused", async () => {
    const { keeper, files, reads } = start();
    const used = await keeper.current(signal);
    expect(await keeper.renewed(used, signal)).toBeUndefined();
    files["/token"] = "two";
    const before = reads();
    const found = await Promise.all([
      keeper.renewed(used, signal),
      keeper.renewed(used, signal),
      keeper.renewed(used, signal),
    ]);
    expect(found.map((one) => one?.token)).toEqual(["two", "two", "two"]);
    expect(reads()).toBe(before + 1);
    expect((await keeper.renewed(used, signal))?.token).toBe("two");
    expect(reads()).toBe(before + 1);
  });

  test("stay as they are while the file cannot be read, and fail only when there never were any", async () => {
    const { keeper, files, pass } = start();
    const used = await keeper.current(signal);
    delete files["/token"];
    await pass(60_000);
    expect(await keeper.current(signal)).toBe(used);
    expect(await keeper.renewed(used, signal)).toBeUndefined();
    const never = start({ files: {} });
    await expect(never.keeper.current(signal)).rejects.toMatchObject({ code: "MCO_KUBECONFIG_INVALID" });
    never.files["/token"] = "late";
    expect((await never.keeper.current(signal)).token).toBe("late");
  });

  test("follow new authorities and client certificates, but not to another server", async () => {
    const { keeper, disk } = start({ connection: { server: "https://s", ca: "A", certificate: "C1", key: "K1" } });
    const used = await keeper.current(signal);
    disk.connection = { server: "https://other", ca: "EVIL", certificate: "C2", key: "K2" };
    expect(await keeper.renewed(used, signal)).toBeUndefined();
    disk.connection = { server: "https://s", ca: "A+B", certificate: "C2", key: "K2" };
    expect((await keeper.renewed(used, signal))?.connection).toEqual(disk.connection);
  });

  test("come from the plug-in that a kubeconfig names", async () => {
    const { keeper } = start({
      connection: { server: "https://s", exec: { command: "c", args: [], env: {}, apiVersion: "v1" } },
    });
    expect((await keeper.current(signal)).token).toBe("from the plug-in");
  });
});
