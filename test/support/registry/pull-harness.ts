import { type KeyObject, sign } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemFiles, systemRandom } from "../../../src/ports/node/index.ts";
import { parseAuthFile } from "../../../src/registry/auth-file.ts";
import type { BlobStore } from "../../../src/registry/blob-store.ts";
import { folderStore } from "../../../src/registry/node/folder-store.ts";
import { httpsWire } from "../../../src/registry/node/https-wire.ts";
import { signatureVerifier } from "../../../src/registry/node/verify-signature.ts";
import { type PulledImage, type PullOptions, pullImage } from "../../../src/registry/pull-image.ts";
import { type RegistryClientOptions, registryClient } from "../../../src/registry/registry-client.ts";
import { afterFile } from "../clean-up.ts";
import { acceptAnything } from "./settings.ts";
import { type TestRegistry, type TestRegistryOptions, sha256Of, startTestRegistry } from "./test-registry.ts";

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mco-registry-"));
  afterFile(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function registry(options?: TestRegistryOptions): Promise<TestRegistry> {
  const started = await startTestRegistry(options);
  afterFile(() => started.close());
  return started;
}

/** The waits that a pull asked for, none of which took place; the limit on a quiet connection is not among them. */
export function hurriedClock() {
  const waits: number[] = [];
  const sleep = (milliseconds: number, signal?: AbortSignal) => {
    waits.push(milliseconds);
    return systemClock.sleep(1, signal);
  };
  return { waits, clock: { ...systemClock, sleep } };
}

export type PullChoices = Partial<Omit<PullOptions, "client" | "random">> & {
  readonly auth?: string;
  readonly client?: Partial<RegistryClientOptions>;
  readonly certificate?: string;
  readonly keys?: Readonly<Record<string, string>>;
};

/** Pulls into a new store unless one is given; returns the waits. */
export async function pull(
  image: string,
  choices: PullChoices = {},
): Promise<{ readonly pulled: PulledImage; readonly store: BlobStore; readonly waits: readonly number[] }> {
  const { waits, clock } = hurriedClock();
  const { auth, client, certificate, keys, ...chosen } = choices;
  const wire = httpsWire();
  const store =
    choices.store ??
    folderStore(await temporaryFolder(), { files: systemFiles, clock: systemClock, random: systemRandom });
  try {
    const pulled = await pullImage(
      image,
      {
        clock,
        random: { ...systemRandom, next: () => 0.5 },
        architecture: "amd64",
        policy: acceptAnything,
        registries: undefined,
        verifier: (wanted) => signatureVerifier(wanted, async (path) => keys?.[path]),
        ...chosen,
        store,
        client: registryClient({
          wire: wire.send,
          clock: systemClock,
          auth: parseAuthFile(auth),
          certificates: async () => (certificate === undefined ? [] : [certificate]),
          ...client,
        }),
      },
      new AbortController().signal,
    );
    return { pulled, store, waits };
  } finally {
    wire.close();
  }
}

/** The code and the facts of a failure. */
export async function failure(work: Promise<unknown>): Promise<Readonly<Record<string, unknown>>> {
  try {
    await work;
  } catch (error) {
    const { code, facts, message } = error as {
      code?: string;
      facts?: Readonly<Record<string, unknown>>;
      message: string;
    };
    return { message, ...facts, code };
  }
  return { code: "none" };
}

/** Signs as cosign does, and puts the signature beside the image. */
export function attachSignature(
  to: TestRegistry,
  path: string,
  digest: string,
  key: KeyObject,
  claim: { readonly name?: string; readonly digest?: string } = {},
): void {
  const payload = Buffer.from(
    JSON.stringify({
      critical: {
        identity: { "docker-reference": claim.name ?? `${to.host}/${path}:signed` },
        image: { "docker-manifest-digest": claim.digest ?? digest },
        type: "cosign container image signature",
      },
      optional: null,
    }),
  );
  const signature = sign(key.asymmetricKeyType === "ed25519" ? null : "sha256", payload, key).toString("base64");
  const config = Buffer.from("{}");
  const layer = {
    mediaType: "application/vnd.dev.cosign.simplesigning.v1+json",
    digest: to.addBlob(payload),
    size: payload.length,
    annotations: { "dev.cosignproject.cosign/signature": signature },
  };
  to.addManifest(
    {
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: {
        mediaType: "application/vnd.oci.image.config.v1+json",
        digest: to.addBlob(config),
        size: config.length,
      },
      layers: [layer],
    },
    "application/vnd.oci.image.manifest.v1+json",
    [`${path}:${digest.replace(":", "-")}.sig`],
  );
}

export const bytesOf = (length: number, seed = 1): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i += 1) bytes[i] = (state = (state * 1103515245 + 12345) & 0x7fffffff) >> 16;
  return bytes;
};

export { sha256Of };
