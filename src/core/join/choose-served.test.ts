import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import { type JoinFacts, chooseServed } from "./choose-served.ts";

const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const image = (letter: string, host = "registry.example.com") => `${host}/os@${digest(letter)}`;

interface Given {
  readonly target?: string;
  readonly last?: string;
  readonly updated?: number;
  /** The generation that the count was made at; the pool is at 4. */
  readonly counted?: number;
  readonly quarantined?: unknown;
}

const pool = ({ target, last, updated, counted = 4, quarantined }: Given): MachineConfigPool =>
  ({
    metadata: {
      name: "worker",
      generation: 4,
      ...(quarantined === undefined ? {} : { annotations: { [annotations.quarantined]: JSON.stringify(quarantined) } }),
    },
    spec: target === undefined ? {} : { configuration: { name: target } },
    status: {
      observedGeneration: counted,
      ...(updated === undefined ? {} : { updatedMachineCount: updated }),
      ...(last === undefined ? {} : { configuration: { name: last } }),
    },
  }) as unknown as MachineConfigPool;

/** An image that is published for a configuration. */
const published = (of: string, is: string, notes: Readonly<Record<string, string>> = {}): Partial<JoinFacts> => ({
  config: {
    metadata: { name: "worker" },
    spec: { machineConfigPool: { name: "worker" } },
    status: { currentImagePullSpec: is, machineOSBuild: { name: "worker-1" } },
  } as unknown as MachineOSConfig,
  builds: [
    {
      metadata: { name: "worker-1", annotations: notes },
      spec: { machineConfig: { name: of }, machineOSConfig: { name: "worker" } },
      status: {
        conditions: [{ type: "Succeeded", status: "True", reason: "Ready", message: "" }],
        digestedImagePushSpec: is,
      },
    } as unknown as MachineOSBuild,
  ],
});
const full = { [annotations.imageContent]: "full" };
const choose = (given: Given, facts: Partial<JoinFacts> = {}) =>
  chooseServed(pool(given), { config: undefined, builds: [], graceMs: 60_000, now: Date.UTC(2030, 0, 1), ...facts });

