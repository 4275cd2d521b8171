import { scrypt } from "node:crypto";
import type { DeriveKey } from "../registry-users.ts";

/** More than the largest cost of a users file takes. */
const maxMemory = 512 * 1024 * 1024;

/** scrypt beside the event loop, which answers others meanwhile. */
export const deriveKey: DeriveKey = (password, salt, { N, r, p, dkLen }) =>
  new Promise((resolve, reject) =>
    scrypt(password, salt, dkLen, { N, r, p, maxmem: maxMemory }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    ),
  );
