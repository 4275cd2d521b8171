import { expect, test } from "vitest";
import { alsoShapes, unitsOfShape } from "../../test/support/also-shapes.ts";
import type { HostEntry } from "./host.ts";
import { emptyUnitModel, unitModel } from "./unit-model.ts";

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
  const model = unitModel({
    files: {
      read: (path) => {
        reads += 1;
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
    listTree: (folder) => Promise.resolve([...entries.keys()].filter((path) => path.startsWith(`${folder}/`)).sort()),
    digest: () => "",
    load: () => Promise.resolve(emptyUnitModel()),
    store: () => Promise.resolve(),
    broken: () => Promise.resolve([]),
  });
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
