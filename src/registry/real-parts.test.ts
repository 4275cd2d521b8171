import { execFile } from "node:child_process";
import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { imageTrees } from "../cli/image-trees.ts";
import { packedStockOs } from "../standin/cluster/stock-os.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { parseAuthFile } from "./auth-file.ts";
import { httpsWire } from "./node/https-wire.ts";
import { pushImage } from "./push-image.ts";
import { type RegistryClient, digestOf, registryClient } from "./registry-client.ts";
import { signatureTag } from "./sigstore-attachments.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { failure, temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import { type RunningRegistry, startDebian } from "../../test/support/registry/registries.ts";
import { acceptAnything, authJson, settings } from "../../test/support/registry/settings.ts";

const run = promisify(execFile);
const never = new AbortController().signal;

const missing = [
  ...["buildah", "skopeo", "docker-registry"]
    .filter(
      (program) => !(process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program))),
    )
    .map((program) => `${program} is not on this machine (hack/image-tools installs it)`),
  ...(process.getuid?.() === 0 ? [] : ["buildah builds as root only"]),
];

describe.skipIf(missing.length > 0)(
  `real parts${missing.length > 0 ? ` (left out: ${missing.join("; ")})` : ""}`,
  () => {
    let folder: string;
    let host: string;
    let authority: string;
    let auth: string;
    let server: RunningRegistry | undefined;
    let client: RegistryClient;
    /** What buildah built on the stock OS, by digest. */
    let image: string;
    const wire = httpsWire();
    const key = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = key.publicKey.export({ type: "spki", format: "pem" }).toString();

    beforeAll(async () => {
      folder = await temporaryFolder();
      const pki = await testAuthority();
      const started = await startDebian(folder, await pki.server("127.0.0.1"));
      server = started;
      ({ host } = started);
      authority = pki.certificate;
      auth = authJson(host, "builder", "s3cret");
      await mkdir(join(folder, "certs"));
      await writeFile(join(folder, "certs", "ca.crt"), authority);
      await writeFile(join(folder, "auth.json"), auth);
      await writeFile(join(folder, "accept.json"), acceptAnything);
      client = registryClient({
        wire: wire.send,
        clock: systemClock,
        auth: parseAuthFile(auth),
        certificates: async () => [authority],
      });
      // Retried while the registry starts.
      await pushImage(
        packedStockOs,
        { host, path: "os/stock", insecure: false, tag: "1" },
        { client, clock: systemClock, random: systemRandom },
        never,
      );
      await buildOnStock();
    }, 120_000);

    afterAll(async () => {
      wire.close();
      await server?.close();
    });

    async function buildOnStock(): Promise<void> {
      const context = join(folder, "context");
      await mkdir(context);
      await writeFile(join(context, "motd"), "built on the stock OS\n");
      await writeFile(join(context, "hello.service"), "[Service]\nExecStart=/usr/bin/hello\n");
      await writeFile(
        join(context, "Containerfile"),
        `FROM ${host}/os/stock@${packedStockOs.manifest.digest}\nCOPY --chmod=0640 motd /etc/motd\nCOPY motd /etc/chrony.conf\nCOPY hello.service /usr/lib/systemd/system/hello.service\n`,
      );
      const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];
      const access = ["--cert-dir", join(folder, "certs"), "--authfile", join(folder, "auth.json")];
      const target = `${host}/os/custom:1`;
      const policy = ["--signature-policy", join(folder, "accept.json")];
      await run("buildah", [
        ...storage,
        "build",
        ...access,
        ...policy,
        "--isolation",
        "chroot",
        "--layers",
        "--timestamp",
        "1700000000",
        "-t",
        target,
        context,
      ]);
      await run("buildah", [
        ...storage,
        "push",
        "-q",
        ...access,
        ...policy,
        "--digestfile",
        join(folder, "digest"),
        target,
        `docker://${target}`,
      ]);
      image = `${host}/os/custom@${(await readFile(join(folder, "digest"), "utf8")).trim()}`;
    }

    const machine = (policy = acceptAnything) =>
      settings({
        policy,
        auth,
        certificates: async (asked) => (asked === host ? [authority] : []),
        file: async (path) => (path === "/etc/pki/os.pub" ? pem : undefined),
      });

    test("the stock OS that was pushed is the image that skopeo sees", async () => {
      const { stdout } = await run("skopeo", [
        "inspect",
        "--cert-dir",
        join(folder, "certs"),
        "--authfile",
        join(folder, "auth.json"),
        "--format",
        "{{.Digest}} {{.Architecture}}",
        `docker://${host}/os/stock:1`,
      ]);
      expect(stdout.trim()).toBe(`${packedStockOs.manifest.digest} amd64`);
    });

    test("an image that buildah built on the stock OS becomes a machine's tree", async () => {
      const trees = imageTrees(join(folder, "os"));
      await mkdir(join(folder, "os"));
      await trees.fetch(image, machine(), never);
      const tree = await trees.treeOf(image, never);
      expect(await readdir(tree)).toEqual(["usr"]);
      expect(await readFile(join(tree, "usr/etc/motd"), "utf8")).toBe("built on the stock OS\n");
      expect((await stat(join(tree, "usr/etc/motd"))).mode & 0o7777).toBe(0o640);
      expect(await readFile(join(tree, "usr/etc/chrony.conf"), "utf8")).toBe("built on the stock OS\n");
      expect(await readFile(join(tree, "usr/lib/systemd/system/hello.service"), "utf8")).toContain(
        "ExecStart=/usr/bin/hello",
      );
      expect(await readFile(join(tree, "usr/etc/passwd"), "utf8")).toContain("core:x:1000:1000");
      expect((await stat(join(tree, "usr/etc/shadow"))).mode & 0o7777).toBe(0o600);
    });

    test("the registry's refusals are distinguished", async () => {
      const trees = imageTrees(join(folder, "none"));
      const absent = `${host}/os/none@sha256:${"1".repeat(64)}`;
      expect(await failure(trees.fetch(absent, machine(), never))).toMatchObject({
        code: "MCO_IMAGE_ABSENT",
        says: "MANIFEST_UNKNOWN",
      });
      expect(
        await failure(trees.fetch(absent, { ...machine(), auth: authJson(host, "builder", "wr0ng") }, never)),
      ).toMatchObject({ code: "MCO_IMAGE_UNAUTHORIZED" });
      expect(await failure(trees.fetch(absent, { ...machine(), certificates: async () => [] }, never))).toMatchObject({
        code: "MCO_IMAGE_UNREACHABLE",
        kind: "untrusted",
      });
    });

    test("a registry's signature is accepted, and one by another key refused, by us and by a container engine", async () => {
      const repository = { host, path: "os/custom", insecure: false };
      const digest = image.slice(image.indexOf("@") + 1);
      const policy = (keyPath: string) =>
        JSON.stringify({
          default: [{ type: "reject" }],
          transports: { docker: { [`${host}/os`]: [{ type: "sigstoreSigned", keyPath }] } },
        });
      const engine = async (name: string, publicKey: string) => {
        await writeFile(join(folder, `${name}.pub`), publicKey);
        await writeFile(join(folder, `${name}.json`), policy(join(folder, `${name}.pub`)));
        return run("skopeo", [
          "--policy",
          join(folder, `${name}.json`),
          "--registries.d",
          join(folder, "registries.d"),
          "copy",
          "-q",
          "--src-cert-dir",
          join(folder, "certs"),
          "--src-authfile",
          join(folder, "auth.json"),
          `docker://${image}`,
          `dir:${join(folder, `copied-${name}`)}`,
        ]).then(
          () => "accepted",
          // Debian builds its container engines without these signatures, and says so.
          ({ stderr }: { stderr: string }) =>
            stderr.includes("sigstore disabled")
              ? "unable"
              : stderr.includes("Source image rejected")
                ? "refused"
                : stderr,
        );
      };
      await mkdir(join(folder, "registries.d"));
      await writeFile(
        join(folder, "registries.d", "default.yaml"),
        "default-docker:\n  use-sigstore-attachments: true\n",
      );
      const other = createPublicKey(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey)
        .export({ type: "spki", format: "pem" })
        .toString();

      expect(
        await failure(imageTrees(join(folder, "os")).fetch(image, machine(policy("/etc/pki/os.pub")), never)),
      ).toMatchObject({
        code: "MCO_IMAGE_REFUSED",
        scope: `${host}/os`,
        requirement: "sigstoreSigned",
        problem: "the image carries no signature",
      });
      expect(["refused", "unable"]).toContain(await engine("unsigned", pem));

      const payload = Buffer.from(
        JSON.stringify({
          critical: {
            identity: { "docker-reference": `${host}/os/custom:1` },
            image: { "docker-manifest-digest": digest },
            type: "cosign container image signature",
          },
          optional: null,
        }),
      );
      const config = Buffer.from(
        JSON.stringify({
          architecture: "",
          os: "",
          rootfs: { type: "layers", diff_ids: [digestOf(payload)] },
          config: {},
        }),
      );
      for (const bytes of [payload, config]) await client.putBlob(repository, digestOf(bytes), bytes, never);
      const described = (mediaType: string, bytes: Uint8Array, annotations = {}) => ({
        mediaType,
        digest: digestOf(bytes),
        size: bytes.length,
        annotations,
      });
      const manifest = {
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: described("application/vnd.oci.image.config.v1+json", config),
        layers: [
          described("application/vnd.dev.cosign.simplesigning.v1+json", payload, {
            "dev.cosignproject.cosign/signature": sign("sha256", payload, key.privateKey).toString("base64"),
          }),
        ],
      };
      await client.putManifest(
        repository,
        signatureTag(digest),
        { bytes: Buffer.from(JSON.stringify(manifest)), mediaType: manifest.mediaType },
        never,
      );

      const fresh = imageTrees(join(folder, "os"));
      await fresh.fetch(image, machine(policy("/etc/pki/os.pub")), never);
      expect(["accepted", "unable"]).toContain(await engine("signed", pem));
      expect(
        await failure(fresh.fetch(image, { ...machine(policy("/etc/pki/os.pub")), file: async () => other }, never)),
      ).toMatchObject({
        code: "MCO_IMAGE_REFUSED",
        problem: "no signature holds: it was not made with a key of the policy",
      });
      expect(["refused", "unable"]).toContain(await engine("other", other));
    });
  },
);