describe("chooseServed", () => {
  test.for([
    { what: "the target once a machine has it", given: { target: "b", last: "a", updated: 1 }, is: "b" },
    {
      what: "what all had before, while no machine has the target",
      given: { target: "b", last: "a", updated: 0 },
      is: "a",
    },
    {
      what: "what all had before, while the count speaks of an earlier target",
      given: { target: "b", last: "a", updated: 3, counted: 3 },
      is: "a",
    },
    { what: "what all have, whatever was counted", given: { target: "a", last: "a", updated: 0, counted: 3 }, is: "a" },
    {
      what: "what all had before, when a machine went back from the target",
      given: { target: "b", last: "a", updated: 1, quarantined: [{ config: "b" }] },
      is: "a",
    },
    {
      what: "the target, when it is another one that machines went back from",
      given: { target: "b", last: "a", updated: 1, quarantined: ["c"] },
      is: "b",
    },
    { what: "the first target of a pool once a machine has it", given: { target: "a", updated: 1 }, is: "a" },
    { what: "what all had, when nothing is rendered now", given: { last: "a", updated: 2 }, is: "a" },
  ])("a machine gets $what [join-choose-served-1]", ({ given, is }) => {
    expect(choose(given)).toMatchObject({ verdict: "serve", config: is, image: undefined });
  });

  test.for([
    { what: "nothing is rendered", given: {}, reason: "NotRendered" },
    {
      what: "no machine has what is rendered, and none had anything before",
      given: { target: "a", updated: 0 },
      reason: "NothingProven",
    },
    {
      what: "machines went back from all there is",
      given: { target: "a", last: "a", updated: 3, quarantined: [{ config: "a" }] },
      reason: "Quarantined",
    },
    {
      what: "machines went back from the one, and the other as well",
      given: { target: "b", last: "a", updated: 3, quarantined: ["a", "b"] },
      reason: "Quarantined",
    },
  ])("a machine must wait while $what [join-choose-served-2]", ({ given, reason }) => {
    expect(choose(given)).toMatchObject({ verdict: "notReady", reason });
  });

  test("says why in words [join-choose-served-3]", () => {
    const because = (given: Given, facts?: Partial<JoinFacts>) => {
      const choice = choose(given, facts);
      return choice.verdict === "serve" ? choice.because : choice.message;
    };
    expect(because({ target: "b", last: "a", updated: 2 })).toBe(
      "b is the pool's target, and 2 of its machines have it; the pool boots the stock operating system",
    );
    expect(because({ target: "b", last: "a", updated: 9, counted: 1 })).toBe(
      "a is the last configuration of every machine of the pool: the machines with b are not counted yet; the pool boots the stock operating system",
    );
    expect(because({ target: "b", last: "a", updated: 1, quarantined: ["b"] })).toContain("machines went back from b");
    expect(because({ target: "b", updated: 0 })).toContain("no machine of the pool worker has b yet");
  });

  describe("of a pool that boots images", () => {
    test.for([
      { what: "with all of its configuration in it", notes: full, content: "full" },
      { what: "without files in it", notes: {}, content: "os-only" },
    ])(
      "serves the image published for the served configuration, $what [join-choose-served-4]",
      ({ notes, content }) => {
        expect(choose({ target: "b", last: "a", updated: 1 }, published("b", image("b"), notes))).toMatchObject({
          verdict: "serve",
          config: "b",
          image: { image: image("b"), content },
        });
      },
    );

    test("gives the earlier image with the earlier configuration [join-choose-served-5]", () => {
      expect(choose({ target: "b", last: "a", updated: 0 }, published("a", image("a")))).toMatchObject({
        config: "a",
        image: { image: image("a") },
      });
    });

    test.for([
      {
        what: "is for another configuration",
        given: { target: "b", last: "a", updated: 1 },
        facts: published("a", image("a")),
      },
      { what: "no machine runs yet", given: { target: "a", last: "a", updated: 0 }, facts: published("a", image("c")) },
      {
        what: "was not counted yet",
        given: { target: "a", last: "a", updated: 3, counted: 3 },
        facts: published("a", image("c")),
      },
      {
        what: "no machine is seen with",
        given: { target: "a", last: "a", updated: 3 },
        facts: { ...published("a", image("c")), runs: () => false },
      },
      {
        what: "lies in the cluster's own registry",
        given: { target: "a", last: "a", updated: 3 },
        facts: published("a", image("a", "image-registry.openshift-image-registry.svc:5000")),
      },
      {
        what: "lies there under its whole name",
        given: { target: "a", last: "a", updated: 3 },
        facts: published("a", image("a", "image-registry.openshift-image-registry.svc.cluster.local:5000")),
      },
      {
        what: "has no digest",
        given: { target: "a", last: "a", updated: 3 },
        facts: published("a", "registry.example.com/os:latest"),
      },
      {
        what: "machines went back from",
        given: { target: "a", last: "a", updated: 3, quarantined: [{ config: "a", image: image("a") }] },
        facts: published("a", image("a")),
      },
    ])("gives no image that $what [join-choose-served-6]", ({ given, facts }) => {
      expect(choose(given, facts)).toMatchObject({ verdict: "serve", config: given.target, image: undefined });
    });

    test("a registry that only sounds like the cluster's own can be reached [join-choose-served-7]", () => {
      for (const host of ["svc.example.com", "registry.mysvc:5000"])
        expect(choose({ target: "a", last: "a", updated: 3 }, published("a", image("a", host)))).toMatchObject({
          image: { image: image("a", host) },
        });
    });

    test("a new configuration that machines went back from with its image is not given without it [join-choose-served-8]", () => {
      expect(
        choose(
          { target: "b", last: "a", updated: 1, quarantined: [{ config: "b", image: image("b") }] },
          published("b", image("b")),
        ),
      ).toMatchObject({ config: "a", image: undefined });
    });

    test("observed machines take precedence over the count [join-choose-served-9]", () => {
      const runs = (config: string, of: string) => config === "a" && of === image("a");
      expect(
        choose({ target: "a", last: "a", updated: 0, counted: 3 }, { ...published("a", image("a")), runs }),
      ).toMatchObject({ image: { image: image("a") } });
    });
  });
});
