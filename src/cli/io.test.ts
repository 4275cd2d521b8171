import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { stringify, parse } from "yaml";
import { annotations } from "../api/names.ts";
import { clusterStatus } from "../core/preview/cluster-status.ts";
import { printable } from "../core/text/printable.ts";
import { drawStatus } from "./draw-status.ts";
import { processIo, processScreen } from "./io.ts";
import { takeGlobalFlags } from "./global-flags.ts";

/** Characters that a terminal obeys, or that change how a text is read, between ordinary ones. */
const hostile = fc.string({
  maxLength: 60,
  unit: fc.constantFrom(
    ...Array.from("ab 3[]m;\\u{}"),
    ...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code)),
    ...Array.from({ length: 0x21 }, (_, code) => String.fromCharCode(0x7f + code)),
    ...Array.from(
      "\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff",
    ),
    ...Array.from("\u00ad\u034f\u115f\u1160\u17b4\u180e\u2064\u206a\u206f\u3164\ufe0f\uffa0\ufff9\ufffb"),
    ...Array.from("\u{1d173}\u{e0001}\u{e0041}\u{e007f}\u{e0100}"),
    "\u001b[2J",
    "\u001b]0;title\u0007",
    "\u009b31m",
  ),
});
/** Written by their numbers, so that this list and the one of the program share no names of properties. */
const isRaw = (code: number) => rawRanges.some(([first, last = first]) => code >= first && code <= last);
const rawRanges: readonly (readonly [first: number, last?: number])[] = [
  [0, 8],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad],
  [0x34f],
  [0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164],
  [0xfe00, 0xfe0f],
  [0xfeff],
  [0xffa0],
  [0xfff9, 0xfffb],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff],
];
const rawIn = (text: string) => Array.from(text).filter((character) => isRaw(character.codePointAt(0) ?? 0));
// oxlint-disable-next-line no-control-regex -- our own colours and cursor movements
const ours = /\u001b\[(?:\d+m|\d+A|2K|J)/g;

afterEach(() => {
  vi.restoreAllMocks();
});

/** What `work` prints on a terminal with colours. */
function printed(work: () => void): string {
  let text = "";
  const sink = (part: unknown) => ((text += String(part)), true);
  vi.spyOn(process.stdout, "write").mockImplementation(sink);
  vi.spyOn(process.stderr, "write").mockImplementation(sink);
  const before = process.stdout.isTTY;
  const { NO_COLOR } = process.env;
  delete process.env["NO_COLOR"];
  process.stdout.isTTY = true;
  try {
    work();
  } finally {
    process.stdout.isTTY = before;
    if (NO_COLOR !== undefined) process.env["NO_COLOR"] = NO_COLOR;
    vi.restoreAllMocks();
  }
  return text;
}

test("no control character or formatting character of an object's text leaves the program, and our colours do [cli-io-1]", () => {
  fc.assert(
    fc.property(hostile, hostile, (name, message) => {
      const text = printed(() => {
        const io = processIo();
        const { colours } = io;
        const paint = typeof colours === "function" ? colours : () => "no colours";
        io.out(`${paint(name, 31)} ${message}\n`);
        io.err(`${message} ${name}\n`);
      });
      expect(text).toContain(`\u001b[31m${printable(name)}\u001b[0m`);
      // Of escapes there are the two of our own colour.
      expect(text.split("\u001b")).toHaveLength(3);
      expect(rawIn(text.replaceAll(ours, ""))).toEqual([]);
    }),
  );
});

test("a screen that is redrawn shows whatever name, reason and message an object has, each in its line [cli-io-2]", () => {
  fc.assert(
    fc.property(hostile, hostile, (name, message) => {
      const condition = (type: string, status: string) => ({
        type,
        status,
        reason: message,
        message,
        lastTransitionTime: "",
      });
      const status = clusterStatus({
        now: 0,
        pools: [
          {
            metadata: { name },
            spec: { configuration: { name: message } },
            status: { conditions: [condition("Degraded", "True")], machineCount: 3 },
          },
        ] as never,
        nodes: [{ metadata: { name, labels: {} }, status: { conditions: [condition("Ready", "False")] } }] as never,
        machineConfigNodes: [],
        clusterOperators: [
          { metadata: { name: "machine-config" }, status: { conditions: [condition("Degraded", "True")] } },
        ] as never,
        machineConfigurations: [
          { metadata: { name: "cluster" }, status: { conditions: [condition("OperatorHealthy", "False")] } },
        ] as never,
      });
      let lines = 0;
      const text = printed(() => {
        const screen = processScreen();
        const drawn = drawStatus(status, screen);
        lines = drawn.length;
        screen.draw(drawn);
      });
      expect(rawIn(text.replaceAll(ours, ""))).toEqual([]);
      expect(text.split("\n")).toHaveLength(lines + 1);
    }),
  );
});

test("a line of a screen takes one row, whatever a machine says of itself: its redrawing leaves none behind [cli-io-6]", () => {
  const wide = "\u{1f600}\u4e2d".repeat(100);
  for (const text of [wide, "x".repeat(10_000), "\u0001".repeat(300)]) {
    const node = {
      metadata: { name: "worker-0", labels: {}, annotations: { [annotations.currentConfig]: text } },
      status: { conditions: [] },
    };
    const status = clusterStatus({
      now: 0,
      pools: [],
      nodes: [node] as never,
      machineConfigNodes: [],
      clusterOperators: [],
      machineConfigurations: [],
    });
    expect(status.nodes[0]?.current.length).toBe(Math.min(text.length, 253));
    const output = printed(() => {
      const screen = processScreen();
      screen.draw([...drawStatus(status, screen), `${text} and more`]);
    });
    for (const row of output.replaceAll(ours, "").split("\n")) {
      const columns = Array.from(row, (character) => (/[\u{1100}-\u{10ffff}]/u.test(character) ? 2 : 1));
      expect(columns.reduce((sum: number, each) => sum + each, 0)).toBeLessThanOrEqual(process.stdout.columns ?? 120);
    }
    if (output.includes("\u001b[31m")) expect(output).toContain("\u001b[0m");
  }
});

test("JSON and quoted YAML keep their value on the way out [cli-io-3]", () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const value = { [text]: [text] };
      const json = printed(() => processIo().out(JSON.stringify(value)));
      expect(JSON.parse(json)).toEqual(value);
      const yaml = printed(() =>
        processIo().out(
          stringify(value, { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE", lineWidth: 0 }),
        ),
      );
      expect(parse(yaml)).toEqual(value);
    }),
  );
});

