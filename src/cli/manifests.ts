import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { McoError } from "../api/errors.ts";
import { type KubeObject, type Resource, resource } from "../api/object.ts";
import type { KubeClient } from "../kube/kube-client.ts";

/** A manifest with where it was read, for messages. */
export interface Manifest extends KubeObject {
  readonly spec?: unknown;
}

/**
 * Reads manifests from files and folders as kubectl does: YAML 1.1, in which 0644 is octal (`*.yaml`, `*.yml`, `*.json`, in order of name); `-` is standard input.
 *
 * @throws McoError `MCO_MANIFEST_INVALID` with file, document and reason.
 */
export async function readManifests(paths: readonly string[]): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = [];
  for (const path of paths) {
    const files = path === "-" ? ["-"] : statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? readdirSync(path).filter((name) => /\.(ya?ml|json)$/.test(name)).sort().map((name) => join(path, name)) : [path];
    for (const file of files) {
      let text: string;
      try {
        text = readFileSync(file === "-" ? 0 : file, "utf8");
      } catch (cause) {
        throw new McoError("MCO_MANIFEST_INVALID", { file, problem: "it cannot be read" }, { cause });
      }
      for (const [index, document] of parseAllDocuments(text, { version: "1.1" }).entries()) {
        const [error] = document.errors;
        if (error !== undefined) throw new McoError("MCO_MANIFEST_INVALID", { file, document: index + 1, problem: error.message });
        const value = document.toJS() as Manifest | null;
        if (value === null) continue;
        if (typeof value !== "object" || typeof value.apiVersion !== "string" || typeof value.kind !== "string" || typeof value.metadata?.name !== "string") {
          throw new McoError("MCO_MANIFEST_INVALID", { file, document: index + 1, problem: "apiVersion, kind and metadata.name are required" });
        }
        manifests.push(value);
      }
    }
  }
  return manifests;
}

/** Kinds that a server offers, by `apiVersion/kind`. */
export type ServedResources = (apiVersion: string, kind: string) => Promise<Resource>;

/** Asks discovery for kinds as they are needed, once for each group and version; a kind that is not there yet is asked for again. */
export async function resourcesServed(kube: KubeClient): Promise<ServedResources> {
  const known = new Map<string, Resource>();
  return async (apiVersion, kind) => {
    const id = `${apiVersion}/${kind}`;
    const found = known.get(id);
    if (found !== undefined) return found;
    const list = (await kube.request({ method: "GET", target: apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`, headers: {} })) as { resources: { name: string; kind: string; namespaced: boolean }[] };
    for (const each of list.resources) if (!each.name.includes("/")) known.set(`${apiVersion}/${each.kind}`, resource(apiVersion, each.kind, each.name, each.namespaced ? "Namespaced" : "Cluster"));
    const now = known.get(id);
    if (now === undefined) throw new McoError("MCO_MANIFEST_INVALID", { problem: `the API server does not know ${kind} of ${apiVersion}` });
    return now;
  };
}

/** Server-side apply of a whole manifest. */
export async function applyManifest(kube: KubeClient, served: ServedResources, manifest: Manifest, owner: string): Promise<KubeObject> {
  return kube.apply(await served(manifest.apiVersion, manifest.kind), manifest, { owner });
}
