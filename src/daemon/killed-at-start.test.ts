import { describe, expect, test } from "vitest";
import { annotations, hostPaths } from "../api/names.ts";
import { MachineScene, machineConfigOf } from "../../test/support/machine-scene.ts";

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

interface Story {
  readonly title: string;
  /** Everything before the daemon starts that may be killed. */
  readonly prepare: (scene: MachineScene) => Promise<void>;
  readonly ends: (scene: MachineScene) => Promise<void>;
}

const stories: readonly Story[] = [
  {
    title: "a machine without a history gets folders, links and an appended file",
    prepare: async (scene) => {
      await scene.config("rendered-1", birth);
      await scene.desire("rendered-1");
    },
    ends: (scene) => scene.untilDone("rendered-1"),
  },
  {
    title: "a machine that Ignition set up is taken over, and gets the system that its first boot did not",
    prepare: async (scene) => {
      const served = machineConfigOf("rendered-1", { ...one, spec: newSystem.spec });
      await scene.config("rendered-1", { ...one, spec: newSystem.spec });
      for (const [path, text] of Object.entries(one.files)) await scene.put(path, text);
      await scene.put(
        hostPaths.nodeAnnotations,
        JSON.stringify({ [annotations.currentConfig]: "rendered-1", [annotations.desiredConfig]: "rendered-1" }),
      );
      await scene.put(hostPaths.servedConfig, JSON.stringify(served));
      await scene.put(hostPaths.encapsulated, "{}");
      await scene.put(hostPaths.ignitionPreset, "enable x.service\n");
    },
    ends: (scene) => scene.untilDone("rendered-1"),
  },
  {
    title: "a machine that another daemon kept is taken over and updated",
    prepare: async (scene) => {
      await scene.put("/etc/app.conf", "one");
      await scene.put("/etc/new.conf", "one");
      await scene.put(`${hostPaths.referenceNoOriginals}/etc/new.conf.mcdnoorig`, "");
      await scene.put(hostPaths.currentConfig, JSON.stringify(machineConfigOf("rendered-0", one)));
      await scene.config("rendered-1", newSystem);
      await scene.annotate({
        [annotations.currentConfig]: "rendered-0",
        [annotations.desiredConfig]: "rendered-1",
        [annotations.state]: "Done",
      });
    },
    ends: (scene) => scene.untilDone("rendered-1"),
  },
  {
    title: "a machine that was booted into another system comes back to its own",
    prepare: async (scene) => {
      await scene.settledOn("rendered-1", newSystem);
      scene.kill();
      await scene.annotate({ [annotations.state]: "Working" });
      await scene.host.bootOther({
        image: "os@sha256:1",
        kernelArguments: ["root=x"],
        packages: [],
        kernelType: "default",
      });
    },
    ends: (scene) => scene.untilDone("rendered-1"),
  },
  {
    title: "a machine whose new system never boots goes back, config and system together",
    prepare: async (scene) => {
      await scene.settledOn("rendered-1", one);
      scene.kill();
      const stage = scene.host.os.stage.bind(scene.host.os);
      scene.tamper = (host) => ({
        ...host,
        os: {
          ...host.os,
          stage: async (...args) => (await scene.host.failToFinalise?.("error: broken"), stage(...args)),
        },
      });
      await scene.config("rendered-2", newSystem);
      await scene.desire("rendered-2");
    },
    ends: async (scene) => {
      await scene.untilState("Degraded");
      await scene.until(
        async () => (await scene.host.ledger.read("ledger.json", signal)) === undefined,
        "the ledger is closed",
      );
      await scene.pass(400_000);
      expect(await scene.annotation(annotations.reason)).toContain("rendered-2 is refused");
      expect(await scene.annotation(annotations.currentConfig)).toBe("rendered-1");
      expect((await scene.node()).spec?.unschedulable).toBeUndefined();
    },
  },
];

async function play({ prepare, ends }: Story, killAt?: MachineScene["killAt"]): Promise<Ending> {
  const scene = await MachineScene.make();
  await prepare(scene);
  scene.reboots.length = 0;
  const before = scene.effects.length;
  scene.countEffectsFromHere();
  scene.killAt = killAt;
  scene.start();
  await ends(scene);
  await scene.pass(60_000);
  // It did die where it should.
  expect(scene.killAt).toBeUndefined();
  const { booted } = await scene.host.os.status(signal);
  return {
    files: [...scene.host.snapshot()].sort(),
    system: booted,
    reboots: scene.reboots.length,
    effects: scene.effects.length - before,
  };
}

describe("a daemon that is killed before and after each of its effects ends where one ends that lives", () => {
  test.for(stories)("$title", { timeout: 120_000 }, async (story) => {
    const whole = await play(story);
    expect(whole.effects).toBeGreaterThan(3);
    let lives = 0;
    for (let effect = 1; effect <= whole.effects; effect += 1) {
      // Killed after an effect it is as before the next one, but for what the effect itself tells: MCO_LONG tries both.
      for (const when of isLong ? (["before", "after"] as const) : (["after"] as const)) {
        const ending = await play(story, { effect, when });
        lives += 1;
        const what = `killed ${when} effect ${effect} of ${whole.effects}`;
        expect([what, ending.files]).toEqual([what, whole.files]);
        expect([what, ending.system]).toEqual([what, whole.system]);
        // A reboot that was asked for and not yet noted is asked for once more.
        expect(ending.reboots - whole.reboots, what).toBeLessThanOrEqual(1);
      }
    }
    process.stdout.write(`killed at start-up: ${story.title}: ${whole.effects} effects, ${lives} deaths\n`);
  });
});