test("colours that did not come from here are text [cli-io-4]", () => {
  expect(printed(() => processIo().out("\u001b[31mred\u001b[0m\r\n"))).toBe("\\u001b[31mred\\u001b[0m\\u000d\n");
});

test("colours follow --color, and by default the terminal, NO_COLOR and TERM [cli-io-5]", () => {
  const [status, before] = [{ kind: "people" } as const, process.stdout.isTTY];
  const has = (
    args: readonly string[],
    { isTTY = true, ...environment }: Readonly<Record<string, string | boolean>> = {},
  ) => {
    vi.unstubAllEnvs();
    for (const [name, value] of Object.entries({ NO_COLOR: "", TERM: "xterm", ...environment }))
      vi.stubEnv(name, String(value));
    process.stdout.isTTY = isTTY === true;
    takeGlobalFlags(args, status);
    return processIo().colours !== false;
  };
  try {
    expect([has([]), has([], { isTTY: false }), has([], { NO_COLOR: "1" }), has([], { TERM: "dumb" })]).toEqual([
      true,
      false,
      false,
      false,
    ]);
    const always = ["--color", "always"];
    expect([has(always, { isTTY: false }), has(always, { NO_COLOR: "1" }), has(["--color=never"])]).toEqual([
      true,
      true,
      false,
    ]);
  } finally {
    vi.unstubAllEnvs();
    process.stdout.isTTY = before;
    takeGlobalFlags([], status);
  }
});
