import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseText } from "../../../src/standin/apiserver/http/request-body.ts";
import { Refusal } from "../../../src/standin/apiserver/schema/status.ts";
import { McoError } from "../../../src/api/errors.ts";
import { readJsonOfYaml } from "../../../src/core/text/json-as-yaml.ts";
import { parseDocuments } from "../../../src/cli/manifests.ts";
import { readKubeconfig } from "../../../src/kube/kubeconfig.ts";
import { type GoReaders, goReadersProgram, startGoReaders } from "../../support/go-readers.ts";
import { manifestFiles } from "./manifest-files.ts";
import { mutated } from "./mutate.ts";
import { runs } from "./runs.ts";

const program = goReadersProgram();
const sample = runs(400, 4000);

const scalars = [
  "on",
  "Yes",
  "n",
  "y",
  "OFF",
  "true",
  "True",
  "tRue",
  "~",
  "Null",
  "null",
  "",
  "0644",
  "0o644",
  "0x1F",
  "0b11",
  "08",
  "-0644",
  "1_000",
  "1e3",
  "1.5",
  ".5",
  "+1",
  "-0",
  "1:30",
  "190:20:30.15",
  ".inf",
  "-.INF",
  ".nan",
  "2001-12-14",
  "2001-12-14t21:59:43.10-05:00",
  "=",
  "<<",
  "12e03",
  "1e400",
  "9007199254740993",
  "18446744073709551616",
  "0x",
  "1__0",
  "+.inf",
  "1.",
  "0.0",
  "00",
  "0_7",
  "'on'",
  '"0644"',
  '"\\x41\\u00e9\\n"',
  '"\\ud800"',
  "!!str 12",
  "!!int '12'",
  "!!binary aGk=",
  "!!bool yes",
  "!!float 1",
  "!!set {a, b}",
  "!!null x",
  "! 12",
  "!x y",
  "*a",
  "&a b",
  "|\n   text\n    more\n",
  "|-\n   text\n",
  ">+\n   a\n   b\n\n   c\n",
  "{a: 1, b: [1, 2]}",
  "[a, {b: c}, ]",
  "{a, b: }",
  "{? a : b}",
  "[a: b]",
  "'it''s'",
  "a: b",
  "a #c",
  "a#c",
  "- a",
  "%x",
  "@x",
  "`x",
  "x\ty",
  "\ta",
  '"a\n   b"',
  "a\n   b",
  "é",
  "\u0085",
  "\u2028",
  "\ufeff",
  "\u0000",
  "\u0007",
];
const keys = [
  "a",
  "b",
  "on",
  "1",
  "0644",
  "1.0",
  "~",
  "'a'",
  "true",
  "? a\n",
  "<<",
  "a b",
  '"c"',
  "!!str d",
  "[x]",
  "{y: z}",
  "",
  "__proto__",
  "&k e",
  "2001-01-01",
];
const line = fc.tuple(fc.constantFrom(...keys), fc.constantFrom(...scalars));
const values = fc.oneof(
  fc
    .array(line, { minLength: 1, maxLength: 4 })
    .map((lines) => lines.map(([key, value]) => `  ${key}: ${value}\n`).join("")),
  fc
    .array(fc.constantFrom(...scalars), { minLength: 1, maxLength: 4 })
    .map((items) => items.map((item) => `  - ${item}\n`).join("")),
  fc
    .tuple(line, line)
    .map(
      ([[key, value], [other, last]]) =>
        `  m: &m\n    ${key}: ${value}\n  n:\n    <<: *m\n    ${other}: ${last}\n  o: *m\n`,
    ),
);
const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
const manifests = values.map((value) => `${head}data:\n${value}`);
const puts = [
  "\n",
  "\r\n",
  "\r",
  "\t",
  " ",
  "  ",
  ":",
  ": ",
  "-",
  "- ",
  "---\n",
  "\n---\n",
  "\n--- x\n",
  "\n...\n",
  "#",
  " #x",
  "&a ",
  "*a",
  "*m",
  "<<: *m\n",
  "!!",
  "|",
  ">",
  "%YAML 1.2\n---\n",
  "%TAG ! x\n",
  "\ufeff",
  "\u0000",
  "\u0085",
  "'",
  '"',
  "{",
  "}",
  "[",
  "]",
  ",",
  "?",
  "é",
  "\u{1f600}",
  "kind: Secret\n",
];
const texts = fc.oneof(
  manifests,
  mutated(manifests, puts),
  fc.tuple(manifests, mutated(manifests, puts)).map((both) => both.join("---\n")),
);

/** As in JSON: numbers beyond 2^53 are rounded. */
const comparable = (json: unknown) => JSON.parse(JSON.stringify(json)) as unknown;

