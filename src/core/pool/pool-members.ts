import { type ImageTarget, isGiven, sameImageTarget, stockTarget } from "../config/image-pair.ts";
import {
  type MemberFacts,
  isDone,
  isFailing,
  isUnderUpdate,
  isJoining,
  isOutOfService,
  isSilent,
  isSkipped,
  looksDegraded,
} from "./member-facts.ts";
import { type MachineRefusal, refusalIn } from "./quarantine.ts";
import { SortedList } from "../text/sorted-list.ts";

/** Machines by name. */
export type Members = ReadonlyMap<string, MemberFacts>;

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const rank = (member: MemberFacts) => (isFailing(member) ? 0 : 1);
/** Broken machines first; then zone by zone, the oldest first, machines without a zone last. */
const inTurn = (a: MemberFacts, b: MemberFacts) =>
  rank(a) - rank(b) ||
  Number(a.zone === "") - Number(b.zone === "") ||
  compare(a.zone, b.zone) ||
  compare(a.createdAt, b.createdAt) ||
  compare(a.name, b.name);

/** Where one machine is counted: worked out once when it comes, and undone when it goes. */
interface Place {
  readonly member: MemberFacts;
  readonly silent: boolean;
  readonly updated: boolean;
  readonly ready: boolean;
  readonly unavailable: boolean;
  readonly finished: boolean;
  readonly candidate: "urgent" | "healthy" | "skipped" | undefined;
}

/**
 * The machines of one pool, sorted by what they mean for its target, and kept so: a machine that changes costs what it
 * itself is, whatever the size of the pool. Only a new target looks at all of them.
 */
export class PoolMembers {
  #target: string;
  #image: ImageTarget;
  readonly #places = new Map<string, Place>();
  readonly #away = new Map<string, MemberFacts>();
  readonly #underUpdate = new Map<string, MemberFacts>();
  readonly #degraded = new Map<string, MemberFacts>();
  readonly #joining = new Map<string, MemberFacts>();
  readonly #cordonedByOthers = new Map<string, MemberFacts>();
  readonly #silent = new Map<string, MemberFacts>();
  readonly #excluded = new Map<string, MemberFacts>();
  readonly #urgent = new SortedList<MemberFacts>(inTurn);
  readonly #skipped = new Map<string, MemberFacts>();
  readonly #waiting = new SortedList<MemberFacts>(inTurn);
  #updated = 0;
  #ready = 0;
  #unavailable = 0;
  #unfinished = 0;

  /** @param target rendered config that every member should have; empty: there is none yet. */
  constructor(target: string, image: ImageTarget = stockTarget) {
    this.#target = target;
    this.#image = image;
  }

  /** @param now milliseconds since the epoch, to compute how long daemons have been silent. */
  static of(target: string, members: Iterable<MemberFacts>, now: number): PoolMembers {
    const made = new PoolMembers(target);
    for (const member of members) made.put(member, now);
    return made;
  }

  get target(): string {
    return this.#target;
  }

  /** The image that goes with it. */
  get image(): ImageTarget {
    return this.#image;
  }

