import { McoError } from "../../api/errors.ts";
import { own } from "../../api/schema/own.ts";
import { accountLine, isField, lockedPassword, usableHash } from "../accounts.ts";
import type { HostFiles, HostLedger, HostUsers, PlainFile } from "../host.ts";

/**
 * Where accounts are looked for: those of the machine, then those that the OS image ships (nss-altfiles;
 * coreos/fedora-coreos-docs users).
 */
const places = (database: "passwd" | "group") => [`/etc/${database}`, `/usr/lib/${database}`];

const fieldsBefore = "password-fields.json";

export interface RootAccountsOptions {
  readonly files: Pick<HostFiles, "read">;
  readonly ledger: HostLedger;
  /**
   * Makes `field` the password field of a user that the machine has. `shadow` is the database as it is, absent where
   * there is none.
   */
  readonly store: (name: string, field: string, shadow: PlainFile | undefined, signal: AbortSignal) => Promise<void>;
}

/** The accounts of a machine, read from its own databases. */
export function rootAccounts({ files, ledger, store }: RootAccountsOptions): HostUsers {
  const textAt = async (path: string, signal: AbortSignal) => {
    const entry = await files.read(path, signal);
    return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : "";
  };

  async function line(
    database: "passwd" | "group",
    name: string,
    signal: AbortSignal,
  ): Promise<readonly string[] | undefined> {
    for (const path of places(database)) {
      const found = accountLine(await textAt(path, signal), name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  const fieldOf = async (name: string, signal: AbortSignal) =>
    accountLine(await textAt("/etc/shadow", signal), name)?.[1];

  return {
    async lookup(name, signal) {
      const fields = await line("passwd", name, signal);
      return fields === undefined
        ? undefined
        : { uid: Number(fields[2]), gid: Number(fields[3]), home: fields[5] ?? "/" };
    },
    async group(name, signal) {
      const fields = await line("group", name, signal);
      return fields === undefined ? undefined : Number(fields[2]);
    },
    passwordHash: async (name, signal) => usableHash(await fieldOf(name, signal)),
    async setPasswordHash(name, hash, signal) {
      const field = await fieldOf(name, signal);
      if (usableHash(field) === hash && (hash !== undefined || field !== "")) return;
      if ((await line("passwd", name, signal)) === undefined) {
        if (hash === undefined) return;
        throw new McoError("MCO_HOST_COMMAND_FAILED", { user: name, problem: "the machine has no such user" });
      }
      if (hash !== undefined && (usableHash(hash) === undefined || !isField(hash)))
        throw new McoError("MCO_HOST_COMMAND_FAILED", { user: name, problem: "this is no password hash" });
      const before = JSON.parse((await ledger.read(fieldsBefore, signal)) ?? "{}") as Record<string, string>;
      // Removing a password restores the original field, without a trace of us.
      if (hash !== undefined && field !== undefined && field !== "" && usableHash(field) === undefined)
        await ledger.write(fieldsBefore, JSON.stringify({ ...before, [name]: field }), signal);
      const shadow = await files.read("/etc/shadow", signal);
      await store(
        name,
        hash ?? own(before, name) ?? lockedPassword,
        shadow?.kind === "file" ? shadow : undefined,
        signal,
      );
    },
  };
}
