import { generateKeyPairSync } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Secret } from "../api/foreign/kubernetes.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { appendBackend } from "../os-builder/append-backend.ts";
import type { BuildRequest } from "../os-builder/backend.ts";
import type { RunState } from "../core/build/run-decision.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { httpsWire } from "../registry/node/https-wire.ts";
import { packLayer } from "../registry/pack-layer.ts";
import { attachSignature, failure, registry } from "../../test/support/registry/pull-harness.ts";
import { gzippedLayer } from "../../test/support/registry/tar-builder.ts";
import { buildImages } from "./build-images.ts";

const never = new AbortController().signal;
const release = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const keyData = Buffer.from(release.publicKey.export({ type: "spki", format: "pem" })).toString("base64");
const layer = packLayer([{ path: "/etc/x", kind: "file", contents: Buffer.from("x"), mode: 0o644, uid: 0, gid: 0 }], 7);
const added = { bytes: layer.bytes, digest: layer.digest, diffId: layer.diffId };

/** A policy that accepts images of a scope with a signature, and every other image as it is. */
const signedIn = (scope: string, key: object = { keyData }) =>
  JSON.stringify({
    default: [{ type: "insecureAcceptAnything" }],
    transports: { docker: { [scope]: [{ type: "sigstoreSigned", ...key }] } },
  });

/** A registry with a base image, and builds as the os-builder's process makes them. */
async function harness() {
  const at = await registry();
  const digest = at.addImage("os/base", [gzippedLayer({ path: "usr/a", contents: "a" })], { tag: "v2" });
  const wire = httpsWire();
  onTestFinished(() => wire.close());
  const images = buildImages(wire, { clock: systemClock, random: systemRandom });
  const credentials: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "credentials" },
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": btoa('{"auths":{}}') },
  };
  const kube = { get: async () => Promise.resolve(credentials) } as unknown as KubeClient;
  const backend = appendBackend({ kube, clock: systemClock, storeFor: images.storeFor });
  const base = `${at.host}/os/base@${digest}`;
  const access = { pull: undefined, push: undefined, registries: undefined, certificates: {}, trust: [] };
  let attempt = 0;
  /** Appends to the base under a policy. */
  async function append(policy: string, more: Partial<BuildRequest> = {}): Promise<RunState> {
    attempt += 1;
    const run = await backend.start(
      {
        id: `worker-k-${attempt}`,
        build: {
          metadata: { name: "worker-k" },
          spec: {
            machineConfig: { name: "rendered-worker-1" },
            machineOSConfig: { name: "worker" },
            renderedImagePushSpec: `${at.host}/os/made:w`,
          },
        },
        attempt,
        pool: "worker",
        mode: "full",
        architecture: "amd64",
        base,
        context: [],
        configLayer: added,
        mounts: [],
        auth: { pull: "credentials", push: "credentials" },
        trust: [],
        registryCertificates: {},
        policy,
        target: { repository: `${at.host}/os/made`, tag: "w" },
        epoch: 7,
        noCache: false,
        isolation: "userNamespace",
        limits: { seconds: 3600, pushSeconds: 3600, cpu: "1", memory: "1Gi", storage: "1Gi" },
        labels: {},
        ...more,
      },
      never,
    );
    return new Promise((resolve) => {
      const look = async () => {
        const state = await backend.observe(run, never);
        if (!["Pending", "Running"].includes(state.phase)) resolve(state);
      };
      backend.watch(() => void look());
      void look();
    });
  }
  const resolve = (image: string, policy: string) =>
    images.open({ pool: "worker", ...access, policy, architecture: "amd64" }).resolve(image, never);
  return { at, digest, base, append, resolve };
}

describe("images that builds take, under the signature policy of their configuration", () => {
  test("a configuration is laid on a base that the policy accepts, and on no other [build-images-1]", async () => {
    const { at, digest, append } = await harness();
    const policy = signedIn(`${at.host}/os/base`);
    expect(await append(policy)).toMatchObject({
      phase: "Failed",
      failure: {
        class: "BaseImageRefused",
        step: "pull-base",
        cause: expect.stringContaining("the image carries no signature") as string,
      },
    });
    attachSignature(at, "os/base", digest, generateKeyPairSync("ed25519").privateKey);
    expect(await append(policy)).toMatchObject({ phase: "Failed", failure: { class: "BaseImageRefused" } });
    expect([...at.manifests.keys()].filter((name) => name.startsWith("os/made"))).toEqual([]);
    attachSignature(at, "os/base", digest, release.privateKey);
    expect(await append(policy)).toMatchObject({ phase: "Succeeded" });
    expect(at.manifests.has("os/made:w")).toBe(true);
  });

  test("an image of an earlier build is no parent when its base is not accepted any more [build-images-2]", async () => {
    const { at, digest, append } = await harness();
    const policy = signedIn(`${at.host}/os/base`);
    const made = at.addImage("os/made", [gzippedLayer({ path: "usr/a", contents: "b" })]);
    const parent = { image: `${at.host}/os/made@${made}`, hasConfigLayer: false };
    expect(await append(policy, { parent })).toMatchObject({ phase: "Failed", failure: { class: "BaseImageRefused" } });
    attachSignature(at, "os/base", digest, release.privateKey);
    expect(await append(policy, { parent })).toMatchObject({ phase: "Succeeded" });
  });

  test("a policy whose key is on machines alone accepts nothing here [build-images-3]", async () => {
    const { at, digest, append } = await harness();
    attachSignature(at, "os/base", digest, release.privateKey);
    expect(await append(signedIn(`${at.host}/os/base`, { keyPath: "/etc/pki/release.pub" }))).toMatchObject({
      phase: "Failed",
      failure: {
        class: "BaseImageRefused",
        cause: expect.stringContaining("the key /etc/pki/release.pub cannot be read") as string,
      },
    });
  });

  test("a tag means an image that is signed for that tag [build-images-4]", async () => {
    const { at, digest, base, resolve } = await harness();
    const [tag, policy] = [`${at.host}/os/base:v2`, signedIn(`${at.host}/os/base`)];
    expect(await failure(resolve(tag, policy))).toMatchObject({ code: "MCO_IMAGE_REFUSED", asked: tag });
    attachSignature(at, "os/base", digest, release.privateKey, { name: `${at.host}/os/base:v1` });
    expect(await failure(resolve(tag, policy))).toMatchObject({ code: "MCO_IMAGE_REFUSED" });
    attachSignature(at, "os/base", digest, release.privateKey, { name: tag });
    expect(await resolve(tag, policy)).toBe(base);
  });
});
