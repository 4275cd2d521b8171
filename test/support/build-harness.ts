import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BuildImageOptions, buildImage } from "../../src/build-image/build-image.ts";
import { packStockOsWithShell, packedStockOs } from "../../src/standin/cluster/stock-os.ts";
import { renderContainerfile } from "../../src/core/build/build-containerfile.ts";
import type { LayerEntry } from "../../src/core/config/image-content.ts";
import { hostPaths } from "../../src/api/names.ts";
import {
  type BuildFile,
  type BuildOutcome,
  type BuildPart,
  buildFiles,
  buildPaths,
  printBuildFile,
} from "../../src/core/build/image-build.ts";
import { readBelow, systemClock, systemFiles, systemProcesses, systemRandom } from "../../src/ports/node/index.ts";
import { parentFrom } from "../../src/registry/compose-image.ts";
import { type ImageStore, imageStore } from "../../src/registry/image-store.ts";
import { httpsWire } from "../../src/registry/node/https-wire.ts";
import { type PackedLayer, packLayer } from "../../src/registry/pack-layer.ts";
import type { PackedImage } from "../../src/registry/pack-tree.ts";
import { testAuthority } from "./test-pki.ts";
import { temporaryFolder } from "./registry/pull-harness.ts";
import { type RunningRegistry, missingPrograms, password, startEmbedded, storeAt } from "./registry/registries.ts";
import { authJson } from "./registry/settings.ts";

const never = new AbortController().signal;

export const missing = [
  ...missingPrograms("buildah"),
  ...(process.getuid?.() === 0 ? [] : ["buildah builds as root only"]),
];

export const configLayer = (contents: string): PackedLayer =>
  packLayer(
    [
      { path: "/etc/motd", kind: "file", contents: Buffer.from(contents), mode: 0o640, uid: 0, gid: 10 },
      {
        path: hostPaths.payload,
        kind: "file",
        contents: Buffer.from(`{"v":1,"contents":${JSON.stringify(contents)}}`),
        mode: 0o600,
        uid: 0,
        gid: 0,
      },
    ] satisfies readonly LayerEntry[],
    7,
  );

export interface BuildGiven {
  /** What the stages `os` and `configs` hold; absent: the base alone. */
  readonly custom?: string;
  readonly seesConfiguration?: boolean;
  readonly layer?: PackedLayer;
  readonly files?: Readonly<Record<string, string>>;
  readonly visible?: readonly LayerEntry[];
  readonly mounts?: Readonly<Partial<Record<"entitlement" | "rpmGpg" | "yumRepos", Readonly<Record<string, string>>>>>;
  readonly request?: Partial<BuildFile>;
  readonly pullPassword?: string;
  readonly signal?: AbortSignal;
  /** Authorities, PEM, that vouch for every registry. */
  readonly trust?: string;
  /** A cache other than the harness's. */
  readonly cache?: string;
  readonly options?: Partial<BuildImageOptions>;
  /** Called before each container of the pod begins, with the way from paths of a container to its files. */
  readonly before?: (part: BuildPart, at: (path: string) => string) => Promise<void>;
}

export interface BuildHarness {
  readonly host: string;
  readonly folder: string;
  readonly registry: RunningRegistry;
  /** PEM, of the authority that vouches for the registry. */
  readonly certificate: string;
  readonly store: ImageStore;
  /** Pullspec of the stock OS. */
  readonly base: string;
  /** The same with a shell; absent on a machine without busybox. */
  readonly withShell: string | undefined;
  build(given: BuildGiven): Promise<{ readonly outcome: BuildOutcome; readonly log: readonly string[] }>;
  close(): Promise<void>;
}

