import { certificateAuthority, storedPair } from "../../kube/certificates.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Random } from "../../ports/random.ts";
import {
  type DeriveKey,
  type RegistryUser,
  hashRandomPassword,
  isOfRandomPassword,
  passwordCheck,
  readUsers,
} from "../registry/registry-users.ts";
import { type Addresses, type Layout, ports } from "./layout.ts";

/** The registry of a one-machine cluster as those see it who use it. */
export interface ClusterRegistry {
  /** Host and port, for everybody in the cluster. */
  readonly host: string;
  /** Host and port of its process, once that runs. */
  readonly process: { readonly host: string; readonly pushAuth: string };
  /** PEM */
  readonly authority: string;
  /** Contents of auth files: one to push and delete, one only to pull. */
  readonly pushAuth: string;
  readonly pullAuth: string;
  /** Everybody whom the registry knows. */
  readonly users: readonly RegistryUser[];
  /** What of the registry's files was put back, for the user who changed it. */
  readonly notices: readonly string[];
}

const users = [
  { name: "builder", may: ["pull", "push", "delete"] },
  { name: "puller", may: ["pull"] },
] as const;
type User = (typeof users)[number]["name"];

export const registryHost = (addresses: Addresses): string => `${addresses.registry}:${ports.registry}`;

/**
 * The file of users, whoever else stands in it. The cluster itself pushes and pulls as two of them, whose passwords have to be
 * its own. Earlier releases wrote hashes of these that take long to compute, as if anybody could guess them.
 *
 * @returns `putBack`: those who had another password, or none.
 */
async function usersFile(
  before: string | undefined,
  passwords: Readonly<Record<User, string>>,
  { random, deriveKey }: { readonly random: Random; readonly deriveKey: DeriveKey },
): Promise<{ readonly text: string; readonly putBack: readonly User[] }> {
  const withOwn = <T>(user: T, name: User) => ({ ...user, password: hashRandomPassword(passwords[name], random) });
  if (before === undefined)
    return { text: JSON.stringify({ users: users.map((user) => withOwn(user, user.name)) }), putBack: [] };
  const known = readUsers(before);
  const check = passwordCheck(known, deriveKey);
  const putBack: User[] = [];
  const renewed: RegistryUser[] = [];
  for (const user of known) {
    const name = users.find((own) => own.name === user.name)?.name;
    const isOurs = name !== undefined && (await check(name, passwords[name])).verdict === "user";
    if (name !== undefined && !isOurs) putBack.push(name);
    renewed.push(name === undefined || (isOurs && isOfRandomPassword(user)) ? user : withOwn(user, name));
  }
  for (const user of users)
    if (!known.some(({ name }) => name === user.name)) {
      putBack.push(user.name);
      renewed.push(withOwn(user, user.name));
    }
  const isSame = renewed.length === known.length && renewed.every((user, index) => user === known[index]);
  return { text: isSame ? before : JSON.stringify({ users: renewed }), putBack };
}

/**
 * Creates the registry's certificate and its users once; a second call finds them, and puts passwords of its own users back
 * that somebody changed.
 */
export async function clusterRegistry({
  files,
  clock,
  random,
  layout,
  addresses,
  deriveKey,
}: {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly layout: Layout;
  readonly addresses: Addresses;
  readonly deriveKey: DeriveKey;
}): Promise<ClusterRegistry> {
  await files.makeDirectory(layout.registry, { mode: 0o700 });
  const passwordsFile = `${layout.pki}/registry-passwords.json`;
  const known = await files.readText(passwordsFile);
  const passwords = (
    known === undefined
      ? Object.fromEntries(users.map(({ name }) => [name, Buffer.from(random.bytes(18)).toString("base64url")]))
      : JSON.parse(known)
  ) as Readonly<Record<User, string>>;
  if (known === undefined) await files.write(passwordsFile, JSON.stringify(passwords), { mode: 0o600 });
  const file = `${layout.registry}/users.json`;
  const before = await files.readText(file);
  const { text, putBack } = await usersFile(before, passwords, { random, deriveKey });
  if (text !== before) await files.write(file, text, { mode: 0o600 });
  // This authority is trusted for images only.
  const name = "mco-registry-ca";
  const root = await storedPair(files, layout.pki, "registry-ca", () => certificateAuthority({ name, clock, random }));
  const authority = await certificateAuthority({ name, clock, random, existing: root });
  await storedPair(files, layout.pki, "registry", () =>
    authority.issue({ commonName: "registry", usage: "server", hosts: [addresses.registry] }),
  );
  const host = registryHost(addresses);
  const processHost = `${addresses.registry}:${ports.registryProcess}`;
  const auth = (name: User, at = host) =>
    JSON.stringify({ auths: { [at]: { auth: Buffer.from(`${name}:${passwords[name]}`).toString("base64") } } });
  return {
    host,
    process: { host: processHost, pushAuth: auth("builder", processHost) },
    authority: authority.certificate,
    pushAuth: auth("builder"),
    pullAuth: auth("puller"),
    users: readUsers(text),
    notices: putBack.map(
      (user) =>
        `the password of the registry's user ${user} in ${file} was put back to the one in ${passwordsFile}, with which the cluster itself pushes or pulls; for a password of your own, add a user of another name`,
    ),
  };
}
