import { createServer } from "node:http";
import { type AddressInfo, type Socket, connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemRandom } from "../ports/node/index.ts";
import { type ImageStore, imageStore } from "./image-store.ts";
import { httpsWire } from "./node/https-wire.ts";
import { type ProxySettings, WireFailure } from "./wire.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { packLayer } from "./pack-layer.ts";
import { bytesOf, failure, hurriedClock, registry, sha256Of } from "../../test/support/registry/pull-harness.ts";
import type { TestRegistry } from "../../test/support/registry/test-registry.ts";
import { gzippedLayer } from "../../test/support/registry/tar-builder.ts";
import { acceptAnything, authJson } from "../../test/support/registry/settings.ts";

const never = new AbortController().signal;
const layer = packLayer([{ path: "/etc/x", kind: "file", contents: Buffer.from("x"), mode: 0o644, uid: 0, gid: 0 }], 7);
const addition = { dropTopLayer: false, layer, labels: {}, tag: "made", createdSeconds: 7 };

function storeWith(more: Partial<Parameters<typeof imageStore>[0]> = {}): {
  readonly store: ImageStore;
  readonly waits: readonly number[];
} {
  const wire = httpsWire();
  onTestFinished(() => wire.close());
  const { clock, waits } = hurriedClock();
  return {
    store: imageStore({
      wire: wire.send,
      clock,
      random: { ...systemRandom, next: () => 0.5 },
      auth: { pull: undefined, push: undefined },
      certificates: async () => [],
      architecture: "amd64",
      ...more,
    }),
    waits,
  };
}

/** A registry with an image of one layer that does not compress. */
async function withParent(
  options?: Parameters<typeof registry>[0],
): Promise<{ readonly at: TestRegistry; readonly digest: string; readonly blob: string }> {
  const at = await registry(options);
  const content = gzippedLayer({ path: "usr/data", contents: bytesOf(200_000).toString("latin1") });
  return { at, digest: at.addImage("os/base", [content], { tag: "v1" }), blob: sha256Of(content.bytes) };
}

