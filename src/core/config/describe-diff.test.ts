import { describe, expect, test } from "vitest";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { describeDiff } from "./describe-diff.ts";
import { diffConfigs } from "./diff-configs.ts";

type Config = NonNullable<Parameters<typeof diffConfigs>[0]>;
const config = (ignition: object, spec: object = {}): Config => ({
  metadata: { name: "rendered" },
  spec: { ...spec, config: { ignition: { version: "3.5.0" }, ...ignition } },
});
const file = (text: string, mode = 0o644, path = "/etc/a") =>
  config({ storage: { files: [{ path, mode, contents: { source: encodeDataUrl(text) } }] } });
const printed = (from: Config, to: Config) =>
  describeDiff(diffConfigs(from, to)).flatMap(({ title, lines }) => [title, ...lines]);

describe("describeDiff", () => {
  test("contents are compared line by line", () => {
    expect(printed(file("a\nb\n"), file("a\nc\n", 0o755))).toEqual([
      "~ /etc/a",
      "mode 0644 → 0755",
      "--- a/etc/a",
      "+++ b/etc/a",
      "@@ -1,2 +1,2 @@",
      " a",
      "-b",
      "+c",
    ]);
  });

  test("a missing final line break is shown as in diff(1)", () => {
    expect(printed(file("a\n"), file("a"))).toEqual([
      "~ /etc/a",
      "--- a/etc/a",
      "+++ b/etc/a",
      "@@ -1 +1 @@",
      "-a",
      "+a",
      "\\ No newline at end of file",
    ]);
  });

  test("for a secret file only the fact of a change is shown, also when it stops being secret", () => {
    for (const [from, to] of [
      [file("hunter2", 0o600), file("hunter3", 0o644)],
      [file("hunter2", 0o644, "/var/lib/kubelet/config.json"), file("hunter3", 0o644, "/var/lib/kubelet/config.json")],
    ] as const) {
      expect(printed(from, to).at(-1)).toBe("contents change (masked)");
      expect(JSON.stringify(describeDiff(diffConfigs(from, to)))).not.toContain("hunter");
    }
  });

  test("a changed secret within a file that anybody may read shows as a change without the secret", () => {
    const lines = printed(file("proxy\nhttp://u:hunter2@p\n"), file("proxy\nhttp://u:hunter3@p\n"));
    expect(lines.slice(-2)).toEqual(["-http://u:(masked)@p", "+http://u:(masked)@p"]);
    expect(
      JSON.stringify(describeDiff(diffConfigs(file("password: hunter2\n"), file("password: hunter3\n")))),
    ).not.toContain("hunter");
  });

  test("accounts, units, kernel arguments and storage have their lines, without hashes", () => {
    const from = config(
      {
        passwd: {
          users: [
            {
              name: "core",
              passwordHash: "$6$a$bbbbbbbbbb",
              sshAuthorizedKeys: ["ssh-ed25519 AAAAAAAAAAAAAAAAAAAAAAAA11111111 old"],
            },
          ],
        },
      },
      { kernelArguments: ["a", "b"] },
    );
    const to = config(
      {
        passwd: {
          users: [
            {
              name: "core",
              passwordHash: "$6$a$cccccccccc",
              sshAuthorizedKeys: ["ssh-ed25519 AAAAAAAAAAAAAAAAAAAAAAAA22222222 new"],
            },
          ],
        },
        systemd: {
          units: [
            {
              name: "a.service",
              enabled: true,
              dropins: [{ name: "x.conf", contents: "[Service]\nEnvironment=TOKEN=hunter2\n" }],
            },
          ],
        },
        storage: { links: [{ path: "/l", target: "/a" }] },
      },
      { kernelArguments: ["a", "c"] },
    );
    expect(printed(from, to)).toEqual([
      "+ unit a.service (enablement, x.conf)",
      "enablement as it is → enabled",
      "--- /dev/null",
      "+++ b/etc/systemd/system/a.service.d/x.conf",
      "@@ -0,0 +1,2 @@",
      "+[Service]",
      "+Environment=TOKEN=(masked)",
      "~ SSH keys of core",
      "-ssh-ed25519 …11111111 old",
      "+ssh-ed25519 …22222222 new",
      "~ password of core",
      "the hash changes (masked)",
      "~ kernel arguments",
      "-b",
      "+c",
      "+ links: /l",
      "running machines do not follow this; machines that join start with it",
    ]);
  });

  test("what would move a terminal's cursor is spelled out", () => {
    expect(printed(file("a\n"), file("\u001b[2Ja\n")).at(-1)).toBe("+\\u001b[2Ja");
  });

  const bounded = [
    { title: "line breaks alone", from: "\n".repeat(300_000), to: `${"\n".repeat(300_000)}x` },
    { title: "short lines in another order", from: "a\nb\n".repeat(150_000), to: "b\na\n".repeat(150_000) },
  ];
  test.for(bounded)(
    "$title of a hostile file are not compared, at any length [config-describe-diff-1]",
    ({ from, to }) => {
      expect(printed(file(from), file(to))).toEqual([
        "~ /etc/a",
        "-300001 lines (too large to compare)",
        expect.stringMatching(/^\+30000\d lines \(too large to compare\)$/),
      ]);
    },
  );

  test("kernel arguments without end are counted [config-describe-diff-2]", () => {
    const words = (word: string) => config({}, { kernelArguments: [`${word} `.repeat(200_000)] });
    expect(printed(words("a"), words("b"))).toEqual([
      "~ kernel arguments",
      "-200000 entries before, too large to compare",
      "+200000 entries after, too large to compare",
    ]);
  });

  test("many files with many edits share one budget, and every change is listed [config-describe-diff-3]", () => {
    const files = (word: string) =>
      config({
        storage: {
          files: Array.from({ length: 100 }, (_, n) => ({
            path: `/etc/${String(n).padStart(3, "0")}`,
            mode: 0o644,
            contents: { source: `data:,${encodeURIComponent(`${word}\nx\n${word}y\n`.repeat(400))}` },
          })),
        },
      });
    const described = describeDiff(diffConfigs(files("a"), files("b")));
    expect(described).toHaveLength(100);
    const isCompared = described.map(({ lines }) => !lines.some((line) => line.endsWith("(too large to compare)")));
    // 100,000 lines together: 41 files with 2 × 1,201 lines.
    expect(isCompared).toEqual([...Array.from({ length: 41 }, () => true), ...Array.from({ length: 59 }, () => false)]);
  });
});
