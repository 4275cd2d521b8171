import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonical } from "./canonical.ts";
import { judgeIgnition, parseIgnition, readIgnition } from "./parse-ignition.ts";
import { Findings } from "./problem.ts";

const v3 = (rest: object, version = "3.5.0") => ({ ignition: { version }, ...rest });
const file = (fields: object) =>
  v3({ storage: { files: [{ path: "/etc/a", contents: { source: "data:,a" }, ...fields }] } });
const unit = (fields: object, version?: string) =>
  v3({ systemd: { units: [{ name: "a.service", ...fields }] } }, version);
const nodes2 = (storage: object, version = "2.2.0") => ({ ignition: { version }, storage });

const errorsOf = (value: unknown): readonly string[] => {
  const parsed = parseIgnition(value);
  return parsed.verdict === "valid"
    ? []
    : parsed.problems.filter(({ severity }) => severity === "error").map(({ path, reason }) => `${path}: ${reason}`);
};

describe("parseIgnition", () => {
  test.for([
    ["nothing at all", undefined, ": the config is not an object"],
    ["a list", [], ": the config is not an object"],
    ["no version", {}, "ignition.version: is missing"],
    ["a version of the future", { ignition: { version: "3.6.0" } }, 'ignition.version: "3.6.0" is not supported'],
    ["a version that is no text", { ignition: { version: 3 } }, "ignition.version: 3 is not supported"],
    ["a file mode in octal digits", file({ mode: 644_000 }), "storage.files[0].mode: 644000 is not a file mode"],
    [
      "a file mode with special bits",
      file({ mode: 0o4755 }),
      "storage.files[0].mode: 2541 sets special bits, which a MachineConfig may not",
    ],
    ["a file mode as text", file({ mode: "0644" }), "storage.files[0].mode: must be a whole number, not a string"],
    ["a fraction as a number", file({ mode: 1.5 }), "storage.files[0].mode: must be a whole number, not 1.5"],
    ["a relative path", file({ path: "etc/a" }), "storage.files[0].path: must be an absolute path"],
    ["a path that climbs", file({ path: "/etc/../root/.ssh" }), "storage.files[0].path: must be a clean path"],
    ["an empty path", file({ path: "" }), "storage.files[0].path: must not be empty"],
    [
      "the same path twice",
      v3({ storage: { files: [{ path: "/a" }, { path: "/a" }] } }),
      'storage.files[1]: is a second entry for "/a"',
    ],
    [
      "a path as file and as folder",
      v3({ storage: { files: [{ path: "/a" }], directories: [{ path: "/a" }] } }),
      'storage.files[0]: is a second entry for "/a"',
    ],
    [
      "a file below a link",
      v3({ storage: { files: [{ path: "/a/b" }], links: [{ path: "/a", target: "/c" }] } }),
      "storage.files[0]: lies below a link of this config",
    ],
    [
      "an owner by id and by name",
      file({ user: { id: 1, name: "core" } }),
      "storage.files[0].user: has both an id and a name",
    ],
    [
      "overwriting with nothing",
      file({ contents: {}, overwrite: true }),
      "storage.files[0].overwrite: is true, and there is no contents.source to write",
    ],
    [
      "an unknown compression",
      file({ contents: { source: "data:,a", compression: "xz" } }),
      'storage.files[0].contents.compression: "xz" is not known',
    ],
    [
      "a source that is no URL",
      file({ contents: { source: "file:///etc/passwd" } }),
      'storage.files[0].contents.source: has the scheme "file"; possible are data, http, https, tftp, s3, gs, arn',
    ],
    [
      "a data URL that needs escapes",
      file({ contents: { source: "data:,a b" } }),
      "storage.files[0].contents.source: the data URL's data has a character that must be percent-encoded",
    ],
    [
      "broken base64",
      file({ contents: { source: "data:;base64,abc" } }),
      "storage.files[0].contents.source: the data URL's data is not base64",
    ],
    [
      "a short hash",
      file({ contents: { source: "data:,a", verification: { hash: "sha512-00" } } }),
      "storage.files[0].contents.verification.hash: must have 128 hexadecimal digits after the dash",
    ],
    [
      "sha256 before spec 3.1",
      v3(
        {
          storage: {
            files: [{ path: "/a", contents: { source: "data:,", verification: { hash: `sha256-${"0".repeat(64)}` } } }],
          },
        },
        "3.0.0",
      ),
      "storage.files[0].contents.verification.hash: must use sha512",
    ],
    ["a unit without a type", unit({ name: "a" }), "systemd.units[0].name: must end in the type of a unit"],
    [
      "a unit with an option without value",
      unit({ contents: "[Unit]\nDescription\n" }),
      "systemd.units[0].contents: a line has no = after its option name",
    ],
    [
      "a unit with an open section",
      unit({ contents: "[Unit\n" }),
      "systemd.units[0].contents: a section name is not closed with ]",
    ],
    [
      "text behind a section name",
      unit({ contents: "[Unit] x\n" }),
      "systemd.units[0].contents: there is text after the section name [Unit]",
    ],
    [
      "a very long line",
      unit({ contents: `[Service]\nExecStart=${"x".repeat(5000)}\n` }),
      "systemd.units[0].contents: a line is longer than 2048 bytes",
    ],
    [
      "a drop-in of another name",
      unit({ dropins: [{ name: "a.txt" }] }),
      "systemd.units[0].dropins[0].name: must end in .conf",
    ],
    [
      "a file where a unit is written",
      v3({
        systemd: { units: [{ name: "a.service", contents: "[Unit]\n" }] },
        storage: { files: [{ path: "/etc/systemd/system/a.service" }] },
      }),
      "storage.files[0].path: is written by a unit of this config too",
    ],
    [
      "an SSH key twice",
      v3({ passwd: { users: [{ name: "core", sshAuthorizedKeys: ["k", "k"] }] } }),
      'passwd.users[0].sshAuthorizedKeys[1]: is a second entry for "k"',
    ],
    [
      "an unnamed partition",
      v3({ storage: { disks: [{ device: "/dev/a", partitions: [{}] }] } }),
      "storage.disks[0].partitions[0]: needs a number or a label",
    ],
    [
      "a file system without format",
      v3({ storage: { filesystems: [{ device: "/dev/a", path: "/a" }] } }),
      "storage.filesystems[0].format: must be given with the other fields",
    ],
    [
      "a link to nowhere",
      v3({ storage: { links: [{ path: "/a" }] } }, "3.2.0"),
      "storage.links[0].target: must not be empty",
    ],
    [
      "spec 2: a partition",
      nodes2({ disks: [{ device: "/dev/a", partitions: [{ number: 1 }] }] }),
      "storage.disks[0].partitions: cannot be brought from spec 2 to spec 3",
    ],
    [
      "spec 2: special bits in a file that a later one replaces",
      nodes2({
        files: [
          { filesystem: "root", path: "/a", mode: 0o4755 },
          { filesystem: "root", path: "/a", mode: 420 },
        ],
      }),
      "storage.files[0].mode: 2541 sets special bits, which a MachineConfig may not",
    ],
    [
      "spec 2: another user",
      { ignition: { version: "2.2.0" }, passwd: { users: [{ name: "joe" }] } },
      "passwd.users[0].name: joe is not a user that a spec 2 config may set",
    ],
    [
      "spec 2: a file system with an unknown place",
      nodes2({ filesystems: [{ name: "data", path: "/data" }] }),
      'storage.filesystems[0].name: "data" has no known mount point',
    ],
    ["spec 2: no file system", nodes2({ files: [{ path: "/a" }] }), "storage.files[0].filesystem: must not be empty"],
    [
      "spec 2: networkd",
      { ignition: { version: "2.2.0" }, networkd: { units: [{ name: "a.network" }] } },
      "networkd.units: do not exist in spec 3",
    ],
  ] as const)("refuses %s", ([, value, message]) => {
    expect(errorsOf(value)).toContain(message);
  });

  test("an accepted config of any spec 3 version comes out as 3.5 with the same content", () => {
    for (const version of ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"]) {
      const parsed = parseIgnition(unit({ contents: "[Unit]\nA=b\n", enabled: false }, version));
      expect(parsed).toMatchObject({
        verdict: "valid",
        version,
        config: {
          ignition: { version: "3.5.0" },
          systemd: { units: [{ name: "a.service", contents: "[Unit]\nA=b\n", enabled: false }] },
        },
      });
    }
  });

  test("fields of later versions and misspelled ones have no effect and are named", () => {
    const parsed = parseIgnition(v3({ kernelArguments: { shouldExist: ["a"] }, storage: { file: [] } }, "3.2.0"));
    expect(parsed.verdict === "valid" ? parsed.config : undefined).toEqual({ ignition: { version: "3.5.0" } });
    expect(parsed.verdict === "valid" ? parsed.warnings.map(({ path }) => path) : []).toEqual([
      "kernelArguments",
      "storage.file",
    ]);
  });

  test("names in other letters count as the field, as they do for the reference", () => {
    const parsed = parseIgnition({ Ignition: { Version: "3.5.0" }, STORAGE: { Files: [{ Path: "/a" }] } });
    expect(parsed.verdict === "valid" ? parsed.config.storage?.files : undefined).toEqual([{ path: "/a" }]);
  });

  test("spec 2: the last of duplicates wins, lists come out reversed, drop-ins and keys are gathered", () => {
    const f = (path: string, text: string) => ({
      filesystem: "root",
      path,
      mode: 420,
      contents: { source: `data:,${text}` },
    });
    const parsed = parseIgnition({
      ignition: { version: "2.2.0" },
      storage: { files: [f("/a", "1"), f("/b", "2"), f("/a", "3")] },
      systemd: {
        units: [
          { name: "u.service", dropins: [{ name: "x.conf" }, { name: "y.conf" }] },
          { name: "u.service", enable: true, dropins: [{ name: "y.conf", contents: "[Unit]\n" }] },
        ],
      },
      passwd: {
        users: [
          { name: "core", sshAuthorizedKeys: ["a", "b"] },
          { name: "core", sshAuthorizedKeys: ["c", "a"] },
        ],
      },
    });
    expect(parsed.verdict === "valid" ? parsed.config : parsed).toEqual({
      ignition: { version: "3.5.0" },
      storage: {
        files: [
          { path: "/a", mode: 420, overwrite: true, contents: { source: "data:,3" } },
          { path: "/b", mode: 420, overwrite: true, contents: { source: "data:,2" } },
        ],
      },
      systemd: {
        units: [
          { name: "u.service", enabled: true, dropins: [{ name: "y.conf", contents: "[Unit]\n" }, { name: "x.conf" }] },
        ],
      },
      passwd: { users: [{ name: "core", sshAuthorizedKeys: ["c", "a", "b"] }] },
    });
  });

  test("a config that only later rules refuse can still be read", () => {
    expect(readIgnition(file({ mode: 0o4755 })).verdict).toBe("valid");
    expect(parseIgnition(file({ mode: 0o4755 })).verdict).toBe("invalid");
  });
});

