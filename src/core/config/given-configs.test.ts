import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { givenConfigsAfter, givenConfigs, judgeDelivery } from "./given-configs.ts";

const hash = (letter: string) => letter.repeat(32);
const worker = (letter: string) => `rendered-worker-${hash(letter)}`;
const master = (letter: string) => `rendered-master-${hash(letter)}`;

const machine = (given: string, pool = "worker") => ({
  metadata: { name: "a", annotations: given === "" ? {} : { [annotations.givenConfigs]: given } },
  spec: { node: { name: "a" }, pool: { name: pool }, configVersion: { desired: master("f") } },
});
const pool = (name: string, target: string, status: string) => ({
  metadata: { name },
  spec: { configuration: { name: target } },
  status: { configuration: { name: status } },
});
const rendered = (name: string, of: string) => ({
  metadata: {
    name,
    ownerReferences: [{ apiVersion: "v1", kind: "MachineConfigPool", name: of, uid: "u", controller: true }],
  },
});
const workers = pool("worker", worker("b"), worker("a"));

describe("the record of what a machine was given", () => {
  const none = { name: "", pools: ["worker"] };

  test.each([
    { title: "the first target", given: [], target: "x", current: none, after: ["x"] },
    {
      title: "a first target keeps the current configuration of the machine's own pool",
      given: [],
      target: worker("b"),
      current: { name: worker("a"), pools: ["worker"] },
      after: [worker("b"), worker("a")],
    },
    {
      title: "a current configuration of another pool, as a machine reports it, does not enter",
      given: [],
      target: worker("b"),
      current: { name: master("a"), pools: ["worker"] },
      after: [worker("b")],
    },
    {
      title: "nor does it enter later",
      given: [worker("b")],
      target: worker("c"),
      current: { name: master("a"), pools: ["worker", "master"] },
      after: [worker("c"), worker("b")],
    },
    {
      title: "targets that follow each other quickly do not displace the current configuration",
      given: ["c", "b", "a"],
      target: "d",
      current: { name: "a", pools: [] },
      after: ["d", "a", "c", "b"],
    },
    {
      title: "nor the one that the Node still wants",
      given: ["d", "a", "c", "b"],
      target: "e",
      current: { name: "a", pools: [] },
      wanted: "b",
      after: ["e", "a", "b", "d"],
    },
    {
      title: "one that only the Node names does not enter",
      given: ["b", "a"],
      target: "c",
      current: { name: "a", pools: [] },
      wanted: master("x"),
      after: ["c", "a", "b"],
    },
    {
      title: "the same target again",
      given: ["b", "a"],
      target: "b",
      current: { name: "a", pools: [] },
      after: ["b", "a"],
    },
    {
      title: "no target of the pool, on a machine from before there was a record",
      given: [],
      target: undefined,
      current: { name: worker("a"), pools: ["worker"] },
      after: [worker("a")],
    },
    { title: "no target of the pool", given: ["a"], target: undefined, current: none, after: ["a"] },
    { title: "going back", given: ["b", "a"], target: "a", current: { name: "b", pools: [] }, after: ["a", "b"] },
  ])("$title [given-configs-1]", ({ given, target, current, after, ...rest }) => {
    expect(givenConfigsAfter(given, target, current, "wanted" in rest ? rest.wanted : undefined)).toEqual(after);
  });

  test("is read from the MachineConfigNode [given-configs-2]", () => {
    expect(givenConfigs(machine("b a"))).toEqual(["b", "a"]);
    expect(givenConfigs(machine(""))).toEqual([]);
  });
});

describe("a configuration is delivered", () => {
  const facts = { node: "a", nodeUid: "1", pool: workers, config: undefined };

  test.each([
    {
      title: "that the machine was given, of a former pool too",
      asked: master("a"),
      given: `${worker("b")} ${master("a")}`,
      because: "given",
    },
    { title: "that the pool rolls out", asked: worker("b"), given: "x", because: "poolNames" },
    { title: "that the pool last completed", asked: worker("a"), given: "x", because: "poolNames" },
    { title: "of the pool, to a machine that was given none", asked: worker("0"), given: "", because: "ofPool" },
  ])("$title [given-configs-3]", ({ asked, given, because }) => {
    const config = rendered(asked, asked.split("-")[1] ?? "");
    expect(judgeDelivery({ ...facts, asked, machineConfigNode: machine(given), config })).toEqual({
      verdict: "deliver",
      because,
    });
  });

  test.each([
    { title: "of another pool, whatever the machine's own annotations say", asked: master("f"), given: worker("b") },
    { title: "of another pool, to a machine that was given none", asked: master("f"), given: "" },
    { title: "of the pool, from before the machine was given another", asked: worker("0"), given: worker("b") },
    { title: "with the name of the pool, but made by a user", asked: worker("0"), given: "", owner: "none" },
    { title: "that does not exist", asked: worker("1"), given: worker("b"), owner: "absent" },
    { title: "of a user, that goes into the rendered one", asked: "99-secrets", given: worker("b") },
  ])("not $title [given-configs-4]", ({ asked, given, owner }) => {
    const config =
      owner === "absent"
        ? undefined
        : owner === "none"
          ? { metadata: { name: asked } }
          : rendered(asked, asked.split("-")[1] ?? "");
    const verdict = judgeDelivery({ ...facts, asked, machineConfigNode: machine(given), config });
    expect(verdict).toMatchObject({ verdict: "refused", reason: "NotYours" });
  });

  test("to no node without a MachineConfigNode [given-configs-5]", () => {
    const verdict = judgeDelivery({ ...facts, asked: worker("b"), machineConfigNode: undefined });
    expect(verdict).toMatchObject({ verdict: "refused", reason: "NoMachine" });
  });
});
