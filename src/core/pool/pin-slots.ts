import { leastOf } from "../../api/schema/extremes.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations } from "../../api/names.ts";
import {
  type PinAnswer,
  type PinGrant,
  type PinnedSetVersion,
  mostCount,
  parsePinAnswer,
  parsePinGrant,
  pinTurnSeconds,
  sameSets,
} from "../images/pin-grant.ts";
import { isDone, memberFacts } from "./member-facts.ts";

/** How many machines of the whole cluster fetch pinned images at the same time, unless the cluster's settings say. */
export const defaultPinsAtOnce = 20;
export const mostPinsAtOnce = 1000;

/**
 * How long a grant without an answer holds its slot: a machine ends its turn before. A longer silence is a machine that
 * died, and its slot goes to another one.
 */
export const slotSeconds = pinTurnSeconds + 300;

/** Delay after the first failure; it doubles with each failure in a row. */
const firstDelaySeconds = 60;
const longestDelaySeconds = 3600;

/** The administrator's limit for the whole cluster; one that is no count of the range is not followed, and reported. */
export function pinsAtOnce(settings: Pick<MachineConfiguration, "metadata"> | undefined): {
  readonly most: number;
  readonly problem: string | undefined;
} {
  const written = settings?.metadata.annotations?.[annotations.pinnedImagesAtOnce];
  if (written === undefined) return { most: defaultPinsAtOnce, problem: undefined };
  const most = /^[0-9]{1,4}$/.test(written) ? Number(written) : 0;
  return most >= 1 && most <= mostPinsAtOnce
    ? { most, problem: undefined }
    : {
        most: defaultPinsAtOnce,
        problem: `the annotation ${annotations.pinnedImagesAtOnce} of MachineConfiguration cluster is "${written.slice(0, 40)}": write a number from 1 to ${mostPinsAtOnce}, or remove it for ${defaultPinsAtOnce}`,
      };
}

/** A machine as far as its pinned images are concerned. */
export interface PinMachine {
  readonly name: string;
  readonly grant: PinGrant | undefined;
  readonly answer: PinAnswer | undefined;
  /** The kubelet reports that the machine works. */
  readonly ready: boolean;
  /** An update is under way: nothing is begun beside it. */
  readonly updating: boolean;
}

export function pinMachineOf(node: Node): PinMachine {
  const has = node.metadata.annotations ?? {};
  const facts = memberFacts(node);
  return {
    name: facts.name,
    grant: parsePinGrant(has[annotations.pinnedImageSets]),
    answer: parsePinAnswer(has[annotations.pinnedImageSetsAnswer]),
    ready: facts.kubeletReady,
    updating: !isDone(facts),
  };
}

/** What a machine's own objects say of its pinned images, against the sets that it is to have. */
export type PinState =
  /** It has the sets. */
  | { readonly is: "has" }
  /** It may fetch them now, since `at`. */
  | { readonly is: "fetching"; readonly at: number }
  /** It had the time of several turns, and said nothing. */
  | { readonly is: "silent"; readonly at: number }
  | { readonly is: "failed"; readonly until: number; readonly answer: PinAnswer }
  /** It gave its turn back soon after it got it. */
  | { readonly is: "rests"; readonly until: number }
  /** It needs a grant; `fetches`: it may have to ask a registry, which needs a slot. */
  | { readonly is: "wants"; readonly fetches: boolean };

/** Milliseconds from a failed grant to the next one. */
export const retryDelayMs = (failures: number): number =>
  1000 * Math.min(longestDelaySeconds, firstDelaySeconds * 2 ** Math.min(failures, 10));

/** The next turn of a machine for the same sets comes so long after the last one began, at the soonest. */
const restSeconds = 60;

/**
 * The last turn of a machine as the controller remembers it. Root on the machine writes the grant on its Node, so that its
 * words alone would let it keep a turn for ever, or be always the next.
 */
