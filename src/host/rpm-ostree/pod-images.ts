import { statfs } from "node:fs/promises";
import { McoError } from "../../api/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Processes } from "../../ports/process.ts";
import { resolveInRoot } from "../directory/root-folder.ts";
import type { HostFiles } from "../host.ts";
import type { ImageLayer, PodImages } from "../pod-images.ts";
import { authFile, imageFailure, imagePulls } from "./pull-image.ts";
import { hostCommands } from "./run-command.ts";

/** What skopeo says of an image that it resolved for this machine (containers/skopeo cmd/skopeo/inspect.go (main)). */
interface Inspection {
  readonly LayersData?: readonly { readonly Digest?: unknown; readonly Size?: unknown }[] | null;
}

/**
 * Part of the disk of images below which the kubelet evicts pods, by default: `imagefs.available<15%`
 * (kubernetes/website content/en/docs/concepts/scheduling-eviction/node-pressure-eviction.md (main)).
 */
const reservedPart = 0.15;
/** The store, and what it is on before anything was pulled. */
const places = ["/var/lib/containers", "/var"] as const;

/**
 * The images of a real machine's engine: podman and CRI-O have one store (containers-storage.conf(5)), and podman takes
 * the pull secret by a file, where the engine's own command would take it by its arguments.
 */
export function rpmOstreePodImages({
  root,
  processes,
  clock,
  architecture,
  files,
}: {
  readonly root: string;
  readonly processes: Processes;
  readonly clock: Clock;
  /** As Node.js says it. */
  readonly architecture: string;
  readonly files: HostFiles;
}): PodImages {
  const commands = hostCommands({ processes, clock, root });
  const pulls = imagePulls({ commands, files, architecture });
  return {
    async has(image, signal) {
      const words = ["podman", "image", "exists", "--", image];
      const result = await commands.run(words, { kind: "query", signal });
      // podman-image-exists(1): 1 is no, anything else a failure.
      if (result.code !== 0 && result.code !== 1) throw imageFailure(image, words, result);
      return result.code === 0;
    },
    async layersOf(image, signal) {
      await pulls.imageReference(image, signal);
      await pulls.linkAuthFile(signal);
      const words = ["skopeo", "inspect", "--no-tags", `--authfile=${authFile}`, "--", `docker://${image}`];
      const result = await commands.run(words, { kind: "inspect", environment: await pulls.proxy(signal), signal });
      if (result.code !== 0) throw imageFailure(image, words, result);
      return layersIn(image, result.stdout);
    },
    async pull(image, signal) {
      // Refuses what the machine's policy forbids to begin with; podman checks the signatures.
      await pulls.imageReference(image, signal);
      await pulls.linkAuthFile(signal);
      const words = ["podman", "pull", "--quiet", `--authfile=${authFile}`, "--", image];
      const result = await commands.run(words, { kind: "pull", environment: await pulls.proxy(signal), signal });
      if (result.code !== 0) throw imageFailure(image, words, result);
    },
    async space() {
      for (const place of places) {
        const found = await statfs(await resolveInRoot(root, place)).catch(() => undefined);
        if (found === undefined) continue;
        const { bavail, blocks, bsize } = found;
        return { freeBytes: bavail * bsize, reserveBytes: Math.ceil(blocks * bsize * reservedPart) };
      }
      return undefined;
    },
  };
}

function layersIn(image: string, text: string): readonly ImageLayer[] {
  let read: Inspection;
  try {
    read = JSON.parse(text) as Inspection;
  } catch {
    throw new McoError("MCO_IMAGE_INVALID", { image, problem: "skopeo printed no JSON", retryable: false });
  }
  return (read.LayersData ?? []).flatMap(({ Digest: digest, Size: sizeBytes }) =>
    typeof digest === "string" && typeof sizeBytes === "number" && sizeBytes >= 0 ? [{ digest, sizeBytes }] : [],
  );
}