/** Values that look like configs often enough to get past the first check. */
const fieldName = fc.constantFrom(
  "ignition",
  "version",
  "storage",
  "files",
  "path",
  "contents",
  "source",
  "systemd",
  "units",
  "name",
  "mode",
  "passwd",
  "users",
  "__proto__",
  "constructor",
  "toString",
  "",
);
const leaf = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom("/etc/a", "data:,a", "data:;base64,AAAA", "a.service", "\0", "\ud800", "/a/../b", "3.5.0", "2.2.0"),
);
const tree = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 6 },
    leaf,
    fc.array(tie("node"), { maxLength: 4 }),
    fc.dictionary(fieldName, tie("node"), { maxKeys: 5 }),
  ),
})).node;

describe("hostile input", () => {
  test("whatever comes in, an answer comes out", () => {
    fc.assert(
      fc.property(tree, fc.constantFrom("2.0.0", "2.1.0", "2.2.0", "3.0.0", "3.2.0", "3.5.0"), (value, version) => {
        const parsed = parseIgnition(
          typeof value === "object" && value !== null && !Array.isArray(value)
            ? { ...value, ignition: { version } }
            : value,
        );
        expect(["valid", "invalid"]).toContain(parsed.verdict);
      }),
      { numRuns: 500 },
    );
  });

  test("deep nesting is not walked", () => {
    let deep: unknown = {};
    for (let i = 0; i < 200_000; i++) deep = { a: deep };
    expect(parseIgnition(v3({ storage: { files: deep }, unknown: deep })).verdict).toBe("invalid");
    expect(parseIgnition(v3({ unknown: deep })).verdict).toBe("valid");
  });

  test("problems of a config with very many are counted off, the errors first", () => {
    const files = Array.from({ length: 50_000 }, (_, i) => ({ path: `x${i}`, nonsense: 1 }));
    const parsed = parseIgnition(v3({ storage: { files } }));
    expect(parsed.verdict).toBe("invalid");
    if (parsed.verdict === "invalid") {
      expect(parsed.problems.length).toBeLessThanOrEqual(Findings.limit);
      expect(parsed.problems[0]?.severity).toBe("error");
    }
  });

  test("a unit of a megabyte without any line break is judged at once", () => {
    expect(errorsOf(unit({ contents: "x".repeat(1 << 20) }))).toEqual([
      "systemd.units[0].contents: a line is longer than 2048 bytes",
    ]);
    expect(errorsOf(unit({ contents: "x\n".repeat(1 << 19) }))).toEqual([]);
  });

  test("fields named like members of objects are only unknown fields", () => {
    const parsed = parseIgnition(
      JSON.parse('{"ignition":{"version":"3.5.0"},"__proto__":{"storage":{"files":"x"}},"constructor":1}'),
    );
    expect(parsed).toMatchObject({ verdict: "valid", config: { ignition: { version: "3.5.0" } } });
  });
});

