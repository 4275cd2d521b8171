import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { commands } from "./commands.ts";
import { flagsOf } from "./global-flags.ts";
import { manPages } from "./man-pages.ts";

const pages = manPages();
const reader = (["groff", "mandoc"] as const).find(
  (name) => spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined,
);

describe("pages for man(1)", () => {
  test("there is one for the program and for each command, with its flags and exit codes [cli-man-1]", () => {
    expect([...pages.keys()]).toEqual(["mco.1", ...Object.keys(commands).map((name) => `mco-${name}.1`)]);
    for (const [name, command] of Object.entries(commands)) {
      const text = (pages.get(`mco-${name}.1`) ?? "").replaceAll(String.raw`\-`, "-");
      for (const { flag } of flagsOf(command)) expect(text).toContain(String.raw`\fB${flag}\fR`);
      for (const { code } of command.exitCodes ?? []) expect(text).toContain(String.raw`\fB${code}\fR`);
      expect(text).toContain(`${command.summary.replaceAll("-", "-")}.`);
      expect(pages.get("mco.1")).toContain(String.raw`mco\-${name.replaceAll("-", String.raw`\-`)}\fR(1)`);
    }
  });

  test("no text is taken for a request or an escape [cli-man-2]", () => {
    const requests = /^\.(?:TH|SH|TP|PP|br)(?: |$)/;
    const escapes = /\\(?:[-e&]|f[BIR]|\[u[0-9A-F]{4,6}\])/g;
    for (const [name, text] of pages)
      for (const line of text.split("\n")) {
        if (line.startsWith(".")) expect([name, line]).toEqual([name, expect.stringMatching(requests) as string]);
        expect([name, line.replaceAll(escapes, "")]).toEqual([name, expect.stringMatching(/^[ -[\]-~]*$/) as string]);
        expect(line.startsWith("'")).toBe(false);
      }
  });

  test.skipIf(reader === undefined)("mandoc or groff reads them without a warning [cli-man-3]", () => {
    const folder = mkdtempSync(join(tmpdir(), "mco-man-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const words = reader === "mandoc" ? ["-T", "lint", "-W", "warning"] : ["-man", "-Tutf8", "-ww", "-z"];
    for (const [name, text] of pages) {
      writeFileSync(join(folder, name), text);
      const { stdout, stderr } = spawnSync(reader ?? "", [...words, join(folder, name)], { encoding: "utf8" });
      const said = `${stdout}${stderr}`.split("\n").filter((line) => line !== "" && !line.includes("missing date"));
      expect([name, said]).toEqual([name, []]);
    }
  });
});
