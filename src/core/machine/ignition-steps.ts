import type { Directory, File, IgnitionConfig, Link, Node, Owner, Passwd, Unit } from "../../ignition/index.ts";

/** One change that a first boot makes to a root file system, in order. */
export type IgnitionStep =
  | { readonly do: "accounts"; readonly passwd: Passwd }
  | { readonly do: "folder"; readonly path: string; readonly node: Directory }
  | { readonly do: "file"; readonly path: string; readonly node: File }
  | { readonly do: "link"; readonly path: string; readonly node: Link }
  /** A unit or a drop-in: replaces the existing entry. */
  | { readonly do: "unitFile"; readonly path: string; readonly contents: string }
  | { readonly do: "mask"; readonly path: string }
  /** Removes a mask, if there is one. */
  | { readonly do: "unmask"; readonly path: string }
  /** `unit`: the unit whose enablement is removed first, if any; without it the line is not written. */
  | { readonly do: "preset"; readonly line: string; readonly disables: string | undefined };

export type IgnitionSteps =
  | { readonly verdict: "steps"; readonly steps: readonly IgnitionStep[] }
  /** The configuration cannot be applied to the machine. */
  | { readonly verdict: "refused"; readonly reason: string };

const refused = (reason: string): IgnitionSteps => ({ verdict: "refused", reason });
const unitFolder = "/etc/systemd/system";

/**
 * The steps that apply a configuration to a root file system before its first boot, in Ignition's order:
 * coreos/ignition internal/exec/stages/files (main).
 *
 * @param resolve resolves the links above a path.
 */
export function ignitionSteps(config: IgnitionConfig, resolve: (path: string) => string): IgnitionSteps {
  const {
    disks = [],
    raid = [],
    luks = [],
    filesystems = [],
    directories = [],
    files = [],
    links = [],
  } = config.storage ?? {};
  const partitioning = Object.entries({ disks, raid, luks, filesystems })
    .filter(([, list]) => list.length > 0)
    .map(([name]) => `storage.${name}`);
  if (partitioning.length > 0)
    return refused(`this machine is a folder and has no disks: ${partitioning.join(", ")} cannot be carried out`);

  const taken = new Map<string, string>();
  const entries: (IgnitionStep & { readonly path: string; readonly last: boolean })[] = [];
  const named: readonly { readonly kind: "folder" | "file" | "link"; readonly node: Node }[] = [
    ...directories.map((node) => ({ kind: "folder" as const, node })),
    ...files.map((node) => ({ kind: "file" as const, node })),
    ...links.map((node) => ({ kind: "link" as const, node })),
  ];
  for (const { kind, node } of named) {
    const path = resolve(node.path);
    const other = taken.get(path);
    if (other !== undefined) return refused(`${node.path} and ${other} are the same place: ${path}`);
    taken.set(path, node.path);
    const step = { do: kind, path, node } as IgnitionStep & { readonly path: string };
    // A hard link may refer to a deeper path.
    entries.push({ ...step, last: kind === "link" && (node as Link).hard === true });
  }
  const units = config.systemd?.units ?? [];
  return {
    verdict: "steps",
    steps: [
      ...(config.passwd === undefined ? [] : [{ do: "accounts", passwd: config.passwd } as const]),
      ...entries
        .toSorted((a, b) => Number(a.last) - Number(b.last) || (a.last ? 0 : depth(a.path) - depth(b.path)))
        .map(({ last: _, ...step }) => step as IgnitionStep),
      ...units.flatMap((unit) => unitSteps(unit, resolve)),
      ...presets(units),
    ],
  };
}

const depth = (path: string) => path.split("/").filter((part) => part !== "").length;

function unitSteps(
  { name, contents, dropins = [], mask }: Unit,
  resolve: (path: string) => string,
): readonly IgnitionStep[] {
  const path = resolve(`${unitFolder}/${name}`);
  return [
    ...dropins.flatMap((dropin): readonly IgnitionStep[] =>
      dropin.contents === undefined
        ? []
        : [{ do: "unitFile", path: resolve(`${unitFolder}/${name}.d/${dropin.name}`), contents: dropin.contents }],
    ),
    ...(contents === undefined || contents === "" ? [] : [{ do: "unitFile", path, contents } as const]),
    ...(mask === undefined ? [] : [{ do: mask ? "mask" : "unmask", path } as const]),
  ];
}

/**
 * Lines of the preset file: instances of one template share a line. Sorted, so that equal configurations give equal
 * files.
 */
function presets(units: readonly Unit[]): readonly IgnitionStep[] {
  const lines = new Map<string, { readonly verb: string; readonly unit: string; readonly instances: string[] }>();
  for (const { name, enabled } of units) {
    if (enabled === undefined) continue;
    const [, before = "", instance = "", ending = ""] = /^([^@]*@)(.*)(\.[^.]*)$/.exec(name) ?? [];
    const unit = before === "" ? name : `${before}${ending}`;
    const key = `${unit}-${enabled ? "enabled" : "disabled"}`;
    const line = lines.get(key) ?? { verb: enabled ? "enable" : "disable", unit, instances: [] };
    if (before !== "") line.instances.push(instance);
    lines.set(key, line);
  }
  return [...lines]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { verb, unit, instances }]) => {
      const words = [unit, ...instances].join(" ");
      // As Ignition requires: several words are not a unit that can be enabled.
      return { do: "preset", line: `${verb} ${words}`, disables: verb === "enable" ? undefined : words };
    });
}

/** Names of users and groups that a step uses as owners. */
export const ownersNamed = ({
  user,
  group,
}: {
  readonly user?: Owner;
  readonly group?: Owner;
}): { readonly user: string | undefined; readonly group: string | undefined } => ({
  user: user?.id === undefined && user?.name !== "" ? user?.name : undefined,
  group: group?.id === undefined && group?.name !== "" ? group?.name : undefined,
});
