import { canonicalJson } from "../text/canonical-json.ts";
import { describe, expect, test } from "vitest";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import {
  type KeyInputs,
  buildVisible,
  contentKey,
  digestOfVisible,
  keyDifferences,
  labelValue,
  printComponents,
  repeatName,
  sha256Hex,
} from "./build-key.ts";
import { type NodeConfig, type WantedEntry, emptyNodeConfig } from "../config/node-config.ts";
import { readComponents } from "../config/key-components.ts";

const inputs: KeyInputs = {
  mode: "full",
  serial: 0,
  architecture: "amd64",
  repository: "r.example.com/os",
  base: "sha256:b",
  extensionsImage: "sha256:e",
  extensions: [],
  kernelType: "default",
  trust: "t",
  repos: "r",
  gpg: "g",
  visible: "v",
  content: "c",
};
const steps = { ...inputs, custom: { text: "FROM os\nRUN true", seesConfiguration: false } };
const seeing = { ...inputs, custom: { text: "FROM configs\nRUN true", seesConfiguration: true } };
const keys = (of: KeyInputs) => contentKey(of);

describe("the content key", () => {
  test("has 32 hexadecimal digits", () => {
    expect(keys(inputs).key).toMatch(/^[0-9a-f]{32}$/);
    expect(keys(inputs).parentKey).toMatch(/^[0-9a-f]{32}$/);
  });

  test.for([
    { title: "content of a full image", from: inputs, change: { content: "d" }, key: "differs", parent: "same" },
    {
      title: "content of an os-only image",
      from: { ...inputs, mode: "os-only" as const },
      change: { content: "d" },
      key: "same",
      parent: "same",
    },
    {
      title: "content under steps that stand on it",
      from: seeing,
      change: { content: "d" },
      key: "differs",
      parent: "differs",
    },
    {
      title: "content above steps that do not see it",
      from: steps,
      change: { content: "d" },
      key: "differs",
      parent: "same",
    },
    { title: "the mode", from: inputs, change: { mode: "os-only" as const }, key: "differs", parent: "same" },
    { title: "the repository", from: inputs, change: { repository: "other" }, key: "differs", parent: "same" },
    { title: "the base", from: inputs, change: { base: "sha256:x" }, key: "differs", parent: "differs" },
    { title: "the architecture", from: inputs, change: { architecture: "arm64" }, key: "differs", parent: "differs" },
    { title: "a rebuild", from: inputs, change: { serial: 1 }, key: "differs", parent: "differs" },
    { title: "an extension", from: inputs, change: { extensions: ["usbguard"] }, key: "differs", parent: "differs" },
    { title: "the kernel", from: inputs, change: { kernelType: "realtime" }, key: "differs", parent: "differs" },
    {
      title: "an unused extensions image",
      from: inputs,
      change: { extensionsImage: "sha256:f" },
      key: "same",
      parent: "same",
    },
    {
      title: "an extensions image that packages are taken from",
      from: { ...inputs, extensions: ["usbguard"] },
      change: { extensionsImage: "sha256:f" },
      key: "differs",
      parent: "differs",
    },
    {
      title: "the custom text",
      from: steps,
      change: { custom: { text: "FROM os\nRUN false", seesConfiguration: false } },
      key: "differs",
      parent: "differs",
    },
    {
      title: "the custom context",
      from: steps,
      change: { custom: { ...steps.custom, context: "x" } },
      key: "differs",
      parent: "differs",
    },
    { title: "the trust bundle without any steps", from: inputs, change: { trust: "u" }, key: "same", parent: "same" },
    { title: "the trust bundle with steps", from: steps, change: { trust: "u" }, key: "differs", parent: "differs" },
    { title: "repositories without any steps", from: inputs, change: { repos: "u" }, key: "same", parent: "same" },
    {
      title: "repositories with packages",
      from: { ...inputs, extensions: ["usbguard"] },
      change: { repos: "u" },
      key: "differs",
      parent: "differs",
    },
    { title: "package keys with steps", from: steps, change: { gpg: "u" }, key: "differs", parent: "differs" },
    {
      title: "a file that custom steps see",
      from: { ...steps, mode: "os-only" as const },
      change: { visible: "w" },
      key: "differs",
      parent: "differs",
    },
    {
      title: "a file that steps would see, without custom steps",
      from: { ...inputs, mode: "os-only" as const, extensions: ["usbguard"] },
      change: { visible: "w" },
      key: "same",
      parent: "same",
    },
  ])("$title: key $key, parent $parent", ({ from, change, key, parent }) => {
    const [before, after] = [keys(from), keys({ ...from, ...change })];
    expect(before.key === after.key ? "same" : "differs").toBe(key);
    expect(before.parentKey === after.parentKey ? "same" : "differs").toBe(parent);
  });

  test("neither the order of extensions nor one that is named twice makes another key", () => {
    expect(keys({ ...inputs, extensions: ["a", "b"] }).key).toBe(keys({ ...inputs, extensions: ["b", "a", "b"] }).key);
  });

  test("two keys say component by component why they differ", () => {
    const differences = keyDifferences(
      keys(inputs).components,
      keys({ ...inputs, content: "d", extensions: ["usbguard"] }).components,
    );
    expect(differences.map(({ component }) => component)).toEqual([
      "ext",
      "extensions",
      "trust",
      "repos",
      "gpg",
      "content",
    ]);
    expect(differences.at(-1)).toEqual({
      component: "content",
      says: "files, units or accounts",
      before: "c",
      after: "d",
    });
    expect(keyDifferences(keys(inputs).components, keys(inputs).components)).toEqual([]);
  });
});

