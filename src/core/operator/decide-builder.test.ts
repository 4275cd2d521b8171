import { expect, test } from "vitest";
import { type BuilderDecision, type BuilderFacts, decideBuilder } from "./decide-builder.ts";

const facts: BuilderFacts = {
  isWanted: false,
  leaving: [],
  isDeployed: true,
  isBound: true,
  unwantedSince: undefined,
  now: 1_000_000,
  pools: [],
  machineOSConfigs: [],
  jobs: [],
};
const since = 900_000;

test.for<{ title: string; given: Partial<BuilderFacts>; decision: BuilderDecision }>([
  { title: "a pool with images has the builder deployed", given: { isWanted: true }, decision: { do: "deploy" } },
  {
    title: "a pool with images waits for the policies of builds",
    given: { isWanted: true, isBound: false },
    decision: { do: "waitForPolicy" },
  },
  {
    title: "what is being deleted has the builder deployed, to be let go",
    given: { leaving: ["worker"], isDeployed: false },
    decision: { do: "deploy" },
  },
  { title: "without images and builder nothing happens", given: { isDeployed: false }, decision: { do: "nothing" } },
  {
    title: "a builder that has cleaned up goes at once",
    given: {},
    decision: { do: "remove", unwantedSince: 1_000_000, left: undefined },
  },
  {
    title: "a builder stays for a pool that says nothing yet",
    given: { pools: ["worker"] },
    decision: { do: "wait", unwantedSince: 1_000_000 },
  },
  {
    title: "a builder stays for a MachineOSConfig that still counts",
    given: { machineOSConfigs: ["worker"], unwantedSince: since },
    decision: { do: "wait", unwantedSince: since },
  },
  {
    title: "a builder stays for a Job",
    given: { jobs: ["build-1"], unwantedSince: since },
    decision: { do: "wait", unwantedSince: since },
  },
  {
    title: "ten minutes are enough",
    given: { jobs: ["build-1"], unwantedSince: 1_000_000 - 600_001 },
    decision: {
      do: "remove",
      unwantedSince: 1_000_000 - 600_001,
      left: { pools: [], machineOSConfigs: [], jobs: ["build-1"] },
    },
  },
])("$title", ({ given, decision }) => {
  expect(decideBuilder({ ...facts, ...given })).toEqual(decision);
});
