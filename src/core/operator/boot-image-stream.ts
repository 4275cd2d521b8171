import { isRecord } from "../../ignition/shape.ts";

/** Platforms whose MachineSets get the boot images of the release. */
export const bootImagePlatforms = ["AWS", "GCP"] as const;
export type BootImagePlatform = (typeof bootImagePlatforms)[number];

/** The boot images of a release, by the architectures of RPM. */
export type BootImages = Readonly<Record<string, ArchitectureImages>>;

interface ArchitectureImages {
  /** AMIs by region. */
  readonly amis: Readonly<Record<string, string>>;
  /** Name of the image on GCP. */
  readonly gcp: string | undefined;
}

export type BootImageStream =
  | { readonly verdict: "read"; readonly images: BootImages }
  | { readonly verdict: "refused"; readonly problem: string };

const recordIn = (value: unknown, key: string): Readonly<Record<string, unknown>> => {
  const found = isRecord(value) ? value[key] : undefined;
  return isRecord(found) ? found : {};
};
const textIn = (value: unknown, key: string): string | undefined => {
  const found = isRecord(value) ? value[key] : undefined;
  return typeof found === "string" && found !== "" ? found : undefined;
};

/**
 * Reads the metadata of a CoreOS stream, as the key `stream` of the ConfigMap has them. Form:
 * coreos/stream-metadata-go stream/stream.go (main).
 */
export function parseBootImageStream(text: string | undefined): BootImageStream {
  if (text === undefined) return { verdict: "refused", problem: "it has no key stream" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { verdict: "refused", problem: "its key stream is no JSON" };
  }
  const architectures = Object.entries(recordIn(value, "architectures"));
  if (architectures.length === 0) return { verdict: "refused", problem: "its key stream names no architectures" };
  return {
    verdict: "read",
    images: Object.fromEntries(architectures.map(([architecture, one]) => [architecture, imagesOf(one)])),
  };
}

function imagesOf(architecture: unknown): ArchitectureImages {
  const images = recordIn(architecture, "images");
  const gcp = recordIn(images, "gcp");
  const [project, name] = [textIn(gcp, "project"), textIn(gcp, "name")];
  return {
    amis: Object.fromEntries(
      Object.entries(recordIn(recordIn(images, "aws"), "regions")).flatMap(([region, one]) => {
        const ami = textIn(one, "image");
        return ami === undefined ? [] : [[region, ami] as const];
      }),
    ),
    gcp: project === undefined || name === undefined ? undefined : `projects/${project}/global/images/${name}`,
  };
}
