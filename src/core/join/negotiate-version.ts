import { type ServedVersion, servedVersions } from "../../ignition/convert-ignition.ts";

export type Negotiated =
  | { readonly verdict: "version"; readonly version: ServedVersion }
  /** `asked`: the requested version, as written. */
  | { readonly verdict: "refused"; readonly asked: string; readonly offered: readonly ServedVersion[] };

/** The version for clients that name none: machines that were installed before there was another. */
const byDefault: ServedVersion = "2.2.0";
const newest: ServedVersion = "3.5.0";
const ignitionType = "application/vnd.coreos.ignition+json";
/** Ignition's own header has 150 characters. */
const maxLength = 4096;

interface Entry {
  readonly type: string;
  readonly version: string | undefined;
  readonly q: number;
}

/**
 * Which spec version answers an `Accept` header.
 *
 * The first entry that names Ignition with a version decides, those with a higher `q` before others; without one the
 * answer is 2.2.0, whatever else is accepted. A version that cannot be produced is refused, and no later entry is
 * tried: the next one of Ignition's own header is "anything", and a config of another major version is useless.
 *
 * Results are those of openshift/machine-config-operator pkg/server/api.go (main) but for three: 3.0.0 is refused,
 * which the reference lists and cannot produce; `q=0` means never; and only `application/` makes the type Ignition's.
 */
export function negotiateVersion(accept: string | undefined): Negotiated {
  const refused = (asked: string): Negotiated => ({ verdict: "refused", asked, offered: servedVersions });
  if ((accept?.length ?? 0) > maxLength) return refused(`${accept?.slice(0, 40)}… (${accept?.length} characters)`);
  const asking = entriesOf(accept ?? "").flatMap(({ type, version, q }) =>
    type === ignitionType && version !== undefined ? [{ version, q }] : [],
  );
  const first = asking.filter(({ q }) => q > 0).toSorted((a, b) => b.q - a.q)[0];
  if (first !== undefined) {
    const version = servedFor(first.version);
    return version === undefined ? refused(first.version) : { verdict: "version", version };
  }
  const never = asking.find(({ version }) => servedFor(version) === byDefault);
  return never === undefined ? { verdict: "version", version: byDefault } : refused(`anything but ${never.version}`);
}

function entriesOf(header: string): readonly Entry[] {
  return header.split(",").flatMap((text): Entry[] => {
    const [type = "", ...parameters] = text.split(";").map((part) => part.trim());
    if (!type.includes("/")) return [];
    const valuesOf = (name: string) =>
      parameters.flatMap((parameter) => (parameter.startsWith(`${name}=`) ? [parameter.slice(name.length + 1)] : []));
    return [
      {
        type: type.toLowerCase(),
        version: valuesOf("version").find((value) => semantic.test(value)),
        q:
          valuesOf("q")
            .map(weightOf)
            .find((q) => q !== undefined) ?? 1,
      },
    ];
  });
}

const semantic = /^(\d{1,9})\.(\d{1,9})\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;

function weightOf(text: string): number | undefined {
  const q = /^(\d{0,3}\.?\d{1,10}|\d\.)$/.test(text) ? Number(text) : Number.NaN;
  return q >= 0 && q <= 1 ? q : undefined;
}

/** The version that a machine with that version reads. */
function servedFor(version: string): ServedVersion | undefined {
  const [, major, minor] = (semantic.exec(version) ?? []).map(Number);
  if (major === 2) return minor !== undefined && minor >= 2 ? "2.2.0" : undefined;
  if (major !== 3 || minor === undefined) return undefined;
  return minor > 5 ? newest : servedVersions.find((one) => one === `3.${minor}.0`);
}
