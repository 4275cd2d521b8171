import { McoError } from "../../../api/errors.ts";
import {
  type ConfigMap,
  type Container,
  type Pod,
  type Secret,
  type Volume,
  kubernetes,
} from "../../../api/foreign/kubernetes.ts";
import { foldersAbove } from "../../../ignition/clean-path.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Files } from "../../../ports/files.ts";
import { isSuiteNamespace } from "../suite-namespaces.ts";
import { type PodPlaces, namesIn } from "./pod-places.ts";
import { containersOf, pathProblem } from "./pod-problem.ts";
import { own } from "../../../api/schema/own.ts";

export interface VolumeOptions {
  readonly kube: KubeClient;
  readonly files: Files;
  readonly clock: Clock;
  /** Tokens of this pod that are still good: kept by the caller between calls. */
  readonly tokens: Map<string, HeldToken>;
  /** Containers whose mounts are made, and the only ones that have any then; if absent, those of all containers. */
  readonly mountsOf?: readonly Container[];
}

export interface HeldToken {
  readonly token: string;
  /** Monotonic time from which it is to be replaced. */
  readonly renewAt: number;
}

/** A token is replaced when this part of its life has passed. */
const tokenRefreshFraction = 0.8;
/** Not even a token that lives for moments is asked for more often. */
const minTokenRefreshMs = 1000;

const decodeBase64 = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/**
 * The most that a machine writes for the volumes of one pod, and reads for them at a time, in bytes. The suite's own pods hold the configuration that a
 * build puts into an image; the others only sleep.
 */
export const mostVolumeBytes = { ofSuite: 64 * 1024 * 1024, ofOthers: 8 * 1024 * 1024 } as const;
/** What a file or folder takes of a disk at least. */
const blockBytes = 4096;

/**
 * What the volumes of one pod take of the disk, as they are written: each mount of a volume is a copy, because there are no
 * mount namespaces. Next to it, what is read for them.
 */
class VolumeUse {
  readonly #most: number;
  #bytes = 0;
  #bytesRead = 0;

  constructor({ metadata: { namespace = "" } }: Pod) {
    this.#most = isSuiteNamespace(namespace) ? mostVolumeBytes.ofSuite : mostVolumeBytes.ofOthers;
  }

  /**
   * Counts a file or folder with the folders above it.
   *
   * @throws McoError when it is more than the machine writes.
   */
  add(path: string, bytes: number, copies = 1): void {
    const blocks = Math.ceil(bytes / blockBytes) + (namesIn(path) ?? []).length;
    this.#bytes += blocks * blockBytes * copies;
    this.#judge(this.#bytes);
  }

  /**
   * Counts an object that is read for them.
   *
   * @throws McoError when it is more than the machine reads.
   */
  addRead(bytes: number): void {
    this.#bytesRead += bytes;
    this.#judge(this.#bytesRead);
  }

  #judge(bytes: number): void {
    if (bytes > this.#most) throw new McoError("MCO_POD_VOLUMES_TOO_LARGE", { mostBytes: this.#most, blockBytes });
  }
}

type Value = Uint8Array | string;
type Contents = Map<string, Value>;

/** A ConfigMap or Secret: each key is decoded once, and only if it is asked for. */
class KeyedObject {
  readonly #texts: Readonly<Record<string, string>>;
  readonly #base64: Readonly<Record<string, string>>;
  readonly #decoded = new Map<string, Uint8Array>();

  constructor(texts: Readonly<Record<string, string>> = {}, base64: Readonly<Record<string, string>> = {}) {
    this.#texts = texts;
    this.#base64 = base64;
  }

