import { expect, test } from "vitest";
import { alsoShapes, unitsOfShape } from "../../test/support/also-shapes.ts";
import { countWork } from "../../test/support/count-work.ts";
import type { HostEntry } from "./host.ts";
import { emptyUnitModel, unitModel } from "./unit-model.ts";

/** A machine with these files. */
const modelOver = (
  entries: Map<string, HostEntry>,
  onRead: () => void = () => undefined,
  listTree = (folder: string) =>
    Promise.resolve([...entries.keys()].filter((path) => path.startsWith(`${folder}/`)).sort()),
) =>
  unitModel({
    files: {
      read: (path) => {
        onRead();
        return Promise.resolve(entries.get(path));
      },
      write: (writes) => {
        for (const { path, entry } of writes) entries.set(path, entry);
        return Promise.resolve();
      },
      remove: (path) => {
        entries.delete(path);
        return Promise.resolve();
      },
    },
    listTree,
    digest: () => "",
    load: () => Promise.resolve(emptyUnitModel()),
    store: () => Promise.resolve(),
    broken: () => Promise.resolve([]),
  });

/** A machine whose units name each other, and how often its files were read. */
function modelOf(shape: (typeof alsoShapes)[number], count: number) {
  const units = unitsOfShape(shape, count);
  const entries = new Map<string, HostEntry>(
    units.map(({ name, contents }) => [
      `/etc/systemd/system/${name}`,
      { kind: "file", contents: new TextEncoder().encode(contents), mode: 0o644, uid: 0, gid: 0 },
    ]),
  );
  let reads = 0;
  const model = modelOver(entries, () => (reads += 1));
  return { model, names: units.map(({ name }) => name), entries, reads: () => reads };
}

test.for(alsoShapes)(
  "a unit is enabled, and the state of all units is read, with few reads of each file: $title [host-unit-model-1]",
  async (shape) => {
    const { signal } = new AbortController();
    const readsOf = async (count: number) => {
      const { model, names, entries, reads } = modelOf(shape, count);
      await model.enable(names[0] ?? "", signal);
      const states = await model.state(names, signal);
      expect(names.map((name) => states.get(name)?.enablement)).toEqual(names.map(() => "enabled"));
      await model.disable(names[0] ?? "", signal);
      expect([...entries.values()].filter(({ kind }) => kind === "link")).toEqual([]);
      return reads();
    };
    expect(await readsOf(80)).toBeLessThan(2.5 * (await readsOf(40)));
  },
);

/** Whether presets of a machine enable a unit of this name. */
async function isPresetEnabled(lines: string, name: string): Promise<boolean> {
  const contents = { "/etc/systemd/system-preset/20-x.preset": lines, [`/etc/systemd/system/${name}`]: wanted };
  const entries = new Map<string, HostEntry>(
    Object.entries(contents).map(([path, text]) => [
      path,
      { kind: "file", contents: new TextEncoder().encode(text), mode: 0o644, uid: 0, gid: 0 },
    ]),
  );
  const model = modelOver(entries);
  await model.preset(name, new AbortController().signal);
  return [...entries.values()].some(({ kind }) => kind === "link");
}

const wanted = "[Install]\nWantedBy=multi-user.target\n";

test.for<[pattern: string, name: string, isLike: boolean]>([
  ["a.service", "a.service", true],
  ["a.service", "b.service", false],
  ["a.b.service", "axb.service", false],
  ["*", "a.service", true],
  ["a*.service", "a.service", true],
  ["a*.service", "abc.service", true],
  ["a*.service", "b.service", false],
  ["*b*.service", "abc.service", true],
  ["*b*c*.service", "acb.service", false],
  ["?.service", "a.service", true],
  ["?.service", "ab.service", false],
  ["*?b.service", "ab.service", true],
  ["*?b.service", "b.service", false],
  ["ab*ba.service", "aba.service", false],
  ["**a**.service", "bab.service", true],
])("a preset's pattern %s and the unit %s [host-unit-model-2]", async ([pattern, name, isLike]) => {
  expect(await isPresetEnabled(`disable ${pattern}\nenable *\n`, name)).toBe(!isLike);
});