  /** Whether the machine's requested target is this one, including the image. */
  isTargeted({ desired, desiredImage }: MemberFacts): boolean {
    return isGiven({ desired, desiredImage }, this.#target, this.#image);
  }

  /** Why the machine went back from the target; `undefined`: it did not. */
  refusalOf({ refused }: MemberFacts): MachineRefusal | undefined {
    return refusalIn(refused, this.#target, this.#image.image);
  }

  /** @returns whether it is another one. */
  retarget(target: string, now: number, image: ImageTarget = stockTarget): boolean {
    if (target === this.#target && sameImageTarget(image, this.#image)) return false;
    const isSame =
      target === this.#target &&
      image.image === this.#image.image &&
      (image.awaits === undefined) === (this.#image.awaits === undefined);
    this.#image = image;
    if (isSame) return true; // Only what is said of it.
    const members = [...this.#places.values()].map(({ member }) => member);
    for (const { name } of members) this.drop(name);
    this.#target = target;
    for (const member of members) this.put(member, now);
    return true;
  }

  put(member: MemberFacts, now: number): void {
    this.drop(member.name);
    const silent = isSilent(member, now);
    const isAway = silent || isOutOfService(member);
    const updated =
      this.#target !== "" &&
      isDone(member) &&
      this.isTargeted(member) &&
      (member.reported === undefined ||
        (member.reported.updatedTo === this.#target && member.reported.image === this.#image.image));
    const place: Place = {
      member,
      silent,
      updated,
      ready: updated && member.kubeletReady && member.cordoned !== "byUs",
      unavailable: isAway && !isFailing(member),
      finished: updated && !isUnderUpdate(member),
      candidate:
        this.#target === ""
          ? undefined
          : !this.isTargeted(member)
            ? isAway
              ? "urgent"
              : "healthy"
            : isSkipped(member) && !isAway
              ? "skipped"
              : undefined,
    };
    this.#places.set(member.name, place);
    const { name } = member;
    if (isAway) this.#away.set(name, member);
    if (isUnderUpdate(member)) this.#underUpdate.set(name, member);
    if (looksDegraded(member)) this.#degraded.set(name, member);
    if (isJoining(member)) this.#joining.set(name, member);
    if (member.cordoned === "byOthers") this.#cordonedByOthers.set(name, member);
    if (silent) this.#silent.set(name, member);
    if (this.refusalOf(member) !== undefined) this.#excluded.set(name, member);
    if (place.candidate === "urgent") this.#urgent.add(member);
    if (place.candidate === "healthy") this.#waiting.add(member);
    if (place.candidate === "skipped") this.#skipped.set(name, member);
    this.#count(place, 1);
  }

  drop(name: string): void {
    const place = this.#places.get(name);
    if (place === undefined) return;
    this.#places.delete(name);
    for (const group of [
      this.#away,
      this.#underUpdate,
      this.#degraded,
      this.#joining,
      this.#cordonedByOthers,
      this.#silent,
      this.#excluded,
      this.#skipped,
    ])
      group.delete(name);
    if (place.candidate === "urgent") this.#urgent.remove(place.member);
    if (place.candidate === "healthy") this.#waiting.remove(place.member);
    this.#count(place, -1);
  }

  #count({ updated, ready, unavailable, finished }: Place, one: 1 | -1): void {
    if (updated) this.#updated += one;
    if (ready) this.#ready += one;
    if (unavailable) this.#unavailable += one;
    if (!finished) this.#unfinished += one;
  }

  get(name: string): MemberFacts | undefined {
    return this.#places.get(name)?.member;
  }

  isUpdated(name: string): boolean {
    return this.#places.get(name)?.updated === true;
  }

  isSilent(name: string): boolean {
    return this.#silent.has(name);
  }

  /** Every member, in no particular order. */
  *all(): Iterable<MemberFacts> {
    for (const { member } of this.#places.values()) yield member;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Have the target, and say so in annotations and MachineConfigNode. */
  get updated(): number {
    return this.#updated;
  }

  /** Updated, with a kubelet that is ready, and not cordoned by us. */
  get ready(): number {
    return this.#ready;
  }

  /** Out of service, without those that fail on the way to a target. */
  get unavailable(): number {
    return this.#unavailable;
  }

  /** Not updated, or updated and not back in service. */
  get unfinished(): number {
    return this.#unfinished;
  }

  /** Out of service for whatever cause: what the budget counts. */
  get away(): Members {
    return this.#away;
  }

  get underUpdate(): Members {
    return this.#underUpdate;
  }

  get degraded(): Members {
    return this.#degraded;
  }

  get joining(): Members {
    return this.#joining;
  }

  get cordonedByOthers(): Members {
    return this.#cordonedByOthers;
  }

  /** Their kubelets are ready and their daemons are not, for longer than passing trouble takes. */
  get silent(): Members {
    return this.#silent;
  }

  /** Went back from the target. */
  get excluded(): Members {
    return this.#excluded;
  }

  /** Members that should get the target and are out of service anyway, in the order in which they should get it. */
  get urgent(): Iterable<MemberFacts> & { readonly size: number } {
    return this.#urgent;
  }

  /** Members that have the target before them, and whose drain was given up for now: they serve. */
  get skipped(): Members {
    return this.#skipped;
  }

  /** Healthy members that should get the target, in the order in which they should get it. */
  get waiting(): Pick<SortedList<MemberFacts>, "size" | "slice"> & Iterable<MemberFacts> {
    return this.#waiting;
  }
}