describe("the canonical form", () => {
  const configs = fc.record({
    ignition: fc.constant({ version: "3.5.0" }),
    storage: fc.option(
      fc.record({
        files: fc.option(
          fc.uniqueArray(
            fc.record(
              {
                path: fc.stringMatching(/^\/[a-z]{1,4}$/),
                mode: fc.integer({ min: 0, max: 0o777 }),
                overwrite: fc.constant(false),
                contents: fc.record(
                  { source: fc.constantFrom("data:,", "data:,a"), compression: fc.constantFrom("", "gzip") },
                  { requiredKeys: [] },
                ),
                append: fc.array(fc.constant({ source: "data:,x" }), { maxLength: 2 }),
              },
              { requiredKeys: ["path"] },
            ),
            { selector: ({ path }) => path, maxLength: 4 },
          ),
          { nil: undefined },
        ),
      }),
      { nil: undefined },
    ),
  });

  test("reading what was written gives the same, and writing it again too", () => {
    fc.assert(
      fc.property(configs, (value) => {
        const parsed = parseIgnition(JSON.parse(JSON.stringify(value)));
        if (parsed.verdict === "invalid") throw new Error(JSON.stringify(parsed.problems));
        const written = canonical(parsed.config);
        const again = parseIgnition(JSON.parse(JSON.stringify(written)));
        expect(again.verdict === "valid" ? again.config : again).toEqual(written);
        expect(canonical(written)).toEqual(written);
      }),
    );
  });
});

