import { spawn } from "node:child_process";
import { scryptSync } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fillRegistry, imageModeManifests } from "../../cli/image-mode.ts";
import { addressesOf, layoutOf, networkFor, ports } from "./layout.ts";
import { clusterRegistry } from "./cluster-registry.ts";
import { packedStockOs, stockOsImage, stockOsRepository } from "./stock-os.ts";
import { forward, systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { silentLogger } from "../../ports/logger.ts";
import { imageStore } from "../../registry/image-store.ts";
import { httpsWire } from "../../registry/node/https-wire.ts";
import { deriveKey } from "../registry/node/derive-key.ts";
import { hashRandomPassword, passwordCheck, readUsers } from "../registry/registry-users.ts";
import { readRegistrySecret } from "../../os-builder/registry-secret.ts";
import type { Secret } from "../../api/foreign/kubernetes.ts";
import { temporaryFolder } from "../../../test/support/registry/pull-harness.ts";

const never = new AbortController().signal;

test("the registry of a cluster is a separate process that serves the stock OS under its known digest to authorized clients", async () => {
  const layout = layoutOf(join(await temporaryFolder(), "cluster"));
  const addresses = addressesOf(networkFor(layout.directory, 0));
  await mkdir(layout.pki, { recursive: true });
  await writeFile(
    layout.record,
    JSON.stringify({
      v: 1,
      version: "1",
      network: addresses.network,
      supervisor: { pid: 0, startTime: "" },
      processes: [],
      hosts: [],
    }),
  );
  const make = () =>
    clusterRegistry({ files: systemFiles, random: systemRandom, layout, addresses, clock: systemClock, deriveKey });
  const access = await make();
  expect(await make()).toEqual(access);
  for (const path of [
    join(layout.pki, "registry-passwords.json"),
    join(layout.registry, "users.json"),
    join(layout.pki, "registry.key"),
  ])
    expect((await stat(path)).mode & 0o777, path).toBe(0o600);
  const passwords = Object.values(
    JSON.parse(await readFile(join(layout.pki, "registry-passwords.json"), "utf8")) as Record<string, string>,
  );
  for (const password of passwords)
    expect(await readFile(join(layout.registry, "users.json"), "utf8")).not.toContain(password);

  const server = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      join(import.meta.dirname, "../../cli/main.ts"),
      "registry",
      "--dir",
      layout.directory,
    ],
    { stdio: "ignore" },
  );
  onTestFinished(async () => {
    if (server.exitCode === null && server.kill()) await once(server, "exit");
  });
  const wire = httpsWire();
  onTestFinished(() => wire.close());
  await fillRegistry(access, never);
  await fillRegistry(access, never);
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const to = () => [{ host: addresses.registry, port: ports.registryProcess }];
  await forward({ host: addresses.registry, port: ports.registry, to, log: silentLogger }, ending.signal);
  const image = `${access.host}/${stockOsRepository}${stockOsImage.slice(stockOsImage.indexOf("@"))}`;
  const as = (pull: string) =>
    imageStore({
      wire: wire.send,
      clock: systemClock,
      random: systemRandom,
      auth: { pull, push: pull },
      certificates: async () => [access.authority],
      architecture: "amd64",
    });
  expect(await as(access.pullAuth).inspect(image, never)).toMatchObject({
    is: "image",
    digest: packedStockOs.manifest.digest,
    labels: { "ostree.bootable": "true", "containers.bootc": "1" },
  });
  expect(await as(access.pullAuth).mayPush(`${access.host}/os/worker`, never)).toBe("denied");
  expect(await as(access.pushAuth).mayPush(`${access.host}/os/worker`, never)).toBe("yes");
  expect(await as(access.pullAuth).delete(image, never)).toBe("denied");
  expect(await as(access.pullAuth).isWorldReadable(`${access.host}/os/stock`, never)).toBe(false);
  const secrets = imageModeManifests(access).filter(({ kind }) => kind === "Secret") as readonly Secret[];
  expect(secrets.map((secret) => readRegistrySecret(secret))).toMatchObject([
    { verdict: "auth", hosts: [access.host] },
    { verdict: "auth", hosts: [access.host] },
    { verdict: "auth", hosts: [access.host] },
  ]);
});

