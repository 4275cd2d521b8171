import fc from "fast-check";

/** Files of manifests as nobody writes them: documents of free texts, between free separators. */

const pieces = (given: readonly string[], maxLength: number) =>
  fc.array(fc.constantFrom(...given), { maxLength }).map((some) => some.join(""));

/** Texts in double quotes: escapes of YAML, of JSON, and of neither. */
const doubleQuoted = pieces(
  [
    "x",
    " ",
    "  ",
    "\n",
    "\n   ",
    "\t",
    "é",
    "'",
    "#",
    ": ",
    "---",
    "...",
    "\\n",
    "\\t",
    "\\\t",
    "\\/",
    '\\"',
    "\\\\",
    "\\ ",
    "\\\n",
    "\\\n   ",
    "\\\n\n",
    "\\_",
    "\\N",
    "\\L",
    "\\P",
    "\\e",
    "\\0",
    "\\a",
    "\\v",
    "\\x41",
    "\\xe9",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\\U0001F600",
    "\\U00110000",
    "\\q",
    "\\'",
    "\\x4",
  ],
  6,
).map((text) => `"${text}"`);
const singleQuoted = pieces(["x", " ", "\n", "\n   ", "\n\n   ", "''", '"', "\\", "\t", "#", ": ", "...", "é"], 6).map(
  (text) => `'${text}'`,
);
const plain = pieces(
  ["x", "y", " ", "\n   ", "\n\n   ", "#", " #", ":", "-", "?", ",", "é", "\t", "1", "0", ".", "~"],
  6,
);
const blockLine = pieces(["x", " ", "  ", "   ", "    ", "\t", "#", "- ", ": ", "---", "...", "é"], 4);
const block = fc
  .tuple(
    fc.constantFrom("|", ">"),
    fc.constantFrom("", "+", "-", "1", "2", "3", "1-", "+2", "-2", "2+"),
    fc.constantFrom("", " ", " #c", "\t"),
    fc.array(fc.tuple(fc.constantFrom("", "    ", "   ", "     "), blockLine), { maxLength: 5 }),
    fc.constantFrom("", "\n", "\n\n", "\n    ", "\n  "),
  )
  .map(
    ([style, indicators, behind, lines, end]) =>
      `${style}${indicators}${behind}\n${lines.map(([blanks, line]) => blanks + line).join("\n")}${end}`,
  );
const flow = pieces(["{a: 1}", "[x, y]", "[", "]", "{", "}", ", ", "x", "x: ", "\n   ", "#c\n", '"x"', "? ", "- "], 5);
const scalar = fc.oneof(doubleQuoted, singleQuoted, plain, block, flow);

const key = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "c") },
  { weight: 1, arbitrary: fc.constantFrom('"a"', "'d'", "? e\n  ", "<<", "items", "1", "~", '"\\/"') },
);
const fields = fc
  .array(fc.tuple(key, fc.constantFrom(" ", " ", " ", "\n    ", "\t", "  "), scalar), { minLength: 1, maxLength: 3 })
  .map((some) => some.map(([name, blanks, value]) => `  ${name}:${blanks}${value}\n`).join(""));
const listed = fc
  .array(fc.tuple(fc.constantFrom("- ", "- ", "-\t", "-   "), scalar), { minLength: 1, maxLength: 3 })
  .map((some) => some.map(([dash, value]) => `  ${dash}${value}\n`).join(""));

const heads = fc
  .tuple(
    fc.constantFrom("v1", "v1", "example.com/v1", '""'),
    fc.constantFrom("ConfigMap", "Secret", "Thing", "List", "ThingList"),
    fc.constantFrom("a", "b"),
  )
  .map(([apiVersion, kind, name]) => `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}}\n`);
const yamlDocument = fc
  .tuple(
    heads,
    fc.oneof(
      { weight: 6, arbitrary: fields.map((text) => `data:\n${text}`) },
      { weight: 2, arbitrary: listed.map((text) => `data:\n${text}`) },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          "",
          "items: []\n",
          "items:\n",
          "items: x\n",
          "items: [{apiVersion: v1, kind: A, metadata: {name: c}}]\n",
          "items: [{metadata: {name: c}}]\n",
          "items: [{kind: B, metadata: {name: c}}]\n",
          'items: [{apiVersion: "", kind: "", metadata: {name: c}}]\n',
          "items: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: c}}]}]\n",
        ),
      },
    ),
  )
  .map(([head, body]) => head + body);
const jsonDocument = fc
  .tuple(
    fc.constantFrom("ConfigMap", "Secret"),
    fc.constantFrom(
      "{}",
      '{"a":"b"}',
      '{"a":"\\u00e9"}',
      '{"a":"b","a":"c"}',
      '{"a":"\\/"}',
      '{"a":1e400}',
      '{"a":"b",}',
    ),
    fc.constantFrom("", "\n", "\n  "),
  )
  .map(
    ([kind, data, blanks]) =>
      `{${blanks}"apiVersion":"v1",${blanks}"kind":"${kind}","metadata":{"name":"j"},${blanks}"data":${data}${blanks}}`,
  );
const document = fc.oneof(
  { weight: 6, arbitrary: yamlDocument },
  { weight: 2, arbitrary: jsonDocument },
  { weight: 1, arbitrary: fc.constantFrom("", "# c\n", "null\n", "~\n", "---\n", "\n", "%YAML 1.1\n", "%TAG ! x\n") },
);

const separator = fc.constantFrom(
  "---\n",
  "---\n",
  "---\n",
  "\n---\n",
  "--- \n",
  "---\t\n",
  "--- #c\n",
  "---#c\n",
  "--- x\n",
  "---x\n",
  " ---\n",

  "...\n",
  "...\n---\n",
  "... #c\n",
  "...#c\n",
  "...x\n",
  " ...\n",
  "---\n...\n",
  "---\r\n",
  "\r\n---\r\n",
  "----\n",

  "--- |\n",
  "--- !!map\n",
  "---\n---\n",
  "",
  "\n",
  "\n\n",
  "\u00a0---\n",
  "---\u00a0\n",
  "\n--- {}\n",
  "\n--- &a\n",
);
const start = fc.constantFrom(
  "",
  "",
  "",
  "",
  "---\n",
  "\ufeff",
  "# c\n---\n",
  "%YAML 1.1\n---\n",
  "\n",
  "---",
  "...\n",
  " ",
);
const end = fc.constantFrom(
  "",
  "",
  "\n",
  "---",
  "---\n",
  "\n---",
  "...\n",
  "\n...",
  "\n...\n# c\n",
  "...\n---\n",
  "--- #",
);

/** Files with one to three documents; of one in ten, each line ends as on Windows. */
export const manifestFiles = fc
  .tuple(
    start,
    document,
    fc.array(fc.tuple(separator, document), { maxLength: 2 }),
    end,
    fc.integer({ min: 0, max: 9 }),
  )
  .map(([first, one, others, last, windows]) => {
    const text = `${first}${one}${others.map((other) => other.join("")).join("")}${last}`;
    return windows === 0 ? text.replaceAll(/(?<!\r)\n/g, "\r\n") : text;
  });
