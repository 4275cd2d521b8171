import { expect, test } from "vitest";
import type { HostFiles, HostLedger } from "../host.ts";
import { lockedPassword } from "../accounts.ts";
import { rootAccounts } from "./root-accounts.ts";

const signal = new AbortController().signal;

test.for(["constructor", "toString", "__proto__"])(
  "a user with a name that every object has, %s, is locked when it loses its password [host-root-accounts-1]",
  async (name) => {
    const texts: Readonly<Record<string, string>> = {
      "/etc/passwd": `${name}:x:1000:1000::/:/bin/bash\n`,
      "/etc/shadow": `${name}:$6$salt$hash:1::::::\n`,
    };
    const files = {
      read: async (path: string) =>
        texts[path] === undefined ? undefined : { kind: "file", contents: new TextEncoder().encode(texts[path]) },
    } as unknown as Pick<HostFiles, "read">;
    const ledger = { read: async () => undefined } as unknown as HostLedger;
    const stored: string[] = [];
    const users = rootAccounts({ files, ledger, store: async (_name, field) => void stored.push(field) });
    await users.setPasswordHash(name, undefined, signal);
    expect(stored).toEqual([lockedPassword]);
  },
);
