import { McoError } from "../../../api/errors.ts";
import type { Pod } from "../../../api/foreign/kubernetes.ts";

/** Resolve paths without ever leaving the folder that stands for `/`. */
export interface Locate {
  readonly below: (root: string, path: string) => Promise<string>;
  /** With the folders of the machine that lie elsewhere, as mounts do. */
  readonly onMachine: (path: string) => Promise<string>;
}

export interface PlacesOptions {
  /** Where the pods of this host keep their folders. */
  readonly podsFolder: string;
  readonly locate: Locate;
}

const refused = (problem: string): McoError => new McoError("MCO_POD_VOLUME", { problem });

/** A word of an API object as one name in a folder. */
function nameFrom(word: string): string {
  if (word === "" || word === "." || word === ".." || /[/\0]/.test(word))
    throw refused(`${JSON.stringify(word)} is no name of a file`);
  return word;
}

/** The names of a path; `undefined`: it leads out of the folder that it lies in, or no file has it. */
export function namesIn(path: string): readonly string[] | undefined {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  return names.includes("..") || path.includes("\0") ? undefined : names;
}

/**
 * Where everything of one pod lies on its host. Nothing else makes host paths from what API objects say: without mount
 * namespaces, files are written and removed where paths lead, with the rights of the user who started the cluster.
 */
export class PodPlaces {
  readonly folder: string;
  /** Stands for `/` of its containers. */
  readonly root: string;
  readonly #options: PlacesOptions;

  constructor({ metadata }: Pick<Pod, "metadata">, options: PlacesOptions) {
    this.#options = options;
    // By uid, as a kubelet's: together with the longest name of a pod it would be no name of a file.
    this.folder = `${options.podsFolder}/${nameFrom(metadata.uid ?? "")}`;
    this.root = `${this.folder}/root`;
  }

  /** What its volumes were written to. */
  get volumesFile(): string {
    return `${this.folder}/volumes.json`;
  }

  logFile(container: string): string {
    return `${this.folder}/${nameFrom(container)}.log`;
  }

  /**
   * A path of its containers.
   *
   * @throws McoError when it leads out of the pod's folder, or a link is on the way: that of a mounted folder of the
   * machine, or another.
   */
  async inPod(path: string): Promise<string> {
    const names = namesIn(path);
    if (names === undefined) throw refused(`${path} leads out of the pod's folder`);
    const above = names.slice(0, -1).join("/");
    const [root, folder] = await Promise.all([
      this.#options.locate.below(this.root, "/"),
      this.#options.locate.below(this.root, above),
    ]);
    const expected = above === "" ? root : `${root}/${above}`;
    if (folder !== expected) throw refused(`${path} lies behind a link`);
    return names.length === 0 ? root : `${folder}/${names.at(-1) ?? ""}`;
  }

  /** A path of the machine, whose links lead to where they lead on it. */
  async ofMachine(path: string): Promise<string> {
    if (namesIn(path) === undefined) throw refused(`${path} leads out of the machine`);
    return this.#options.locate.onMachine(path);
  }
}
