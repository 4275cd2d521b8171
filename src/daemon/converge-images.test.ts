import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostPaths } from "../api/names.ts";
import { pairOf } from "../core/machine/image-target.ts";
import { type Wanted, readTarget } from "../core/machine/read-config.ts";
import { applyImageContent } from "./apply-image-content.ts";
import { type MemoryHost, type MemoryImage, memoryHost } from "../../test/support/hosts/memory-host.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { imageNumber, imageOf, stock } from "../../test/support/image-harness.ts";
import { live } from "../../test/support/live.ts";
import { type Content, images as stockImages, machineConfigOf } from "../../test/support/machine-harness.ts";
import type { ContentMode } from "../core/config/node-config.ts";

const { signal } = new AbortController();
const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

type Mode = ContentMode | "none";

interface Target extends Wanted {
  readonly mode: Mode;
}

/** Configurations and images that there are, of all machines of this file. */
const images: Record<string, MemoryImage> = { ...stockImages };
const targets = new Map<string, Target>();
let serial = 0;

function target(content: Content, mode: Mode): Target {
  const name = `rendered-${(serial += 1)}`;
  const machineConfig = machineConfigOf(name, content);
  const image = imageNumber(serial);
  if (mode !== "none") images[image] = imageOf(content, mode);
  const read = readTarget(machineConfig, mode === "none" ? undefined : { image, content: mode });
  if (read.verdict === "refused") throw new Error(read.reason);
  const made = { ...read.wanted, mode };
  targets.set(name, made);
  return made;
}

async function newHost(): Promise<MemoryHost> {
  const host = memoryHost({
    images,
    image: stock,
    kernelArguments: ["root=x"],
    random: systemRandom,
    onReboot: () => undefined,
    applyImageContent: async (on) => {
      const outcome = await applyImageContent(
        { host: on, clock: systemClock, random: systemRandom, log: silent },
        signal,
      );
      if (outcome.verdict !== "settled" && outcome.verdict !== "nothing") throw new Error(JSON.stringify(outcome));
    },
  });
  await host.units.enable("crio.service", signal);
  await host.boot({ orderly: true });
  return host;
}

const unitText = fc.constantFrom(
  "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n",
  "[Service]\nExecStart=/bin/b\n[Install]\nWantedBy=x.target\n",
  "[Service]\nExecStart=/bin/c\n",
);
const dropins = fc.constantFrom(
  [{ name: "10-x.conf", contents: "[Service]\nA=1\n" }],
  [{ name: "10-x.conf", contents: "" }],
);
/** One of our own with its text, and one that the system ships. */
const anyUnit = fc.oneof(
  fc.record(
    { name: fc.constant("a.service"), contents: unitText, enabled: fc.boolean(), dropins },
    { requiredKeys: ["name", "contents", "enabled"] },
  ),
  fc.record(
    { name: fc.constant("crio.service"), enabled: fc.constant(true), dropins },
    { requiredKeys: ["name", "enabled"] },
  ),
  fc.record({ name: fc.constant("a.service"), mask: fc.constant(true) }),
);
const anyContent: fc.Arbitrary<Content> = fc.record({
  files: fc.dictionary(
    fc.constantFrom("/etc/app.conf", "/etc/new/file", "/etc/none", "/var/lib/x/y", "/usr/local/bin/tool"),
    fc.constantFrom("a", "b", ""),
    { maxKeys: 4 },
  ),
  units: fc.uniqueArray(anyUnit, { selector: ({ name }) => name, maxLength: 2 }),
  keys: fc.uniqueArray(fc.constantFrom("ssh-ed25519 A", "ssh-ed25519 B"), { maxLength: 2 }),
  spec: fc.record({ kernelArguments: fc.uniqueArray(fc.constantFrom("quiet", "nosmt"), { maxLength: 2 }) }),
});
const anyMode = fc.constantFrom<Mode>("none", "os-only", "full", "full");
const anyTarget = fc.tuple(anyContent, anyMode);

/** All of the machine that is not what the daemon says about it. */
const filesOf = (host: MemoryHost) =>
  new Map(
    [...host.snapshot()].filter(([path]) => path !== hostPaths.currentConfig && path !== hostPaths.currentImage).sort(),
  );

/** What a machine is that has never had anything else. */
async function fresh(content: Content): Promise<MemoryHost> {
  const host = await newHost();
  expect(await live({ host, machine: host }, target(content, "none"), Infinity)).toEqual({ verdict: "inSync" });
  return host;
}

describe("a machine between images and no images", () => {
  test(
    "has its last target after any history and any kill, like one that never had an image [daemon-converge-images-1]",
    { timeout: 220_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(anyTarget, fc.nat(14), fc.constantFrom("live", "kill", "cut", "back")), {
            minLength: 1,
            maxLength: 4,
          }),
          anyContent,
          anyMode,
          async (lives, content, mode) => {
            const host = await newHost();
            let before: Mode = "none";
            for (const [[each, way], steps, fate] of lives) {
              await live(
                { host, machine: host },
                target(each, way),
                fate === "kill" || fate === "cut" ? steps : Infinity,
              );
              if (fate === "cut") await host.boot({ orderly: false });
              // Between systems without payloads each /etc is what it was, as it always is.
              const isHeld = way === "full" || before === "full";
              before = fate === "live" || fate === "back" ? way : "none";
              if (fate === "back" && isHeld && (await host.os.status(signal)).rollback !== undefined) {
                await host.os.bootPrevious(signal);
                await host.boot({ orderly: true });
              }
            }
            const last = target(content, mode);
            expect(await live({ host, machine: host }, last, Infinity)).toEqual({ verdict: "inSync" });
            expect((await host.os.status(signal)).booted.image).toBe(pairOf(last.config)?.image ?? stock);
            const never = await fresh(content);
            // Links of units are the image's own where it enables them.
            const whole = (of: MemoryHost) => Object.fromEntries(filesOf(of));
            expect(whole(host)).toEqual(whole(never));
          },
        ),
        { numRuns: Number(process.env["RUNS"] ?? 60) },
      );
    },
  );
});
