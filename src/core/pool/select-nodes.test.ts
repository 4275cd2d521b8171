import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { type MemberFacts, isUnderUpdate, isOutOfService, memberFacts } from "./member-facts.ts";
import { quarantinedTargets } from "./quarantine.ts";
import { PoolMembers } from "./pool-members.ts";
import {
  type Hold,
  type MachineClass,
  type RolloutPolicy,
  type RolloutPool,
  canaryFacts,
  holdTable,
} from "./rollout-holds.ts";
import { type ImageTarget, stockTarget } from "../config/image-pair.ts";
import { budgetOf, plainPolicy, selectNodes } from "./select-nodes.ts";

interface Given extends RolloutPool {
  readonly target: string;
  readonly members: readonly MemberFacts[];
  /** Control-plane machines of other pools. */
  readonly otherControlPlane: readonly MemberFacts[];
  readonly policy?: Partial<RolloutPolicy>;
  /** Why the target cannot be given yet. */
  readonly awaits?: ImageTarget["awaits"];
}

const now = Date.UTC(2030, 0, 2);

function membersOf({ target, members, awaits }: Given): PoolMembers {
  const made = PoolMembers.of(target, members, now);
  if (awaits !== undefined) made.retarget(target, now, { ...stockTarget, awaits });
  return made;
}

/** The choice, with every machine that waits named. */
function select(given: Given) {
  const controlPlane = [...given.members, ...given.otherControlPlane].filter((each) => each.controlPlane);
  const selection = selectNodes(
    given,
    membersOf(given),
    { ...plainPolicy, controlPlane, ...given.policy },
    now,
    Number.POSITIVE_INFINITY,
  );
  return {
    ...selection,
    skipped: selection.waits.flatMap(({ reason, message, first }) => first.map((node) => ({ node, reason, message }))),
  };
}

const member = (name: string, more: Partial<MemberFacts> = {}): MemberFacts => ({
  name,
  zone: "",
  createdAt: "2030-01-01T00:00:00Z",
  controlPlane: false,
  current: "old",
  desired: "old",
  currentImage: "",
  desiredImage: "",
  state: "Done",
  reason: "",
  kubeletReady: true,
  kubeletReason: "",
  cordoned: "no",
  drainPending: false,
  phase: "Updated",
  says: "",
  saysReason: "",
  since: "",
  reported: undefined,
  skippedUntil: "",
  daemonAwaySince: "",
  refused: [],
  ...more,
});
const facts = (members: readonly MemberFacts[], more: Partial<Given> = {}): Given => ({
  target: "new",
  paused: false,
  maxUnavailable: undefined,
  quarantined: [],
  members,
  otherControlPlane: [],
  ...more,
});
const onNew = { current: "new", desired: "new" };
const onItsWay = { desired: "new", state: "Working" };

