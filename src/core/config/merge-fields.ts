import { annotations, labels } from "../../api/names.ts";
import type { MachineConfigInput } from "./validate-machine-config.ts";

/** Where a value of the rendered spec, beside its Ignition config, came from. */
export interface FieldOrigin {
  readonly field: MergedFieldName;
  /** For lists: the item. */
  readonly value: string;
  /** Name of a member, or "cluster" where no member sets the field. */
  readonly from: string;
  /** Overridden values of other members, in merge order. */
  readonly overrode: readonly { readonly member: string; readonly value: string }[];
}

export type MergedFieldName =
  | "osImageURL"
  | "baseOSExtensionsContainerImage"
  | "kernelArguments"
  | "extensions"
  | "fips"
  | "kernelType";

/** The cluster's values, for fields that no member sets. */
export interface ClusterValues {
  readonly osImageURL: string;
  readonly baseOSExtensionsContainerImage: string;
}

type Members = readonly MachineConfigInput[];

interface FieldRule<T> {
  /** A sentence without a final full stop. */
  readonly rule: string;
  /** The merged value, and the member that sets it if only one does. `members` are in merge order. */
  merge(members: Members, cluster: ClusterValues): { readonly value: T; readonly by?: MachineConfigInput };
  /** A member's values of the field, as texts. */
  valuesOf(member: MachineConfigInput): readonly string[];
}

/**
 * The order in which members merge: later ones win. Groups follow one another; in each, names are in byte
 * order.
 */
export const mergeOrder: readonly {
  readonly who: string;
  has(member: Pick<MachineConfigInput, "metadata">): boolean;
}[] = [
  {
    who: `members labelled \`${labels.role}: worker\``,
    has: ({ metadata }) => metadata.labels?.[labels.role] === "worker",
  },
  {
    who: "all others, so that a custom pool's own configs override every worker config whatever their names are",
    has: ({ metadata }) => metadata.labels?.[labels.role] !== "worker",
  },
];

/** Order of UTF-8 bytes, which is the order of code points. */
function compareBytes(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    const isSurrogate = (unit: number) => unit >= 0xd800 && unit < 0xe000;
    return isSurrogate(x) !== isSurrogate(y) ? (isSurrogate(x) ? 1 : -1) : x - y;
  }
  return a.length - b.length;
}

/** Members in the order in which they merge. */
export function inMergeOrder<T extends Pick<MachineConfigInput, "metadata">>(members: readonly T[]): readonly T[] {
  return mergeOrder.flatMap(({ has }) =>
    members.filter(has).toSorted((a, b) => compareBytes(a.metadata.name, b.metadata.name)),
  );
}

const isGenerated = ({ metadata }: MachineConfigInput) =>
  (metadata.annotations?.[annotations.generatedByController] ?? "") !== "";

const image = (field: "osImageURL" | "baseOSExtensionsContainerImage", stands: string): FieldRule<string> => {
  const valuesOf = (member: MachineConfigInput) =>
    isGenerated(member) || (member.spec?.[field] ?? "") === "" ? [] : [member.spec?.[field] ?? ""];
  return {
    rule: `the last member that names one, generated members left aside; else ${stands}`,
    merge(members, cluster) {
      const by = members.findLast((member) => valuesOf(member).length > 0);
      return by === undefined ? { value: cluster[field] } : { value: by.spec?.[field] ?? "", by };
    },
    valuesOf,
  };
};

const list = (field: "kernelArguments" | "extensions", more = ""): FieldRule<string[]> => ({
  rule: `all members' items one after the other, duplicates kept${more}`,
  merge: (members) => ({ value: members.flatMap((member) => member.spec?.[field] ?? []) }),
  valuesOf: (member) => member.spec?.[field] ?? [],
});

/**
 * How each field of a MachineConfig merges: what `renderPool` runs, and what `docs/merge.md` prints. The field `config`
 * merges by the rules of Ignition (`ignition/merge-ignition.ts`).
 * Source: openshift/machine-config-operator pkg/controller/common/helpers.go (main).
 */
export const fieldRules = {
  osImageURL: image("osImageURL", "the image of the pool's OS stream or of the cluster"),
  baseOSExtensionsContainerImage: image(
    "baseOSExtensionsContainerImage",
    "the extensions image of the pool's OS stream or of the cluster",
  ),
  kernelArguments: list("kernelArguments"),
  extensions: list("extensions", "; `kernel-devel` beside a kernel type other than `default` is refused"),
  fips: {
    rule: "true as soon as one member says so",
    merge(members) {
      const by = members.find(({ spec }) => spec?.fips === true);
      return { value: by !== undefined, ...(by === undefined ? {} : { by }) };
    },
    valuesOf: ({ spec }) => (spec?.fips === undefined ? [] : [String(spec.fips)]),
  } satisfies FieldRule<boolean>,
  kernelType: {
    rule: "the last member that says `realtime` or `64k-pages`; else `default`, which resets nothing",
    merge(members) {
      const by = members.findLast(({ spec }) => spec?.kernelType === "realtime" || spec?.kernelType === "64k-pages");
      return { value: by?.spec?.kernelType ?? "default", ...(by === undefined ? {} : { by }) };
    },
    valuesOf: ({ spec }) => (spec?.kernelType === undefined || spec.kernelType === "" ? [] : [spec.kernelType]),
  } satisfies FieldRule<string>,
} as const;

/** Where every value of the merged fields came from. */
export function originsOfFields(members: Members, cluster: ClusterValues): readonly FieldOrigin[] {
  return (Object.keys(fieldRules) as MergedFieldName[]).flatMap((field): readonly FieldOrigin[] => {
    const rule: FieldRule<unknown> = fieldRules[field];
    const { value, by } = rule.merge(members, cluster);
    if (Array.isArray(value))
      return members.flatMap((member) =>
        rule.valuesOf(member).map((item) => ({ field, value: item, from: member.metadata.name, overrode: [] })),
      );
    const overrode = members.flatMap((member) =>
      member === by
        ? []
        : rule
            .valuesOf(member)
            .flatMap((said) => (said === String(value) ? [] : [{ member: member.metadata.name, value: said }])),
    );
    return [{ field, value: String(value), from: by?.metadata.name ?? "cluster", overrode }];
  });
}