test("a config that is judged again is judged the same", () => {
  const config = {
    ignition: { version: "3.5.0" },
    storage: {
      files: [
        { path: "/a", contents: { source: "data:;base64,%" } },
        { path: "/b", contents: { source: "data:,b" } },
      ],
    },
  };
  const [first, again] = [judgeIgnition(config), judgeIgnition(config)];
  expect(first).toMatchObject([{ path: "storage.files[0].contents.source" }]);
  expect(again).toEqual(first);
});

test("a unit's name costs time in proportion to its length [ignition-parse-ignition-1]", () => {
  // Judged by whoever reads a MachineConfig: the API server's webhook, the controller, the config server, a daemon.
  const units = [
    { name: `a${"@".repeat(60_000)}.timer`, enabled: true },
    { name: `a${"@".repeat(60_000)}.service\n.service`, enabled: true },
  ];
  const began = process.cpuUsage();
  expect(parseIgnition({ ignition: { version: "3.5.0" }, systemd: { units } }).verdict).toBe("invalid");
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
});

test.for([
  ["a@b.service", true],
  ["a@b@c.service", true],
  ["a@.service", false],
  ["@b.service", false],
  ["@@b.service", false],
  ["a@b.timer", false],
  ["a@b\n.service", false],
] as const)("%j is an instance of a@.service, whose text says nothing of enabling: %j", ([name, isInstance]) => {
  const units = [
    { name: "a@.service", contents: "[Unit]\nA=b" },
    { name, enabled: true },
  ];
  const parsed = parseIgnition({ ignition: { version: "3.5.0" }, systemd: { units } });
  const warned = parsed.verdict === "valid" && parsed.warnings.some(({ reason }) => reason.includes("enabling"));
  expect(warned).toBe(isInstance);
});

describe("a name that no file can have is refused", () => {
  const long = "a".repeat(248);
  const name = `${long}.service`;
  const units = (given: object, section = "systemd", version = "3.5.0") => ({
    ignition: { version },
    [section]: { units: [given] },
  });
  test.for([
    { title: "a unit's", value: units({ name }), path: "systemd.units[0].name", bytes: 256 },
    {
      title: "a unit's, in bytes",
      value: units({ name: `${"ä".repeat(124)}.service` }),
      path: "systemd.units[0].name",
      bytes: 256,
    },
    {
      title: "a drop-in's",
      value: units({ name: "a.service", dropins: [{ name: `${long}aaa.conf` }] }),
      path: "systemd.units[0].dropins[0].name",
      bytes: 256,
    },
    {
      title: "a unit's of spec 2",
      value: units({ name }, "systemd", "2.2.0"),
      path: "systemd.units[0].name",
      bytes: 256,
    },
    {
      title: "a network unit's of spec 2",
      value: units({ name: `${long}.network` }, "networkd", "2.2.0"),
      path: "networkd.units[0].name",
      bytes: 256,
    },
  ])("$title [ignition-parse-ignition-2]", ({ value, path, bytes }) => {
    const reason = `has ${bytes} bytes, and the name of a file has at most 255`;
    for (const parsed of [parseIgnition(value), readIgnition(value)])
      expect(parsed).toMatchObject({ verdict: "invalid", problems: [{ path, reason }] });
  });

  test("and the longest that can is not [ignition-parse-ignition-3]", () => {
    const longest = `${"a".repeat(247)}.service`;
    expect(errorsOf(units({ name: longest, dropins: [{ name: `${"a".repeat(250)}.conf` }] }))).toEqual([]);
  });
});
