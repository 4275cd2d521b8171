import fc from "fast-check";

/**
 * Texts that follow a grammar, with each field written freely: a change of a valid text reaches few fields, and few of them
 * together.
 */

const joined = (parts: readonly string[], most: number, least = 0) =>
  fc.array(fc.constantFrom(...parts), { minLength: least, maxLength: most }).map((list) => list.join(""));
/** `text`, or nothing. */
const maybe = (text: fc.Arbitrary<string>, weight = 1) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant("") }, { weight, arbitrary: text });
const seldom = (text: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 8, arbitrary: fc.constant("") }, { weight: 1, arbitrary: text });

const escapes = ["%41", "%2F", "%25", "%00", "%7f", "%80", "%C3%BC", "%3A", "%40", "%5B", "%2e", "%zz", "%4", "%"];
const strange = [
  "ü",
  "€",
  "\u{1f600}",
  " ",
  "\\",
  "^",
  "`",
  "{",
  "}",
  "|",
  '"',
  "<",
  ">",
  "\u00a0",
  "\u0085",
  "\u007f",
  "\u0000",
  "\t",
];
const subDelimiters = ["!", "$", "&", "'", "(", ")", "*", "+", ",", ";", "="];
const letters = ["a", "b", "Z", "0", "9", "-", ".", "_", "~"];

/** RFC 3986: each part with the characters that it may have, and with some that it may not have. */
export function freeUrls(): fc.Arbitrary<string> {
  const part = (more: readonly string[], most = 6) =>
    joined([...letters, ...letters, ...subDelimiters, ...escapes, ...more, ...strange.slice(0, 3)], most);
  const scheme = fc.oneof(
    fc.constantFrom("http:", "https:", "HTTP:", "data:", "s3:", "tftp:", "gs:", "arn:", ":", "1a:", "a+b-c.d:"),
    joined([...letters, "+", "ü", "%41"], 4).map((name) => `${name}:`),
  );
  const user = part([":", "@"], 4).map((text) => `${text}@`);
  const ipv4 = fc
    .array(fc.constantFrom("0", "1", "10", "255", "256", "01", "a"), { minLength: 3, maxLength: 5 })
    .map((list) => list.join("."));
  const ipv6 = fc
    .tuple(
      fc.array(fc.constantFrom("0", "1", "fe80", "ffff", "FFFF", "00001", "g", "", "1.2.3.4"), { maxLength: 9 }),
      maybe(part(strange, 4).map((zone) => `%25${zone}`)),
      fc.constantFrom("]", "]", "]", ""),
    )
    .map(([groups, zone, end]) => `[${groups.join(":")}${zone}${end}`);
  const host = fc.oneof(
    { weight: 3, arbitrary: part([":"]) },
    { weight: 1, arbitrary: ipv4 },
    { weight: 3, arbitrary: ipv6 },
  );
  const port = fc.constantFrom("", "", ":", ":80", ":0", ":65536", ":-1", ":a", ":80:80", ":%34");
  const authority = fc.tuple(maybe(user), host, port).map((parts) => `//${parts.join("")}`);
  const path = fc
    .tuple(fc.constantFrom("", "/", "//", "./", "../", "*"), part([":", "@", "/", "[", "]", ...strange], 8))
    .map((parts) => parts.join(""));
  const query = part([":", "@", "/", "?", "[", "]", ...strange], 8).map((text) => `?${text}`);
  const fragment = part([":", "@", "/", "?", "#", "[", "]", ...strange], 8).map((text) => `#${text}`);
  return fc
    .tuple(maybe(scheme, 3), maybe(authority, 3), maybe(path, 3), maybe(query), maybe(fragment))
    .map((parts) => parts.join(""));
}

