import { certificateAuthority, storedPair } from "../kube/certificates.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";
import { hashRandomPassword, isOfRandomPassword, readUsers } from "../registry/server/registry-users.ts";
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
}

const users = [
  { name: "builder", may: ["pull", "push", "delete"] },
  { name: "puller", may: ["pull"] },
] as const;
type User = (typeof users)[number]["name"];

export const registryHost = (addresses: Addresses): string => `${addresses.registry}:${ports.registry}`;

/**
 * The file of users, whoever else stands in it. Earlier releases wrote hashes of our passwords that take long to compute, as if
 * anybody could guess these.
 */
function usersFile(before: string | undefined, passwords: Readonly<Record<User, string>>, random: Random): string {
  const hashOf = (name: User) => hashRandomPassword(passwords[name], random);
  if (before === undefined)
    return JSON.stringify({ users: users.map(({ name, may }) => ({ name, may, password: hashOf(name) })) });
  const known = readUsers(before);
  const renewed = known.map((user) => {
    const own = users.find(({ name }) => name === user.name);
    return own === undefined || isOfRandomPassword(user) ? user : { ...user, password: hashOf(own.name) };
  });
  return renewed.every((user, index) => user === known[index]) ? before : JSON.stringify({ users: renewed });
}

/** Creates the registry's certificate and its users once; a second call finds them. */
export async function clusterRegistry({
  files,
  clock,
  random,
  layout,
  addresses,
}: {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly layout: Layout;
  readonly addresses: Addresses;
}): Promise<ClusterRegistry> {
  await files.makeDirectory(layout.registry, { mode: 0o700 });
  const known = await files.readText(`${layout.pki}/registry-passwords.json`);
  const passwords = (
    known === undefined
      ? Object.fromEntries(users.map(({ name }) => [name, Buffer.from(random.bytes(18)).toString("base64url")]))
      : JSON.parse(known)
  ) as Readonly<Record<User, string>>;
  if (known === undefined)
    await files.write(`${layout.pki}/registry-passwords.json`, JSON.stringify(passwords), { mode: 0o600 });
  const file = `${layout.registry}/users.json`;
  const before = await files.readText(file);
  const after = usersFile(before, passwords, random);
  if (after !== before) await files.write(file, after, { mode: 0o600 });
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
  };
}
