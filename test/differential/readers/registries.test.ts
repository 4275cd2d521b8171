import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  type ImageMirrors,
  type ImagePolicySpec,
  type RegistrySources,
  openshift,
} from "../../../src/api/foreign/openshift.ts";
import { parseImageReference, printImageReference } from "../../../src/core/images/image-reference.ts";
import { parseRegistriesConf, pullSources } from "../../../src/core/images/registries-conf.ts";
import { ownPolicy, ownRegistriesConf } from "../../../src/core/render/base-configs.ts";
import {
  policyPath,
  registriesConfPath,
  registriesConfig,
  searchRegistriesPath,
  sigstorePath,
} from "../../../src/core/runtime/registries-config.ts";
import { type RegistryObjects, settingsOf } from "../../../src/core/runtime/registry-objects.ts";
import { attachSignature, bytesOf, registry, temporaryFolder } from "../../support/registry/pull-harness.ts";

const run = promisify(execFile);

const hasSkopeo = (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "skopeo")));

type Given = Partial<{
  readonly digests: readonly ImageMirrors[];
  readonly tags: readonly ImageMirrors[];
  readonly sources: RegistrySources;
  readonly policy: ImagePolicySpec;
}>;

const object = (kind: string, spec: object) => ({
  apiVersion: "config.openshift.io/v1",
  kind,
  metadata: { name: kind === "Image" ? "cluster" : "a" },
  spec,
});

const objectsOf = ({ digests, tags, sources, policy }: Given): RegistryObjects => ({
  image: sources === undefined ? undefined : object(openshift.Image.kind, { registrySources: sources }),
  digestMirrorSets: digests === undefined ? [] : [object("ImageDigestMirrorSet", { imageDigestMirrors: digests })],
  tagMirrorSets: tags === undefined ? [] : [object("ImageTagMirrorSet", { imageTagMirrors: tags })],
  contentSourcePolicies: [],
  clusterImagePolicies: policy === undefined ? [] : [object("ClusterImagePolicy", policy)],
  imagePolicies: [],
  releaseImage: undefined,
});

/** A machine's files as these settings make them, and skopeo, which reads them as its container engine does. */
class Machine {
  readonly #folder: string;
  readonly conf: string;

  private constructor(folder: string, conf: string) {
    this.#folder = folder;
    this.conf = conf;
  }

