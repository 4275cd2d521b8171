import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseRegistriesConf } from "../../../src/core/images/registries-conf.ts";
import { freeToml } from "./grammar.ts";
import { mutated } from "./mutate.ts";
import { runs } from "./runs.ts";

const sample = runs(600, 6000);

/** Python's own reader, asked by lines of JSON. Its numbers and dates are no texts, as ours are none. */
const program = `
import json, sys, tomllib
def plain(one):
    # JSON has no word for some of them.
    if isinstance(one, float): return {"is": "float"}
    if isinstance(one, dict): return {key: plain(value) for key, value in one.items()}
    return [plain(item) for item in one] if isinstance(one, list) else one
for line in sys.stdin:
    try:
        text = json.loads(line)
        # Python reads a text whose line ends are normalised; a bare carriage return is its caller's to refuse.
        print(json.dumps({"table": plain(tomllib.loads(text))}, default=lambda one: {"is": "time"}), flush=True)
    except (tomllib.TOMLDecodeError, RecursionError, UnicodeError, ValueError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
`;
const hasPython = (() => {
  try {
    execFileSync("python3", ["-c", "import tomllib"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

const files = mutated(
  fc.constantFrom(
    'unqualified-search-registries = ["a.io", "b.io"]\n[[registry]]\nprefix = "a.io/b"\nlocation = "c.io/d"\nblocked = false\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "m.io"\ninsecure = true\n[[registry]]\nlocation = "x.io"\nblocked = true\n',
    '[[registry]]\nlocation=\'a\'\n  [[registry.mirror]]\n  location="""b"""\n  pull-from-mirror = \'tag-only\' # c\n',
    'registry = [{ location = "a", blocked = true, mirror = [{location = "b"}] }]\n',
    "",
  ),
  [
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "#",
    "=",
    ".",
    ",",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    '"',
    "'",
    '"""',
    "'''",
    "\\",
    "\\u00e9",
    "\\ud800",
    "\\U0010ffff",
    "\\x41",
    "\\e",
    "\u0000",
    "\u007f",
    "\ufeff",
    "é",
    "true",
    "True",
    "1",
    "01",
    "1_0",
    "0x1",
    "1e5",
    "inf",
    "nan",
    "1979-05-27",
    "07:32:00",
    "blocked = true\n",
    '"blocked" = true\n',
    "'blo' = 1\n",
    "registry.a = 1\n",
    "[registry]\n",
    "[[registry]]\n",
    "[registry.mirror]\n",
    "[a.b]\n",
    "__proto__ = 1\n",
    "[__proto__]\nx=1\n",
    '"prefix"',
    "[".repeat(2000),
  ],
);

/** TOML 1.1 has more escapes, and line ends and last commas in inline tables; Python 3.11 reads TOML 1.0. */
const isOfLaterTOML = (text: string) => /\\[xe]|\{[^}]*[\n,]\s*(?:[^}]*\n)?[^}]*\}|\d\d:\d\d(?!:)/.test(text);

interface Table {
  readonly [name: string]: unknown;
}
interface PythonAnswer {
  readonly table?: Table;
  readonly error?: string;
}

/** Container engines (BurntSushi/toml) skip a byte order mark, as ours does; Python refuses it. */
const withoutMark = (text: string) => text.replace(/^\ufeff/, "");

/** With names as container engines compare them. Ours reads no file with a field in two spellings. */
const folded = (table: Table): Table =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name.toLowerCase(), value]));
const tables = (value: unknown) => ((value ?? []) as readonly Table[]).map(folded);

describe.skipIf(!hasPython)("registries.conf, as Python reads TOML", () => {
  let child: ReturnType<typeof start>;
  const waiting: ((answer: PythonAnswer) => void)[] = [];
  const start = () => spawn("python3", ["-c", program], { stdio: ["pipe", "pipe", "inherit"] });
  const ask = (text: string) =>
    new Promise<PythonAnswer>((resolve) => {
      waiting.push(resolve);
      child.stdin.write(`${JSON.stringify(text)}\n`);
    });

  beforeAll(() => {
    child = start();
    createInterface({ input: child.stdout }).on("line", (line) => waiting.shift()?.(JSON.parse(line) as PythonAnswer));
  });
  afterAll(() => void child.stdin.end());

  async function compare(texts: fc.Arbitrary<string>) {
    let both = 0;
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const mine = parseRegistriesConf(text.toWellFormed());
        if (mine === undefined) return;
        const { table: read = {}, error } = await ask(withoutMark(text.toWellFormed()));
        if (error !== undefined && isOfLaterTOML(text)) return;
        expect(error).toBeUndefined();
        both += 1;
        const table = folded(read);
        expect(mine.unqualifiedSearch).toEqual(table["unqualified-search-registries"] ?? []);
        expect([...mine.registries]).toEqual([
          ...new Map(
            tables(table["registry"]).map((raw) => {
              const { prefix = "", location = "", blocked = false, insecure = false, mirror } = raw;
              const section = {
                prefix,
                location,
                blocked,
                insecure,
                mirrorByDigestOnly: raw["mirror-by-digest-only"] ?? false,
                mirrors: tables(mirror).map((each) => ({
                  location: each["location"] ?? "",
                  insecure: each["insecure"] ?? false,
                  pullFromMirror: each["pull-from-mirror"] ?? "",
                })),
              };
              return [prefix === "" ? location : prefix, section] as const;
            }),
          ),
        ]);
      }),
      sample,
    );
    expect(both).toBeGreaterThan(sample.numRuns / 20);
  }

  test("a file that is read is TOML, with the same registries and mirrors [readers-toml-1]", { timeout: 300_000 }, () =>
    compare(files),
  );

  test("so is one in which each value is written freely [readers-toml-2]", { timeout: 300_000 }, () =>
    compare(freeToml()),
  );
});
