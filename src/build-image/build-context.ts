import { McoError } from "../api/errors.ts";
import {
  type BuildFile,
  type BuildProxy,
  buildFiles,
  buildPaths,
  pieceName,
  readBuildFile,
  readBuildProxy,
} from "../core/build/image-build.ts";
import type { Files } from "../ports/files.ts";
import { digestOf } from "../registry/registry-client.ts";

/** Everything that a build was given. */
export interface BuildContext {
  readonly request: BuildFile;
  /** Absent: the base itself is what the configuration is laid on. */
  readonly containerfile: string | undefined;
  readonly files: readonly { readonly path: string; readonly contents: Uint8Array; readonly mode: number }[];
  readonly configLayer: { readonly bytes: Uint8Array; readonly diffId: string } | undefined;
  /** tar.gz */
  readonly buildVisible: Uint8Array | undefined;
  /** Texts of auth files. */
  readonly auth: { readonly pull: string | undefined; readonly push: string | undefined };
  /** PEM */
  readonly trust: string | undefined;
  readonly policy: string | undefined;
  readonly registries: string | undefined;
  readonly proxy: BuildProxy | undefined;
}

/** A path of a context, relative to it: no step up, no detour. */
const contextPath = /^(?![\s\S]*(?:^|\/)\.{0,2}(?:\/|$))[^\0]{1,1024}$/;

/**
 * Reads what the volumes of the container hold.
 *
 * @param at where a path of the container lies.
 * @throws McoError `MCO_BUILD_CONTEXT_INVALID`
 */
export async function readBuildContext(
  files: Files,
  at: (path: string) => string,
  folder: string = buildPaths.context,
): Promise<BuildContext> {
  const invalid = (file: string, problem: string) => new McoError("MCO_BUILD_CONTEXT_INVALID", { file, problem });
  const text = (path: string) => files.readText(at(path));
  const told = await text(`${folder}/${buildFiles.request}`);
  if (told === undefined) throw invalid(buildFiles.request, "it is not there");
  const request = readBuildFile(told);
  if ("problem" in request) throw invalid(buildFiles.request, request.problem);

  async function joined(name: string, pieces: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    for (let piece = 0; piece < pieces; piece += 1) {
      const part = await anywhere(pieceName(name, piece, pieces));
      if (part === undefined) throw invalid(pieceName(name, piece, pieces), "it is not there");
      parts.push(part);
    }
    return pieces === 0 ? undefined : Buffer.concat(parts);
  }
  /** One volume holds all pieces, or each has its own. */
  async function anywhere(name: string): Promise<Uint8Array | undefined> {
    const whole = await files.read(at(`${buildPaths.content}/${name}`));
    for (let volume = 0, found = whole; ; volume += 1) {
      if (found !== undefined) return found;
      if ((await files.stat(at(`${buildPaths.content}-${volume}`))) === undefined) return undefined;
      found = await files.read(at(`${buildPaths.content}-${volume}/${name}`));
    }
  }

  const layer = await joined(buildFiles.configLayer, request.pieces.configLayer);
  if ((layer === undefined) !== (request.configLayer === undefined))
    throw invalid(buildFiles.configLayer, "build.json says otherwise");
  if (layer !== undefined && digestOf(layer) !== request.configLayer?.digest)
    throw invalid(buildFiles.configLayer, "it has another digest than build.json says");
  const toldProxy = await text(`${buildPaths.proxy}/${buildFiles.proxy}`);
  const proxy = toldProxy === undefined ? undefined : readBuildProxy(toldProxy);
  if (proxy !== undefined && "problem" in proxy) throw invalid(buildFiles.proxy, proxy.problem);
  const contextFiles: { path: string; contents: Uint8Array; mode: number }[] = [];
  for (const { path, key, mode } of request.files) {
    if (!contextPath.test(path)) throw invalid(path.slice(0, 128), "it is no path inside of the context");
    const contents = await files.read(at(`${folder}/${key}`));
    if (contents === undefined) throw invalid(path, "it is not there");
    contextFiles.push({ path, contents, mode });
  }
  return {
    request,
    containerfile: await text(`${folder}/${buildFiles.containerfile}`),
    files: contextFiles,
    configLayer: layer === undefined ? undefined : { bytes: layer, diffId: request.configLayer?.diffId ?? "" },
    buildVisible: await joined(buildFiles.buildVisible, request.pieces.buildVisible),
    auth: {
      pull: await text(`${buildPaths.pull}/${buildFiles.auth}`),
      push: await text(`${buildPaths.push}/${buildFiles.auth}`),
    },
    trust: await text(`${buildPaths.trust}/${buildFiles.trust}`),
    policy: await text(`${buildPaths.policy}/${buildFiles.policy}`),
    registries: await text(`${buildPaths.registries}/${buildFiles.registries}`),
    proxy,
  };
}