  static async of(given: Given): Promise<Machine> {
    const made = registriesConfig({
      ...settingsOf(objectsOf(given)),
      registries: ownRegistriesConf,
      policy: ownPolicy,
    });
    if (made.verdict === "refused") throw new Error(JSON.stringify(made.problems));
    const files = new Map(made.files.map(({ path, text }) => [path, text]));
    const conf = files.get(registriesConfPath) ?? ownRegistriesConf;
    const machine = new Machine(await temporaryFolder(), conf);
    await machine.put(registriesConfPath, conf);
    await machine.put(policyPath, files.get(policyPath) ?? ownPolicy);
    for (const [path, text] of files) await machine.put(path, text);
    await mkdir(dirname(machine.#path(sigstorePath)), { recursive: true });
    return machine;
  }

  /** Skopeo takes the folder of drop-ins from the user's settings. */
  readonly #path = (path: string) =>
    path === searchRegistriesPath
      ? join(this.#folder, ".config/containers/registries.conf.d", basename(path))
      : join(this.#folder, path);

  async put(path: string, text: string): Promise<void> {
    await mkdir(dirname(this.#path(path)), { recursive: true });
    await writeFile(this.#path(path), text);
  }

  /** Why skopeo does not copy an image; empty: it does. */
  async copy(image: string): Promise<string> {
    const target = join(await temporaryFolder(), "image");
    const flags = [
      ["--registries-conf", this.#path(registriesConfPath)],
      ["--registries.d", dirname(this.#path(sigstorePath))],
      ["--policy", this.#path(policyPath)],
    ].flat();
    try {
      await run("skopeo", [...flags, "copy", "-q", `docker://${image}`, `dir:${target}`], {
        env: { ...process.env, HOME: this.#folder, XDG_CONFIG_HOME: "" },
      });
      return "";
    } catch (error) {
      return (error as { readonly stderr: string }).stderr;
    }
  }

  /** Where this suite's own reader would pull an image from. */
  places(image: string): readonly string[] {
    const reading = parseImageReference(image);
    if (reading.verdict === "refused") throw new Error(reading.problem);
    const asked = pullSources(parseRegistriesConf(this.conf), reading.reference);
    return asked.verdict === "refused"
      ? []
      : asked.sources.map(({ reference }) => printImageReference(reference).replace(/[@:][^/]*$/, ""));
  }
}

const layer = { bytes: bytesOf(1000, 1) };

/** Two registries, of which the second mirrors the first, and whether an image was asked of each. */
async function twoRegistries() {
  const [source, mirror] = [await registry(), await registry()];
  const digest = source.addImage("team/app", [layer], { tag: "v1" });
  mirror.addImage("copy/app", [layer], { tag: "v1" });
  const insecureRegistries = [source.host, mirror.host];
  return {
    source,
    mirror,
    insecureRegistries,
    byDigest: `${source.host}/team/app@${digest}`,
    byTag: `${source.host}/team/app:v1`,
    rule: { source: `${source.host}/team`, mirrors: [`${mirror.host}/copy`] },
    asked: () => ({
      source: source.seen.some(({ target }) => target.includes("/manifests/")),
      mirror: mirror.seen.some(({ target }) => target.includes("/manifests/")),
    }),
  };
}

describe.skipIf(!hasSkopeo)(
  `the files of registries as skopeo reads them${hasSkopeo ? "" : " (left out: skopeo is not on this machine; hack/image-tools installs it)"}`,
  () => {
    test("a mirror for digests is asked for digests, and the source for tags [differential-registries-1]", async () => {
      const lab = await twoRegistries();
      const machine = await Machine.of({
        digests: [lab.rule],
        sources: { insecureRegistries: lab.insecureRegistries },
      });
      expect(await machine.copy(lab.byDigest)).toBe("");
      expect(lab.asked()).toEqual({ source: false, mirror: true });
      expect(machine.places(lab.byDigest)).toEqual([`${lab.mirror.host}/copy/app`, `${lab.source.host}/team/app`]);
      expect(await machine.copy(lab.byTag)).toBe("");
      expect(lab.asked()).toEqual({ source: true, mirror: true });
      expect(machine.places(lab.byTag)).toEqual([`${lab.source.host}/team/app`]);
    });

    test("a mirror for tags is asked for tags, and the source where the mirror lacks the image [differential-registries-2]", async () => {
      const lab = await twoRegistries();
      const machine = await Machine.of({ tags: [lab.rule], sources: { insecureRegistries: lab.insecureRegistries } });
      expect(await machine.copy(lab.byTag)).toBe("");
      expect(lab.asked()).toEqual({ source: false, mirror: true });
      lab.mirror.manifests.clear();
      expect(await machine.copy(lab.byTag)).toBe("");
      expect(lab.asked()).toEqual({ source: true, mirror: true });
    });

    test("a source that is never contacted is not: its mirror is, and nothing else [differential-registries-3]", async () => {
      const lab = await twoRegistries();
      const machine = await Machine.of({
        digests: [{ ...lab.rule, mirrorSourcePolicy: "NeverContactSource" }],
        sources: { insecureRegistries: lab.insecureRegistries },
      });
      expect(await machine.copy(lab.byDigest)).toBe("");
      expect(machine.places(lab.byDigest)).toEqual([`${lab.mirror.host}/copy/app`]);
      lab.mirror.manifests.clear();
      expect(await machine.copy(lab.byDigest)).toContain(`registry ${lab.rule.source} is blocked`);
      expect(await machine.copy(lab.byTag)).toContain(`registry ${lab.rule.source} is blocked`);
      expect(machine.places(lab.byTag)).toEqual([]);
      expect(lab.asked()).toEqual({ source: false, mirror: true });
    });

    test("a blocked registry is not asked, nor is a blocked mirror [differential-registries-4]", async () => {
      const lab = await twoRegistries();
      const machine = await Machine.of({
        sources: { insecureRegistries: lab.insecureRegistries, blockedRegistries: [`${lab.source.host}/team`] },
      });
      expect(await machine.copy(lab.byTag)).toContain(`registry ${lab.source.host}/team is blocked`);
      expect(lab.asked()).toEqual({ source: false, mirror: false });
      const other = await Machine.of({
        digests: [lab.rule],
        sources: { insecureRegistries: lab.insecureRegistries, blockedRegistries: [lab.mirror.host] },
      });
      expect(await other.copy(lab.byDigest)).toBe("");
      expect(other.places(lab.byDigest)).toEqual([`${lab.source.host}/team/app`]);
      expect(lab.asked()).toEqual({ source: true, mirror: false });
    });

    test("a registry that is not insecure is asked over TLS only [differential-registries-5]", async () => {
      const lab = await twoRegistries();
      const machine = await Machine.of({ sources: { insecureRegistries: [lab.mirror.host] } });
      expect(await machine.copy(lab.byTag)).toContain("server gave HTTP response to HTTPS client");
    });

    test("a policy accepts what is allowed, and nothing else [differential-registries-6]", async () => {
      const lab = await twoRegistries();
      const { insecureRegistries } = lab;
      const machine = await Machine.of({
        sources: { insecureRegistries, allowedRegistries: [`${lab.source.host}/team`] },
      });
      expect(await machine.copy(lab.byTag)).toBe("");
      expect(await machine.copy(`${lab.mirror.host}/copy/app:v1`)).toContain("is rejected by policy");
    });

    test("a policy for signatures finds them beside the image, also at a mirror, and refuses an image without [differential-registries-7]", async () => {
      const lab = await twoRegistries();
      const key = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const keyData = Buffer.from(key.publicKey.export({ type: "spki", format: "pem" }).toString()).toString("base64");
      const machine = await Machine.of({
        digests: [lab.rule],
        sources: { insecureRegistries: lab.insecureRegistries },
        policy: {
          scopes: [`${lab.source.host}/team`],
          policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData } } },
        },
      });
      expect(await machine.copy(lab.byDigest)).toContain("A signature was required, but no signature exists");
      const digest = lab.byDigest.split("@")[1] ?? "";
      attachSignature(lab.mirror, "copy/app", digest, key.privateKey, { name: lab.byTag });
      // Debian's build looks for signatures, and then refuses to check them; others accept this one.
      expect(await machine.copy(lab.byDigest)).toMatch(/^$|Debian-local change: sigstore disabled/);
      expect(lab.mirror.seen.filter(({ target }) => target.endsWith(".sig")).length).toBeGreaterThan(1);
    });

    test("the drop-in for short names is read: one that is wrong is told [differential-registries-8]", async () => {
      const lab = await twoRegistries();
      const machine = await Machine.of({
        sources: {
          insecureRegistries: lab.insecureRegistries,
          containerRuntimeSearchRegistries: ["search.example.com", "other.example.com"],
        },
      });
      expect(await machine.copy(lab.byTag)).toBe("");
      await machine.put(searchRegistriesPath, "unqualified-search-registries = 5\n");
      expect(await machine.copy(lab.byTag)).toContain("01-image-searchRegistries.conf");
    });
  },
);
