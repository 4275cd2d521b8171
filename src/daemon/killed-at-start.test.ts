import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { describe, expect, test } from "vitest";
import { annotations, hostPaths } from "../api/names.ts";
import { MachineHarness, machineConfigOf } from "../../test/support/machine-harness.ts";

const { signal } = new AbortController();
const isLong = process.env["MCO_LONG"] !== undefined;
const one = { files: { "/etc/app.conf": "one", "/etc/new.conf": "one" } };
const newSystem = {
  files: { "/etc/app.conf": "two" },
  spec: { osImageURL: "os@sha256:2", kernelArguments: ["nosmt"] },
};
const birth = {
  ignition: {
    storage: {
      files: [
        { path: "/etc/app.conf", append: [{ source: "data:,%0Amore" }] },
        { path: "/etc/plain.conf", contents: { source: "data:,x" } },
      ],
      directories: [{ path: "/var/lib/app", mode: 0o700 }, { path: "/var/lib/app/deep" }],
      links: [{ path: "/etc/link", target: "/etc/app.conf" }],
    },
  },
};

/** What the machine is at the end of a story, and how it got there. */
interface Ending {
  readonly files: readonly (readonly [string, string])[];
  readonly system: unknown;
  readonly reboots: number;
  readonly effects: number;
}

interface History {
  readonly title: string;
  /** Everything before the daemon starts that may be killed. */
  readonly prepare: (harness: MachineHarness) => Promise<void>;
  readonly ends: (harness: MachineHarness) => Promise<void>;
}

const bookSections: readonly History[] = [
  {
    title: "a machine without a history gets folders, links and an appended file",
    prepare: async (harness) => {
      await harness.config("rendered-1", birth);
      await harness.desire("rendered-1");
    },
    ends: (harness) => harness.untilDone("rendered-1"),
  },
  {
    title: "a machine provisioned by Ignition is adopted, and gets the system that its first boot did not apply",
    prepare: async (harness) => {
      const served = machineConfigOf("rendered-1", { ...one, spec: newSystem.spec });
      await harness.config("rendered-1", { ...one, spec: newSystem.spec });
      for (const [path, text] of Object.entries(one.files)) await harness.put(path, text);
      await harness.put(
        hostPaths.nodeAnnotations,
        JSON.stringify({ [annotations.currentConfig]: "rendered-1", [annotations.desiredConfig]: "rendered-1" }),
      );
      await harness.put(hostPaths.servedConfig, JSON.stringify(served));
      await harness.put(hostPaths.encapsulated, "{}");
      await harness.put(hostPaths.ignitionPreset, "enable x.service\n");
    },
    ends: (harness) => harness.untilDone("rendered-1"),
  },
  {
    title: "a machine of another daemon is adopted and updated",
    prepare: async (harness) => {
      await harness.put("/etc/app.conf", "one");
      await harness.put("/etc/new.conf", "one");
      await harness.put(`${hostPaths.referenceNoOriginals}/etc/new.conf.mcdnoorig`, "");
      await harness.put(hostPaths.currentConfig, JSON.stringify(machineConfigOf("rendered-0", one)));
      await harness.config("rendered-1", newSystem);
      await harness.annotate({
        [annotations.currentConfig]: "rendered-0",
        [annotations.desiredConfig]: "rendered-1",
        [annotations.state]: "Done",
      });
    },
    ends: (harness) => harness.untilDone("rendered-1"),
  },
  {
    title: "a machine that was booted into another system returns to its own when it is told to",
    prepare: async (harness) => {
      await harness.updatedTo("rendered-1", newSystem);
      harness.kill();
      await harness.annotate({ [annotations.state]: "Working" });
      await harness.host.bootOther({
        image: "os@sha256:1",
        kernelArguments: ["root=x"],
        packages: [],
        kernelType: "default",
      });
      await harness.put(hostPaths.force, "");
    },
    ends: (harness) => harness.untilDone("rendered-1"),
  },
  {
    title: "a machine whose new system never boots rolls back config and system together",
    prepare: async (harness) => {
      await harness.updatedTo("rendered-1", one);
      harness.kill();
      const stage = harness.host.os.stage.bind(harness.host.os);
      harness.tamper = (host) => ({
        ...host,
        os: {
          ...host.os,
          stage: async (...args) => (await harness.host.failToFinalise?.("error: broken"), stage(...args)),
        },
      });
      await harness.config("rendered-2", newSystem);
      await harness.desire("rendered-2");
    },
    ends: async (harness) => {
      await harness.untilState("Degraded");
      await harness.until(
        async () => (await harness.host.ledger.read("ledger.json", signal)) === undefined,
        "the ledger is closed",
      );
      await harness.pass(400_000);
      expect(await harness.annotation(annotations.reason)).toContain("rendered-2 is refused");
      expect(await harness.annotation(annotations.currentConfig)).toBe("rendered-1");
      expect((await harness.node()).spec?.unschedulable).toBeUndefined();
      // The way back is told once, from the decision on, and no phase of it is left under way.
      const told = (await harness.chapters()).filter(({ run }) => run === "rendered-2");
      expect(told.map(({ chapter, state, outcome }) => `${chapter} ${state} ${outcome}`).sort()).toEqual([
        "Rollback Closed RolledBack",
        "Update Closed RolledBack",
      ]);
      const object = await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name }));
      const underWay = (object?.status?.conditions ?? []).filter(
        ({ type, status }) =>
          status === "Unknown" || (!["NodeDegraded", "Stalled", "Updated"].includes(type) && status === "True"),
      );
      expect(underWay.map(({ type, status, message }) => `${type} ${status} ${message}`)).toEqual([]);
    },
  },
];

async function play({ prepare, ends }: History, killAt?: MachineHarness["killAt"]): Promise<Ending> {
  const harness = await MachineHarness.make();
  await prepare(harness);
  harness.reboots.length = 0;
  const before = harness.effects.length;
  harness.countEffectsFromHere();
  harness.killAt = killAt;
  harness.start();
  await ends(harness);
  await harness.pass(60_000);
  // It did die where it should.
  expect(harness.killAt).toBeUndefined();
  const { booted } = await harness.host.os.status(signal);
  return {
    files: [...harness.host.snapshot()].sort(),
    system: booted,
    reboots: harness.reboots.length,
    effects: harness.effects.slice(before).filter((effect) => effect !== "credentials").length,
  };
}

describe("a daemon that is killed before and after each of its effects ends like one that is not killed", () => {
  test.for(bookSections)("$title", { timeout: 120_000 }, async (history) => {
    const whole = await play(history);
    expect(whole.effects).toBeGreaterThan(3);
    let lives = 0;
    for (let effect = 1; effect <= whole.effects; effect += 1) {
      // Killed after an effect it is as before the next one, but for what the effect itself tells: MCO_LONG tries both.
      for (const when of isLong ? (["before", "after"] as const) : (["after"] as const)) {
        const ending = await play(history, { effect, when });
        lives += 1;
        const what = `killed ${when} effect ${effect} of ${whole.effects}`;
        expect([what, ending.files]).toEqual([what, whole.files]);
        expect([what, ending.system]).toEqual([what, whole.system]);
        // A reboot that was asked for and not yet noted is asked for once more.
        expect(ending.reboots - whole.reboots, what).toBeLessThanOrEqual(1);
      }
    }
    process.stdout.write(`killed at start-up: ${history.title}: ${whole.effects} effects, ${lives} deaths\n`);
  });
});
