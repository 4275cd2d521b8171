import { describe, expect, test } from "vitest";
import { kubernetesYaml, kubernetesYamlDocuments, lenientKubernetesYaml } from "./kubernetes-yaml.ts";

test("a key that stands there twice is refused where it stands the second time [kubernetes-yaml-1]", () => {
  for (const text of ["a: 1\nb: 2\na: 3\n", "{a: 1, b: 2, a: 3}", 'a: 1\n"a": 2', "1: a\n'1': b"]) {
    const [error] = kubernetesYaml(text).errors;
    expect(error?.message, text).toBe("a key stands there twice");
    expect(error?.pos[0], text).toBeGreaterThan(3);
  }
});

test("a document with many aliases is refused before they are looked up [kubernetes-yaml-2]", () => {
  const aliases = (count: number) => Array.from({ length: count }, (_, i) => `- &a${i} x\n- *a${i}`).join("\n");
  expect(kubernetesYaml(aliases(500)).errors).toEqual([]);
  expect(kubernetesYaml(aliases(5_000)).errors.map(({ message }) => message)).toEqual(["it has too many aliases"]);
});

test("an alias without an anchor before it, or within its own anchor, is refused as by kubectl [kubernetes-yaml-4]", () => {
  for (const text of ["a: *x", "a: *x\nb: &x 1", "a: &x [*x]", "a: &x {b: *x}", "a: &x\n  b: *x\n"]) {
    expect(kubernetesYaml(text).errors.map(({ message }) => message)).toEqual([
      "Unresolved alias: no anchor stands before it",
    ]);
    expect(lenientKubernetesYaml(text)).toBeUndefined();
  }
  for (const text of ["a: &x 1\nb: *x", "- &x a\n- *x\n- &x {b: c}\n- *x", "a: &x\n  b: c\nd: *x", "[&x a,*x ]"])
    expect(lenientKubernetesYaml(text)?.value, text).toBeDefined();
});

test("errors in a long line take time in proportion to it [kubernetes-yaml-3]", () => {
  const secondsOf = (text: string) => {
    const began = process.cpuUsage();
    expect(kubernetesYaml(text).errors[0]?.message).toContain(" at line 1, column ");
    return process.cpuUsage(began).user / 1e6;
  };
  // What ends no line was searched once more from each of them, and the line was copied for each error.
  expect(secondsOf(`a: [${"\r".repeat(100_000)}x`)).toBeLessThan(2.5);
  expect(secondsOf(`[${"@,".repeat(10_000)}${" ".repeat(1_000_000)}]`)).toBeLessThan(2.5);
});

