import { expect, test } from "vitest";
import { type AuthorityDecision, type AuthorityFacts, decideAuthorities } from "./decide-authorities.ts";

const facts: AuthorityFacts = { bundle: "b", handed: "a", changing: undefined, now: 100_000, waitMs: 60_000 };
const seen = { bundle: "b", since: 50_000 };

test.for<{ title: string; given: Partial<AuthorityFacts>; decision: AuthorityDecision }>([
  { title: "unknown authorities are never handed over", given: { bundle: undefined }, decision: { do: "nothing" } },
  { title: "machines keep what they have", given: { handed: "b" }, decision: { do: "nothing" } },
  { title: "a change that went back is none", given: { handed: "b", changing: seen }, decision: { do: "nothing" } },
  {
    title: "the first ones are handed over at once",
    given: { handed: undefined },
    decision: { do: "handOver", bundle: "b", changing: { bundle: "b", since: 100_000 }, isFirst: true },
  },
  {
    title: "a change waits from when it is first seen",
    given: {},
    decision: { do: "wait", changing: { bundle: "b", since: 100_000 } },
  },
  { title: "a change continues to wait", given: { changing: seen }, decision: { do: "wait", changing: seen } },
  {
    title: "another change restarts the wait",
    given: { changing: { bundle: "c", since: 0 } },
    decision: { do: "wait", changing: { bundle: "b", since: 100_000 } },
  },
  {
    title: "a change that has lasted is handed over",
    given: { changing: seen, now: 110_000 },
    decision: { do: "handOver", bundle: "b", changing: seen, isFirst: false },
  },
])("$title", ({ given, decision }) => {
  expect(decideAuthorities({ ...facts, ...given })).toEqual(decision);
});
