import { annotations, imageLabels } from "../../src/api/names.ts";
import { layerEntries } from "../../src/core/config/image-content.ts";
import { withImage } from "../../src/core/machine/image-target.ts";
import { readConfig } from "../../src/core/machine/read-config.ts";
import type { Link, PlainFile } from "../../src/host/host.ts";
import type { MemoryImage } from "./hosts/memory-host.ts";
import { type Content, MachineHarness, images as stockImages, machineConfigOf } from "./machine-harness.ts";
import type { ContentMode } from "../../src/core/config/node-config.ts";

export const stock = "os@sha256:1";
/** Pullspec of the image of that number. */
export const imageNumber = (number: number) => `registry.example/pool@sha256:${String(number).padStart(64, "0")}`;

/** The accounts of the harness's machine. */
const owners = {
  users: new Map([
    ["root", 0],
    ["core", 1000],
  ]),
  groups: new Map([
    ["root", 0],
    ["core", 1000],
  ]),
};

/** An image as the os-builder makes it: the content's layer on top of a base. */
export function imageOf(content: Content, mode: ContentMode, base: MemoryImage = stockImages[stock]): MemoryImage {
  const labels = { [imageLabels.content]: mode };
  if (mode === "os-only") return { ...base, labels };
  const read = readConfig(machineConfigOf("any", content));
  if (read.verdict === "refused") throw new Error(read.reason);
  const etc: Record<string, string | PlainFile | Link> = { ...base.etc };
  const usr: Record<string, string | PlainFile | Link> = { ...base.usr };
  for (const entry of layerEntries(withImage(read.wanted.config, undefined), owners)) {
    if (entry.kind === "folder") continue;
    const { path, ...file } = entry;
    (path.startsWith("/usr/") ? usr : etc)[path] = file;
  }
  return { etc, usr, labels };
}

/** What the node controller writes beside the configuration; `undefined` removes the image. */
export const desiredImage = (
  image: string | undefined,
  content: ContentMode = "full",
): Readonly<Record<string, string | null>> => ({
  [annotations.desiredImage]: image ?? null,
  [annotations.desiredOSImage]: image ?? null,
  [annotations.desiredImageContent]: image === undefined ? null : content,
});

/** Images can be built while the machine runs. */
export class ImageHarness {
  readonly images: Record<string, MemoryImage> = { ...stockImages };
  harness!: MachineHarness;

  static async make(options: Parameters<typeof MachineHarness.make>[0] = {}): Promise<ImageHarness> {
    const made = new ImageHarness();
    Object.assign(made.images, options.images);
    made.harness = await MachineHarness.make({ ...options, images: made.images });
    return made;
  }

  /** Builds an image of a configuration and gives both to the machine. */
  async roll(
    name: string,
    content: Content,
    number: number,
    mode: ContentMode = "full",
    base?: MemoryImage,
  ): Promise<void> {
    this.images[imageNumber(number)] = imageOf(content, mode, base);
    await this.harness.config(name, content);
    await this.give(name, number, mode);
  }

  give(name: string, number: number | undefined, mode: ContentMode = "full"): Promise<unknown> {
    return this.harness.annotate({
      [annotations.desiredConfig]: name,
      ...desiredImage(number === undefined ? undefined : imageNumber(number), mode),
    });
  }

  /** The machine reports this configuration and this image, and is in service. */
  async untilHas(name: string, number: number | undefined): Promise<void> {
    const image = number === undefined ? undefined : imageNumber(number);
    await this.harness.until(
      async () => (await this.harness.annotation(annotations.currentImage)) === image,
      `${name} with image ${image}`,
    );
    await this.harness.untilDone(name);
  }
}