describe("selectNodes", () => {
  test.for<{ title: string; given: Given; chosen: string[]; skipped?: string[] }>([
    {
      title: "takes one machine at a time when nothing is said",
      given: facts([member("a"), member("b")]),
      chosen: ["a"],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "takes as many as the pool allows",
      given: facts([member("a"), member("b"), member("c")], { maxUnavailable: 2 }),
      chosen: ["a", "b"],
      skipped: ["c BudgetUsed"],
    },
    {
      title: "leaves machines alone that have the target",
      given: facts([member("a", onNew), member("b")]),
      chosen: ["b"],
    },
    {
      title: "waits while one is under way",
      given: facts([member("a", onItsWay), member("b")]),
      chosen: [],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "waits while a machine is not ready, whatever the cause",
      given: facts([member("a", { ...onNew, kubeletReady: false }), member("b")]),
      chosen: [],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "waits while one has a foreign cordon",
      given: facts([member("a", { ...onNew, cordoned: "byOthers" }), member("b")]),
      chosen: [],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "waits while one that has the target is still to be put back into service",
      given: facts([member("a", { ...onNew, cordoned: "byUs", drainPending: true }), member("b")]),
      chosen: [],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "gives a failing machine its repair although the budget is used up",
      given: facts([member("a"), member("b", { desired: "bad", state: "Degraded" })]),
      chosen: ["b"],
      skipped: ["a BudgetUsed"],
    },
    {
      title: "gives machines that are down the target at no cost",
      given: facts([member("a", { kubeletReady: false }), member("b", { kubeletReady: false }), member("c")]),
      chosen: ["a", "b"],
      skipped: ["c BudgetUsed"],
    },
    {
      title: "stops after as many machines as the budget has when a target is bad",
      given: facts([member("a", { desired: "new", state: "Degraded" }), member("b"), member("c")]),
      chosen: [],
      skipped: ["b BudgetUsed", "c BudgetUsed"],
    },
    {
      title: "lets all machines join at once",
      given: facts([member("a", { current: "", desired: "" }), member("b", { current: "", desired: "" })]),
      chosen: ["a", "b"],
    },
    {
      title: "lets machines of the control plane join one by one",
      given: facts([
        member("a", { current: "", desired: "", controlPlane: true }),
        member("b", { current: "", desired: "", controlPlane: true }),
      ]),
      chosen: ["a"],
      skipped: ["b ControlPlaneBusy"],
    },
    {
      title: "takes one of the control plane at a time, whatever the pool allows",
      given: facts([member("a", { controlPlane: true }), member("b", { controlPlane: true })], { maxUnavailable: 2 }),
      chosen: ["a"],
      skipped: ["b ControlPlaneBusy"],
    },
    {
      title: "takes none of the control plane while one of another pool is under way",
      given: facts([member("a", { controlPlane: true })], {
        otherControlPlane: [member("x", { ...onItsWay, controlPlane: true })],
      }),
      chosen: [],
      skipped: ["a ControlPlaneBusy"],
    },
    {
      title: "takes no healthy one of the control plane while another is lost",
      given: facts(
        [member("a", { controlPlane: true }), member("b", { ...onNew, controlPlane: true, kubeletReady: false })],
        { maxUnavailable: 2 },
      ),
      chosen: [],
      skipped: ["a ControlPlaneAway"],
    },
    {
      title: "gives the one machine of the control plane that fails its repair",
      given: facts([
        member("a", { controlPlane: true }),
        member("b", { controlPlane: true, desired: "bad", state: "Degraded" }),
      ]),
      chosen: ["b"],
      skipped: ["a ControlPlaneBusy"],
    },
    {
      title: "takes nothing from a paused pool",
      given: facts([member("a"), member("b", onNew)], { paused: true }),
      chosen: [],
      skipped: ["a Paused"],
    },
    {
      title: "gives a quarantined target to no healthy machine",
      given: facts([member("a"), member("b", { kubeletReady: false })], { quarantined: ["new"], maxUnavailable: 2 }),
      chosen: ["b"],
      skipped: ["a TargetQuarantined"],
    },
    {
      title: "does nothing without a target",
      given: facts([member("a", { current: "", desired: "" })], { target: "" }),
      chosen: [],
    },
    {
      title: "counts a machine with an unready daemon as unavailable",
      given: facts([member("a", { ...onNew, daemonAwaySince: "2030-01-01T00:00:00Z" }), member("b")]),
      chosen: [],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "does not count one whose daemon's pod is away for a moment",
      given: facts([member("a", { ...onNew, daemonAwaySince: "2030-01-01T23:58:00Z" }), member("b")]),
      chosen: ["b"],
    },
    {
      title: "gives a machine that is on its way to a superseded target the new one at once",
      given: facts([member("a", { desired: "superseded", state: "Working" }), member("b")]),
      chosen: ["a"],
      skipped: ["b BudgetUsed"],
    },
    {
      title: "takes no healthy one of the control plane while an etcd member elsewhere is not ready",
      given: facts([member("a", { controlPlane: true }), member("b", { ...onNew, controlPlane: true })], {
        policy: {
          etcd: [
            { node: "a", ready: true },
            { node: "b", ready: false },
          ],
        },
      }),
      chosen: [],
      skipped: ["a EtcdUnhealthy"],
    },
    {
      title: "takes the one of the control plane whose own etcd member is not ready",
      given: facts([member("a", { controlPlane: true })], {
        policy: {
          etcd: [
            { node: "a", ready: false },
            { node: "b", ready: true },
          ],
        },
      }),
      chosen: ["a"],
    },
    {
      title: "repairs one of the control plane although etcd is not healthy",
      given: facts([member("a", { controlPlane: true, desired: "bad", state: "Degraded" })], {
        policy: { etcd: [{ node: "b", ready: false }] },
      }),
      chosen: ["a"],
    },
    {
      title: "asks etcd for no worker",
      given: facts([member("a")], { policy: { etcd: [{ node: "b", ready: false }] } }),
      chosen: ["a"],
    },
    {
      title: "takes the operator's own machine last",
      given: facts([member("a", { controlPlane: true }), member("b", { controlPlane: true })], {
        policy: { operatorNode: "a" },
      }),
      chosen: ["b"],
      skipped: ["a ControlPlaneBusy"],
    },
    {
      title: "takes the operator's own machine when it is the only one left",
      given: facts([member("a", { controlPlane: true }), member("b", { ...onNew, controlPlane: true })], {
        policy: { operatorNode: "a" },
      }),
      chosen: ["a"],
    },
    {
      title: "passes over a machine whose drain was given up, which costs nothing while it serves",
      given: facts([member("a", { ...onItsWay, skippedUntil: "2030-01-03T00:00:00Z" }), member("b")]),
      chosen: ["b"],
      skipped: ["a DrainSkipped"],
    },
    {
      title: "tries it again after all others when its time is over",
      given: facts([member("a", { ...onItsWay, skippedUntil: "2030-01-01T00:00:00Z" }), member("b", onNew)]),
      chosen: ["a"],
    },
    {
      title: "tries it again only within the budget",
      given: facts([member("a", { ...onItsWay, skippedUntil: "2030-01-01T00:00:00Z" }), member("b")]),
      chosen: ["b"],
      skipped: ["a BudgetUsed"],
    },
    {
      title: "tries it again in its zone only while machines of another one are away, when asked",
      given: facts(
        [member("a", { ...onItsWay, zone: "z1", skippedUntil: "2030-01-01T00:00:00Z" }), member("b", { zone: "z2" })],
        { maxUnavailable: 2, policy: { oneZoneAtATime: true } },
      ),
      chosen: ["b"],
      skipped: ["a ZoneBusy"],
    },
    {
      title: "does not try it again behind a canary that failed",
      given: facts(
        [
          member("a", { desired: "new", state: "Degraded" }),
          member("b", { ...onItsWay, skippedUntil: "2030-01-01T00:00:00Z" }),
        ],
        { maxUnavailable: 2, policy: { canary: { count: 1, wellMs: 60_000 } } },
      ),
      chosen: [],
      skipped: ["b CanaryFailed"],
    },
    {
      title: "tries the canary itself again",
      given: facts([member("a", { ...onItsWay, skippedUntil: "2030-01-01T00:00:00Z" }), member("b")], {
        maxUnavailable: 2,
        policy: { canary: { count: 1, wellMs: 60_000 } },
      }),
      chosen: ["a"],
      skipped: ["b Canary"],
    },
    {
      title: "tries canaries again one by one where more went than the pool asks for",
      given: facts(
        ["a", "b"].map((name) => member(name, { ...onItsWay, skippedUntil: "2030-01-01T00:00:00Z" })),
        { maxUnavailable: 2, policy: { canary: { count: 1, wellMs: 60_000 } } },
      ),
      chosen: ["a"],
      skipped: ["b Canary"],
    },
    {
      title: "takes two zones at once by default",
      given: facts([member("a", { zone: "z1" }), member("b", { zone: "z2" })], { maxUnavailable: 2 }),
      chosen: ["a", "b"],
    },
    {
      title: "takes one zone at a time when asked",
      given: facts([member("a", { zone: "z1" }), member("b", { zone: "z1" }), member("c", { zone: "z2" })], {
        maxUnavailable: 3,
        policy: { oneZoneAtATime: true },
      }),
      chosen: ["a", "b"],
      skipped: ["c ZoneBusy"],
    },
    {
      title: "stays in the zone in which a machine is away already, when asked",
      given: facts(
        [
          member("a", { zone: "z1" }),
          member("c", { zone: "z2" }),
          member("d", { ...onNew, zone: "z2", kubeletReady: false }),
        ],
        { maxUnavailable: 3, policy: { oneZoneAtATime: true } },
      ),
      chosen: ["c"],
      skipped: ["a ZoneBusy"],
    },
    {
      title: "proceeds by zone, the oldest first, machines without a zone last",
      given: facts(
        [
          member("d"),
          member("c", { zone: "z2" }),
          member("b", { zone: "z1", createdAt: "2030-01-02T00:00:00Z" }),
          member("a", { zone: "z1" }),
        ],
        { maxUnavailable: 9 },
      ),
      chosen: ["a", "b", "c", "d"],
    },
  ])("$title [pool-select-nodes-3]", ({ given, chosen, skipped = [] }) => {
    const result = select(given);
    expect(result.chosen.map(({ node }) => node)).toEqual(chosen);
    expect(result.skipped.map(({ node, reason }) => `${node} ${reason}`)).toEqual(skipped);
  });

  test("a waiting machine has the names that it waits for", () => {
    const { skipped } = select(
      facts([member("a", onItsWay), member("b", { ...onNew, cordoned: "byOthers" }), member("c")]),
    );
    expect(skipped).toEqual([
      {
        node: "c",
        reason: "BudgetUsed",
        message: "2 of 1 allowed unavailable: a updating, b cordoned outside the suite",
      },
    ]);
  });
});

