import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packedStockOs } from "../standin/cluster/stock-os.ts";
import { systemClock } from "../ports/node/index.ts";
import { parseAuthFile } from "./auth-file.ts";
import type { ImageStore } from "./image-store.ts";
import { packLayer } from "./pack-layer.ts";
import { parentFrom } from "./compose-image.ts";
import { httpsWire } from "./node/https-wire.ts";
import { type RegistryClient, digestOf, registryClient } from "./registry-client.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { bytesOf, failure, temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import {
  type RunningRegistry,
  missingPrograms,
  password,
  startDebian,
  startEmbedded,
  storeAt,
} from "../../test/support/registry/registries.ts";
import { authJson } from "../../test/support/registry/settings.ts";

const run = promisify(execFile);
const never = new AbortController().signal;
const registries = [
  { name: "the embedded registry", missing: [] as readonly string[], start: startEmbedded },
  { name: "Debian's registry", missing: missingPrograms("docker-registry"), start: startDebian },
];
const noTools = [
  ...missingPrograms("buildah", "skopeo"),
  ...(process.getuid?.() === 0 ? [] : ["buildah builds as root only"]),
];
const because = (missing: readonly string[]) => (missing.length === 0 ? "" : ` (left out: ${missing.join("; ")})`);
const layer = (contents: string) =>
  packLayer([{ path: "/etc/x", kind: "file", contents: Buffer.from(contents), mode: 0o644, uid: 0, gid: 0 }], 7);
/** The stock OS as it lies on this machine. */
const blobs = new Map([packedStockOs.config, packedStockOs.layer].map((blob) => [blob.digest, blob.bytes]));
const stock = parentFrom(packedStockOs.manifest.bytes, packedStockOs.config.bytes, (digest) => ({
  async *open() {
    yield blobs.get(digest) ?? new Uint8Array();
  },
}));

