import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DirectoryMachine } from "../../../src/host/directory/directory-host.ts";
import { type Workshop, canRun, ignitions, openWorkshop, withoutDisabling } from "../../support/ignition-pair.ts";

const never = new AbortController().signal;
const text = (contents: string) => ({ source: `data:,${encodeURIComponent(contents)}` });
const gzipped = (contents: string) => ({
  source: `data:;base64,${gzipSync(contents).toString("base64")}`,
  compression: "gzip",
});
const sum = (kind: "sha256" | "sha512", contents: string) => ({
  hash: `${kind}-${createHash(kind).update(contents).digest("hex")}`,
});
const file = (path: string, contents: string, more: object = {}) => ({ path, contents: text(contents), ...more });
const put =
  (path: string, contents: string, mode = 0o640) =>
  (machine: DirectoryMachine) =>
    machine
      .newRoot()
      .files.write(
        [{ path, entry: { kind: "file", contents: new TextEncoder().encode(contents), mode, uid: 7, gid: 8 } }],
        never,
      );
const service = "[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n";

interface Case {
  readonly title: string;
  readonly config: object;
  /** Not before this version of the format. */
  readonly since?: string;
  readonly before?: (machine: DirectoryMachine) => Promise<void>;
  readonly is?: "refused";
  /** Ignition asks the running systemd for its version. */
  readonly asksSystemd?: true;
}

const hasSystemd = existsSync("/run/systemd/system");

