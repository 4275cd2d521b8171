import { gzipSync, strToU8 } from "fflate";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { classifyAsReference } from "./classify-as-reference.ts";
import { diffConfigs } from "./diff-configs.ts";
import { compareNodeConfigs, nodeConfigOf } from "./node-config.ts";
import { ignitionOf } from "./validate-machine-config.ts";

type Config = NonNullable<Parameters<typeof diffConfigs>[0]>;
const config = (spec: Config["spec"], ignition: object = {}): Config => ({
  metadata: { name: "rendered" },
  spec: { ...spec, config: { ignition: { version: "3.5.0" }, ...ignition } },
});
const files = (...list: object[]) => config({}, { storage: { files: list } });
const units = (...list: object[]) => config({}, { systemd: { units: list } });
const gzip = (text: string) => ({
  source: `data:;base64,${encodeBase64(gzipSync(strToU8(text)))}`,
  compression: "gzip",
});

describe("diffConfigs", () => {
  test.for([
    {
      title: "the same contents in another spelling are no change",
      from: files({ path: "/a", contents: { source: "data:,hi" } }),
      to: files({ path: "/a", overwrite: true, mode: 420, user: { id: 0 }, contents: gzip("hi") }),
      changes: [],
    },
    {
      title: "another order of files is no change",
      from: files({ path: "/a" }, { path: "/b" }),
      to: files({ path: "/b" }, { path: "/a" }),
      changes: [],
    },
    {
      title: "a new file",
      from: files(),
      to: files({ path: "/a", contents: { source: "data:,hi" } }),
      changes: [
        {
          kind: "file",
          path: "/a",
          op: "create",
          parts: ["contents", "mode", "owner"],
          after: { mode: 420, user: { id: 0 }, group: { id: 0 }, contents: { kind: "text", text: "hi" } },
        },
      ],
    },
    {
      title: "a mode",
      from: files({ path: "/a" }),
      to: files({ path: "/a", mode: 384 }),
      changes: [{ kind: "file", path: "/a", op: "update", parts: ["mode"] }],
    },
    {
      title: "binary contents show their digest",
      from: files(),
      to: files({ path: "/a", contents: { source: "data:;base64,AAEC" } }),
      changes: [{ after: { contents: { kind: "binary", sizeBytes: 3 } } }],
    },
    {
      title: "remote contents show their source",
      from: files(),
      to: files({ path: "/a", contents: { source: "https://x/a" } }),
      changes: [{ after: { contents: { kind: "unknown", source: "https://x/a" } } }],
    },
    {
      title: "parts of a unit",
      from: units({
        name: "a.service",
        enabled: true,
        contents: "[Unit]\n",
        dropins: [{ name: "x.conf", contents: "[Unit]\n" }],
      }),
      to: units({ name: "a.service", enabled: false, contents: "[Unit]\n#\n" }),
      changes: [{ kind: "unit", name: "a.service", op: "update", parts: ["contents", "enablement", "x.conf"] }],
    },
    {
      title: "masking a unit",
      from: units({ name: "a.service", enabled: true }),
      to: units({ name: "a.service", enabled: true, mask: true }),
      changes: [{ kind: "unit", parts: ["enablement", "mask"] }],
    },
    {
      title: "storage that running machines do not follow is named",
      from: config({}, { storage: { links: [{ path: "/l", target: "/a" }], disks: [{ device: "/dev/a" }] } }),
      to: config(
        {},
        {
          storage: {
            links: [
              { path: "/l", target: "/b" },
              { path: "/m", target: "/b" },
            ],
            disks: [{ device: "/dev/a" }],
            directories: [{ path: "/d" }],
          },
        },
      ),
      changes: [
        { kind: "storage", section: "directories", op: "create", names: ["/d"] },
        { kind: "storage", section: "links", op: "update", names: ["/l", "/m"] },
      ],
    },
    { title: "a unit of which nothing is said", from: units(), to: units({ name: "a.service" }), changes: [] },
    {
      title: "keys",
      from: config({}, { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["a", "b"] }] } }),
      to: config({}, { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["b", "c"], passwordHash: "h" }] } }),
      changes: [
        { kind: "sshKeys", user: "core", op: "update", added: ["c"], removed: ["a"] },
        { kind: "password", user: "core", op: "create" },
      ],
    },
    {
      title: "kernel and OS",
      from: config({
        kernelArguments: ["a b"],
        osImageURL: "x",
        extensions: ["usbguard", "sysstat"],
        kernelType: "default",
      }),
      to: config({
        kernelArguments: ["a", "b", "c"],
        osImageURL: "y",
        extensions: ["sysstat", "usbguard", "usbguard"],
        kernelType: "realtime",
        fips: true,
      }),
      changes: [
        { kind: "kernelArguments", from: ["a", "b"], to: ["a", "b", "c"] },
        { kind: "osImage", from: "x", to: "y" },
        { kind: "kernelType" },
        { kind: "fips" },
      ],
    },
    { title: "an image that is no longer named", from: config({ osImageURL: "x" }), to: config({}), changes: [] },
  ])("$title", ({ from, to, changes }) => {
    const found = diffConfigs(from, to);
    expect(found).toMatchObject(changes);
    expect(found.length).toBe(changes.length);
  });

  test("a machine that had nothing, and one that loses everything", () => {
    const full = files({ path: "/a" });
    expect(diffConfigs(undefined, full)).toMatchObject([{ op: "create" }]);
    expect(diffConfigs(full, undefined)).toMatchObject([{ op: "delete" }]);
    expect(diffConfigs(undefined, undefined)).toEqual([]);
  });
});

