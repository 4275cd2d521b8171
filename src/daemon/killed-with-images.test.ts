import { describe, expect, test } from "vitest";
import { hostPaths } from "../api/names.ts";
import { ImageHarness, imageNumber } from "../../test/support/image-harness.ts";
import type { Content, MachineHarness } from "../../test/support/machine-harness.ts";

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

interface History {
  readonly title: string;
  readonly prepare: (made: ImageHarness) => Promise<void>;
  readonly goes: (made: ImageHarness) => Promise<void>;
  readonly ends: (made: ImageHarness) => Promise<void>;
}

const intoImage = async (made: ImageHarness) => {
  await made.harness.updatedTo("rendered-1", first);
};
const outOfImage = async (made: ImageHarness) => {
  await intoImage(made);
  await made.roll("rendered-1i", first, 1);
  await made.untilHas("rendered-1i", 1);
};

const bookSections: readonly History[] = [
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
      await made.harness.config("rendered-2", second);
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
async function play({ prepare, goes, ends }: History, fault?: Fault, power = false): Promise<Ending> {
  const made = await ImageHarness.make();
  const { harness } = made;
  await prepare(made);
  harness.kill();
  harness.reboots.length = 0;
  const before = harness.effects.length;
  harness.countEffectsFromHere();
  if (power) harness.onDeath = () => void harness.boot({ orderly: false });
  harness.killAt = fault;
  harness.start();
  await goes(made);
  await ends(made);
  await harness.pass(60_000);
  expect(harness.killAt).toBeUndefined();
  const { booted } = await harness.host.os.status(signal);
  return {
    files: filesOf(harness),
    image: booted.image,
    documents: [
      await harness.host.ledger.read("payloads.json", signal),
      await harness.host.ledger.read("ledger.json", signal),
    ],
    reboots: harness.reboots.length,
    effects: harness.effects.slice(before).filter((effect) => effect !== "credentials").length,
  };
}

/** The objects of two clusters differ in their uid, and nothing else does. */
const filesOf = ({ host }: MachineHarness) =>
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
  test.for(bookSections)(
    "$title, ends like one that is not killed [daemon-killed-with-images-1]",
    { timeout: 120_000 },
    async (history) => {
      const whole = await play(history);
      expect(whole.effects).toBeGreaterThan(8);
      for (let effect = 1; effect <= whole.effects; effect += 1) {
        // Killed after an effect it is as before the next one, but for what the effect itself tells: MCO_LONG tries both.
        for (const when of process.env["MCO_LONG"] === undefined
          ? (["after"] as const)
          : (["before", "after"] as const)) {
          const { reboots, effects: _effects, ...ending } = await play(history, { effect, when });
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

  test.for(bookSections)(
    "$title, and whose machine loses power there, continues: it stages the system again [daemon-killed-with-images-2]",
    { timeout: 120_000 },
    async (history) => {
      const whole = await play(history);
      for (let effect = 1; effect <= whole.effects; effect += process.env["MCO_LONG"] === undefined ? 4 : 1) {
        const {
          reboots: _reboots,
          effects: _effects,
          ...ending
        } = await play(history, { effect, when: "after" }, true);
        const what = `power lost after effect ${effect} of ${whole.effects}`;
        expect([what, ending]).toEqual([what, { files: whole.files, image: whole.image, documents: whole.documents }]);
      }
    },
  );
});

test("a target withdrawn after staging has its staged system discarded, and no payload is read [daemon-killed-with-images-3]", async () => {
  const made = await ImageHarness.make();
  const { harness } = made;
  await intoImage(made);
  const before = filesOf(harness);
  harness.goesDown = false;
  await made.roll("rendered-2", second, 2);
  await harness.until(async () => harness.reboots.length === 1, "the reboot is asked for");
  expect((await harness.host.os.status(signal)).staged?.image).toBe(imageNumber(2));
  await made.give("rendered-1", undefined);
  harness.goesDown = true;
  await harness.until(async () => (await harness.host.os.status(signal)).staged === undefined, "it is thrown away");
  await harness.boot({ orderly: true });
  await made.untilHas("rendered-1", undefined);
  expect(filesOf(harness)).toEqual(before);
  expect(await harness.host.ledger.read("payloads.json", signal)).toBeUndefined();
});
