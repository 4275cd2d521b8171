import { expect, test } from "vitest";
import { type ErrorCode, McoError } from "../api/errors.ts";
import { hostPaths } from "../api/names.ts";
import type { Host } from "../host/host.ts";
import { MachineHarness } from "../../test/support/machine-harness.ts";

/** A machine where a user can put something at a path that cannot be read as a file. */
class Junk {
  readonly at = new Map<string, ErrorCode>();

  readonly host = (of: Host): Host => ({
    ...of,
    files: {
      ...of.files,
      read: (path, signal) => {
        const code = this.at.get(path);
        return code === undefined ? of.files.read(path, signal) : Promise.reject(new McoError(code, { path }));
      },
      write: async (writes, signal) => {
        for (const { path } of writes) this.at.delete(path);
        await of.files.write(writes, signal);
      },
      remove: async (path, signal) => {
        this.at.delete(path);
        await of.files.remove(path, signal);
      },
    },
  });
}

test.for<ErrorCode>(["MCO_HOST_FILE_TOO_LARGE", "MCO_HOST_NO_FILE"])(
  "what a user of a machine puts in the way of a managed file is replaced, and stops no pass: %s [daemon-unreadable-1]",
  async (code) => {
    const junk = new Junk();
    const harness = await MachineHarness.make();
    harness.tamper = junk.host;
    harness.kill();
    harness.start();
    await harness.updatedTo("rendered-1", {});
    // Before the path is managed.
    junk.at.set(hostPaths.sshKeys, code);
    await harness.updatedTo("rendered-2", { keys: ["ssh-ed25519 A"] });
    expect(await harness.file(hostPaths.sshKeys)).toBe("ssh-ed25519 A\n");
    // While it is managed.
    junk.at.set(hostPaths.sshKeys, code);
    await harness.updatedTo("rendered-3", { keys: ["ssh-ed25519 B"] });
    expect(await harness.file(hostPaths.sshKeys)).toBe("ssh-ed25519 B\n");
    // When it is managed no more.
    junk.at.set(hostPaths.sshKeys, code);
    await harness.updatedTo("rendered-4", {});
    expect(await harness.file(hostPaths.sshKeys)).toBeUndefined();
    expect(junk.at.size).toBe(0);
  },
);
