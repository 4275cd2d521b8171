import { expect, test } from "vitest";
import { asRead } from "./as-read.ts";
import { type Decoded, decodeGo } from "./decode-go.ts";
import { encodeGo } from "./encode-go.ts";
import { type GoType, kubeletConfiguration } from "./kubelet-fields.ts";

/** Values of a type: its zero, nothing, and others, as decoding leaves them. */
function valuesOf(type: GoType, depth = 0): readonly unknown[] {
  if (typeof type === "string")
    switch (type.replace("*", "")) {
      case "bool":
        return [undefined, false, true];
      case "string":
        return [undefined, "", "a"];
      case "duration":
        return [undefined, "0s", "1m30s"];
      case "timeOrDuration":
        return [undefined, 0, 5, "5s"];
      case "quantity":
        return [undefined, "0", "1024Mi", "0.5"];
      case "time":
        return [undefined, "2026-01-02T03:04:05Z"];
      default:
        return [undefined, 0, 7];
    }
  if ("list" in type) return [undefined, [], valuesOf(type.list, depth + 1).filter((one) => one !== undefined)];
  if ("map" in type) {
    const items = valuesOf(type.map, depth + 1).filter((one) => one !== undefined);
    return [undefined, {}, Object.fromEntries(items.map((item, i) => [`k${i}`, item]))];
  }
  const rounds = depth > 3 ? [0] : [0, 1, 2, 3];
  return [undefined, {}, ...rounds.map((round) => structOf(type.struct, round, depth + 1))];
}

const structOf = (members: Readonly<Record<string, GoType>>, round: number, depth: number): Decoded =>
  Object.fromEntries(
    Object.entries(members).flatMap(([name, member], i) => {
      const values = valuesOf(member, depth);
      const value = values[(round + i) % values.length];
      return value === undefined ? [] : [[name, value]];
    }),
  );

test("a value is read as Go reads what it wrote, for every field and every kind of value [as-read-1]", () => {
  const all = Object.entries(kubeletConfiguration.struct).flatMap(([name, type]) =>
    valuesOf(type).map((value): Decoded => (value === undefined ? {} : { [name]: value })),
  );
  expect(all.length).toBeGreaterThan(300);
  for (const value of [...all, ...[0, 1, 2, 3].map((round) => structOf(kubeletConfiguration.struct, round, 0))]) {
    const written: unknown = JSON.parse(JSON.stringify(encodeGo(value, kubeletConfiguration)));
    const { value: expected, problems } = decodeGo(written, kubeletConfiguration);
    expect(problems).toEqual([]);
    expect(asRead(value, kubeletConfiguration)).toEqual(expected);
  }
});

test("an item that is not set stays unset, as Go writes a nil slice in a map [as-read-2]", () => {
  const config = { staticPodURLHeader: { a: null, b: [], c: ["x"] } };
  const { value, problems } = decodeGo(config, kubeletConfiguration);
  expect(problems).toEqual([]);
  expect(encodeGo(value, kubeletConfiguration)).toMatchObject(config);
  expect(asRead(value, kubeletConfiguration)).toMatchObject(config);
});
