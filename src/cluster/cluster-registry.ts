import { certificateAuthority, storedPair } from "../kube/certificates.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";
import { hashPassword } from "../registry/server/registry-users.ts";
import { type Addresses, type Layout, ports } from "./layout.ts";

/** The registry of a one-machine cluster as those see it who use it. */
export interface ClusterRegistry {
  /** Host and port. */
  readonly host: string;
  /** PEM */
  readonly authority: string;
  /** Texts of auth files: of who pushes and deletes, and of who only pulls. */
  readonly pushAuth: string;
  readonly pullAuth: string;
}

const users = [
  { name: "builder", may: ["pull", "push", "delete"] },
  { name: "puller", may: ["pull"] },
] as const;
type User = (typeof users)[number]["name"];

export const registryHost = (addresses: Addresses): string => `${addresses.registry}:${ports.registry}`;

/** Makes what the registry proves itself and knows its users with, once; a second call finds it. */
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
  if ((await files.stat(`${layout.registry}/users.json`)) === undefined)
    await files.write(
      `${layout.registry}/users.json`,
      JSON.stringify({
        users: users.map(({ name, may }) => ({ name, may, password: hashPassword(passwords[name], random) })),
      }),
      { mode: 0o600 },
    );
  // Who is trusted for images is trusted for nothing else.
  const name = "mco-registry-ca";
  const root = await storedPair(files, layout.pki, "registry-ca", () => certificateAuthority({ name, clock, random }));
  const authority = await certificateAuthority({ name, clock, random, existing: root });
  await storedPair(files, layout.pki, "registry", () =>
    authority.issue({ commonName: "registry", usage: "server", hosts: [addresses.registry] }),
  );
  const host = registryHost(addresses);
  const auth = (name: User) =>
    JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${name}:${passwords[name]}`).toString("base64") } } });
  return { host, authority: authority.certificate, pushAuth: auth("builder"), pullAuth: auth("puller") };
}