const allClasses = ["healthy", "drainSkipped", "outOfService", "joining"] as const;
const later = "2030-01-03T00:00:00Z";
const earlier = "2030-01-01T00:00:00Z";

/** The machine in question, as one of each class. */
const asClass: Readonly<Record<MachineClass, Partial<MemberFacts>>> = {
  healthy: {},
  drainSkipped: { ...onItsWay, skippedUntil: earlier },
  outOfService: { kubeletReady: false },
  joining: { current: "", desired: "" },
};

/** What brings each hold about for a machine `x` of the control plane in zone z1. */
const situations: Readonly<
  Record<Hold, Partial<Given> & { readonly x?: Partial<MemberFacts>; readonly beside?: Partial<MemberFacts> }>
> = {
  paused: { paused: true },
  image: { awaits: { reason: "WaitingForBuild", message: "", remedy: "" } },
  otherPools: { policy: { afterOthers: { message: "", remedy: "" } } },
  drainDelay: { x: { skippedUntil: later } },
  quarantine: { quarantined: ["new"] },
  excluded: { x: { refused: [{ config: "new", image: "", reason: "it did not boot" }] } },
  controlPlaneBusy: { otherControlPlane: [member("o", { ...onItsWay, controlPlane: true })] },
  controlPlaneAway: { otherControlPlane: [member("o", { ...onNew, kubeletReady: false, controlPlane: true })] },
  etcd: { policy: { etcd: [{ node: "o", ready: false }] } },
  canary: { beside: { ...onNew, since: "2030-01-02T00:00:00Z" }, policy: { canary: { count: 1, wellMs: 60_000 } } },
  budget: { beside: { ...onNew, kubeletReady: false }, maxUnavailable: 1 },
  zone: { beside: { ...onNew, kubeletReady: false, zone: "z2" }, policy: { oneZoneAtATime: true } },
};