export interface PinTurn {
  /** Milliseconds since the epoch: when the controller gave it, or saw first that the machine has one. */
  readonly at: number;
  /** `undefined`: another process gave it. */
  readonly sets: readonly PinnedSetVersion[] | undefined;
}

/** When a grant was given. No controller gave one of a time to come: the machine wrote it, and it counts as an old one. */
const timeOf = ({ at }: PinGrant, now: number): number => (at > now + slotSeconds * 1000 ? 0 : at);

/**
 * @param wanted sorted by name. @param now milliseconds since the epoch. @param turn its last one; `undefined`: none that the
 * caller knows, so that what the machine says counts.
 */
export function pinStateOf(
  machine: PinMachine,
  wanted: readonly PinnedSetVersion[],
  now: number,
  turn?: PinTurn,
): PinState {
  const said = stateAsSaid(machine, wanted, now, turn);
  if (said.is !== "wants" || turn?.sets === undefined || !sameSets(turn.sets, wanted)) return said;
  const until = turn.at + restSeconds * 1000;
  return until <= now ? said : { is: "rests", until };
}

function stateAsSaid(
  { grant, answer }: PinMachine,
  wanted: readonly PinnedSetVersion[],
  now: number,
  turn: PinTurn | undefined,
): PinState {
  if (grant === undefined) return wanted.length === 0 ? { is: "has" } : { is: "wants", fetches: true };
  const answered = answer?.of === grant.number ? answer : undefined;
  if (!sameSets(grant.sets, wanted)) {
    const has = answered?.is === "done" ? grant.sets : [];
    const isFewer = wanted.every((set) => has.some((one) => sameSets([one], [set])));
    return { is: "wants", fetches: !isFewer };
  }
  const written = timeOf(grant, now);
  // A turn ends when the first of the two says so, and the next one begins when the last of the two does.
  const [at, began] = [Math.max(written, turn?.at ?? 0), Math.min(written, turn?.at ?? written)];
  switch (answered?.is) {
    case "done":
      return { is: "has" };
    case "unfinished": {
      const until = at + restSeconds * 1000;
      return until <= now ? { is: "wants", fetches: true } : { is: "rests", until };
    }
    case "failed": {
      const until = at + retryDelayMs(grant.failures);
      return until <= now ? { is: "wants", fetches: true } : { is: "failed", until, answer: answered };
    }
    case undefined:
      return { is: now - began > slotSeconds * 1000 ? "silent" : "fetching", at: began };
  }
}

export interface PoolPins {
  readonly pool: string;
  readonly wanted: readonly PinnedSetVersion[];
  readonly machines: readonly PinMachine[];
}

export interface SlotDecision {
  readonly grants: readonly { readonly node: string; readonly grant: PinGrant }[];
  /** Machines that hold a slot, without the new ones. */
  readonly holders: number;
  /** Milliseconds since the epoch: when time alone changes the decision; `undefined`: it does not. */
  readonly again: number | undefined;
}

interface Candidate {
  readonly machine: PinMachine;
  readonly pool: PoolPins;
  readonly fetches: boolean;
  /** Milliseconds since the epoch: when its last turn began. */
  readonly last: number;
}

/**
 * Which machines may fetch their pools' pinned images now. A controller that starts again goes on by what lies on the Nodes;
 * what it did itself counts more than what a machine says of it.
 *
 * A machine holds a slot from its grant to its answer. A machine that is not ready, or says nothing for
 * {@link slotSeconds}, holds none, so that no dead machine keeps others waiting. Sets that only leave a machine need no
 * registry, and therefore no slot. A machine that is being updated gets nothing new. Pools take turns; in a pool go the
 * machines with the fewest failures first, then those that waited longest.
 *
 * @param most slots of the cluster. @param now milliseconds since the epoch. @param turns by machine, as far as they are
 * remembered.
 */