test("components are read as they were kept, and what is none is none", () => {
  const { components } = contentKey(inputs);
  expect(readComponents(printComponents(components))).toEqual(components);
  expect(JSON.parse(printComponents(components))).toMatchObject({ mode: "full", parent: { base: "sha256:b" } });
  for (const text of [undefined, "", "[]", "null"]) expect(readComponents(text)).toBeUndefined();
});

test("what steps see of a configuration: repositories, keys, certificates and container settings, and nothing else", () => {
  const file = (text: string): WantedEntry => ({
    origin: { kind: "file" },
    kind: "file",
    contents: utf8ToBytes(text),
    sizeBytes: text.length,
    digest: sha256Hex(text),
    mode: 0o644,
    user: { id: 0 },
    group: { id: 0 },
  });
  const config = (files: Readonly<Record<string, string>>): NodeConfig => ({
    ...emptyNodeConfig,
    entries: new Map(Object.entries(files).map(([path, text]) => [path, file(text)])),
  });
  const seen = buildVisible(
    config({
      "/etc/yum.repos.d/a.repo": "a",
      "/etc/motd": "m",
      "/etc/containers/policy.json": "p",
      "/etc/pki/rpm-gpg/k": "k",
      "/var/etc/dnf/x": "x",
    }),
  );
  expect(seen.map(({ path }) => path)).toEqual([
    "/etc/containers/policy.json",
    "/etc/pki/rpm-gpg/k",
    "/etc/yum.repos.d/a.repo",
  ]);
  expect(digestOfVisible(seen)).toBe(
    digestOfVisible(
      buildVisible(
        config({
          "/etc/pki/rpm-gpg/k": "k",
          "/etc/yum.repos.d/a.repo": "a",
          "/etc/containers/policy.json": "p",
          "/etc/motd": "other",
        }),
      ),
    ),
  );
  expect(digestOfVisible(seen)).not.toBe(
    digestOfVisible(
      buildVisible(
        config({ "/etc/pki/rpm-gpg/k": "k", "/etc/yum.repos.d/a.repo": "b", "/etc/containers/policy.json": "p" }),
      ),
    ),
  );
});

test("canonical JSON does not depend on the order of fields, and keeps that of lists", () => {
  expect(canonicalJson({ b: [2, 1], a: undefined, c: null })).toBe('{"b":[2,1],"c":null}');
});

test("names of further builds differ by configuration and generation, and labels fit", () => {
  const key = "0".repeat(32);
  expect(
    new Set([
      repeatName("worker", key, "rendered-a", 0),
      repeatName("worker", key, "rendered-a", 1),
      repeatName("worker", key, "rendered-b", 0),
    ]).size,
  ).toBe(3);
  expect(repeatName("worker", key, "rendered-a", 0)).toMatch(/^worker-0{32}-[0-9a-f]{6}$/);
  expect(labelValue("short")).toBe("short");
  expect(labelValue("p".repeat(80)).length).toBe(63);
});