describe("images of registries", () => {
  test("a tag resolves to the digest of the first mirror that has it, and a digest to itself", async () => {
    const [empty, { at, digest }] = [await registry(), await withParent()];
    const conf = `[[registry]]\nlocation = "quay.example/os"\n[[registry.mirror]]\nlocation = "${empty.host}/os"\n[[registry.mirror]]\nlocation = "${at.host}/os"\n`;
    const { store } = storeWith({ registries: conf });
    expect(await store.resolve("quay.example/os/base:v1", never)).toBe(`quay.example/os/base@${digest}`);
    const asked = at.seen.length;
    expect(await store.resolve(`quay.example/os/base@${digest}`, never)).toBe(`quay.example/os/base@${digest}`);
    expect(at.seen.length).toBe(asked);
    expect(await store.inspect(`quay.example/os/base@${digest}`, never)).toMatchObject({ is: "image", digest });
  });

  test("layers of another registry are streamed, resumed after an interruption, and arrive whole", async () => {
    const [{ at: from, digest, blob }, to] = [await withParent(), await registry()];
    from.plan(`blobs/${blob}`, { do: "cut", afterBytes: Math.floor((from.blobs.get(blob)?.length ?? 0) / 2) }, "none");
    const { store } = storeWith();
    const made = await store.append(
      { ...addition, parent: `${from.host}/os/base@${digest}`, repository: `${to.host}/os/made` },
      never,
    );
    expect(to.manifests.has(made.digest)).toBe(true);
    expect([to.blobs.get(blob)?.length, to.blobs.has(layer.digest)]).toEqual([from.blobs.get(blob)?.length, true]);
    expect(from.seen.filter(({ target }) => target.includes(blob)).map(({ range }) => range === undefined)).toEqual([
      true,
      false,
    ]);
    const sent = to.seen.filter(({ method }) => method === "PUT").length;
    await store.append(
      { ...addition, parent: `${from.host}/os/base@${digest}`, repository: `${to.host}/os/made` },
      never,
    );
    expect(to.seen.filter(({ method }) => method === "PUT").length).toBe(sent + 1); // The manifest alone.
  });

  test("a broken push is retried; a temporarily refused one is not, because the caller waits longer", async () => {
    const { at, digest } = await withParent();
    const request = { ...addition, parent: `${at.host}/os/base@${digest}`, repository: `${at.host}/os/base` };
    const wire = httpsWire();
    onTestFinished(() => wire.close());
    let breaks = 2;
    const broken = storeWith({
      wire: async (given, signal) => {
        if (given.method === "PUT" && given.url.pathname.endsWith("/manifests/made") && (breaks -= 1) >= 0)
          throw new WireFailure("unreachable", "ECONNRESET");
        return wire.send(given, signal);
      },
    });
    expect(await failure(broken.store.append(request, never))).toMatchObject({ code: "none" });
    expect(broken.waits).toEqual([1000, 2000]);
    const refused = storeWith();
    at.plan("/manifests/made", {
      do: "status",
      status: 503,
      body: '{"errors":[{"code":"UNAVAILABLE","message":"being\\nmaintained, password=s3cret-words"}]}',
    });
    const failed = await failure(refused.store.append(request, never));
    expect(failed).toMatchObject({
      code: "MCO_IMAGE_UNREACHABLE",
      action: "push",
      status: 503,
      says: "UNAVAILABLE",
      laterMayHelp: true,
    });
    expect(failed["problem"]).toMatch(/^being maintained/);
    expect(JSON.stringify(failed)).not.toContain("s3cret-words");
    expect(refused.waits).toEqual([]);
  });

  test.for([
    { status: 429, expected: { code: "MCO_IMAGE_UNREACHABLE", laterMayHelp: true } },
    { status: 413, expected: { code: "MCO_IMAGE_UNREACHABLE", laterMayHelp: false } },
    { status: 403, expected: { code: "MCO_IMAGE_UNAUTHORIZED" } },
    { status: 404, expected: { code: "MCO_IMAGE_ABSENT" } },
  ])("a push that is answered with $status says so", async ({ status, expected }) => {
    const { at, digest } = await withParent();
    at.plan("/blobs/uploads/", { do: "status", status });
    expect(
      await failure(
        storeWith().store.append(
          { ...addition, parent: `${at.host}/os/base@${digest}`, repository: `${at.host}/os/new` },
          never,
        ),
      ),
    ).toMatchObject({ ...expected, status, action: "push" });
  });

  test("bytes that do not match their digest are refused", async () => {
    const { at, digest } = await withParent();
    const { store } = storeWith();
    at.plan(`manifests/${digest}`, { do: "garble" });
    expect(await failure(store.parentOf(`${at.host}/os/base@${digest}`, never))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
    });
    at.plan("/blobs/", { do: "garble" });
    expect(await failure(store.inspect(`${at.host}/os/base@${digest}`, never))).toMatchObject({
      code: "MCO_IMAGE_DIGEST_MISMATCH",
    });
  });

  test("a layer that does not end is not read beyond its size [image-store-1]", async () => {
    const { at, digest, blob } = await withParent();
    const wire = httpsWire();
    onTestFinished(() => wire.close());
    const [mebibyte, mostMebibytes] = [new Uint8Array(1024 * 1024), 64];
    let given = 0;
    const { store } = storeWith({
      wire: async (request, signal) => {
        const response = await wire.send(request, signal);
        if (!request.url.pathname.endsWith(blob)) return response;
        async function* withoutEnd() {
          yield* response.chunks;
          for (; given < mostMebibytes; given += 1) yield mebibyte;
        }
        return { ...response, chunks: withoutEnd() };
      },
    });
    const reading = store.readFiles(`${at.host}/os/base@${digest}`, ["/usr/none"], never);
    expect(await failure(reading)).toMatchObject({ code: "MCO_IMAGE_DIGEST_MISMATCH" });
    expect(given).toBeLessThan(4);
  });

  test.for(["null", "[]", "7", "", "{", '{"config":7}', '{"config":{"Labels":[]}}', '{"rootfs":{"diff_ids":7}}'])(
    "an image whose config is %j is invalid, and no bug [image-store-config-1]",
    async (text) => {
      const at = await registry();
      const config = Buffer.from(text);
      const digest = at.addManifest(
        {
          schemaVersion: 2,
          mediaType: "application/vnd.oci.image.manifest.v1+json",
          config: {
            mediaType: "application/vnd.oci.image.config.v1+json",
            digest: at.addBlob(config),
            size: config.length,
          },
          layers: [],
        },
        "application/vnd.oci.image.manifest.v1+json",
      );
      const { store } = storeWith();
      expect(await failure(store.inspect(`${at.host}/os/base@${digest}`, never))).toMatchObject({
        code: "MCO_IMAGE_INVALID",
      });
    },
  );

  test("a parent that the policy rejects is not used", async () => {
    const { at, digest } = await withParent();
    const parent = `${at.host}/os/base@${digest}`;
    const verifier = async () => async () => "invalid" as const;
    await expect(
      storeWith({ policy: '{"default":[{"type":"reject"}]}', verifier }).store.parentOf(parent, never),
    ).rejects.toMatchObject({ code: "MCO_IMAGE_REFUSED" });
    expect((await storeWith({ policy: acceptAnything, verifier }).store.parentOf(parent, never)).layers.length).toBe(1);
  });

  test("a policy judges also what is named by its digest, before anything is made of it [registry-store-policy-1]", async () => {
    const { at, digest } = await withParent();
    const image = `${at.host}/os/base@${digest}`;
    const verifier = async () => async () => "invalid" as const;
    await expect(
      storeWith({ policy: '{"default":[{"type":"reject"}]}', verifier }).store.resolve(image, never),
    ).rejects.toMatchObject({ code: "MCO_IMAGE_REFUSED" });
    expect(await storeWith({ policy: acceptAnything, verifier }).store.resolve(image, never)).toBe(image);
  });

  test("what is named by its digest needs no registry where the policy accepts whatever has its name [registry-store-policy-2]", async () => {
    const { at, digest } = await withParent();
    const image = `${at.host}/os/base@${digest}`;
    const verifier = async () => async () => "invalid" as const;
    const { store } = storeWith({ policy: acceptAnything, verifier });
    expect(await store.resolve(image, never)).toBe(image);
    expect(at.seen).toEqual([]);
    // A tag says nothing without its registry.
    expect(await store.resolve(`${at.host}/os/base:v1`, never)).toBe(image);
    expect(at.seen).not.toEqual([]);
  });

  test("images are verified with the machines' credentials; a parent may use either credentials", async () => {
    const { at, digest } = await withParent({ auth: { kind: "basic", user: "builder", password: "right" } });
    const image = `${at.host}/os/base@${digest}`;
    const { store } = storeWith({ auth: { pull: undefined, push: authJson(at.host, "builder", "right") } });
    expect(await store.inspect(image, never)).toMatchObject({ is: "denied" });
    expect((await store.parentOf(image, never)).layers.length).toBe(1);
  });

  test("a public repository is recognized, even before it exists", async () => {
    const [open, closed] = [await registry(), await registry({ auth: { kind: "bearer", user: "u", password: "p" } })];
    const { store } = storeWith();
    expect(await store.isWorldReadable(`${open.host}/os/none`, never)).toBe(true);
    expect(await store.isWorldReadable(`${closed.host}/os/none`, never)).toBe(false);
    expect(await store.mayPush(`${closed.host}/os/none`, never)).toBe("denied");
  });
});