describe("YAML as kubectl reads it", () => {
  const read = [
    { text: "a: on", is: { a: true } },
    { text: "a: 0644", is: { a: 420 } },
    { text: "a: 0o644", is: { a: 420 } },
    { text: "a: 1:30", is: { a: "1:30" } },
    { text: "a: 2001-12-14", is: { a: "2001-12-14" } },
    { text: "\ufeffa: 1\r\nb: 2\r\n", is: { a: 1, b: 2 } },
    { text: "a: |\n  b", is: { a: "b" } },
    { text: "a: |\n  b\n", is: { a: "b\n" } },
    { text: "a: |\n  all:\n  \tcc\nb: 'c\n  \td'\n", is: { a: "all:\n\tcc\n", b: "c d" } },
    { text: "x: &x {b: 1, c: 2}\nz:\n  <<: *x\n  b: 3\n", is: { x: { b: 1, c: 2 }, z: { b: 3, c: 2 } } },
    { text: "a: &x {b: 1}\nc: *x", is: { a: { b: 1 }, c: { b: 1 } } },
  ];
  test.for(read)("$text is read", ({ text, is }) => {
    const document = kubernetesYaml(text);
    expect(document.errors).toEqual([]);
    expect(document.toJS()).toEqual(is);
  });

  const refused = [
    "a: .inf",
    "a: 1e400",
    "a: !!binary aGk=",
    "%YAML 1.2\n---\na: 1",
    "x: &x {b: 1}\ny:\n  b: 3\n  <<: *x\n",
    "a: &x [{b: 1}]\nc: {<<: *x}",
    "a: [:b: c]",
    "a: |\n  \tb\n",
    "-\t b\n",
    "a: &!k b",
    "a: b\n\t",
    "a: !!bool es",
    "a: !!int es",
    "a: !!set {b}",
    'a: "\\ud800"',
    "a: b\u0000",
    "a: b\u2028c",
    "a: b\rc",
    "[a]: 1",
    "~: 1",
    "1.0: a",
    "1: a\n'1': b",
    "a: 1\na: 2",
    "- \ta",
    "a: 1\n---\nb: 2",
  ];
  test.for(refused)("%j is refused", (text) => expect(kubernetesYaml(text).errors).not.toEqual([]));

  test("lines that a text keeps before the dashes are its own, as kubectl reads them", () => {
    const [first] = kubernetesYamlDocuments("a: |+\n  x\n\n\n---\nb: c\n");
    expect(first?.errors).toEqual([]);
    expect(first?.toJS()).toEqual({ a: "x\n\n\n" });
  });

  test("text behind the dashes between documents is refused", () => {
    expect(kubernetesYamlDocuments("a: 1\n--- # next\nb: 2\n").flatMap(({ errors }) => errors)).toEqual([]);
    expect(kubernetesYamlDocuments("a: 1\n--- {b: 2}\n").flatMap(({ errors }) => errors)).not.toEqual([]);
  });
});

test.for([
  {
    title: "merges of merges, twice as much in each line",
    text: Array.from({ length: 40 }, (_, i) =>
      i === 0 ? "a0: &a0 {x: 1}" : `a${i}: &a${i} {<<: [*a${i - 1}, *a${i - 1}]}`,
    ).join("\n"),
  },
  {
    title: "merges of one another, level by level",
    text: [
      `a0: &a0 {${Array.from({ length: 300 }, (_, i) => `k${i}: 1`).join(", ")}}`,
      ...Array.from({ length: 80 }, (_, i) => `a${i + 1}: &a${i + 1} {<<: *a${i}}`),
      `b: [${Array.from({ length: 95 }, () => "{<<: *a80}").join(", ")}]`,
    ].join("\n"),
  },
  {
    title: "merges within one another, many times",
    text: `a: &a ${"{<<: ".repeat(100)}{${Array.from({ length: 400 }, (_, i) => `k${i}: 1`).join(", ")}}${"}".repeat(100)}\nb: [${Array.from({ length: 95 }, () => "{<<: *a}").join(", ")}]`,
  },
  {
    title: "merges within one another, without an alias",
    text: `a: ${"{<<: ".repeat(100)}{${Array.from({ length: 4_000 }, (_, i) => `k${i}: 1`).join(", ")}}${"}".repeat(100)}`,
  },
  {
    title: "one object of many keys, merged many times",
    text: `a: &a {${Array.from({ length: 3_300 }, (_, i) => `k${i}: 1`).join(", ")}}\nb: [${Array.from({ length: 95 }, () => "{<<: *a}").join(", ")}]`,
  },
])("what aliases and merges expand to has a limit: $title [kubernetes-yaml-5]", ({ text }) => {
  const began = process.cpuUsage();
  expect(kubernetesYaml(text).errors.map(({ message }) => message)).toEqual([
    "its aliases and merges expand to too many nodes",
  ]);
  expect(lenientKubernetesYaml(text)).toBeUndefined();
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
});

test("aliases of ordinary documents are read [kubernetes-yaml-6]", () => {
  const keys = Array.from({ length: 100 }, (_, i) => `k${i}: ${i}`).join(", ");
  const uses = Array.from({ length: 200 }, (_, i) => `u${i}: {<<: *a, own: ${i}}`).join("\n");
  const read = lenientKubernetesYaml(`a: &a {${keys}}\n${uses}`);
  expect(read?.value).toMatchObject({ u7: { k99: 99, own: 7 }, u199: { k0: 0, own: 199 } });
});