for (const { name, missing, start } of registries) {
  describe.skipIf(missing.length > 0)(`${name}, over TLS and with a password${because(missing)}`, () => {
    let folder: string;
    let host: string;
    let authority: string;
    let running: RunningRegistry;
    let store: ImageStore & { close(): void };
    let client: RegistryClient;
    const wire = httpsWire();

    beforeAll(async () => {
      folder = await temporaryFolder();
      const pki = await testAuthority();
      authority = pki.certificate;
      running = await start(join(folder, "registry"), await pki.server("127.0.0.1"));
      ({ host } = running);
      store = storeAt(host, authority);
      client = registryClient({
        wire: wire.send,
        clock: systemClock,
        auth: parseAuthFile(authJson(host, "builder", password)),
        certificates: async () => [authority],
      });
      for (
        let tries = 0;
        tries < 100 &&
        (await failure(client.isOpen({ host, path: "os/x", insecure: false }, never)))["code"] !== "none";
        tries += 1
      )
        await systemClock.sleep(50);
    });
    afterAll(async () => {
      store.close();
      wire.close();
      await running.close();
    });

    const repository = (path: string) => ({ host, path, insecure: false });
    const publish = (path: string, tag: string, contents: string) =>
      store.publish(
        stock,
        {
          dropTopLayer: false,
          layer: layer(contents),
          labels: { test: "yes" },
          repository: `${host}/${path}`,
          tag,
          createdSeconds: 7,
        },
        never,
      );

    test("an appended image is pushed once, and has the same digest each time [registry-suite-1]", async () => {
      const { digest } = await publish("os/base", "1", "a");
      expect(await publish("os/base", "2", "a")).toEqual({ digest });
      expect(await store.resolve(`${host}/os/base:2`, never)).toBe(`${host}/os/base@${digest}`);
      expect(await store.inspect(`${host}/os/base@${digest}`, never)).toMatchObject({
        is: "image",
        digest,
        architecture: "amd64",
        created: 7000,
        labels: { test: "yes" },
        diffIds: [...stock.layers.map(({ diffId }) => diffId), layer("a").diffId],
      });
      expect(
        Buffer.from(
          (await store.readFiles(`${host}/os/base@${digest}`, ["/etc/x", "/etc/none"], never)).get("/etc/x") ?? "",
        ).toString(),
      ).toBe("a");
    });

    test("a configuration in the place of an older one makes the image that it would make on the base [registry-suite-2]", async () => {
      const first = await publish("os/base", "old", "old");
      const appended = await store.append(
        {
          parent: `${host}/os/base@${first.digest}`,
          dropTopLayer: true,
          layer: layer("new"),
          labels: { test: "yes" },
          repository: `${host}/os/base`,
          tag: "new",
          createdSeconds: 7,
        },
        never,
      );
      expect(appended).toEqual(await publish("os/base", "direct", "new"));
    });

    test("layers in another repository of the registry are mounted, not sent [registry-suite-3]", async () => {
      const { digest } = await publish("os/from", "1", "a");
      const sent: string[] = [];
      const counting = registryClient({
        wire: (request, signal) => (
          request.method === "PUT" ? sent.push(request.url.pathname) : 0,
          wire.send(request, signal)
        ),
        clock: systemClock,
        auth: parseAuthFile(authJson(host, "builder", password)),
        certificates: async () => [authority],
      });
      expect(await counting.mountBlob(repository("os/mounted"), layer("a").digest, repository("os/from"), never)).toBe(
        true,
      );
      expect(await counting.hasBlob(repository("os/mounted"), layer("a").digest, never)).toBe(true);
      expect(
        await counting.mountBlob(repository("os/mounted"), `sha256:${"1".repeat(64)}`, repository("os/from"), never),
      ).toBe(false);
      expect(sent).toEqual([]);
      const image = await store.append(
        {
          parent: `${host}/os/from@${digest}`,
          dropTopLayer: false,
          labels: {},
          repository: `${host}/os/elsewhere`,
          tag: "1",
          createdSeconds: 7,
        },
        never,
      );
      expect(await store.inspect(`${host}/os/elsewhere@${image.digest}`, never)).toMatchObject({ is: "image" });
    });

    test("a blob is streamed in, served from an offset, and refused if its digest differs [registry-suite-4]", async () => {
      const bytes = bytesOf(700_000);
      await client.putBlob(
        repository("os/blobs"),
        digestOf(bytes),
        {
          sizeBytes: bytes.length,
          async *open() {
            for (let at = 0; at < bytes.length; at += 50_000) yield bytes.subarray(at, at + 50_000);
          },
        },
        never,
      );
      const { from, chunks } = await client.blob(repository("os/blobs"), digestOf(bytes), 600_000, never);
      const parts: Uint8Array[] = [];
      for await (const chunk of chunks) parts.push(chunk);
      expect(from).toBe(600_000);
      expect(Buffer.concat(parts).equals(bytes.subarray(600_000))).toBe(true);
      expect(
        await failure(client.putBlob(repository("os/blobs"), digestOf(Buffer.from("other")), bytes, never)),
      ).toMatchObject({ status: 400, action: "push", says: "DIGEST_INVALID" });
    });

    test("an anonymous client is refused pulls and pushes, and learns nothing [registry-suite-5]", async () => {
      const { digest } = await publish("os/base", "1", "a");
      const stranger = storeAt(host, authority, { pull: ["builder", "wr0ng"], push: ["nobody", password] });
      expect(await stranger.inspect(`${host}/os/base@${digest}`, never)).toMatchObject({ is: "denied" });
      expect(await stranger.mayPush(`${host}/os/base`, never)).toBe("denied");
      expect(await stranger.delete(`${host}/os/base@${digest}`, never)).toBe("denied");
      expect(await stranger.isWorldReadable(`${host}/os/base`, never)).toBe(false);
      expect(await store.mayPush(`${host}/os/base`, never)).toBe("yes");
      stranger.close();
      const untrusting = storeAt(host, undefined);
      expect(await untrusting.inspect(`${host}/os/base@${digest}`, never)).toMatchObject({ is: "unreachable" });
      expect(
        await failure(
          untrusting.append(
            {
              parent: `${host}/os/base@${digest}`,
              dropTopLayer: false,
              labels: {},
              repository: `${host}/os/base`,
              tag: "x",
              createdSeconds: 7,
            },
            never,
          ),
        ),
      ).toMatchObject({ code: "MCO_IMAGE_UNREACHABLE", kind: "untrusted", issuer: "test-ca" });
      untrusting.close();
    });

    test("a deleted image loses its tags, and deleting it again is no error [registry-suite-6]", async () => {
      const { digest } = await publish("os/gone", "1", "gone");
      expect(await store.inspect(`${host}/os/gone@sha256:${"1".repeat(64)}`, never)).toMatchObject({ is: "absent" });
      expect(await store.delete(`${host}/os/gone@${digest}`, never)).toBe("deleted");
      expect(await store.inspect(`${host}/os/gone:1`, never)).toMatchObject({ is: "absent" });
      expect(await store.delete(`${host}/os/gone@${digest}`, never)).toBe("absent");
    });

    test.skipIf(noTools.length > 0)(
      `what buildah builds and pushes, and what we lay on it, is what skopeo sees${because(noTools)} [registry-suite-7]`,
      async () => {
        const base = await publish("os/base", "tools", "a");
        const context = join(folder, "context");
        for (const path of [context, join(folder, "certs")]) await mkdir(path);
        await writeFile(join(folder, "certs", "ca.crt"), authority);
        await writeFile(join(folder, "auth.json"), authJson(host, "builder", password));
        await writeFile(join(context, "motd"), "built\n");
        await writeFile(join(context, "Containerfile"), `FROM ${host}/os/base@${base.digest}\nCOPY motd /etc/motd\n`);
        await writeFile(join(folder, "accept.json"), '{"default":[{"type":"insecureAcceptAnything"}]}');
        const store_ = ["--root", join(folder, "storage"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];
        const access = [
          "--cert-dir",
          join(folder, "certs"),
          "--authfile",
          join(folder, "auth.json"),
          "--signature-policy",
          join(folder, "accept.json"),
        ];
        await run("buildah", [
          ...store_,
          "build",
          ...access,
          "--isolation",
          "chroot",
          "--timestamp",
          "7",
          "-t",
          "localhost/built",
          context,
        ]);
        await run("buildah", [
          ...store_,
          "push",
          "-q",
          ...access,
          "--digestfile",
          join(folder, "digest"),
          "localhost/built",
          `docker://${host}/os/built:1`,
        ]);
        const digest = (await readFile(join(folder, "digest"), "utf8")).trim();
        const made = await store.append(
          {
            parent: `${host}/os/built@${digest}`,
            dropTopLayer: false,
            layer: layer("on top"),
            labels: { top: "yes" },
            repository: `${host}/os/built`,
            tag: "top",
            createdSeconds: 7,
          },
          never,
        );
        const inspect = async (...words: readonly string[]) =>
          (await run("skopeo", ["inspect", "--cert-dir", join(folder, "certs"), ...words])).stdout;
        expect(
          JSON.parse(
            await inspect("--authfile", join(folder, "auth.json"), `docker://${host}/os/built@${made.digest}`),
          ),
        ).toMatchObject({
          Digest: made.digest,
          RepoTags: expect.arrayContaining(["1", "top"]) as string[],
          Labels: { top: "yes" },
          Layers: expect.arrayContaining([layer("on top").digest]) as string[],
        });
        expect(
          Buffer.from(
            (await store.readFiles(`${host}/os/built@${made.digest}`, ["/etc/motd"], never)).get("/etc/motd") ?? "",
          ).toString(),
        ).toBe("built\n");
        await expect(inspect("--creds", "builder:wr0ng", `docker://${host}/os/built:1`)).rejects.toMatchObject({
          stderr: expect.stringMatching(/unauthorized|authentication required/) as string,
        });
        await run("skopeo", [
          "delete",
          "--cert-dir",
          join(folder, "certs"),
          "--authfile",
          join(folder, "auth.json"),
          `docker://${host}/os/built:top`,
        ]);
        expect(await store.inspect(`${host}/os/built@${made.digest}`, never)).toMatchObject({ is: "absent" });
      },
      60_000,
    );
  });
}