/** systemd.syntax(7): sections, options, comments and continued lines, with each part written freely. */
export function freeUnits(): fc.Arbitrary<string> {
  const blanks = ["", "", "", " ", "\t", "\u00a0", "\u0085", "\u2003", "\v", "\f"];
  const characters = [
    "a",
    "B",
    "1",
    "-",
    "_",
    ".",
    "@",
    "%i",
    "é",
    "\u{1f600}",
    "\u0000",
    "\ufeff",
    "=",
    "[",
    "]",
    "#",
    ";",
    "\\",
    '"',
    "'",
  ];
  const text = fc.oneof(
    { weight: 12, arbitrary: joined([...characters, ...blanks], 8) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom("x", "é", "\\"), fc.integer({ min: 1020, max: 4200 }))
        .map(([one, count]) => one.repeat(count)),
    },
  );
  const name = joined(["Exec", "Start", "Wanted", "By", "a", "-", ".", "é", " ", "\t", "#", ";", "["], 4, 1);
  const end = fc.constantFrom("\n", "\n", "\n", "\n", "\r\n", "\r", "\\\n", "\\ \n", "\\\r\n", "");
  const line = fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          fc.constantFrom(...blanks),
          fc.constantFrom("[Unit]", "[Service]", "[Install]", "[X-é]", "[]", "[ Unit ]", "[Unit", "Unit]", "[Unit]]"),
          fc.constantFrom(...blanks),
        )
        .map((parts) => parts.join("")),
    },
    { weight: 1, arbitrary: text.map((section) => `[${section}]`) },
    {
      weight: 8,
      arbitrary: fc
        .tuple(fc.constantFrom(...blanks), name, fc.constantFrom(...blanks), fc.constantFrom("=", "=", "=", ""), text)
        .map((parts) => parts.join("")),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom(...blanks), fc.constantFrom("#", ";"), text).map((parts) => parts.join("")),
    },
    { weight: 2, arbitrary: fc.constantFrom(...blanks) },
    { weight: 1, arbitrary: text },
  );
  return fc
    .tuple(seldom(fc.constant("\ufeff")), fc.array(fc.tuple(line, end), { maxLength: 12 }))
    .map(([mark, lines]) => mark + lines.map((parts) => parts.join("")).join(""));
}