describe.for(allClasses)("a machine that is %s", (is) => {
  const x = (more: Partial<MemberFacts> = {}) =>
    member("x", { controlPlane: true, zone: "z1", ...asClass[is], ...more });

  test("goes where nothing holds it", () => {
    expect(select(facts([x()])).chosen.map(({ node }) => node)).toEqual(["x"]);
  });

  test.for(Object.entries(situations))("is held by %s as the table says", ([hold, { x: more, beside, ...given }]) => {
    const members = [x(more), ...(beside === undefined ? [] : [member("y", beside)])];
    const { chosen, skipped } = select(facts(members, { maxUnavailable: 9, ...given }));
    const isHeld = holdTable[hold as Hold][is];
    expect(chosen.map(({ node }) => node)).toEqual(isHeld ? [] : ["x"]);
    expect(skipped.map(({ node }) => node)).toEqual(isHeld ? ["x"] : []);
  });
});

const anyMember = fc.record({
  controlPlane: fc.boolean(),
  zone: fc.constantFrom("", "z1", "z2"),
  current: fc.constantFrom("", "old", "new", "bad"),
  desired: fc.constantFrom("", "old", "new", "bad"),
  state: fc.constantFrom("", "Done", "Working", "Degraded", "Unreconcilable"),
  kubeletReady: fc.boolean(),
  cordoned: fc.constantFrom("no" as const, "byUs" as const, "byOthers" as const),
  drainPending: fc.boolean(),
});
const anyFacts = fc
  .record({
    members: fc.array(anyMember, { maxLength: 8 }),
    others: fc.array(anyMember, { maxLength: 2 }),
    paused: fc.boolean(),
    maxUnavailable: fc.constantFrom(undefined, 0, 1, 2, 3, "10%", "50%"),
    quarantined: fc.constantFrom([], ["new"]),
  })
  .map(({ members, others, ...more }) =>
    facts(
      members.map((each, index) => member(`m${index}`, each)),
      { ...more, otherControlPlane: others.map((each, index) => member(`o${index}`, { ...each, controlPlane: true })) },
    ),
  );

