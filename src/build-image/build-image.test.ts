import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { imageLabels } from "../api/names.ts";
import { readStepMarker } from "../core/build/image-build.ts";
import type { ImageInfo } from "../registry/image-store.ts";
import { readTar } from "../registry/tar.ts";
import { password } from "../../test/support/registry/registries.ts";
import { type BuildHarness, buildHarness, configLayer, missing } from "../../test/support/build-harness.ts";

const never = new AbortController().signal;
const because = missing.length === 0 ? "" : ` (left out: ${missing.join("; ")})`;

describe.skipIf(missing.length > 0)(`images made by buildah${because}`, () => {
  let harness: BuildHarness;
  beforeAll(async () => {
    harness = await buildHarness();
  }, 60_000);
  afterAll(() => harness.close());

  const imageOf = async (outcome: object): Promise<ImageInfo> => {
    expect(outcome).toMatchObject({ digest: expect.any(String) as string });
    const image = await harness.store.inspect(
      `${harness.host}/os/worker@${"digest" in outcome ? String(outcome.digest) : ""}`,
      never,
    );
    if (image.is !== "image") throw new Error(JSON.stringify(image));
    return image;
  };
  const read = async (image: ImageInfo, path: string) =>
    Buffer.from(
      (await harness.store.readFiles(`${harness.host}/os/worker@${image.digest}`, [path], never)).get(path) ??
        "(absent)",
    ).toString();
  const stepsIn = (log: readonly string[]) =>
    log.flatMap((line) => {
      const marker = readStepMarker(line);
      return marker?.state === "start" ? [marker.step] : [];
    });

  test("custom steps and the configuration become one image on the registry's own base, and the configuration is on top", async () => {
    const layer = configLayer("configured");
    const { outcome, log } = await harness.build({
      custom: "FROM configs AS final\nCOPY motd /etc/motd\nCOPY motd /usr/lib/motd\n",
      layer,
      files: { motd: "custom\n" },
    });
    const image = await imageOf(outcome);
    expect(stepsIn(log)).toEqual([
      "ca",
      "context",
      "pull-base",
      "context",
      "user:1",
      "user:2",
      "user:3",
      "commit",
      "config-layer",
      "push",
      "verify",
    ]);
    const base = await harness.store.inspect(harness.base, never);
    expect(image.layers.map(({ digest }) => digest)).toEqual([
      ...(base.is === "image" ? base.layers : []).map(({ digest }) => digest),
      expect.any(String),
      expect.any(String),
      layer.digest,
    ]);
    expect(image).toMatchObject({
      created: 7000,
      architecture: "amd64",
      labels: {
        [imageLabels.content]: "full",
        [imageLabels.baseDigest]: harness.base.slice(harness.base.indexOf("@") + 1),
        "ostree.bootable": "true",
      },
    });
    expect(image.labels).not.toHaveProperty("io.buildah.version");
    expect([await read(image, "/etc/motd"), await read(image, "/usr/lib/motd")]).toEqual(["configured", "custom\n"]);
  }, 60_000);

  test("the same inputs make the same image, from the cache, and without it in a store of their own [build-image-2]", async () => {
    const given = {
      custom: "FROM os\nCOPY motd /usr/lib/motd\n",
      layer: configLayer("same"),
      files: { motd: "same\n" },
    };
    const first = await harness.build(given);
    await imageOf(first.outcome);
    expect((await harness.build(given)).outcome).toEqual(first.outcome);
    expect(
      (await harness.build({ ...given, request: { noCache: true }, cache: join(harness.folder, "other-cache") }))
        .outcome,
    ).toEqual(first.outcome);
  }, 60_000);

  test("what steps see comes from volumes as a kubelet lays them down [build-image-4]", async () => {
    const { outcome } = await harness.build({
      custom: "FROM os\nCOPY motd /usr/lib/motd\n",
      files: { motd: "x" },
      mounts: { entitlement: { "key.pem": "key" }, yumRepos: { "cluster.repo": "[repo]" } },
    });
    expect(outcome).toEqual({ digest: expect.stringMatching(/^sha256:/) as string });
  }, 60_000);

  test("the layer of a configuration is the same blob in a build, below and above custom steps, and where it is laid on the base alone [build-image-1]", async () => {
    const layer = configLayer("everywhere");
    const below = await imageOf(
      (
        await harness.build({
          custom: "FROM configs\nCOPY motd /usr/lib/motd\n",
          seesConfiguration: true,
          layer,
          files: { motd: "x" },
        })
      ).outcome,
    );
    const base = await harness.store.inspect(harness.base, never);
    const own = below.layers.slice(base.is === "image" ? base.layers.length : 0).map(({ digest }) => digest);
    expect(own).toEqual([layer.digest, expect.any(String), layer.digest]);
    expect(below.diffIds.slice(-3)).toEqual([layer.diffId, expect.any(String), layer.diffId]);
    const alone = await harness.build({ layer });
    const appended = await harness.store.append(
      {
        parent: harness.base,
        dropTopLayer: false,
        layer,
        labels: {
          [imageLabels.content]: "full",
          [imageLabels.baseDigest]: harness.base.slice(harness.base.indexOf("@") + 1),
        },
        repository: `${harness.host}/os/worker`,
        tag: "appended",
        createdSeconds: 7,
      },
      never,
    );
    expect(alone.outcome).toEqual(appended);
    expect((await imageOf(alone.outcome)).layers.at(-1)?.digest).toBe(layer.digest);
  }, 60_000);

  test.for<{
    title: string;
    custom: string;
    failure: { class: string; step?: string; cause?: string };
    base?: string;
    pullPassword?: string;
    fresh?: boolean;
  }>([
    {
      title: "an instruction that there is not",
      custom: "FROM os\nRUNN true\n",
      failure: { class: "ContainerfileInvalid" },
    },
    {
      title: "a file that is not in the context",
      custom: "FROM os\nCOPY none /none\n",
      failure: { class: "UserStepFailed", step: "user:2" },
    },
    {
      title: "a here-document",
      custom: "FROM os\nCOPY <<EOF /etc/x\nhello\nEOF\n",
      failure: { class: "ContainerfileInvalid", cause: expect.stringContaining("line 2 ") as string },
    },
    {
      title: "an option in the place of an image",
      custom: "FROM os\nCOPY --from=--help /x /x\n",
      failure: { class: "ContainerfileInvalid", step: "user:2", cause: expect.stringContaining('"--help"') as string },
    },
    {
      title: "a store of the machine in the place of a registry",
      custom: "FROM os\nCOPY --from=dir:/run/mco-build/pull /x /x\n",
      failure: { class: "ContainerfileInvalid", step: "user:2", cause: expect.stringContaining("dir:") as string },
    },
    {
      title: "a base that there is not",
      custom: "FROM os\nCOPY motd /m\n",
      base: `sha256:${"1".repeat(64)}`,
      failure: { class: "BaseImageNotFound", step: "pull-base" },
    },
    {
      title: "pull credentials that are not good",
      custom: "FROM os\nCOPY motd /m\n",
      pullPassword: "wr0ng",
      fresh: true,
      failure: { class: "BaseImagePullDenied", step: "pull-base" },
    },
  ])(
    "$title is classified correctly [build-image-3]",
    { timeout: 60_000 },
    async ({ custom, base, pullPassword, fresh, failure }) => {
      const { outcome, log } = await harness.build({
        custom,
        files: { motd: "x" },
        ...(base === undefined ? {} : { request: { base: `${harness.host}/os/stock@${base}` } }),
        ...(pullPassword === undefined ? {} : { pullPassword }),
        ...(fresh === true ? { cache: join(harness.folder, "fresh-cache") } : {}),
      });
      expect(outcome).toMatchObject({ failure });
      expect(readStepMarker(log.at(-1) ?? "")).toMatchObject({
        state: "end",
        step: "failure" in outcome ? outcome.failure.step : "",
      });
    },
  );

  test("an authority vouches for its own registry; one of the cluster's for every registry [build-image-5]", async () => {
    const build = (how: { readonly of: string; readonly trust?: string }, cache: string) =>
      harness.build({
        custom: "FROM os\nCOPY motd /m\n",
        files: { motd: "x" },
        cache: join(harness.folder, cache),
        request: { certificates: { [how.of]: [harness.certificate] } },
        ...(how.trust === undefined ? {} : { trust: how.trust }),
      });
    const foreign = await build({ of: "other.example.com:5000" }, "foreign-cache");
    expect(foreign.outcome).toMatchObject({ failure: { class: "RegistryTLS", step: "pull-base" } });
    const trusted = await build({ of: "other.example.com:5000", trust: harness.certificate }, "trusted-cache");
    expect(trusted.outcome).toHaveProperty("digest");
    const own = await build({ of: harness.host }, "own-cache");
    expect(own.outcome).toHaveProperty("digest");
  }, 120_000);

  test("an unavailable registry and a repository unknown to the pull credentials are distinguished", async () => {
    await writeFile(join(harness.registry.folder, "refuse-pushes"), "503 being maintained\n");
    const refused = await harness.build({ layer: configLayer("refused") });
    await writeFile(join(harness.registry.folder, "refuse-pushes"), "403 over quota\n");
    const denied = await harness.build({ layer: configLayer("refused") });
    await rm(join(harness.registry.folder, "refuse-pushes"));
    expect(refused.outcome).toMatchObject({
      failure: { class: "PushUnavailable", step: "push", cause: expect.stringContaining("503") as string },
    });
    expect(denied.outcome).toMatchObject({ failure: { class: "PushDenied", step: "push" } });
    const unseen = await harness.build({ layer: configLayer("unseen"), pullPassword: "wr0ng" });
    expect(unseen.outcome).toMatchObject({ failure: { class: "BaseImagePullDenied" } });
    expect(
      (await harness.build({ layer: configLayer("unseen"), request: { architecture: "arm64" } })).outcome,
    ).toMatchObject({
      failure: { class: "VerifyFailed", step: "verify", cause: expect.stringContaining("arm64") as string },
    });
  }, 60_000);

  describe("steps that run something", () => {
    const shell = (given: Parameters<BuildHarness["build"]>[0]) =>
      harness.build({ ...given, request: { ...given.request, base: harness.withShell ?? harness.base } });
    const needsShell = (skip: (note?: string) => void) => {
      if (harness.withShell === undefined) skip("there is no /bin/busybox on this machine (package busybox-static)");
    };

    test("what steps see and use of credentials, entitlements and repositories is in no layer, nor in the log", async ({
      skip,
    }) => {
      needsShell(skip);
      const secrets = {
        entitlement: "ENTITLEMENT-KEY-0123456789",
        repo: "REPO-PASSWORD-0123456789",
        visible: "VISIBLE-PASSWORD-0123456789",
      };
      const { outcome, log } = await shell({
        custom:
          "FROM configs\nRUN grep -q ENTITLEMENT /etc/pki/entitlement/key.pem && grep -q REPO /etc/yum.repos.d/cluster.repo && grep -q VISIBLE /etc/yum.repos.d/pool.repo && grep -q VISIBLE /etc/dnf/vars/x && echo seen > /usr/lib/seen\nCOPY motd /etc/motd\n",
        files: { motd: "x" },
        mounts: { entitlement: { "key.pem": secrets.entitlement }, yumRepos: { "cluster.repo": secrets.repo } },
        visible: ["/etc/yum.repos.d/pool.repo", "/etc/dnf/vars/x"].map((path) => ({
          path,
          kind: "file",
          contents: Buffer.from(secrets.visible),
          mode: 0o644,
          uid: 0,
          gid: 0,
        })),
      });
      const image = await imageOf(outcome);
      expect(await read(image, "/usr/lib/seen")).toBe("seen\n");
      const everything: Buffer[] = [];
      const names: string[] = [];
      const parent = await harness.store.parentOf(`${harness.host}/os/worker@${image.digest}`, never);
      for (const layer of parent.layers) {
        const parts: Uint8Array[] = [];
        for await (const chunk of layer.open(never)) parts.push(chunk);
        const plain = gunzipSync(Buffer.concat(parts));
        everything.push(plain);
        for await (const entry of readTar(
          (async function* () {
            yield plain;
          })(),
        ))
          names.push(entry.path);
      }
      const credentials = [
        password,
        Buffer.from(`builder:${password}`).toString("base64"),
        Buffer.from(`puller:${password}`).toString("base64"),
      ];
      const text = Buffer.concat([...everything, Buffer.from(JSON.stringify([parent.config, log, outcome]))]);
      for (const secret of [...Object.values(secrets), ...credentials])
        expect(text.includes(secret), secret).toBe(false);
      expect(names.filter((name) => /key\.pem|cluster\.repo|auth\.json/.test(name))).toEqual([]);
    }, 60_000);

    test("a failed step reports its name, its exit code and its last output, without secrets", async ({ skip }) => {
      needsShell(skip);
      const key = ["-----BEGIN PRIVATE KEY-----", "MIGHAgEAMBMGByqGSM49", "-----END PRIVATE KEY-----"];
      const { outcome, log } = await shell({
        custom:
          "FROM os\nRUN echo before\nCOPY key /usr/lib/key\nRUN cat /usr/lib/key; echo token=abcdefghijklmnop; echo it went wrong; exit 7\n",
        files: { key: `${key.join("\n")}\n` },
      });
      expect(outcome).toMatchObject({
        failure: {
          class: "UserStepFailed",
          step: "user:4",
          exitCode: 7,
          excerpt: expect.stringContaining("it went wrong") as string,
        },
      });
      for (const told of [JSON.stringify(outcome), log.join("\n")]) {
        expect(told).toContain("it went wrong");
        for (const secret of ["MIGHAgEAMBMGByqGSM49", "abcdefghijklmnop"]) expect(told).not.toContain(secret);
      }
    }, 60_000);

    test("what steps saw before is not taken for what they see now", async ({ skip }) => {
      needsShell(skip);
      const seen = async (text: string) =>
        read(
          await imageOf(
            (
              await shell({
                custom: "FROM os\nRUN cat /etc/yum.repos.d/x.repo > /usr/lib/seen\n",
                mounts: { yumRepos: { "x.repo": text } },
              })
            ).outcome,
          ),
          "/usr/lib/seen",
        );
      expect([await seen("one"), await seen("two")]).toEqual(["one", "two"]);
    }, 60_000);

    test("an aborted build ends its steps, and the next one finds a clean store", async ({ skip }) => {
      needsShell(skip);
      const stop = new AbortController();
      const running = shell({
        custom: "FROM os\nRUN echo begun && sleep 60\n",
        signal: stop.signal,
        cache: join(harness.folder, "stopped"),
        options: { print: (line) => (line === "begun" ? stop.abort(new Error("SIGTERM")) : undefined) },
      });
      const { outcome } = await running;
      expect(outcome).toMatchObject({ failure: { class: "BuilderLost", step: "user:2", exitCode: 143 } });
      expect(
        (await shell({ custom: "FROM os\nRUN echo again > /usr/lib/x\n", cache: join(harness.folder, "stopped") }))
          .outcome,
      ).toHaveProperty("digest");
    }, 60_000);
  });
});
