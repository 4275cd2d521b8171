import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonical } from "./canonical.ts";
import { mergeIgnition, mergeTwo } from "./merge-ignition.ts";
import type { IgnitionConfig } from "./types.ts";

const v = { version: "3.5.0" };
const files = (...list: NonNullable<NonNullable<IgnitionConfig["storage"]>["files"]>): IgnitionConfig => ({
  ignition: v,
  storage: { files: list },
});
const merge = (...configs: IgnitionConfig[]) =>
  mergeIgnition(configs.map((config, i) => ({ name: `mc-${i}`, config })));

describe("mergeIgnition", () => {
  test("a later member's fields replace an earlier one's, in the earlier one's place", () => {
    const { config } = merge(
      files({ path: "/a", mode: 420, contents: { source: "data:,1" } }, { path: "/b" }),
      files({ path: "/c" }, { path: "/a", contents: { source: "data:,2" } }),
    );
    expect(config.storage?.files).toEqual([
      { path: "/a", mode: 420, overwrite: true, contents: { source: "data:,2" } },
      { path: "/b", overwrite: true },
      { path: "/c", overwrite: true },
    ]);
  });

  test("a later file without compression takes an earlier one's away, even without contents of its own", () => {
    const gzip = files({ path: "/a", contents: { source: "data:;base64,", compression: "gzip" } });
    expect(
      merge(gzip, files({ path: "/a", contents: { source: "data:,2" } })).config.storage?.files?.[0]?.contents,
    ).toEqual({ source: "data:,2" });
    expect(merge(gzip, files({ path: "/a", mode: 420 })).config.storage?.files?.[0]?.contents).toEqual({
      source: "data:;base64,",
    });
    expect(merge(gzip).config.storage?.files?.[0]?.contents?.compression).toBe("gzip");
  });

  test("a file takes the place of a folder of the same path", () => {
    const { config } = merge(
      { ignition: v, storage: { directories: [{ path: "/a" }, { path: "/b" }] } },
      files({ path: "/a" }),
    );
    expect(config.storage).toEqual({ directories: [{ path: "/b" }], files: [{ path: "/a", overwrite: true }] });
  });

  test("keys are united, options and appended texts are strung together", () => {
    const user = (...sshAuthorizedKeys: string[]): IgnitionConfig => ({
      ignition: v,
      passwd: { users: [{ name: "core", sshAuthorizedKeys }] },
    });
    expect(merge(user("a", "b"), user("c", "b")).config.passwd?.users?.[0]?.sshAuthorizedKeys).toEqual(["a", "b", "c"]);
    const fs = (...options: string[]): IgnitionConfig => ({
      ignition: v,
      storage: { filesystems: [{ device: "/dev/a", options }] },
    });
    expect(merge(fs("a"), fs("a", "b")).config.storage?.filesystems?.[0]?.options).toEqual(["a", "a", "b"]);
  });

  test("members without an Ignition config change nothing", () => {
    expect(
      mergeIgnition([
        { name: "a", config: undefined },
        { name: "b", config: files({ path: "/a" }) },
        { name: "c", config: undefined },
      ]).config,
    ).toEqual(files({ path: "/a", overwrite: true }));
    expect(mergeIgnition([]).config).toEqual({ ignition: v });
  });

  test("origins name the member that decided each field, and the overridden ones", () => {
    const { origins } = merge(
      files({ path: "/a", mode: 420, contents: { source: "data:,1" } }),
      files({ path: "/a", contents: { source: "data:,2" } }),
      files({ path: "/b" }),
    );
    expect(origins).toEqual([
      {
        kind: "file",
        name: "/a",
        from: "mc-1",
        contributors: ["mc-0", "mc-1"],
        fields: { mode: "mc-0", contents: "mc-1" },
        overrode: [{ member: "mc-0", field: "contents", by: "mc-1" }],
      },
      { kind: "file", name: "/b", from: "mc-2", contributors: ["mc-2"], fields: {}, overrode: [] },
    ]);
  });
});

const name = fc.constantFrom("a", "b", "c");
const config: fc.Arbitrary<IgnitionConfig> = fc
  .record({
    files: fc.uniqueArray(
      fc.record(
        {
          path: name.map((one) => `/${one}`),
          mode: fc.integer({ min: 0, max: 511 }),
          overwrite: fc.boolean(),
          contents: fc.record({
            source: fc.constantFrom("data:,1", "data:,2"),
            compression: fc.constantFrom("", "gzip"),
          }),
          append: fc.array(fc.record({ source: fc.constantFrom("data:,x", "data:,y") }), {
            minLength: 1,
            maxLength: 2,
          }),
          user: fc.oneof(fc.record({ id: fc.nat(3) }), fc.record({ name: fc.constant("core") })),
        },
        { requiredKeys: ["path"] },
      ),
      { selector: ({ path }) => path },
    ),
    units: fc.uniqueArray(
      fc.record(
        { name: name.map((one) => `${one}.service`), enabled: fc.boolean(), contents: fc.constantFrom("", "[Unit]\n") },
        { requiredKeys: ["name"] },
      ),
      { selector: (unit) => unit.name },
    ),
    keys: fc.uniqueArray(name),
  })
  .map(({ files: list, units, keys }) => ({
    ignition: v,
    ...(list.length === 0 ? {} : { storage: { files: list } }),
    ...(units.length === 0 ? {} : { systemd: { units } }),
    ...(keys.length === 0 ? {} : { passwd: { users: [{ name: "core", sshAuthorizedKeys: keys }] } }),
  }));

describe("laws of the merge", () => {
  test("grouping does not matter", () => {
    fc.assert(
      fc.property(config, config, config, (a, b, c) => {
        expect(canonical(mergeTwo(mergeTwo(a, b), c))).toEqual(canonical(mergeTwo(a, mergeTwo(b, c))));
      }),
    );
  });

  test("an empty config is neutral on both sides", () => {
    fc.assert(
      fc.property(config, (a) => {
        expect(mergeTwo({ ignition: v }, a)).toEqual(a);
        expect(mergeTwo(a, { ignition: v })).toEqual(a);
      }),
    );
  });

  test("nothing that a member names is lost, and inputs stay as they were", () => {
    fc.assert(
      fc.property(config, config, (a, b) => {
        const before = JSON.stringify([a, b]);
        const { config: merged, origins } = merge(a, b);
        const paths = new Set([...(a.storage?.files ?? []), ...(b.storage?.files ?? [])].map(({ path }) => path));
        expect(new Set(merged.storage?.files?.map(({ path }) => path))).toEqual(paths);
        expect(new Set(origins.filter(({ kind }) => kind === "file").map((origin) => origin.name))).toEqual(paths);
        expect(JSON.stringify([a, b])).toBe(before);
      }),
    );
  });
});
