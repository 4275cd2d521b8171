import type { ClusterVersion } from "../../api/foreign/openshift.ts";
import type { InternalReleaseImage } from "../../api/kinds/internal-release-image.ts";
import { objects } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type Explanation, section } from "./explanation.ts";

/**
 * What an InternalReleaseImage does here: the suite stores and guards it, and serves no registry for it. The guard is the
 * policy internalreleaseimage-deletion-guard.
 *
 * @param now milliseconds since the epoch.
 */
export function explainInternalReleaseImage(
  object: InternalReleaseImage,
  version: ClusterVersion | undefined,
  now: number,
): Explanation {
  const { kind, metadata, spec, status } = object;
  const name = `${kind}/${metadata.name}`;
  const running = digestOf(version?.status?.desired?.image);
  const held = (status?.releases ?? []).filter(({ image }) => running !== undefined && digestOf(image) === running);
  const isRead = metadata.name === objects.clusterSingleton;
  const guarded = held.map((release) => release.name ?? "").join(", ");
  return {
    subject: `${kind.toLowerCase()}/${metadata.name}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    reason: held.length > 0 ? "Guarded" : "Stored",
    headline: `${name} is stored, and changes no machine: control-plane machines of this suite serve no registry${held.length > 0 ? `; it cannot be deleted while the cluster runs ${guarded}` : ""}.`,
    sections: [
      ...section(
        "Bundles",
        (spec?.releases ?? []).map((release) => release.name ?? ""),
      ),
      ...section(
        "Releases of its status",
        (status?.releases ?? []).map(({ name: of, image = "" }) => `${of}: ${image}`),
      ),
      ...section(
        "Conditions",
        (status?.conditions ?? []).map(
          ({ type, status: is, reason, message }) => `${type} ${is}, ${reason}: ${message} (not written by this suite)`,
        ),
      ),
    ],
    next: [],
    todo: [
      "mirror the release to a registry that machines reach, and name it in an ImageDigestMirrorSet",
      ...(isRead ? [] : [`the only one that other programs read is named ${objects.clusterSingleton}`]),
    ],
  };
}

/** The digest of a pullspec; `undefined`: it has none, and says nothing about which release it is. */
const digestOf = (image: string | undefined): string | undefined => image?.split("@")[1];
