import { McoError } from "../../api/errors.ts";
import {
  type ConfigMap,
  type Container,
  type Pod,
  type Secret,
  type Volume,
  kubernetes,
} from "../../api/foreign/kubernetes.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { PodPlaces } from "./pod-places.ts";
import { pathProblem } from "./pod-problem.ts";

export interface VolumeOptions {
  readonly kube: KubeClient;
  readonly files: Files;
  readonly clock: Clock;
  /** Tokens of this pod that are still good: kept by the caller between calls. */
  readonly tokens: Map<string, HeldToken>;
  /** Containers whose mounts are made; if absent, those of all containers. */
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
 * Makes a pod's volumes without mount namespaces: each mount path exists below the pod's own root folder, and programs
 * of this suite resolve absolute volume paths there.
 *
 * Called again, it brings them up to date: config maps, secrets, and tokens that have lived for most of their time.
 *
 * @returns milliseconds after which a projected token wants to be written again, or `undefined`.
 * @throws KubeError or McoError when something that a volume needs is missing; the pod then waits for it.
 */
export async function writeVolumes(pod: Pod, places: PodPlaces, options: VolumeOptions): Promise<number | undefined> {
  const { files } = options;
  const outside = pathProblem(pod);
  if (outside !== undefined) throw new McoError("MCO_POD_VOLUME", { problem: outside });
  let refresh: number | undefined;
  for (const volume of pod.spec?.volumes ?? []) {
    const mounts = (options.mountsOf ?? pod.spec?.containers ?? []).flatMap((container) =>
      (container.volumeMounts ?? []).filter((mount) => mount.name === volume.name),
    );
    if (mounts.length === 0) continue;
    if (volume.hostPath !== undefined) {
      const folder = await places.ofMachine(volume.hostPath.path);
      if (volume.hostPath.type === "DirectoryOrCreate") await files.makeDirectory(folder);
      for (const { mountPath } of mounts) {
        const link = await places.inPod(mountPath);
        await files.makeDirectory(link.slice(0, link.lastIndexOf("/")));
        await files.symlink(folder, link);
      }
      continue;
    }
    const { contents, refreshInMs } = await contentsOf(volume, pod, options);
    if (refreshInMs !== undefined) refresh = Math.min(refresh ?? Infinity, refreshInMs);
    for (const { mountPath } of mounts) {
      await files.makeDirectory(await places.inPod(mountPath));
      for (const [path, data] of contents) await writeChanged(files, await places.inPod(`${mountPath}/${path}`), data);
    }
  }
  return refresh;
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

async function contentsOf(
  volume: Volume,
  pod: Pod,
  options: VolumeOptions,
): Promise<{ contents: Map<string, Uint8Array | string>; refreshInMs?: number }> {
  const contents = new Map<string, Uint8Array | string>();
  const namespace = pod.metadata.namespace ?? "";
  let refreshInMs: number | undefined;
  if (volume.emptyDir !== undefined) return { contents };

  async function configMap(
    name: string,
    optional: boolean,
    items: readonly { key: string; path: string }[] | undefined,
  ): Promise<void> {
    const found: ConfigMap | undefined = await options.kube.get(kubernetes.ConfigMap, { name, namespace });
    if (found === undefined) {
      if (optional) return;
      throw new McoError("MCO_POD_VOLUME", { volume: volume.name, problem: `configmap "${name}" not found` });
    }
    for (const [key, value] of Object.entries(found.data ?? {})) add(key, value, items);
    for (const [key, value] of Object.entries(found.binaryData ?? {})) add(key, decodeBase64(value), items);
  }
  async function secret(
    name: string,
    optional: boolean,
    items: readonly { key: string; path: string }[] | undefined,
  ): Promise<void> {
    const found: Secret | undefined = await options.kube.get(kubernetes.Secret, { name, namespace });
    if (found === undefined) {
      if (optional) return;
      throw new McoError("MCO_POD_VOLUME", { volume: volume.name, problem: `secret "${name}" not found` });
    }
    for (const [key, value] of Object.entries(found.data ?? {})) add(key, decodeBase64(value), items);
  }
  function add(
    key: string,
    value: Uint8Array | string,
    items: readonly { key: string; path: string }[] | undefined,
  ): void {
    if (items === undefined) contents.set(key, value);
    else for (const item of items) if (item.key === key) contents.set(item.path, value);
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
      contents.set(path, value);
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
    await configMap(volume.configMap.name ?? "", volume.configMap.optional === true, volume.configMap.items);
  if (volume.secret !== undefined)
    await secret(volume.secret.secretName ?? "", volume.secret.optional === true, volume.secret.items);
  if (volume.downwardAPI !== undefined)
    for (const item of volume.downwardAPI.items ?? [])
      contents.set(item.path, podFieldOf(pod, item.fieldRef?.fieldPath ?? "") ?? "");
  for (const source of volume.projected?.sources ?? []) {
    if (source.serviceAccountToken !== undefined)
      await token(
        source.serviceAccountToken.path,
        source.serviceAccountToken.expirationSeconds,
        source.serviceAccountToken.audience,
      );
    if (source.configMap !== undefined)
      await configMap(source.configMap.name ?? "", source.configMap.optional === true, source.configMap.items);
    if (source.secret !== undefined)
      await secret(source.secret.name ?? "", source.secret.optional === true, source.secret.items);
    for (const item of source.downwardAPI?.items ?? [])
      contents.set(item.path, podFieldOf(pod, item.fieldRef?.fieldPath ?? "") ?? "");
  }
  return refreshInMs === undefined ? { contents } : { contents, refreshInMs };
}

/** A field of the downward API, or `undefined` for one that it does not offer. */
export function podFieldOf(pod: Pod, path: string): string | undefined {
  const { metadata, spec, status } = pod;
  const keyed = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(path);
  if (keyed !== null) return (keyed[1] === "labels" ? metadata.labels : metadata.annotations)?.[keyed[2] ?? ""] ?? "";
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