const anyConfig = fc
  .record({
    files: fc.array(
      fc.record(
        {
          path: fc.constantFrom("/a", "/b", "/c"),
          mode: fc.constantFrom(420, 384),
          contents: fc.constantFrom({ source: "data:,1" }, gzip("1"), { source: "data:,2" }, {}),
        },
        { requiredKeys: ["path"] },
      ),
      { maxLength: 3 },
    ),
    units: fc.array(
      fc.record(
        {
          name: fc.constantFrom("a.service", "b.timer"),
          enabled: fc.boolean(),
          mask: fc.boolean(),
          contents: fc.constantFrom("", "[Install]\nWantedBy=x\n"),
          dropins: fc.constantFrom([{ name: "x.conf" }], [{ name: "x.conf", contents: "[Unit]\n" }]),
        },
        { requiredKeys: ["name"] },
      ),
      { maxLength: 2 },
    ),
    keys: fc.uniqueArray(fc.constantFrom("k1", "k2")),
    hash: fc.constantFrom("", "h"),
    spec: fc.record(
      {
        kernelArguments: fc.array(fc.constantFrom("a", "b c", '"d e"')),
        osImageURL: fc.constantFrom("", "x", "y"),
        extensions: fc.array(fc.constantFrom("usbguard", "sysstat")),
        kernelType: fc.constantFrom("", "default", "realtime"),
        fips: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ files: list, units: some, keys, hash, spec }): Config => {
    const once = <T>(items: readonly T[], keyOf: (item: T) => string) => [
      ...new Map(items.map((item) => [keyOf(item), item])).values(),
    ];
    return config(spec as Config["spec"], {
      storage: { files: once(list, ({ path }) => path) },
      systemd: { units: once(some, ({ name }) => name) },
      passwd: { users: [{ name: "core", sshAuthorizedKeys: keys, passwordHash: hash }] },
    });
  });

describe("laws of the diff", () => {
  test("a configuration does not differ from itself", () => {
    fc.assert(
      fc.property(anyConfig, (one) => {
        expect(diffConfigs(one, structuredClone(one))).toEqual([]);
        expect(classifyAsReference(one, structuredClone(one))).toMatchObject({
          classification: {
            files: false,
            units: false,
            passwd: false,
            changedPaths: [],
            legacyAction: "none",
            policyActions: [{ type: "None" }],
            isReconcilable: true,
          },
        });
      }),
    );
  });

  test("there and back, the same things change", () => {
    const keysOf = (changes: ReturnType<typeof diffConfigs>) =>
      changes.map((change) => `${change.kind} ${"path" in change ? change.path : "name" in change ? change.name : ""}`);
    fc.assert(
      fc.property(anyConfig, anyConfig, (a, b) => {
        // An image that one side does not name is a change in one direction only.
        fc.pre((a.spec?.osImageURL ?? "") !== "" && (b.spec?.osImageURL ?? "") !== "");
        expect(keysOf(diffConfigs(a, b))).toEqual(keysOf(diffConfigs(b, a)));
      }),
    );
  });

  test("what differs for a machine differs for the reference too", () => {
    fc.assert(
      fc.property(anyConfig, anyConfig, (a, b) => {
        const result = classifyAsReference(a, b);
        if (result.verdict === "refused") throw new Error("refused");
        for (const change of diffConfigs(a, b)) {
          if (change.kind === "file") expect(result.classification.changedPaths).toContain(change.path);
          if (change.kind === "unit") expect(result.classification.changedUnits).toContain(change.name);
        }
      }),
    );
  });

  test("it names the same changes as the comparison of what machines carry out", () => {
    const node = (one: Config) => {
      const ignition = ignitionOf(one);
      const decoded = nodeConfigOf(
        { apiVersion: "", kind: "", ...one },
        ignition?.verdict === "valid" ? ignition.config : undefined,
      );
      if (decoded.verdict === "refused") throw new Error(decoded.reason);
      return decoded.config;
    };
    fc.assert(
      fc.property(anyConfig, anyConfig, (a, b) => {
        const seen = compareNodeConfigs(node(a), node(b));
        const names = (changes: readonly { readonly kind: string }[]) =>
          changes.map(
            (change) =>
              `${change.kind} ${"path" in change ? String(change.path) : "name" in change ? String(change.name) : ""}`,
          );
        expect(names(diffConfigs(a, b))).toEqual(names(seen));
      }),
    );
  });
});

test("hundred thousands of keys are compared in bounded time [attack-configs-4]", () => {
  const keys = (letter: string) =>
    config(
      {},
      {
        passwd: {
          users: [
            { name: "core", sshAuthorizedKeys: Array.from({ length: 200_000 }, (_, i) => `ssh-rsa ${letter}${i}`) },
          ],
        },
      },
    );
  // Each key compared with each other would take many times as long. Other processes do not count.
  const began = process.cpuUsage();
  expect(diffConfigs(keys("a"), keys("b"))).toMatchObject([{ kind: "sshKeys" }]);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(15);
});
