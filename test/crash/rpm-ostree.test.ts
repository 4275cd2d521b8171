import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { copyTree } from "../../src/host/directory/durable-writes.ts";
import type { Host } from "../../src/host/host.ts";
import { type FakeState, fakeSystem, passwordDay } from "../support/hosts/fake-rpm-ostree.ts";
import { rpmOstreeHost } from "../../src/host/rpm-ostree/rpm-ostree-host.ts";
import { wantsAll } from "../support/how-much.ts";
import { systemClock } from "../../src/ports/node/index.ts";
import { firstImage, images } from "./contents.ts";
import { count, describeTally, newTally, rehearse } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { type MakeSubject, fastDisk } from "./subjects.ts";

const signal = new AbortController().signal;

const folders: string[] = [];
async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mco-crash-fake-"));
  folders.push(folder);
  return folder;
}
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

const policy = {
  "/etc/containers/policy.json": '{"default":[{"type":"insecureAcceptAnything"}]}',
  "/etc/shadow": "root:!:1:0:99999:7:::\ncore:!:1:0:99999:7:::\n",
};
const systems = Object.fromEntries(
  Object.entries(images).map(([name, { etc, usr }]) => [
    name,
    { etc: { ...etc, ...policy }, usr: { ...usr, "/usr/lib/os-release": "ID=rhcos\n" } },
  ]),
);

/** A machine whose rpm-ostree, systemctl and other programs are played by a fake that follows their documents. */
const onFakeSystem =
  (copied?: { readonly folder: string; readonly like: FakeState }): MakeSubject =>
  async ({ random, onReboot }) => {
    const folder = join(await temporaryFolder(), "machine");
    const root = join(folder, "root");
    if (copied === undefined) await mkdir(folder);
    else await copyTree(fastDisk, copied.folder, folder);
    const system = await fakeSystem({
      root,
      images: systems,
      image: firstImage,
      extensions: [],
      ...(copied === undefined ? {} : { like: copied.like }),
    });
    const driver = await rpmOstreeHost({
      root,
      processes: system.processes,
      clock: systemClock,
      random,
      architecture: "x64",
      disk: fastDisk,
    });
    const host: Host = {
      ...driver,
      os: { ...driver.os, reboot: async (because, until) => (await driver.os.reboot(because, until), onReboot()) },
    };
    if (copied === undefined) {
      system.os.booted = { ...system.os.booted, kernelArguments: [...system.os.booted.kernelArguments, "root=x"] };
      await host.units.enable("crio.service", signal);
    }
    await system.boot({ orderly: true });
    return {
      host,
      machine: system,
      async tree() {
        const found = new Map<string, string>();
        const walk = async (path: string): Promise<void> => {
          for (const name of await readdir(join(root, path))) {
            const here = await driver.files.read(`${path}/${name}`, signal);
            if (here?.kind === "link") found.set(`${path}/${name}`, `→ ${here.target}`);
            else if (here?.kind === "file")
              found.set(
                `${path}/${name}`,
                `${here.mode.toString(8)} ${here.uid}:${here.gid} ${new TextDecoder().decode(here.contents)}`,
              );
            else if (here?.kind === "folder") {
              found.set(`${path}/${name}/`, `${here.mode.toString(8)} ${here.uid}:${here.gid}`);
              await walk(`${path}/${name}`);
            }
          }
        };
        await walk("/etc");
        await walk("/var");
        // Configurations name homes by the link that leads there; the recorded day shows that a password changed.
        return new Map(
          [...found].map(([path, entry]) => [
            path.replace(/^\/var\/home\//, "/home/"),
            path === "/etc/shadow" ? entry.replaceAll(`:${passwordDay}:`, ":1:") : entry,
          ]),
        );
      },
      service: async (name) => ({ read: system.seenBy(name), ...system.countsOf(name) }),
      async copier() {
        const kept = join(await temporaryFolder(), "kept");
        await copyTree(fastDisk, folder, kept);
        return onFakeSystem({ folder: kept, like: system.state() });
      },
      async close() {
        expect(system.violations).toEqual([]);
      },
    };
  };

const total = newTally();

/** Every command reads many files: `make test` takes some of the scenarios, `make test-long` all. */
const some = wantsAll ? scenarios : scenarios.filter((_, index) => index % 3 === 0);

// The fake changes the owner of files, as root does on a real machine.
test.runIf(process.geteuid?.() === 0).for(some)("$title", { timeout: 300_000 }, async (scenario) => {
  const { harness } = await rehearse(scenario, onFakeSystem());
  total.scenarios += 1;
  total.effects += harness.effects.length;
  count(total, harness);
  expect(harness.keeper.violations, harness.description).toEqual([]);
});

afterAll(() => void process.stdout.write(describeTally("on rpm-ostree by its commands, over the fake system", total)));