export function decideSlots(
  pools: readonly PoolPins[],
  most: number,
  now: number,
  turns: ReadonlyMap<string, PinTurn> = new Map(),
): SlotDecision {
  let holders = 0;
  const times: number[] = [];
  const free: Candidate[] = [];
  const waiting: Candidate[][] = [];
  for (const pool of [...pools].sort((a, b) => (a.pool < b.pool ? -1 : 1))) {
    const own: Candidate[] = [];
    for (const machine of pool.machines) {
      const turn = turns.get(machine.name);
      const state = pinStateOf(machine, pool.wanted, now, turn);
      if (state.is === "fetching" && machine.ready) {
        holders += 1;
        times.push(state.at + slotSeconds * 1000 + 1);
      } else if (state.is === "failed" || state.is === "rests") times.push(state.until);
      else if (state.is === "wants" && machine.ready && !machine.updating)
        (state.fetches ? own : free).push({
          machine,
          pool,
          fetches: state.fetches,
          last: Math.max(turn?.at ?? 0, machine.grant === undefined ? 0 : timeOf(machine.grant, now)),
        });
    }
    if (own.length > 0) waiting.push(own.sort(inTurn));
  }
  const chosen = roundRobin(waiting, Math.max(0, most - holders));
  const grants = [...free, ...chosen].map(({ machine, pool }) => ({
    node: machine.name,
    grant: nextGrant(machine, pool.wanted, now),
  }));
  return { grants, holders, again: times.length === 0 ? undefined : leastOf(times) };
}

/** Far more than change a delay. */
const mostFailures = 1000;

const failuresOf = ({ grant, answer }: PinMachine): number =>
  grant !== undefined && answer?.of === grant.number && answer.is === "failed"
    ? Math.min(grant.failures + 1, mostFailures)
    : 0;

const inTurn = (a: Candidate, b: Candidate): number =>
  failuresOf(a.machine) - failuresOf(b.machine) || a.last - b.last || (a.machine.name < b.machine.name ? -1 : 1);

/** The first of each list, then the second of each, until there are `most`. */
function roundRobin<T>(lists: readonly (readonly T[])[], most: number): readonly T[] {
  const taken: T[] = [];
  for (let at = 0; taken.length < most && lists.some((list) => at < list.length); at += 1)
    for (const list of lists) {
      const one = list[at];
      if (one !== undefined && taken.length < most) taken.push(one);
    }
  return taken;
}

/** Another content begins without failures. */
function nextGrant(machine: PinMachine, sets: readonly PinnedSetVersion[], now: number): PinGrant {
  const before = machine.grant;
  const isSame = before !== undefined && sameSets(before.sets, sets);
  // Where the grant was lost, an answer to it must not count for the next one.
  const last = Math.max(before?.number ?? 0, machine.answer?.of ?? 0);
  const number = last < mostCount ? last + 1 : machine.answer?.of === 1 ? 2 : 1;
  return { number, at: Math.floor(now), failures: isSame ? failuresOf(machine) : 0, sets };
}

/** How far the machines of a pool are. */
export interface PinProgress {
  readonly machines: number;
  readonly have: number;
  readonly fetching: number;
  readonly failed: readonly { readonly node: string; readonly answer: PinAnswer }[];
}

/** @param now milliseconds since the epoch. */
export function pinProgress({ wanted, machines }: PoolPins, now: number): PinProgress {
  let [have, fetching] = [0, 0];
  const failed: { readonly node: string; readonly answer: PinAnswer }[] = [];
  for (const machine of machines) {
    const state = pinStateOf(machine, wanted, now);
    if (state.is === "has") have += 1;
    if (state.is === "fetching") fetching += 1;
    // A machine that is tried again has failed until it has the images.
    const { grant, answer } = machine;
    const last = state.is === "failed" ? state.answer : undefined;
    const again = grant !== undefined && grant.failures > 0 && state.is !== "has" && sameSets(grant.sets, wanted);
    if (last !== undefined) failed.push({ node: machine.name, answer: last });
    else if (again && answer?.is === "failed") failed.push({ node: machine.name, answer });
  }
  return { machines: machines.length, have, fetching, failed };
}
