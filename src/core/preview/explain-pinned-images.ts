import { type ErrorCode, errorCodes } from "../../api/errors.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { PinnedImageSet } from "../../api/kinds/pinned-image-set.ts";
import { labels, pinnedImageConditions, poolConditions } from "../../api/names.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import { type PinMachine, pinMachineOf, retryDelayMs } from "../pool/pin-slots.ts";
import type { PinAnswer } from "../images/pin-grant.ts";
import { poolsOfSet } from "../pool/pinned-sets.ts";
import type { Facts } from "../pool/pool-queries.ts";
import { listText } from "../text/list-text.ts";
import { type Explanation, section, shown } from "./explanation.ts";

/** What one machine has of one set. */
type Having =
  | { readonly is: "has" | "fetching" | "waiting" }
  | { readonly is: "failed"; readonly answer: PinAnswer; readonly again: number };

function havingOf({ grant, answer }: PinMachine, { metadata }: PinnedImageSet): Having {
  const isGranted = grant?.sets.some(
    ({ name, uid, generation }) =>
      name === metadata.name && uid === (metadata.uid ?? "") && generation === (metadata.generation ?? 1),
  );
  if (grant === undefined || isGranted !== true) return { is: "waiting" };
  if (answer?.of !== grant.number) return { is: "fetching" };
  if (answer.is === "failed" && answer.set === metadata.name)
    return { is: "failed", answer, again: grant.at + retryDelayMs(grant.failures) };
  return { is: answer.is === "done" ? "has" : "waiting" };
}

/** The remedy of an error's code; empty for a word that a machine made up. */
const remedyOf = (code: string | undefined): string =>
  code !== undefined && Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode].remedy : "";

/** Which machines have the images of a set, which do not, and why. */
export function explainPinnedImageSet(set: PinnedImageSet, facts: Facts): Explanation {
  const { name } = set.metadata;
  const base = { subject: `pinnedimageset/${name}`, asOf: timestampOf(facts.now), freshness: "Fresh" } as const;
  const pools = poolsOfSet(set, facts.members.pools());
  if (pools.length === 0)
    return {
      ...base,
      reason: "NoPool",
      headline: `No pool has PinnedImageSet ${name}: no machine fetches its images.`,
      sections: [],
      next: [],
      todo: [
        `give it a label that the machineConfigSelector of a pool selects: kubectl label pinnedimageset ${name} ${labels.role}=worker`,
      ],
    };
  const machines = pools.flatMap((pool) =>
    [...facts.members.members(pool).all()].flatMap((member) => {
      const node = facts.members.node(member.name)?.node;
      return node === undefined ? [] : [{ node: member.name, having: havingOf(pinMachineOf(node), set) }];
    }),
  );
  const which = (is: Having["is"]) => machines.filter(({ having }) => having.is === is).map(({ node }) => node);
  const failed = machines.flatMap(({ node, having }) => (having.is === "failed" ? [{ node, ...having }] : []));
  const [has, fetching, waiting] = [which("has"), which("fetching"), which("waiting")];
  const count = set.spec.pinnedImages.length;
  const images = count === 1 ? "its image" : `its ${count} images`;
  const isDone = has.length === machines.length;
  return {
    ...base,
    reason: failed.length > 0 ? "PrefetchFailed" : isDone ? "Pinned" : "Prefetching",
    headline: `${has.length} of ${machines.length} machines of ${pools.length === 1 ? `pool ${pools[0] ?? ""}` : `the pools ${pools.join(", ")}`} have ${images} of PinnedImageSet ${name}.`,
    sections: [
      ...section(
        "Failed",
        failed.map(
          ({ node, answer, again }) =>
            `${node}: ${answer.field ?? "spec.pinnedImages"}: ${answer.code ?? ""}: ${answer.problem ?? ""}; tried again at ${timestampOf(again)}`,
        ),
      ),
      ...section("Fetching", fetching.length === 0 ? [] : [listText(fetching, shown)]),
      ...section("Waiting for their turn", waiting.length === 0 ? [] : [listText(waiting, shown)]),
    ],
    next: isDone || failed.length === machines.length ? [] : ["machines fetch the images in turn, a few at a time"],
    todo: [...new Set(failed.map(({ answer }) => answer.code))].map((code) => {
      const remedy = remedyOf(code);
      return `${code ?? "failure"}: ${remedy === "" ? "read the message; mco explain node/NAME says more of the machine" : remedy} A corrected set is tried at once.`;
    }),
  };
}

/** How far one machine is with its pinned images, and why it lacks some, from its MachineConfigNode; nothing: it has them. */
export function pinnedImagesOf(conditions: readonly Condition[]): readonly string[] {
  const progressing = conditionOf(conditions, pinnedImageConditions.progressing);
  const degraded = conditionOf(conditions, pinnedImageConditions.degraded);
  return [
    ...(progressing?.status === "True" ? [progressing.message] : []),
    ...(progressing?.reason === "AwaitsTurn" ? [`${progressing.message}; the others wait for its next turn`] : []),
    ...(degraded?.status === "True" ? [degraded.message] : []),
  ];
}

/** How far the machines of a pool are with its pinned images, and what to look at where one lacks some. */
export function pinnedImagesOfPool(
  { metadata, spec, status }: MachineConfigPool,
  facts: Facts,
): { readonly lines: readonly string[]; readonly todo: readonly string[] } {
  const conditions = (status?.conditions ?? []) as readonly Condition[];
  const condition = conditionOf(conditions, poolConditions.pinnedImageSetsDegraded);
  const isDegraded = condition?.status === "True";
  if ((spec.pinnedImageSets ?? []).length === 0 && !isDegraded) return { lines: [], todo: [] };
  const machines = [...facts.members.members(metadata.name).all()].flatMap(({ name }) => {
    const node = facts.members.node(name)?.node;
    return node === undefined ? [] : [pinMachineOf(node)];
  });
  const failing = machines.flatMap(({ grant, answer }) =>
    answer?.is === "failed" && answer.of === grant?.number && answer.set !== undefined ? [answer.set] : [],
  );
  const counts = status?.poolSynchronizersStatus?.find(({ poolSynchronizerType: type }) => type === "PinnedImageSets");
  return {
    lines: [
      ...(counts === undefined ? [] : [`on ${counts.updatedMachineCount} of ${counts.machineCount} machines`]),
      ...(isDegraded ? [condition.message] : []),
    ],
    todo: !isDegraded
      ? []
      : condition.reason === "TooManySets"
        ? ["put the images of its PinnedImageSets into fewer sets"]
        : [...new Set(failing)]
            .sort()
            .map((set) => `mco explain pinnedimageset/${set} says what to do about its images`),
  };
}