  names(): readonly string[] {
    return [...Object.keys(this.#texts), ...Object.keys(this.#base64)];
  }

  value(key: string): Value | undefined {
    const encoded = own(this.#base64, key);
    if (encoded === undefined) return own(this.#texts, key);
    const value = this.#decoded.get(key) ?? decodeBase64(encoded);
    this.#decoded.set(key, value);
    return value;
  }
}

type KeyedKind = "ConfigMap" | "Secret";

/**
 * The objects that the volumes of one pod name. However often they do, each object is read once in a pass, and counts with all of its
 * keys: a pod may ask for few of them, or for some that are not there.
 */
class NamedObjects {
  readonly #namespace: string;
  readonly #kube: KubeClient;
  readonly #use: VolumeUse;
  readonly #read = new Map<string, KeyedObject | undefined>();

  constructor({ metadata: { namespace = "" } }: Pod, kube: KubeClient, use: VolumeUse) {
    this.#namespace = namespace;
    this.#kube = kube;
    this.#use = use;
  }

  /** @throws McoError when it is more than the machine reads. */
  async read(kind: KeyedKind, name: string): Promise<KeyedObject | undefined> {
    const id = `${kind}/${name}`;
    if (!this.#read.has(id)) this.#read.set(id, await this.#fromServer(kind, name));
    return this.#read.get(id);
  }

  async #fromServer(kind: KeyedKind, name: string): Promise<KeyedObject | undefined> {
    const found = await this.#kube.get<ConfigMap | Secret>(kubernetes[kind], { name, namespace: this.#namespace });
    if (found === undefined) return undefined;
    this.#use.addRead(JSON.stringify(found).length);
    return kind === "Secret" ? new KeyedObject({}, found.data) : new KeyedObject(found.data, binaryDataOf(found));
  }
}

const binaryDataOf = (object: ConfigMap | Secret) => ("binaryData" in object ? object.binaryData : undefined);

/** A path of a pod's containers, spelled in one way. */
const spelled = (path: string): string => `/${(namesIn(path) ?? []).join("/")}`;

/**
 * The files that were written for the volumes of one pod, and may still be there: in a file beside the root folder of its
 * containers, because they outlive the process that wrote them.
 */
class WrittenFiles {
  readonly #places: PodPlaces;
  readonly #files: Files;

  constructor(places: PodPlaces, files: Files) {
    this.#places = places;
    this.#files = files;
  }

  async known(): Promise<ReadonlySet<string>> {
    const text = await this.#files.readText(this.#places.volumesFile);
    return new Set(text === undefined ? [] : (JSON.parse(text) as { readonly files: readonly string[] }).files);
  }

  async record(paths: ReadonlySet<string>): Promise<void> {
    const text = JSON.stringify({ v: 1, files: [...paths] });
    await this.#files.write(this.#places.volumesFile, text, { mode: 0o600 });
  }

  /** Removes a file, and the folders above it that are empty then, but those that are `wanted`. */
  async remove(path: string, wanted: ReadonlySet<string>): Promise<void> {
    const at = await this.#places.inPod(path);
    if ((await this.#files.stat(at))?.kind !== "directory") await this.#files.remove(at);
    for (const above of foldersAbove(path)) {
      if (wanted.has(above)) return;
      const folder = await this.#places.inPod(above);
      if ((await this.#files.list(folder)).length > 0) return;
      await this.#files.remove(folder);
    }
  }
}

/**
 * Makes a pod's volumes without mount namespaces: each mount path exists below the pod's own root folder, and programs
 * of this suite resolve absolute volume paths there. Nothing is written unless all of it may be.
 *
 * Called again, it brings them up to date: config maps, secrets, and tokens that have lived for most of their time. What
 * they no longer have, and what the containers do not mount, is removed first, so that the disk never holds more than was
 * counted.
 *
 * @returns milliseconds after which a projected token wants to be written again, or `undefined`.
 * @throws KubeError or McoError when something that a volume needs is missing; the pod then waits for it.
 */
export async function writeVolumes(pod: Pod, places: PodPlaces, options: VolumeOptions): Promise<number | undefined> {
  const { files } = options;
  const outside = pathProblem(pod);
  if (outside !== undefined) throw new McoError("MCO_POD_VOLUME", { problem: outside });
  const use = new VolumeUse(pod);
  // Folders of containers that run before the others stay.
  for (const path of new Set([...mountPathsOf(containersOf(pod)).values()].flatMap((paths) => [...paths])))
    use.add(path, 0);
  const pathsOf = mountPathsOf(options.mountsOf ?? pod.spec?.containers ?? []);
  const named = new NamedObjects(pod, options.kube, use);
  let refresh: number | undefined;
  const mounted: { readonly volume: Volume; readonly paths: readonly string[]; readonly contents: Contents }[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    const paths = [...(pathsOf.get(volume.name) ?? [])];
    if (paths.length === 0) continue;
    if (volume.hostPath !== undefined) use.add(volume.hostPath.path, 0);
    const { contents, refreshInMs } = await contentsOf(volume, pod, options, named, (path, bytes) =>
      use.add(path, bytes, paths.length),
    );
    if (refreshInMs !== undefined) refresh = Math.min(refresh ?? Infinity, refreshInMs);
    mounted.push({ volume, paths, contents });
  }
  const written = new WrittenFiles(places, files);
  const before = await written.known();
  const now = new Set(
    mounted.flatMap(({ paths, contents }) =>
      paths.flatMap((mountPath) => [...contents.keys()].map((path) => spelled(`${mountPath}/${path}`))),
    ),
  );
  const former = [...before].filter((path) => !now.has(path));
  if ([...now].some((path) => !before.has(path))) await written.record(new Set([...before, ...now]));
  const folders = new Set(mounted.flatMap(({ paths }) => paths.map(spelled)));
  for (const path of former) await written.remove(path, folders);
  if (former.length > 0) await written.record(now);
  for (const { volume, paths, contents } of mounted) {
    if (volume.hostPath !== undefined) {
      const folder = await places.ofMachine(volume.hostPath.path);
      if (volume.hostPath.type === "DirectoryOrCreate") await files.makeDirectory(folder);
      for (const mountPath of paths) {
        const link = await places.inPod(mountPath);
        await files.makeDirectory(link.slice(0, link.lastIndexOf("/")));
        await files.symlink(folder, link);
      }
      continue;
    }
    for (const mountPath of paths) {
      await files.makeDirectory(await places.inPod(mountPath));
      for (const [path, data] of contents) await writeChanged(files, await places.inPod(`${mountPath}/${path}`), data);
    }
  }
  return refresh;
}

/** Where containers mount each volume. They share one root: what several of them mount at one path is there once. */
function mountPathsOf(containers: readonly Container[]): ReadonlyMap<string, ReadonlySet<string>> {
  const paths = new Map<string, Set<string>>();
  for (const { name, mountPath } of containers.flatMap(({ volumeMounts }) => volumeMounts ?? [])) {
    const known = paths.get(name);
    if (known === undefined) paths.set(name, new Set([mountPath]));
    else known.add(mountPath);
  }
  return paths;
}

/** Removes the Secrets of a container that has ended from the pod's folder: the next one sees none that it does not mount. */
export async function removeSecrets(pod: Pod, places: PodPlaces, container: Container, files: Files): Promise<void> {
  const secrets = (pod.spec?.volumes ?? []).filter(({ secret }) => secret !== undefined).map(({ name }) => name);
  for (const { name, mountPath } of container.volumeMounts ?? [])
    if (secrets.includes(name)) await files.remove(await places.inPod(mountPath));
}

async function writeChanged(files: Files, path: string, data: Uint8Array | string): Promise<void> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  const before = await files.read(path);
  if (before?.length === bytes.length && before.every((byte, index) => byte === bytes[index])) return;
  await files.write(path, bytes, { mode: 0o600 });
}

type Items = readonly { readonly key: string; readonly path: string }[];

/**
 * What a volume holds.
 *
 * @param counted is told of each file before it is kept, and throws where that is too much.
 */
async function contentsOf(
  volume: Volume,
  pod: Pod,
  options: VolumeOptions,
  named: NamedObjects,
  counted: (path: string, bytes: number) => void,
): Promise<{ contents: Contents; refreshInMs?: number }> {
  const contents: Contents = new Map();
  const namespace = pod.metadata.namespace ?? "";
  let refreshInMs: number | undefined;
  if (volume.emptyDir !== undefined) return { contents };

  async function keys(kind: KeyedKind, name: string, optional: boolean, items: Items | undefined): Promise<void> {
    const found = await named.read(kind, name);
    if (found === undefined) {
      if (optional) return;
      throw new McoError("MCO_POD_VOLUME", {
        volume: volume.name,
        problem: `${kind.toLowerCase()} "${name}" not found`,
      });
    }
    for (const { key, path } of items ?? found.names().map((each) => ({ key: each, path: each }))) {
      const value = found.value(key);
      if (value !== undefined) keepFile(path, value);
    }
  }
  function keepFile(path: string, value: Uint8Array | string): void {
    counted(path, typeof value === "string" ? Buffer.byteLength(value) : value.length);
    contents.set(path, value);
  }
  async function token(
    path: string,
    expirationSeconds: number | undefined,
    audience: string | undefined,
  ): Promise<void> {
    const account = pod.spec?.serviceAccountName ?? "default";
    const seconds = expirationSeconds ?? 3600;
    const id = JSON.stringify([account, audience, seconds]);
    const keep = ({ token: value, renewAt }: HeldToken) => {
      keepFile(path, value);
      refreshInMs = Math.min(refreshInMs ?? Infinity, renewAt - options.clock.monotonic());
    };
    const held = options.tokens.get(id);
    if (held !== undefined && options.clock.monotonic() < held.renewAt) return keep(held);
    const answer = (await options.kube.request({
      method: "POST",
      target: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {
          expirationSeconds: seconds,
          ...(audience === undefined ? {} : { audiences: [audience] }),
          boundObjectRef: { apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: pod.metadata.uid },
        },
      }),
    })) as { status: { token: string; expirationTimestamp: string } };
    const lifeMs = Date.parse(answer.status.expirationTimestamp) - options.clock.now();
    const fresh = {
      token: answer.status.token,
      renewAt: options.clock.monotonic() + Math.max(minTokenRefreshMs, lifeMs * tokenRefreshFraction),
    };
    options.tokens.set(id, fresh);
    keep(fresh);
  }

  if (volume.configMap !== undefined)
    await keys("ConfigMap", volume.configMap.name ?? "", volume.configMap.optional === true, volume.configMap.items);
  if (volume.secret !== undefined)
    await keys("Secret", volume.secret.secretName ?? "", volume.secret.optional === true, volume.secret.items);
  if (volume.downwardAPI !== undefined)
    for (const item of volume.downwardAPI.items ?? [])
      keepFile(item.path, podFieldOf(pod, item.fieldRef?.fieldPath ?? "") ?? "");
  for (const source of volume.projected?.sources ?? []) {
    if (source.serviceAccountToken !== undefined)
      await token(
        source.serviceAccountToken.path,
        source.serviceAccountToken.expirationSeconds,
        source.serviceAccountToken.audience,
      );
    if (source.configMap !== undefined)
      await keys("ConfigMap", source.configMap.name ?? "", source.configMap.optional === true, source.configMap.items);
    if (source.secret !== undefined)
      await keys("Secret", source.secret.name ?? "", source.secret.optional === true, source.secret.items);
    for (const item of source.downwardAPI?.items ?? [])
      keepFile(item.path, podFieldOf(pod, item.fieldRef?.fieldPath ?? "") ?? "");
  }
  return refreshInMs === undefined ? { contents } : { contents, refreshInMs };
}

/** A field of the downward API, or `undefined` for one that it does not offer. */
export function podFieldOf(pod: Pod, path: string): string | undefined {
  const { metadata, spec, status } = pod;
  const keyed = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(path);
  if (keyed !== null) return own(keyed[1] === "labels" ? metadata.labels : metadata.annotations, keyed[2] ?? "") ?? "";
  switch (path) {
    case "metadata.name":
      return metadata.name;
    case "metadata.namespace":
      return metadata.namespace;
    case "metadata.uid":
      return metadata.uid;
    case "spec.nodeName":
      return spec?.nodeName;
    case "spec.serviceAccountName":
      return spec?.serviceAccountName;
    case "status.podIP":
      return status?.podIP;
    case "status.hostIP":
      return status?.hostIP;
    default:
      return undefined;
  }
}