const cases: readonly Case[] = [
  { title: "nothing", config: {} },
  {
    title: "files with contents, modes and owners",
    config: {
      storage: {
        files: [
          file("/etc/a", "a\n"),
          file("/etc/b/c/d", "ü", { mode: 0o600, user: { id: 1000 }, group: { id: 10 } }),
          file("/var/x", "", { mode: 0o755 }),
          { path: "/etc/empty" },
        ],
      },
    },
  },
  {
    title: "owners by name",
    config: {
      storage: {
        files: [file("/etc/a", "a", { user: { name: "core" }, group: { name: "wheel" } })],
        directories: [{ path: "/etc/d", user: { name: "core" } }],
      },
    },
  },
  {
    title: "an unknown owner",
    config: { storage: { files: [file("/etc/a", "a", { user: { name: "nobody-here" } })] } },
    is: "refused",
  },
  {
    title: "compressed contents and their hashes",
    config: {
      storage: {
        files: [
          {
            path: "/etc/z",
            contents: { ...gzipped("zipped\n".repeat(99)), verification: sum("sha512", "zipped\n".repeat(99)) },
          },
          { path: "/etc/s", contents: { ...text("plain"), verification: sum("sha512", "plain") } },
        ],
      },
    },
  },
  {
    title: "a hash by the smaller sum",
    since: "3.3.0",
    config: {
      storage: { files: [{ path: "/etc/s", contents: { ...text("plain"), verification: sum("sha256", "plain") } }] },
    },
  },
  {
    title: "the hash of other contents",
    config: {
      storage: { files: [{ path: "/etc/s", contents: { ...text("plain"), verification: sum("sha512", "other") } }] },
    },
    is: "refused",
  },
  {
    title: "contents that are not compressed as declared",
    config: { storage: { files: [{ path: "/etc/s", contents: { ...text("plain"), compression: "gzip" } }] } },
    is: "refused",
  },
  {
    title: "contents appended to existing and to missing files",
    config: {
      storage: {
        files: [
          { path: "/etc/hosts", append: [text("one\n"), gzipped("two\n")], mode: 0o600 },
          { path: "/etc/new", append: [text("only")] },
          { path: "/etc/both", contents: text("first "), append: [text("second")] },
        ],
      },
    },
  },
  {
    title: "only a new mode for an existing file",
    config: { storage: { files: [{ path: "/etc/hosts", mode: 0o600, user: { id: 5 } }] } },
  },
  {
    title: "an existing file keeps its owner and mode",
    before: put("/etc/mine", "was"),
    config: { storage: { files: [{ path: "/etc/mine", append: [text("!")] }] } },
  },
  {
    title: "a file over another, with overwrite",
    before: put("/etc/mine", "was"),
    config: { storage: { files: [file("/etc/mine", "is", { overwrite: true })] } },
  },
  {
    title: "a file over another, without overwrite",
    before: put("/etc/mine", "was"),
    config: { storage: { files: [file("/etc/mine", "is")] } },
    is: "refused",
  },
  {
    title: "a file over a folder",
    before: put("/etc/mine/deep", "was"),
    config: { storage: { files: [file("/etc/mine", "is", { overwrite: true })] } },
  },
  {
    title: "a file over a link, which keeps its destination",
    config: {
      storage: {
        links: [{ path: "/etc/l", target: "hosts" }],
        files: [file("/etc/localtime", "x", { overwrite: true })],
      },
    },
  },
  {
    title: "folders",
    before: put("/etc/there/in", "it"),
    config: {
      storage: {
        directories: [
          { path: "/etc/n/e/w", mode: 0o700, user: { id: 1 } },
          { path: "/etc/there", mode: 0o711 },
          { path: "/var/lib/x" },
        ],
      },
    },
  },
  {
    title: "a folder that replaces another, with overwrite",
    before: put("/etc/there/in", "it"),
    config: { storage: { directories: [{ path: "/etc/there", overwrite: true }] } },
  },
  {
    title: "a folder in place of a file",
    config: { storage: { directories: [{ path: "/etc/hosts" }] } },
    is: "refused",
  },
  {
    title: "links",
    config: {
      storage: {
        links: [
          { path: "/etc/l", target: "/etc/hosts" },
          { path: "/etc/x/y", target: "../nowhere" },
          { path: "/etc/hosts", target: "l", overwrite: true },
        ],
      },
    },
  },
  {
    title: "an existing link",
    before: (machine) =>
      machine.newRoot().files.write([{ path: "/etc/l", entry: { kind: "link", target: "hosts" } }], never),
    config: { storage: { links: [{ path: "/etc/l", target: "hosts" }] } },
  },
  {
    title: "a link with another destination",
    before: (machine) =>
      machine.newRoot().files.write([{ path: "/etc/l", entry: { kind: "link", target: "group" } }], never),
    config: { storage: { links: [{ path: "/etc/l", target: "hosts" }] } },
    is: "refused",
  },
  {
    title: "hard links, also to deeper files",
    config: {
      storage: { files: [file("/etc/a/b/c", "x")], links: [{ path: "/etc/h", target: "/etc/a/b/c", hard: true }] },
    },
  },
  {
    title: "a hard link to nothing",
    config: { storage: { links: [{ path: "/etc/h", target: "/etc/nothing", hard: true }] } },
    is: "refused",
  },
  {
    title: "paths through links of the system",
    config: {
      storage: {
        files: [
          file("/home/core/f", "x", { user: { name: "core" } }),
          file("/opt/o", "o"),
          file("/usr/local/bin/tool", "#!", { mode: 0o755 }),
        ],
      },
    },
  },
  {
    title: "two paths of one file",
    config: { storage: { files: [file("/home/core/f", "x"), file("/var/home/core/f", "y")] } },
    is: "refused",
  },
  {
    title: "units and drop-ins",
    config: {
      systemd: {
        units: [
          { name: "a.service", contents: service, enabled: true },
          { name: "b.service", contents: service, enabled: false },
          {
            name: "crio.service",
            dropins: [{ name: "10-x.conf", contents: "[Service]\nX=1\n" }, { name: "20-empty.conf" }],
          },
          { name: "c.service", contents: "" },
        ],
      },
    },
  },
  {
    title: "masked units",
    config: {
      systemd: {
        units: [
          { name: "chronyd.service", mask: true },
          { name: "a.service", contents: service, mask: true },
          { name: "b.service", contents: service, mask: false },
        ],
      },
    },
  },
  {
    title: "a mask that is removed",
    before: (machine) =>
      machine
        .newRoot()
        .files.write(
          [{ path: "/etc/systemd/system/chronyd.service", entry: { kind: "link", target: "/dev/null" } }],
          never,
        ),
    config: { systemd: { units: [{ name: "chronyd.service", mask: false }] } },
  },
  {
    title: "disabled units of the vendor",
    config: {
      systemd: {
        units: [
          { name: "sshd.service", enabled: false },
          { name: "nowhere.service", enabled: false },
          { name: "chronyd.service", enabled: true },
        ],
      },
    },
  },
  {
    title: "instances of templates",
    asksSystemd: true,
    config: {
      systemd: {
        units: [
          { name: "e@.service", contents: service },
          { name: "e@b.service", enabled: true },
          { name: "e@a.service", enabled: true },
          { name: "f@x.service", enabled: false },
        ],
      },
    },
  },
  {
    title: "keys of a user",
    config: {
      passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA one", "ssh-ed25519 AAAA two"] }] },
    },
  },
  {
    title: "the password of a user",
    config: {
      passwd: { users: [{ name: "core", passwordHash: "$y$j9T$salt$hash", gecos: "Somebody", shell: "/bin/sh" }] },
    },
  },
  {
    title: "groups",
    config: {
      passwd: {
        groups: [{ name: "extra", gid: 2000 }, { name: "more" }, { name: "sys", system: true, gid: 300 }],
        users: [{ name: "core", groups: ["extra", "wheel"] }],
      },
    },
  },
  {
    title: "a new user",
    before: put(
      "/etc/login.defs",
      "USERGROUPS_ENAB yes\nUID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nPASS_MIN_DAYS 0\nPASS_MAX_DAYS 99999\nPASS_WARN_AGE 7\nHOME_MODE 0700\n",
    ),
    config: {
      passwd: {
        users: [
          {
            name: "dev",
            uid: 1500,
            shell: "/bin/bash",
            homeDir: "/home/dev",
            sshAuthorizedKeys: ["ssh-ed25519 AAAA dev"],
            groups: ["wheel"],
          },
        ],
      },
    },
  },
  {
    title: "a configuration that another one replaces",
    config: {
      ignition: {
        config: {
          replace: text(
            JSON.stringify({ ignition: { version: "3.1.0" }, storage: { files: [file("/etc/inner", "i")] } }),
          ),
        },
      },
      storage: { files: [file("/etc/outer", "o")] },
    },
  },
  {
    title: "a configuration that others merge into",
    config: {
      ignition: {
        config: {
          merge: [
            text(
              JSON.stringify({
                ignition: { version: "3.1.0" },
                storage: { files: [file("/etc/inner", "i"), file("/etc/outer", "later", { mode: 0o600 })] },
              }),
            ),
            gzipped(
              JSON.stringify({
                ignition: { version: "3.0.0" },
                systemd: { units: [{ name: "a.service", enabled: true, contents: service }] },
              }),
            ),
          ],
        },
      },
      storage: { files: [file("/etc/outer", "o")] },
    },
  },
];