/** As `anyFacts`, with drains that were given up, zones, and machines that go first. */
const anyRollout = fc
  .record({
    given: anyFacts,
    skipped: fc.array(fc.constantFrom("", "", earlier, later), { minLength: 8, maxLength: 8 }),
    since: fc.constantFrom("2029-01-01T00:00:00Z", new Date(now).toISOString()),
    oneZoneAtATime: fc.boolean(),
    canary: fc.option(fc.record({ count: fc.constantFrom(1, 2), wellMs: fc.constant(60_000) }), { nil: undefined }),
  })
  .map(({ given, skipped, since, oneZoneAtATime, canary }) => ({
    ...given,
    members: given.members.map((each, index) => ({ ...each, since, skippedUntil: skipped[index] ?? "" })),
    policy: { oneZoneAtATime, ...(canary === undefined ? {} : { canary }) },
  }));

/** A machine that comes or changes (`at` is its place among eight names), or goes. */
const anyNews = fc.record({
  at: fc.nat({ max: 7 }),
  gone: fc.boolean(),
  as: anyMember,
  silent: fc.boolean(),
  reported: fc.constantFrom(
    undefined,
    { updatedTo: "new", image: "", degraded: false },
    { updatedTo: "", image: "", degraded: true },
  ),
});

test("members maintained incrementally equal members sorted from scratch [pool-select-nodes-1]", () => {
  fc.assert(
    fc.property(
      fc.array(anyNews, { maxLength: 40 }),
      fc.array(fc.constantFrom("", "old", "new"), { maxLength: 3 }),
      (news, targets) => {
        const kept = new PoolMembers("new");
        const true_ = new Map<string, MemberFacts>();
        let target = "new";
        for (const [index, { at, gone, as, silent, reported }] of news.entries()) {
          const name = `m${at}`;
          if (gone) {
            kept.drop(name);
            true_.delete(name);
          } else {
            const one = member(name, { ...as, reported, daemonAwaySince: silent ? "2030-01-01T00:00:00Z" : "" });
            kept.put(one, now);
            true_.set(name, one);
          }
          if (index % 10 === 9) {
            target = targets[index % Math.max(1, targets.length)] ?? target;
            kept.retarget(target, now);
          }
        }
        const again = PoolMembers.of(target, true_.values(), now);
        const all = (members: PoolMembers) => ({
          counts: [members.size, members.updated, members.ready, members.unavailable, members.unfinished],
          groups: [
            members.away,
            members.underUpdate,
            members.degraded,
            members.joining,
            members.cordonedByOthers,
            members.silent,
          ].map((group) => [...group.keys()].toSorted()),
          turns: [[...members.urgent].map(({ name }) => name), [...members.waiting].map(({ name }) => name)],
          all: [...members.all()].map(({ name }) => name).toSorted(),
        });
        expect(all(kept)).toEqual(all(again));
      },
    ),
  );
});