/** TOML 1.0 (toml.abnf), with the keys of registries.conf and values of every type in every form. */
export function freeToml(): fc.Arbitrary<string> {
  const blanks = fc.constantFrom("", "", "", " ", "\t", "  ");
  const bare = [
    "registry",
    "mirror",
    "prefix",
    "location",
    "blocked",
    "insecure",
    "mirror-by-digest-only",
    "pull-from-mirror",
    "unqualified-search-registries",
    "Blocked",
    "LOCATION",
    "a",
    "1",
    "__proto__",
    "constructor",
  ];
  const quoted = (key: string, quote: string) => `${quote}${key}${quote}`;
  const simple = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...bare) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom(...bare, "", "é", "a.b"), fc.constantFrom('"', "'"))
        .map(([key, quote]) => quoted(key, quote)),
    },
    { weight: 1, arbitrary: fc.constantFrom("é", "a b", '"\\u0061"', '"""a"""', "-", "_") },
  );
  const key = fc.oneof(
    { weight: 6, arbitrary: simple },
    { weight: 1, arbitrary: fc.array(simple, { minLength: 2, maxLength: 3 }).map((keys) => keys.join(".")) },
  );
  const inText = [
    "a.io",
    "b.io/c",
    "*.d.io",
    ":5000",
    "é",
    "\u{1f600}",
    "#",
    " ",
    "\t",
    "\\\\",
    '\\"',
    "\\n",
    "\\b",
    "\\u0041",
    "\\U0001F600",
    "\\ud800",
    "\\U00110000",
    "\\x41",
    "\\q",
    "\u007f",
    "\u0001",
  ];
  const basic = joined(inText, 3).map((text) => `"${text}"`);
  const literal = joined(["a.io", "\\", '"', "é", "\t", "\u0000", "#"], 3).map((text) => `'${text}'`);
  const lines = joined([...inText, "\n", "\r\n", "\\\n", "\\  \n  ", '"', '""', "'"], 4);
  const longBasic = lines.map((text) => `"""${text}"""`);
  const longLiteral = joined(["a.io", "\n", "\r\n", "'", "''", "\\", '"""'], 4).map((text) => `'''${text}'''`);
  const text = fc.oneof({ weight: 4, arbitrary: basic }, literal, longBasic, longLiteral);
  const others = fc.constantFrom(
    ..."true false True 0 -0 +1 1_000 1__0 01 0x1F 0b2 0o7 1.5 .5 1. 1e5 inf -nan".split(" "),
    ..."1979-05-27 1979-05-27T07:32:00Z 1979-13-01 07:32:00 07:32:00.999999".split(" "),
    "1979-05-27 07:32:00",
    "",
  );
  const { value } = fc.letrec<{ value: string; array: string; table: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      { weight: 6, arbitrary: text },
      { weight: 3, arbitrary: others },
      { weight: 2, arbitrary: tie("array") },
      { weight: 2, arbitrary: tie("table") },
    ),
    array: fc
      .tuple(
        fc.array(tie("value"), { maxLength: 3 }),
        fc.constantFrom(",", ", ", ",\n", " , # c\n"),
        fc.constantFrom("", "", ",", "\n"),
      )
      .map(([items, between, end]) => `[${items.join(between)}${end}]`),
    table: fc
      .tuple(
        fc.array(fc.tuple(key, tie("value")), { maxLength: 3 }),
        fc.constantFrom(", ", ", ", ","),
        fc.constantFrom("", "", ","),
      )
      .map(([fields, between, end]) => `{${fields.map(([name, one]) => `${name} = ${one}`).join(between)}${end}}`),
  }));
  const locations = fc.constantFrom('"a.io"', '"b.io/c"', "'d.io'", '"*.e.io"', '"""f.io"""');
  const usual = fc.oneof(
    fc.tuple(fc.constantFrom("prefix", "location", '"location"'), locations),
    fc.tuple(fc.constantFrom("blocked", "insecure", "mirror-by-digest-only"), fc.constantFrom("true", "false")),
    fc.tuple(fc.constant("pull-from-mirror"), fc.constantFrom('"tag-only"', "'digest-only'", '""')),
    fc.tuple(
      fc.constant("unqualified-search-registries"),
      fc.array(locations, { maxLength: 3 }).map((list) => `[${list.join(", ")}]`),
    ),
    fc.tuple(
      fc.constant("mirror"),
      fc.array(locations, { maxLength: 2 }).map((list) => `[${list.map((one) => `{location = ${one}}`).join(", ")}]`),
    ),
  );
  const field = fc
    .tuple(
      blanks,
      fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: fc.tuple(key, value) }),
      blanks,
      blanks,
    )
    .map(([before, [name, one], left, right]) => `${before}${name}${left}=${right}${one}`);
  const header = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.constantFrom(
        "[[registry]]",
        "[[registry]]",
        "[[registry.mirror]]",
        "[[ registry . mirror ]]",
        '[["registry"]]',
      ),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(key, fc.constantFrom("[", "[["))
        .map(([name, open]) => `${open}${name}${open === "[" ? "]" : "]]"}`),
    },
  );
  const comment = joined(["c", "#", "é", "\t", '"', "\u0001"], 3).map((one) => `#${one}`);
  const line = fc
    .tuple(
      fc.oneof(
        { weight: 4, arbitrary: field },
        { weight: 2, arbitrary: header },
        { weight: 1, arbitrary: fc.constant("") },
      ),
      blanks,
      seldom(comment),
    )
    .map((parts) => parts.join(""));
  const end = fc.oneof(
    { weight: 12, arbitrary: fc.constant("\n") },
    { weight: 1, arbitrary: fc.constantFrom("\r\n", "\r", "") },
  );
  return fc
    .tuple(seldom(fc.constant("\ufeff")), fc.array(fc.tuple(line, end), { maxLength: 10 }))
    .map(([mark, all]) => mark + all.map((parts) => parts.join("")).join(""));
}
