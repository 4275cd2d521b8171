import { expect, test } from "vitest";
import type { Files } from "../../../ports/files.ts";
import { silentLogger } from "../../../ports/logger.ts";
import type { Processes } from "../../../ports/process.ts";
import { unmountBelow } from "./unmount-below.ts";

test("exactly the mounts below a machine's folder are unmounted, last one first", async () => {
  const mounts = [
    "/dev/vda / ext4 rw 0 0",
    "overlay /c/hosts/w/var/a overlay rw 0 0",
    "overlay /c/hosts/w/var/a/with\\040blank overlay rw 0 0",
    "tmpfs /c/hosts/w2/x tmpfs rw 0 0",
    "tmpfs /c/hosts/w tmpfs rw 0 0",
    "",
  ].join("\n");
  const ran: (readonly string[])[] = [];
  const files = { readText: async () => mounts } as unknown as Files;
  const processes = {
    run: async (command: string, args: readonly string[]) => (
      ran.push([command, ...args]),
      { code: 0, signal: undefined, stdout: "", stderr: "" }
    ),
  } as unknown as Processes;
  await unmountBelow(
    "/c/hosts/w",
    { files, processes, log: silentLogger, environment: {} },
    new AbortController().signal,
  );
  expect(ran).toEqual([
    ["umount", "--", "/c/hosts/w/var/a/with blank"],
    ["umount", "--", "/c/hosts/w/var/a"],
  ]);
});