test("a proxy is used for every registry except the exempt ones, and sees no contents", async () => {
  const pki = await testAuthority();
  const tls = await pki.server("127.0.0.1");
  const at = await registry({ tls, auth: { kind: "basic", user: "u", password: "s3cret" } });
  const digest = at.addImage("os/base", [gzippedLayer({ path: "etc/x", contents: "x" })]);
  const asked: string[] = [];
  const seen: Buffer[] = [];
  const proxy = createServer().on("connect", (request, client: Socket, head: Buffer) => {
    asked.push(request.url ?? "");
    seen.push(Buffer.from(JSON.stringify(request.headers)), head);
    const [host = "", port = ""] = (request.url ?? "").split(":");
    const server = connect(Number(port), host, () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      client.on("data", (chunk: Buffer) => seen.push(chunk));
      server.pipe(client).pipe(server);
    });
    for (const socket of [client, server]) socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const httpsProxy = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const through = (settings: ProxySettings) =>
    storeWith({
      proxy: settings,
      certificates: async () => [pki.certificate],
      auth: { pull: authJson(at.host, "u", "s3cret"), push: undefined },
    }).store.inspect(`${at.host}/os/base@${digest}`, never);
  expect(await through({ httpsProxy })).toMatchObject({ is: "image" });
  expect(asked[0]).toBe(at.host);
  expect(Buffer.concat(seen).includes(Buffer.from("u:s3cret").toString("base64"))).toBe(false);
  const before = asked.length;
  expect(await through({ httpsProxy, noProxy: "127.0.0.1" })).toMatchObject({ is: "image" });
  expect(asked.length).toBe(before);
});
