import { describe, expect, test } from "vitest";
import { hostPaths } from "../api/names.ts";
import { ImageScene, imageNumber } from "../../test/support/image-scene.ts";
import type { Content, MachineScene } from "../../test/support/machine-scene.ts";

const { signal } = new AbortController();
const unit = (words: string) => `[Service]\nExecStart=/bin/${words}\n[Install]\nWantedBy=multi-user.target\n`;
const first: Content = {
  files: { "/etc/app.conf": "one", "/etc/only-one": "1", "/var/lib/data": "one" },
  units: [{ name: "a.service", enabled: true, contents: unit("a") }],
};
const second: Content = {
  files: { "/etc/app.conf": "two", "/etc/only-two": "2", "/var/lib/data": "two" },
  units: [{ name: "b.service", enabled: true, contents: unit("b") }],
  spec: { kernelArguments: ["nosmt"] },
};

interface Ending {
  readonly files: readonly (readonly [string, string])[];
  readonly image: string;
  readonly documents: readonly (string | undefined)[];
  readonly reboots: number;
  readonly effects: number;
}

interface Story {
  readonly title: string;
  readonly prepare: (made: ImageScene) => Promise<void>;
  readonly goes: (made: ImageScene) => Promise<void>;
  readonly ends: (made: ImageScene) => Promise<void>;
}

const intoImage = async (made: ImageScene) => {
  await made.scene.settledOn("rendered-1", first);
};
const outOfImage = async (made: ImageScene) => {
  await intoImage(made);
  await made.roll("rendered-1i", first, 1);
  await made.untilHas("rendered-1i", 1);
};

const stories: readonly Story[] = [
  {
    title: "its first image",
    prepare: intoImage,
    goes: (made) => made.roll("rendered-2", second, 2),
    ends: (made) => made.untilHas("rendered-2", 2),
  },
  {
    title: "the stock system again",
    prepare: outOfImage,
    goes: async (made) => {
      await made.scene.config("rendered-2", second);
      await made.give("rendered-2", undefined);
    },
    ends: (made) => made.untilHas("rendered-2", undefined),
  },
  {
    title: "an image that holds only what an image can hold",
    prepare: outOfImage,
    goes: (made) => made.roll("rendered-2", second, 2, "os-only"),
    ends: (made) => made.untilHas("rendered-2", 2),
  },
];

type Fault = { readonly effect: number; readonly when: "before" | "after" };

/** @param power `true`: the machine loses its power in place of the daemon its life. */
async function play({ prepare, goes, ends }: Story, fault?: Fault, power = false): Promise<Ending> {
  const made = await ImageScene.make();
  const { scene } = made;
  await prepare(made);
  scene.kill();
  scene.reboots.length = 0;
  const before = scene.effects.length;
  scene.countEffectsFromHere();
  if (power) scene.onDeath = () => void scene.boot({ orderly: false });
  scene.killAt = fault;
  scene.start();
  await goes(made);
  await ends(made);
  await scene.pass(60_000);
  expect(scene.killAt).toBeUndefined();
  const { booted } = await scene.host.os.status(signal);
  return {
    files: filesOf(scene),
    image: booted.image,
    documents: [
      await scene.host.ledger.read("payloads.json", signal),
      await scene.host.ledger.read("ledger.json", signal),
    ],
    reboots: scene.reboots.length,
    effects: scene.effects.slice(before).filter((effect) => effect !== "credentials").length,
  };
}

/** The objects of two clusters differ in their uid, and nothing else does. */
const filesOf = ({ host }: MachineScene) =>
  [...host.snapshot()]
    .sort()
    .map(
      ([path, text]) =>
        [
          path,
          path === hostPaths.currentConfig
            ? text.replaceAll(/"(uid|creationTimestamp|time|resourceVersion)":"[^"]*"/g, "")
            : text,
        ] as const,
    );

describe("a daemon that is killed before and after each of its effects, on its way to", () => {
  test.for(stories)(
    "$title, ends where one ends that lives [daemon-killed-with-images-1]",
    { timeout: 120_000 },
    async (story) => {
      const whole = await play(story);
      expect(whole.effects).toBeGreaterThan(8);
      for (let effect = 1; effect <= whole.effects; effect += 1) {
        // Killed after an effect it is as before the next one, but for what the effect itself tells: MCO_LONG tries both.
        for (const when of process.env["MCO_LONG"] === undefined
          ? (["after"] as const)
          : (["before", "after"] as const)) {
          const { reboots, effects: _effects, ...ending } = await play(story, { effect, when });
          const what = `killed ${when} effect ${effect} of ${whole.effects}`;
          expect([what, ending]).toEqual([
            what,
            { files: whole.files, image: whole.image, documents: whole.documents },
          ]);
          // A reboot that was asked for and not yet noted is asked for once more.
          expect(reboots - whole.reboots, what).toBeLessThanOrEqual(1);
        }
      }
    },
  );

  test.for(stories)(
    "$title, and whose machine loses its power there, goes on where it was: what was staged is staged again [daemon-killed-with-images-2]",
    { timeout: 120_000 },
    async (story) => {
      const whole = await play(story);
      for (let effect = 1; effect <= whole.effects; effect += process.env["MCO_LONG"] === undefined ? 4 : 1) {
        const { reboots: _reboots, effects: _effects, ...ending } = await play(story, { effect, when: "after" }, true);
        const what = `power lost after effect ${effect} of ${whole.effects}`;
        expect([what, ending]).toEqual([what, { files: whole.files, image: whole.image, documents: whole.documents }]);
      }
    },
  );
});

test("a target that is taken back after it was staged leaves a staged system that is thrown away, and no payload is ever read [daemon-killed-with-images-3]", async () => {
  const made = await ImageScene.make();
  const { scene } = made;
  await intoImage(made);
  const before = filesOf(scene);
  scene.goesDown = false;
  await made.roll("rendered-2", second, 2);
  await scene.until(async () => scene.reboots.length === 1, "the reboot is asked for");
  expect((await scene.host.os.status(signal)).staged?.image).toBe(imageNumber(2));
  await made.give("rendered-1", undefined);
  scene.goesDown = true;
  await scene.until(async () => (await scene.host.os.status(signal)).staged === undefined, "it is thrown away");
  await scene.boot({ orderly: true });
  await made.untilHas("rendered-1", undefined);
  expect(filesOf(scene)).toEqual(before);
  expect(await scene.host.ledger.read("payloads.json", signal)).toBeUndefined();
});