const versioned = (version: string, config: object) => ({
  ...config,
  ignition: { ...(config as { ignition?: object }).ignition, version },
});
const isBefore = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true }) < 0;

for (const { name, path, reads } of ignitions) {
  describe.skipIf(!canRun(path))(`${name} and our own applier`, () => {
    let workshop: Workshop;
    beforeAll(async () => {
      workshop = await openWorkshop();
    });
    afterAll(() => workshop.close());

    const comparable = (tree: Readonly<Record<string, string>>) =>
      isBefore(reads, "3.4.0") ? withoutDisabling(tree) : tree;

    test.for(cases.filter(({ since }) => since === undefined || !isBefore(reads, since)))(
      "$title",
      async ({ config, before, is, asksSystemd }, { skip }) => {
        skip(asksSystemd === true && !hasSystemd, "systemd does not run here");
        const whole = versioned(reads, config);
        const [real, ours] = await Promise.all([workshop.real(path, whole, before), workshop.ours(whole, before)]);
        expect([real.verdict, ours.verdict], JSON.stringify([real, ours]).slice(0, 2000)).toEqual([
          is ?? "applied",
          is ?? "applied",
        ]);
        if (real.verdict === "applied" && ours.verdict === "applied")
          expect(comparable(ours.tree)).toEqual(comparable(real.tree));
      },
    );

    test("give the same tree for every configuration that both accept", { timeout: 120_000 }, async () => {
      const word = fc.constantFrom("a", "b", "c", "d/e", "d/f", "d", "hosts");
      const place = fc
        .tuple(fc.constantFrom("/etc", "/var/lib", "/home/core", "/opt"), word)
        .map(([folder, last]) => `${folder}/${last}`);
      const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
      const owner = maybe(
        fc.oneof(fc.record({ id: fc.constantFrom(0, 7, 1000) }), fc.record({ name: fc.constantFrom("root", "core") })),
      );
      const common = { path: place, user: owner, overwrite: maybe(fc.boolean()) };
      const contents = fc.string({ maxLength: 20 }).map(text);
      const files = fc.array(
        fc.record({
          ...common,
          mode: maybe(fc.constantFrom(0o600, 0o644, 0o755)),
          contents: maybe(contents),
          append: maybe(fc.array(contents, { maxLength: 2 })),
        }),
        { maxLength: 4 },
      );
      const directories = fc.array(fc.record({ ...common, mode: maybe(fc.constantFrom(0o700, 0o755)) }), {
        maxLength: 2,
      });
      const links = fc.array(
        fc.record({ ...common, user: fc.constant(undefined), target: fc.constantFrom("a", "/etc/hosts", "../x") }),
        { maxLength: 2 },
      );
      const units = fc.uniqueArray(
        fc.record({
          name: fc.constantFrom("a.service", "sshd.service", "b.timer"),
          contents: maybe(fc.constantFrom(service, "")),
          enabled: maybe(fc.boolean()),
          mask: maybe(fc.boolean()),
        }),
        { maxLength: 3, selector: ({ name: unit }) => unit },
      );
      let applied = 0;
      await fc.assert(
        fc.asyncProperty(files, directories, links, units, async (...[some, folders, named, services]) => {
          const config = JSON.parse(
            JSON.stringify(
              versioned(reads, {
                storage: { files: some, directories: folders, links: named },
                systemd: { units: services },
              }),
            ),
          ) as object;
          const [real, ours] = await Promise.all([workshop.real(path, config), workshop.ours(config)]);
          if (real.verdict !== "applied" || ours.verdict !== "applied") return;
          applied += 1;
          expect(comparable(ours.tree)).toEqual(comparable(real.tree));
        }),
        { numRuns: 12 },
      );
      expect(applied).toBeGreaterThan(0);
    });
  });
}