test("a preset's pattern of many stars takes little time [host-unit-model-3]", async () => {
  const name = `${"a".repeat(200)}.service`;
  const began = process.cpuUsage();
  expect(await isPresetEnabled(`disable ${"*a".repeat(5)}*b\n`, name)).toBe(true);
  expect(await isPresetEnabled(`disable ${"*".repeat(1_000_000)}.service\n`, name)).toBe(false);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
});

test("presets of many units are looked at in proportion to their number [host-unit-model-4]", async () => {
  const workOf = async (count: number) => {
    const names = Array.from({ length: count }, (_, index) => `u${index}.service`);
    const file = (text: string): HostEntry => ({
      kind: "file",
      contents: new TextEncoder().encode(text),
      mode: 0o644,
      uid: 0,
      gid: 0,
    });
    const entries = new Map(names.map((name) => [`/usr/lib/systemd/system/${name}`, file(wanted)]));
    const lines = ["enable u1.service", ...names.map((name) => `disable ${name}`), "enable *"];
    entries.set("/etc/systemd/system-preset/20-ignition.preset", file(lines.join("\n")));
    const paths = [...entries.keys()];
    // Drop-ins of each unit are looked for; there are none.
    const listTree = (folder: string) =>
      Promise.resolve(folder.endsWith(".d") ? [] : paths.filter((path) => path.startsWith(`${folder}/`)));
    const model = modelOver(entries, undefined, listTree);
    const work = await countWork(() => model.presetAll(new AbortController().signal));
    expect([...entries].filter(([, { kind }]) => kind === "link").map(([path]) => path)).toEqual([
      "/etc/systemd/system/multi-user.target.wants/u1.service",
    ]);
    return work;
  };
  expect(await workOf(400)).toBeLessThan(2.5 * (await workOf(200)));
});

test("of the lines that speak of a unit the first counts, by name or by pattern; one preset sees the links of those before it [host-unit-model-5]", async () => {
  const { signal } = new AbortController();
  expect(await isPresetEnabled("disable a*\nenable a.service\n", "a.service")).toBe(false);
  expect(await isPresetEnabled("enable a.service\ndisable *\n", "a.service")).toBe(true);
  expect(await isPresetEnabled("disable a.service\nenable a.service\nenable *\n", "a.service")).toBe(false);
  const text = {
    "/etc/systemd/system-preset/20-x.preset": "disable first.service\nenable *\ndisable alias.service",
    "/etc/systemd/system/first.service": wanted,
    "/etc/systemd/system/second.service": "[Install]\nAlias=other.service\n",
    "/etc/systemd/system/third.service": wanted,
  };
  const entries = new Map<string, HostEntry>(
    Object.entries(text).map(([path, contents]) => [
      path,
      { kind: "file", contents: new TextEncoder().encode(contents), mode: 0o644, uid: 0, gid: 0 },
    ]),
  );
  const links = () => [...entries].filter(([, { kind }]) => kind === "link").map(([path]) => path.slice(20));
  const model = modelOver(entries);
  await model.enable("first.service", signal);
  await model.presetEach(["first.service", "second.service", "third.service", "gone.service"], signal);
  expect(links()).toEqual(["other.service", "multi-user.target.wants/third.service"]);
  const lines = "disable first.service\ndisable second.service\n";
  entries.set("/etc/systemd/system-preset/10-y.preset", {
    kind: "file",
    contents: new TextEncoder().encode(lines),
    mode: 0o644,
    uid: 0,
    gid: 0,
  });
  await model.presetEach(["first.service", "third.service", "second.service"], signal);
  expect(links()).toEqual(["multi-user.target.wants/third.service"]);
});

test("a boot reads each file a few times, however many services are enabled [host-unit-model-6]", async () => {
  const { signal } = new AbortController();
  const readsOf = async (count: number) => {
    const entries = new Map<string, HostEntry>();
    const names = Array.from({ length: count }, (_, index) => `u${index}.service`);
    for (const name of names)
      entries.set(`/etc/systemd/system/${name}`, {
        kind: "file",
        contents: new TextEncoder().encode(wanted),
        mode: 0o644,
        uid: 0,
        gid: 0,
      });
    let reads = 0;
    const model = modelOver(entries, () => (reads += 1));
    await model.presetEach(names, signal);
    reads = 0;
    await model.boot(signal);
    return reads;
  };
  expect(await readsOf(80)).toBeLessThan(2.5 * (await readsOf(40)));
});
