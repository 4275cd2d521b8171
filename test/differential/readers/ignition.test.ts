import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWhole } from "../../../src/ignition/parse-ignition.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { mutated, withFields } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(600, 4000);

const config = (minor: number) => ({
  ignition: {
    version: `3.${minor}.0`,
    config: { merge: [{ source: "https://a/b", verification: { hash: `sha512-${"a".repeat(128)}` } }] },
    timeouts: { httpTotal: 30 },
    ...(minor >= 1 ? { proxy: { httpProxy: "http://p:1", noProxy: ["a"] } } : {}),
  },
  passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA a"], groups: ["wheel"] }] },
  storage: {
    files: [
      { path: "/etc/a", mode: 420, contents: { source: "data:,a", compression: "" }, user: { name: "root" } },
      { path: "/etc/b", overwrite: true, contents: { source: "data:;base64,YQ==" }, append: [{ source: "s3://b/k" }] },
    ],
    directories: [{ path: "/var/d", mode: 493 }],
    links: [{ path: "/etc/l", target: "/etc/a", hard: false }],
    disks: [
      { device: "/dev/sda", wipeTable: true, partitions: [{ number: 1, sizeMiB: 100, startMiB: 1, label: "x" }] },
    ],
    filesystems: [{ device: "/dev/sdb", format: "ext4", path: "/var/x", label: "l", options: ["a"] }],
    raid: [{ name: "md", level: "raid1", devices: ["/dev/c", "/dev/d"], spares: 0 }],
    ...(minor >= 2 ? { luks: [{ name: "v", device: "/dev/e", clevis: { tpm2: true } }] } : {}),
  },
  systemd: {
    units: [{ name: "a.service", enabled: true, contents: "[Service]\nX=1\n", dropins: [{ name: "b.conf" }] }],
  },
  ...(minor >= 3 ? { kernelArguments: { shouldExist: ["a"] } } : {}),
});
const whole = fc.nat(5).map((minor) => JSON.stringify(config(minor)));
const fields = [
  '"path":"/etc/a"',
  '"path":"etc/x"',
  '"path":"/etc/a/../b"',
  '"Path":"/etc/z"',
  '"path":null',
  '"mode":4096',
  '"mode":-1',
  '"mode":1.5',
  '"mode":1e2',
  '"MODE":420',
  '"mode":"420"',
  '"source":"data:,%zz"',
  '"source":"ftp://a"',
  '"source":"https://[::::]/"',
  '"source":""',
  '"version":"3.5.0"',
  '"version":"3.0.0"',
  '"Version":"3.1.0"',
  '"version":"3.6.0"',
  '"version":" 3.1.0"',
  '"ignition":{"version":"3.2.0"}',
  '"ſtorage":{}',
  '"linK":1',
  '"unknown":{"a":[1]}',
  '"files":[]',
  '"files":null',
  '"name":""',
  '"name":"x.service"',
  '"name":"a.conf"',
  '"contents":"[X"',
  '"contents":null',
  '"user":{"id":1,"name":"a"}',
  '"overwrite":true',
  '"compression":"gzip"',
  '"compression":"bz2"',
  '"hash":"md5-x"',
  '"hash":"sha256-abc"',
  '"label":"a:b"',
  '"label":"a very long label for any file system"',
  '"guid":"x"',
  '"number":0',
  '"number":1',
  '"sizeMiB":-1',
  '"sizeMiB":0',
  '"startMiB":0',
  '"level":"raid9"',
  '"spares":1',
  '"format":"zfs"',
  '"device":"sda"',
  '"hard":true',
  '"target":""',
  '"httpHeaders":[{"name":"","value":"a"}]',
  '"httpHeaders":[{"name":"a","value":"b"}]',
  '"shouldExist":false',
  '"cex":{"enabled":true}',
  '"discard":true',
  '"gid":1',
  '"httpProxy":"ftp://a"',
  '"mask":true',
  '"timeouts":{"httpTotal":1e400}',
];
const puts = [
  '"',
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "null",
  "true",
  "0",
  "-",
  "1e3",
  "/",
  "//",
  "/..",
  "%",
  "\\u0000",
  "\\ud800",
  "\\u2028",
  "é",
  "\u0000",
  "\ufeff",
  " ",
  ".",
  "A",
  "ſ",
  "\u212a",
];
const texts = fc.oneof(withFields(whole, fields), mutated(whole, puts), mutated(withFields(whole, fields), puts));

/** Unset, empty and zero are one where the two write values down in different ways. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => plain(item) ?? {});
  if (typeof value === "string") return value === "" ? undefined : value.toWellFormed();
  if (value === 0 || value === false || value === null) return undefined;
  if (typeof value !== "object") return value;
  const entries = Object.entries(value as object).flatMap(([name, one]) => {
    const kept = plain(one);
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
const withoutVersion = (value: unknown) => {
  const { ignition, ...rest } = value as { readonly ignition?: object };
  return plain({ ...rest, ignition: { ...ignition, version: "" } });
};

/**
 * Machines get what was read, written again: fields named twice and the spelling of numbers are lost before that. What we
 * accept is what a machine's Ignition accepts, since a machine with a configuration that it refuses never boots.
 */
describe.skipIf(program === undefined)("configurations, as Ignition reads them", () => {
  let go: GoReaders;

  beforeAll(() => {
    go = startGoReaders(program ?? "");
  });
  afterAll(() => go.close());

  test(
    "a configuration that is read is one that Ignition reads, with the same contents [readers-ignition-1]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(texts, async (text) => {
          let value: unknown;
          try {
            value = JSON.parse(text);
          } catch {
            return;
          }
          const mine = readWhole(value);
          const { json, error } = await go.ask("ignition", JSON.stringify(value));
          if (mine.verdict === "invalid") return;
          expect(error).toBeUndefined();
          both += 1;
          expect(withoutVersion(mine.config)).toEqual(withoutVersion(json));
        }),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 20);
    },
  );
});