describe("whatever the state of a pool", () => {
  const taken = (given: Given, name: string): MemberFacts => {
    const found = given.members.find((each) => each.name === name);
    if (found === undefined) throw new Error(name);
    return found;
  };

  test("healthy machines are taken only within the budget left by unavailable ones [pool-select-nodes-4]", () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const healthy = select(given).chosen.filter(({ node }) => !isOutOfService(taken(given, node)));
        const away = given.members.filter(isOutOfService).length;
        expect(healthy.length).toBeLessThanOrEqual(
          Math.max(0, budgetOf(given.maxUnavailable, given.members.length) - away),
        );
      }),
    );
  });

  test("of the control plane at most one machine is in our hands, unless more were before [pool-select-nodes-5]", () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const chosen = select(given)
          .chosen.map(({ node }) => taken(given, node))
          .filter(({ controlPlane }) => controlPlane);
        const busy = [...given.members, ...given.otherControlPlane].filter(
          (each) => each.controlPlane && isUnderUpdate(each),
        );
        expect(chosen.length).toBeLessThanOrEqual(1);
        for (const { name } of chosen) expect(busy.filter((each) => each.name !== name)).toEqual([]);
      }),
    );
  });

  test("exactly the machines without the target are chosen or get a reason [pool-select-nodes-6]", () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const { chosen, skipped } = select(given);
        const named = [...chosen, ...skipped].map(({ node }) => node);
        expect(named.toSorted()).toEqual(
          given.members
            .filter(({ desired }) => desired !== "new")
            .map(({ name }) => name)
            .toSorted(),
        );
      }),
    );
  });

  test("no machine is chosen that a hold of its class refuses", () => {
    fc.assert(
      fc.property(anyRollout, (given) => {
        const { chosen } = select(given);
        const members = membersOf(given);
        const inService = chosen.filter(({ was }) => was === "healthy").map(({ node }) => taken(given, node));
        const repairs = chosen.filter(({ was }) => was !== "healthy");
        if (given.paused) expect(chosen).toEqual([]);
        // A repair waits for the rule of the control plane alone; a machine that is in service for everything.
        for (const { node } of repairs) expect(members.away.has(node)).toBe(true);
        for (const one of inService) {
          expect(members.away.has(one.name)).toBe(false);
          expect(given.quarantined).toEqual([]);
          expect(one.desired === "new" && one.skippedUntil === later).toBe(false);
        }
        const away = [...members.away.values()];
        expect(inService.length).toBeLessThanOrEqual(
          Math.max(0, budgetOf(given.maxUnavailable, members.size) - away.length),
        );
        if (given.policy?.oneZoneAtATime === true && inService.length > 0)
          expect(new Set([...away, ...inService].map(({ zone }) => zone)).size).toBe(1);
        const { canary } = given.policy ?? {};
        if (canary === undefined) return;
        const { gone, proven, count } = canaryFacts(members, canary, now);
        const busy = gone.filter((name) => !members.skipped.has(name));
        if (proven.length < count) expect(inService.length).toBeLessThanOrEqual(Math.max(0, count - busy.length));
      }),
      { numRuns: 1000 },
    );
  });

  test("choosing again after the choice takes no further healthy machine", () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const names = new Set(select(given).chosen.map(({ node }) => node));
        const next = {
          ...given,
          members: given.members.map((each) => (names.has(each.name) ? { ...each, desired: "new" } : each)),
        };
        expect(select(next).chosen.filter(({ was }) => was === "healthy")).toEqual([]);
      }),
    );
  });
});

describe("budgetOf", () => {
  test.for([
    { given: undefined, members: 5, budget: 1 },
    { given: 3, members: 5, budget: 3 },
    { given: 0, members: 5, budget: 1 },
    { given: "40%", members: 5, budget: 2 },
    { given: "10%", members: 5, budget: 1 },
    { given: "100%", members: 5, budget: 5 },
    { given: "2", members: 5, budget: 1 },
    { given: "many", members: 5, budget: 1 },
    { given: "5.5%", members: 100, budget: 1 },
    { given: -1, members: 5, budget: 1 },
  ])("$given of $members machines allows $budget [pool-select-nodes-2]", ({ given, members, budget }) => {
    expect(budgetOf(given, members)).toBe(budget);
  });
});

test("quarantined targets are read from objects and names; what is unreadable quarantines nothing", () => {
  const of = (text: string) =>
    quarantinedTargets({
      metadata: { name: "p", annotations: { "machineconfiguration.openshift.io/quarantined": text } },
    });
  expect(of('[{"config":"a","reason":"x"},"b",{"image":"c"}]')).toEqual(["a", "b"]);
  expect(of("not json")).toEqual([]);
  expect(of('{"config":"a"}')).toEqual([]);
});

test("a canary whose Node has a note of a time that no calendar has stops no choice [pool-select-nodes-7]", () => {
  const at = "+275760-09-12T00:00:00.000Z";
  const canary = memberFacts({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "a",
      annotations: {
        [annotations.currentConfig]: "new",
        [annotations.desiredConfig]: "new",
        [annotations.state]: "Done",
        [annotations.drainSkipped]: JSON.stringify({ request: "drain-new", at, again: at, why: "" }),
      },
    },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True" }] },
  } as unknown as Parameters<typeof memberFacts>[0]);
  const selection = select(
    facts([canary, member("b"), member("c")], {
      maxUnavailable: 3,
      policy: { canary: { count: 2, wellMs: 600_000_000 } },
    }),
  );
  expect(selection.chosen).toEqual([{ node: "b", was: "healthy" }]);
  expect(selection.skipped).toMatchObject([{ node: "c", reason: "Canary" }]);
});

test.for([
  ["drain-new", true],
  ["uncordon-new", true],
  ["2026-13-45T99:99:99Z", false],
  ["", false],
] as const)(
  "a machine whose Node asks for %j waits for a drain or its end: %s [pool-select-nodes-8]",
  ([request, isPending]) => {
    const facts = memberFacts({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "a", annotations: { [annotations.desiredDrain]: request } },
      spec: {},
      status: {},
    } as unknown as Parameters<typeof memberFacts>[0]);
    expect(facts.drainPending).toBe(isPending);
  },
);
