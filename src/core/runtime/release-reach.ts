import { parseImageReference, printImageReference, repositoryOf } from "../images/image-reference.ts";
import { parseRegistriesConf, pullSources } from "../images/registries-conf.ts";
import type { ObjectProblem } from "./merge-mirrors.ts";
import { type RegistriesInputs, ignoredBlocks } from "./registries-config.ts";
import { isNested } from "./registry-scopes.ts";

/** Whether machines can still pull the image of the cluster's release. */
export type ReleaseReach =
  /** Its source is asked, or the cluster names no release. */
  | { readonly verdict: "open" }
  /** Only mirrors are asked: whether they hold it, no policy says. */
  | { readonly verdict: "mirrorsOnly"; readonly mirrors: readonly string[] }
  /** Nothing is asked. */
  | { readonly verdict: "cutOff" };

/** @param text of the registries.conf that machines would have. */
export function releaseReach(text: string, releaseImage: string | undefined): ReleaseReach {
  const release = releaseImage === undefined ? undefined : parseImageReference(releaseImage);
  if (release?.verdict !== "reference") return { verdict: "open" };
  const { reference } = release;
  const asked = pullSources(parseRegistriesConf(text), reference);
  if (asked.verdict === "refused") return { verdict: "cutOff" };
  const places = asked.sources.map((source) => printImageReference(source.reference));
  return places.includes(printImageReference(reference))
    ? { verdict: "open" }
    : { verdict: "mirrorsOnly", mirrors: places };
}

const imageObject = "Image/cluster";
const blockedPath = "spec.registrySources.blockedRegistries";

type Settings = Omit<RegistriesInputs, "registries" | "policy">;

/** Fields that forbid the source of the release. */
function causes({ rules, sources, releaseImage }: Settings): readonly Pick<ObjectProblem, "object" | "path">[] {
  const payload = payloadOf(releaseImage);
  if (payload === undefined) return [];
  return [
    ...rules
      .filter(({ source, policy }) => policy === "NeverContactSource" && isNested(payload, source))
      .map(({ object, path }) => ({ object, path: `${path}.mirrorSourcePolicy` })),
    ...(sources.blockedRegistries ?? []).flatMap((scope, i) =>
      isNested(payload, scope) ? [{ object: imageObject, path: `${blockedPath}[${i}]` }] : [],
    ),
  ];
}

function payloadOf(releaseImage: string | undefined): string | undefined {
  const release = releaseImage === undefined ? undefined : parseImageReference(releaseImage);
  return release?.verdict === "reference" ? repositoryOf(release.reference) : undefined;
}

/** Why settings are refused that leave no place to pull the release from. */
export function cutOffProblems(settings: Settings): readonly ObjectProblem[] {
  const reason = `cuts the cluster off from the image of its release, ${settings.releaseImage}: its source is not asked, and no mirror is`;
  const remedy = "name a mirror for its repository in an ImageDigestMirrorSet, or take the block out";
  const found = causes(settings);
  return (found.length > 0 ? found : [{ object: "template", path: "/etc/containers/registries.conf" }]).map(
    (cause) => ({
      ...cause,
      reason,
      remedy,
    }),
  );
}

/** What is accepted, but may keep machines from pulling the release. */
export function releaseWarnings(settings: Settings, reach: ReleaseReach): readonly ObjectProblem[] {
  const { sources, releaseImage } = settings;
  const blocked = sources.blockedRegistries ?? [];
  const ignored = ignoredBlocks(settings).map((scope) => ({
    object: imageObject,
    path: `${blockedPath}[${blocked.indexOf(scope)}]`,
    reason: `has no effect: ${scope} is not blocked, because machines pull the image of the release from there, ${releaseImage}, and no mirror of it is named`,
    remedy: "name a mirror for its repository in an ImageDigestMirrorSet",
  }));
  const mirrored =
    reach.verdict === "mirrorsOnly"
      ? causes(settings).map((cause) => ({
          ...cause,
          reason: `lets machines pull the image of the release, ${releaseImage}, only as ${reach.mirrors.join(", ")}`,
          remedy: "make sure that this mirror holds it before the next update",
        }))
      : [];
  const payload = payloadOf(releaseImage);
  const allowed = sources.allowedRegistries ?? [];
  const isLeftOut = payload !== undefined && allowed.length > 0 && !allowed.some((scope) => isNested(payload, scope));
  const left = {
    object: imageObject,
    path: "spec.registrySources.allowedRegistries",
    reason: `leaves out the image of the release, ${releaseImage}: no machine may pull it`,
    remedy: `add ${payload}`,
  };
  return [...ignored, ...mirrored, ...(isLeftOut ? [left] : [])];
}