test("hashes of the suite's own passwords that an earlier release made costly are made again, and others stay [cluster-registry-1]", async () => {
  const layout = layoutOf(join(await temporaryFolder(), "cluster"));
  const addresses = addressesOf(networkFor(layout.directory, 0));
  await mkdir(layout.pki, { recursive: true });
  const make = () =>
    clusterRegistry({ files: systemFiles, random: systemRandom, layout, addresses, clock: systemClock, deriveKey });
  await make();
  const file = join(layout.registry, "users.json");
  const passwordsFile = join(layout.pki, "registry-passwords.json");
  const passwords = JSON.parse(await readFile(passwordsFile, "utf8")) as Record<string, string>;
  const costly = (password: string) =>
    `scrypt:14:${"a".repeat(32)}:${scryptSync(password, Buffer.from("a".repeat(32), "hex"), 32, { N: 2 ** 14, r: 8, p: 1 }).toString("hex")}`;
  const users = [
    { name: "puller", may: ["pull"], password: costly(passwords["puller"] ?? "") },
    { name: "colleague", may: ["pull"], password: costly("guessable") },
    { name: "builder", may: ["pull", "push"], password: costly(passwords["builder"] ?? "") },
  ];
  await writeFile(file, JSON.stringify({ users }));
  await make();
  const text = await readFile(file, "utf8");
  const after = readUsers(text);
  expect(after.map(({ name, may }) => ({ name, may }))).toEqual(users.map(({ name, may }) => ({ name, may })));
  expect(after[1]).toEqual(users[1]);
  // Whoever tries is compared at once: nothing is derived.
  const check = passwordCheck(after, () => Promise.reject(new Error("this would take long")));
  for (const name of ["builder", "puller"]) {
    expect(await check(name, passwords[name] ?? "")).toMatchObject({ verdict: "user" });
    expect(await check(name, "wrong")).toEqual({ verdict: "unknown" });
  }
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await make();
  expect(await readFile(file, "utf8")).toBe(text);
});

test("passwords of the cluster's own users that somebody changed are put back, and that is said [cluster-registry-2]", async () => {
  const layout = layoutOf(join(await temporaryFolder(), "cluster"));
  const addresses = addressesOf(networkFor(layout.directory, 0));
  await mkdir(layout.pki, { recursive: true });
  const make = () =>
    clusterRegistry({ files: systemFiles, random: systemRandom, layout, addresses, clock: systemClock, deriveKey });
  expect((await make()).notices).toEqual([]);
  const file = join(layout.registry, "users.json");
  const passwords = JSON.parse(await readFile(join(layout.pki, "registry-passwords.json"), "utf8")) as Record<
    string,
    string
  >;
  const salt = "a".repeat(32);
  const costly = `scrypt:14:${salt}:${scryptSync("my own", Buffer.from(salt, "hex"), 32, { N: 2 ** 14, r: 8, p: 1 }).toString("hex")}`;
  const random = hashRandomPassword("my own, too", systemRandom);
  for (const builder of [[{ name: "builder", may: ["push"], password: costly }], []]) {
    await writeFile(
      file,
      JSON.stringify({
        users: [
          ...builder,
          { name: "puller", may: ["pull"], password: random },
          { name: "me", may: ["pull"], password: costly },
        ],
      }),
    );
    const { notices, users } = await make();
    expect(notices.toSorted()).toEqual([
      expect.stringContaining(`the registry's user builder in ${file} was put back`),
      expect.stringContaining(`the registry's user puller in ${file} was put back`),
    ]);
    expect(notices.join(" ")).not.toContain("my own");
    expect(users).toEqual(readUsers(await readFile(file, "utf8")));
    expect(users.find(({ name }) => name === "me")?.password).toBe(costly);
    const check = passwordCheck(users, deriveKey);
    for (const name of ["builder", "puller"])
      expect(await check(name, passwords[name] ?? "")).toMatchObject({ verdict: "user" });
    expect((await make()).notices).toEqual([]);
  }
});