/** A registry with the stock OS, and pods of builds that use it. */
export async function buildHarness(): Promise<BuildHarness> {
  const folder = await temporaryFolder();
  const pki = await testAuthority();
  const registry = await startEmbedded(join(folder, "registry"), await pki.server("127.0.0.1"));
  const { host } = registry;
  const store = storeAt(host, pki.certificate);
  const push = async (image: PackedImage, tag: string) => {
    const blob = (digest: string) => ({
      async *open() {
        yield digest === image.layer.digest ? image.layer.bytes : image.config.bytes;
      },
    });
    const { digest } = await store.publish(
      parentFrom(image.manifest.bytes, image.config.bytes, blob),
      { dropTopLayer: false, labels: {}, repository: `${host}/os/stock`, tag, createdSeconds: 0 },
      never,
    );
    return `${host}/os/stock@${digest}`;
  };
  const base = await push(packedStockOs, "1");
  const busybox = await readFile("/bin/busybox").catch(() => undefined);
  const withShell = busybox === undefined ? undefined : await push(packStockOsWithShell(busybox), "shell");
  let pods = 0;

  return {
    host,
    folder,
    registry,
    certificate: pki.certificate,
    store,
    base,
    withShell,
    async build({
      custom,
      seesConfiguration = false,
      layer,
      files = {},
      visible,
      mounts = {},
      request = {},
      pullPassword = password,
      signal = never,
      trust,
      cache = join(folder, "cache"),
      options,
      before = async () => undefined,
    }) {
      const pod = join(folder, `pod-${(pods += 1)}`);
      // One folder for each container, which has the credentials that the container mounts, and no other.
      const parts: readonly BuildPart[] = custom === undefined ? ["push"] : ["pull", "steps", "push"];
      const from = request.base ?? base;
      const told: BuildFile = {
        v: 1,
        id: "worker-1-1",
        attempt: 1,
        mode: layer === undefined ? "os-only" : "full",
        architecture: "amd64",
        base: from,
        ...(layer === undefined ? {} : { configLayer: { digest: layer.digest, diffId: layer.diffId } }),
        pieces: { configLayer: layer === undefined ? 0 : 1, buildVisible: visible === undefined ? 0 : 1 },
        files: Object.keys(files).map((path, i) => ({ path, key: `context-${i}`, mode: 0o644 })),
        mounts: Object.keys(mounts) as BuildFile["mounts"],
        certificates: { [host]: [pki.certificate] },
        target: { repository: `${host}/os/worker`, tag: "worker-1" },
        epoch: 7,
        noCache: false,
        pushSeconds: 60,
        labels: {},
        ...request,
      };
      const mounted = async (part: BuildPart, at: (path: string) => string) => {
        const put = async (path: string, contents: string | Uint8Array) => {
          await mkdir(dirname(at(path)), { recursive: true });
          await writeFile(at(path), contents);
        };
        await put(`${buildPaths.context}/${buildFiles.request}`, printBuildFile(told));
        if (custom !== undefined)
          await put(
            `${buildPaths.context}/${buildFiles.containerfile}`,
            renderContainerfile({
              base: from,
              extensions: [],
              kernelType: "default",
              custom,
              configsHoldConfiguration: seesConfiguration,
              hasTrust: false,
            }),
          );
        if (trust !== undefined) await put(`${buildPaths.trust}/${buildFiles.trust}`, trust);
        for (const [i, contents] of Object.values(files).entries())
          await put(`${buildPaths.context}/context-${i}`, contents);
        if (layer !== undefined) await put(`${buildPaths.content}/${buildFiles.configLayer}`, layer.bytes);
        if (visible !== undefined)
          await put(`${buildPaths.content}/${buildFiles.buildVisible}`, packLayer(visible, 7).bytes);
        for (const [kind, contents] of Object.entries(mounts)) {
          const volume = `${buildPaths.mounts}/${kind}`;
          // As a kubelet lays it down, so that all keys change at once.
          for (const [name, text] of Object.entries(contents)) {
            await put(`${volume}/..1/${name}`, text);
            await symlink(`..data/${name}`, at(`${volume}/${name}`));
          }
          await symlink("..1", at(`${volume}/..data`));
        }
        if (part !== "steps")
          await put(`${buildPaths.pull}/${buildFiles.auth}`, authJson(host, "puller", pullPassword));
        if (part === "push") await put(`${buildPaths.push}/${buildFiles.auth}`, authJson(host, "builder", password));
      };
      const log: string[] = [];
      const wire = httpsWire();
      try {
        for (const part of parts) {
          const at = (path: string) =>
            path.startsWith(buildPaths.cache)
              ? `${cache}${path.slice(buildPaths.cache.length)}`
              : path.startsWith(buildPaths.result)
                ? join(pod, "result", path.slice(buildPaths.result.length))
                : join(pod, part, path);
          await mkdir(at(buildPaths.result), { recursive: true });
          await mounted(part, at);
          await before(part, at);
          const outcome = await buildImage(
            {
              files: systemFiles,
              processes: systemProcesses,
              clock: systemClock,
              readBelow,
              environment: { PATH: process.env["PATH"] },
              at,
              print: (line) => log.push(line),
              storeFor: (settings) =>
                imageStore({
                  ...settings,
                  policy: undefined,
                  wire: wire.send,
                  clock: systemClock,
                  random: { ...systemRandom, next: () => 0 },
                }),
              ...options,
            },
            part,
            signal,
          );
          await rm(join(pod, part), { recursive: true, force: true });
          if (!("done" in outcome)) return { outcome, log };
        }
        throw new Error("the last container made no image and named no failure");
      } finally {
        wire.close();
        await rm(pod, { recursive: true, force: true });
      }
    },
    async close() {
      store.close();
      await registry.close();
    },
  };
}
