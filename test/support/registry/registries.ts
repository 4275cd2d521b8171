import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { silentLogger } from "../../../src/ports/logger.ts";
import { systemClock, systemFiles, systemRandom } from "../../../src/ports/node/index.ts";
import { type ImageStore, imageStore } from "../../../src/registry/image-store.ts";
import { blobFolder } from "../../../src/standin/registry/node/blob-folder.ts";
import { deriveKey } from "../../../src/standin/registry/node/derive-key.ts";
import { httpsWire } from "../../../src/registry/node/https-wire.ts";
import { listenRegistry } from "../../../src/standin/registry/node/registry-listener.ts";
import { registryServer } from "../../../src/standin/registry/registry-server.ts";
import { hashPassword } from "./hash-password.ts";
import type { Identity } from "../test-pki.ts";
import { authJson } from "./settings.ts";

/** Programs that a test needs and that are missing here, each with the way to get it. */
export const missingPrograms = (...programs: readonly string[]): readonly string[] =>
  programs
    .filter(
      (program) => !(process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program))),
    )
    .map((program) => `${program} is not on this machine (hack/image-tools installs it)`);

export const password = "s3cret";
/** {@link password} by bcrypt, which is all that Debian's registry takes. */
const passwordLine = "builder:$2b$05$abcdefghijklmnopqrstuuLK7U1u6pVRmL7L1BBM2aS35PSZnDXlK\n";

export interface RunningRegistry {
  readonly host: string;
  readonly folder: string;
  close(): Promise<void>;
}

const users = [
  { name: "builder", password: hashPassword(password), may: ["pull", "push", "delete"] as const },
  { name: "puller", password: hashPassword(password), may: ["pull"] as const },
];

/** The embedded registry, in this process. Users: `builder`, and `puller`, who only pulls. */
export async function startEmbedded(
  folder: string,
  tls: Identity,
): Promise<RunningRegistry & { readonly server: ReturnType<typeof registryServer> }> {
  const closing = new AbortController();
  const server = registryServer({
    folder,
    files: systemFiles,
    blobs: await blobFolder(folder, systemClock),
    clock: systemClock,
    random: systemRandom,
    users,
    deriveKey,
  });
  const { port } = await listenRegistry({ host: "127.0.0.1", port: 0, tls, log: silentLogger }, server, closing.signal);
  return { host: `127.0.0.1:${port}`, folder, server, close: async () => closing.abort() };
}

/** Debian's registry. User: `builder`. */
export async function startDebian(folder: string, tls: Identity): Promise<RunningRegistry> {
  const reserved = createServer();
  await new Promise<void>((resolve) => reserved.listen(0, "127.0.0.1", resolve));
  const address = reserved.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await new Promise((resolve) => reserved.close(resolve));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "server.crt"), tls.certificate);
  await writeFile(join(folder, "server.key"), tls.key);
  await writeFile(join(folder, "htpasswd"), passwordLine);
  await writeFile(
    join(folder, "registry.yml"),
    JSON.stringify({
      version: 0.1,
      log: { level: "error", accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: join(folder, "data") }, delete: { enabled: true } },
      http: {
        addr: `127.0.0.1:${port}`,
        tls: { certificate: join(folder, "server.crt"), key: join(folder, "server.key") },
      },
      auth: { htpasswd: { realm: "test", path: join(folder, "htpasswd") } },
    }),
  );
  const child: ChildProcess = spawn("docker-registry", ["serve", join(folder, "registry.yml")], { stdio: "ignore" });
  return {
    host: `127.0.0.1:${port}`,
    folder,
    async close() {
      if (child.exitCode === null && child.kill()) await once(child, "exit");
    },
  };
}

/** Images of a registry as these users see them. */
export function storeAt(
  host: string,
  authority: string | undefined,
  who: {
    readonly pull?: readonly [user: string, password: string];
    readonly push?: readonly [user: string, password: string];
  } = {},
): ImageStore & { close(): void } {
  const wire = httpsWire();
  const { pull = ["builder", password], push = ["builder", password] } = who;
  const store = imageStore({
    wire: wire.send,
    clock: systemClock,
    random: { ...systemRandom, next: () => 0 },
    auth: { pull: authJson(host, ...pull), push: authJson(host, ...push) },
    certificates: async () => (authority === undefined ? [] : [authority]),
    architecture: "amd64",
  });
  return Object.assign(store, { close: () => wire.close() });
}
