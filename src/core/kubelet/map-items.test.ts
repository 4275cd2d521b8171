import fc from "fast-check";
import { expect, test } from "vitest";
import { firstMembers, hasMembers, mapItems, mapValues } from "./map-items.ts";

const keys = fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom("__proto__", "constructor", "1", "0", "x"));
const maps = fc
  .array(fc.tuple(keys, fc.integer({ min: 0, max: 3 })), { maxLength: 6 })
  .map((entries) => Object.fromEntries(entries) as Readonly<Record<string, unknown>>);
const changes = fc.func(fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }));

test("the values of a map are changed as those of its entries, in their order, and an unchanged map is kept [kubelet-map-items-1]", () => {
  fc.assert(
    fc.property(maps, changes, (map, change) => {
      const wanted = Object.entries(map).map(([key, value]) => [key, change(value, key)] as const);
      const changed = mapValues(map, change);
      expect(Object.entries(changed)).toEqual(wanted);
      expect(changed === map).toBe(Object.entries(map).every(([key, value]) => change(value, key) === value));
      expect(hasMembers(changed)).toBe(wanted.length > 0);
      expect(mapItems(Object.values(map), (item) => item)).toEqual(Object.values(map));
    }),
  );
});

test("the first members of an object are copied under any name [kubelet-map-items-2]", () => {
  fc.assert(
    fc.property(maps, fc.nat(6), (map, count) => {
      const names = Object.keys(map);
      expect(Object.entries(firstMembers(map, names, count))).toEqual(Object.entries(map).slice(0, count));
      expect(hasMembers(map)).toBe(names.length > 0);
    }),
  );
});

test("members of a prototype are none of an object [kubelet-map-items-3]", () => {
  expect(hasMembers(Object.create({ a: 1 }) as object)).toBe(false);
  expect(mapValues(Object.create({ a: 1 }) as Record<string, unknown>, () => 2)).toEqual({});
});