describe.skipIf(program === undefined)("YAML, as Kubernetes reads it", () => {
  let go: GoReaders;

  beforeAll(() => {
    go = startGoReaders(program ?? "");
  });
  afterAll(() => go.close());

  test(
    "a body that is read is the value that kube-apiserver reads [readers-yaml-1]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(texts, async (text) => {
          const mine = parseText(text, "yaml");
          if (mine instanceof Refusal) return;
          const { json, error } = await go.ask("kubeYaml", text);
          expect(error).toBeUndefined();
          both += 1;
          expect(comparable(mine)).toEqual(comparable(json));
        }),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 20);
    },
  );

  test(
    "a body of JSON under YAML's name that is read as JSON is the value that kube-apiserver reads in it [readers-yaml-4]",
    { timeout: 300_000 },
    async () => {
      const words = fc.constantFrom(...scalars, ...keys, "é\u{1f600}", "\n ", '"', "\\", "\u007f", "x".repeat(1100));
      const names = fc.oneof(words, fc.string());
      const json = fc
        .dictionary(names, fc.anything({ key: names, values: [names, fc.double(), fc.integer(), fc.boolean()] }))
        .map((object) => JSON.stringify(object));
      let both = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(json, mutated(json, [...puts, "-0", "1e3", "\\/", "\\u00e9", "\\ud83d"])),
          async (text) => {
            const mine = parseText(text, "yaml");
            if (readJsonOfYaml(text) === undefined || mine instanceof Refusal) return;
            const { json: theirs, error } = await go.ask("kubeYaml", text);
            expect(error).toBeUndefined();
            both += 1;
            expect(comparable(mine)).toEqual(comparable(theirs));
          },
        ),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 20);
    },
  );

  test("manifests of a file are those that kubectl applies [readers-yaml-2]", { timeout: 300_000 }, async () => {
    let both = 0;
    const files = fc.oneof({ weight: 1, arbitrary: texts }, { weight: 2, arbitrary: manifestFiles });
    await fc.assert(
      fc.asyncProperty(files, async (text) => {
        const mine = parseDocuments(text, "a.yaml");
        if (mine.some(({ verdict }) => verdict === "refused")) return;
        const { json, error } = await go.ask("manifests", text);
        expect(error).toBeUndefined();
        both += 1;
        expect(mine.map((one) => (one.verdict === "read" ? comparable(one.manifest) : undefined))).toEqual(
          comparable(json),
        );
      }),
      sample,
    );
    expect(both).toBeGreaterThan(sample.numRuns / 20);
  });

  const cluster = fc.array(
    fc.tuple(
      fc.constantFrom(
        "server",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "certificate-authority-data",
        "Server",
        "x",
      ),
      fc.constantFrom(
        "https://a:6443",
        "https://b/",
        "true",
        "yes",
        "on",
        "'true'",
        "aGk=",
        "a",
        "12",
        "0644",
        "~",
        "!!binary aGk=",
        "",
        "TRUE",
      ),
    ),
    { maxLength: 3 },
  );
  const words = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom("a", "'12'", "x") },
    fc.constantFrom("on", "12", "0644", "~", "1.0"),
  );
  const kubeconfigs = fc
    .tuple(
      cluster,
      words,
      words,
      words,
      fc.constantFrom("t", "12345", "0644", "1e3", "on", "2001-12-14", "'x'", "|\n      x\n"),
    )
    .map(
      ([fields, context, user, namespace, token]) =>
        `apiVersion: v1\nkind: Config\ncurrent-context: ${context}\ncontexts:\n- name: ${context}\n  context:\n    cluster: ${context}\n    user: ${user}\n    namespace: ${namespace}\n` +
        `clusters:\n- name: ${context}\n  cluster:\n    server: https://c\n${fields.map(([name, value]) => `    ${name}: ${value}\n`).join("")}users:\n- name: ${user}\n  user:\n    token: ${token}\n`,
    );

  test(
    "a kubeconfig that is read leads to the server that kubectl reads, with the same trust and token [readers-yaml-3]",
    { timeout: 300_000 },
    async () => {
      let both = 0;
      await fc.assert(
        fc.asyncProperty(fc.oneof(kubeconfigs, mutated(kubeconfigs, puts)), async (text) => {
          let mine: Awaited<ReturnType<typeof readKubeconfig>>;
          try {
            mine = await readKubeconfig({ readText: () => Promise.resolve(text) }, "kubeconfig");
          } catch (cause) {
            expect(cause).toBeInstanceOf(McoError);
            return;
          }
          const { json, error } = await go.ask("kubeconfig", text);
          expect(error).toBeUndefined();
          both += 1;
          expect({
            server: mine.server,
            tlsServerName: mine.tlsServerName ?? "",
            insecure: mine.insecureSkipTlsVerify ?? false,
            ca: Buffer.from(mine.ca ?? "").toString("base64"),
            namespace: mine.namespace ?? "",
            token: mine.token ?? "",
          }).toEqual({
            ...(json as { server: string }),
            server: (json as { server: string }).server.replace(/\/+$/, ""),
            ca: Buffer.from((json as { ca: string }).ca).toString("base64"),
          });
        }),
        sample,
      );
      expect(both).toBeGreaterThan(sample.numRuns / 100);
    },
  );
});
