import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { McoError } from "../api/errors.ts";
import type { ImageFolder } from "../host/directory/pod-images.ts";
import { orUndefined } from "../ports/absent-file.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock, systemFiles } from "../ports/node/index.ts";

/** What lies beside the blobs for each image that is there whole. */
interface ImageNote {
  readonly v: 1;
  readonly image: string;
  readonly blobs: readonly string[];
  /** Milliseconds since the epoch: when it was last pulled. */
  readonly at: number;
}

/** How long an image that nothing pins is kept: a prefetch pins its images only when all are there. */
const graceMs = 3_600_000;
const note = ".json";

/**
 * Images of pods in a folder: `images/<digest>.json` for each that is there whole, and their blobs, each once. It stands
 * in for the store of a container engine; images that nothing pins go an hour after they came, when another one comes.
 */
export function imageFolder(folder: string, { clock = systemClock }: { readonly clock?: Clock } = {}): ImageFolder {
  const notes = join(folder, "images");
  const pathOf = (image: string) => join(notes, `${hexOf(image)}${note}`);
  const readNote = async (path: string): Promise<ImageNote | undefined> => {
    try {
      const text = await systemFiles.read(path);
      const read = text === undefined ? undefined : (JSON.parse(new TextDecoder().decode(text)) as Partial<ImageNote>);
      return read?.v === 1 && typeof read.image === "string" && Array.isArray(read.blobs) && typeof read.at === "number"
        ? (read as ImageNote)
        : undefined;
    } catch {
      return undefined;
    }
  };
  const all = async () => {
    const names = (await orUndefined(readdir(notes))) ?? [];
    const read = await Promise.all(
      names
        .filter((name) => name.endsWith(note))
        .map(async (name) => ({ name, note: await readNote(join(notes, name)) })),
    );
    return read.flatMap(({ name, note: one }) => (one === undefined ? [] : [{ name, ...one }]));
  };

  return {
    async has(image) {
      const found = await readNote(pathOf(image));
      if (found?.image !== image) return false;
      const blobs = new Set((await orUndefined(readdir(join(folder, "blobs")))) ?? []);
      return found.blobs.every((digest) => blobs.has(digest.replace("sha256:", "")));
    },
    async layersOf(image, settings, signal) {
      const { inspectedLayers } = await import("./fetch-image.ts");
      return inspectedLayers(image, settings, clock, signal);
    },
    async pull(image, settings, isPinned, signal) {
      const path = pathOf(image);
      // The pull code is loaded only when there is something to pull: an idle daemon does not carry it.
      const { pulledInto } = await import("./fetch-image.ts");
      await systemFiles.makeDirectory(notes);
      const { blobs, keep } = await pulledInto(folder, image, settings, clock, signal);
      const own: ImageNote = { v: 1, image, blobs, at: Math.floor(clock.now()) };
      await systemFiles.write(path, JSON.stringify(own));
      const kept = new Set<string>();
      for (const one of await all()) {
        const stays = one.image === image || isPinned(one.image) || clock.now() - one.at < graceMs;
        if (stays) for (const digest of one.blobs) kept.add(digest);
        else await rm(join(notes, one.name), { force: true });
      }
      await keep(kept, graceMs);
    },
  };
}

/** The digest of an image, as a name of a file. */
function hexOf(image: string): string {
  const hex = /@sha256:([0-9a-f]{64})$/.exec(image)?.[1];
  if (hex === undefined)
    throw new McoError("MCO_IMAGE_INVALID", {
      image,
      problem: "a pinned image must be named by its digest: name@sha256:…",
      retryable: false,
    });
  return hex;
}
