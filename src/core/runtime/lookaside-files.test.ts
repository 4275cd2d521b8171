import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { labels } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { problemsOfObject } from "../preview/object-rules.ts";
import { lookasideTexts, readLookaside } from "./lookaside-files.ts";

const folder = "/etc/containers/registries.d";

/** What is said of a MachineConfig of a pool with these files, by path. */
function warnings(files: Readonly<Record<string, string>>): readonly string[] {
  const config: MachineConfig = {
    apiVersion: MachineConfig.apiVersion,
    kind: "MachineConfig",
    metadata: { name: "99-a", labels: { [labels.role]: "worker" } },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        storage: {
          files: Object.entries(files).map(([path, text]) => ({ path, contents: { source: encodeDataUrl(text) } })),
        },
      },
    },
  };
  return problemsOfObject("MachineConfig", config).map(
    ({ severity, path, reason, remedy = "" }) => `${severity} ${path} ${reason}; ${remedy}`,
  );
}

describe("files of registries.d that a MachineConfig brings", () => {
  test.for([
    { text: "docker: [", says: /\(line 1: / },
    { text: "docker: *x", says: /Unresolved alias/ },
    { text: "docker: {a: {}, a: {}}", says: /\(line 1: a key stands there twice/ },
    { text: "- docker", says: /it is no object/ },
    { text: "docker: x", says: /docker is no object/ },
    { text: "docker: {a.example: x}", says: /docker\["a\.example"\] is no object/ },
    { text: "docker: {a.example: {lookaside: [x]}}", says: /docker\["a\.example"\]\.lookaside is no text/ },
    { text: "default-docker: {sigstore-staging: {}}", says: /default-docker\.sigstore-staging is no text/ },
    {
      text: "docker: {a.example: {use-sigstore-attachments: 1}}",
      says: /docker\["a\.example"\]\.use-sigstore-attachments is neither true nor false/,
    },
  ])("are warned of that no engine reads: $text [runtime-lookaside-files-1]", ({ text, says }) => {
    const found = warnings({ "/etc/other": "x", [`${folder}/x.yaml`]: text });
    expect(found).toEqual([
      expect.stringMatching(
        /^warning spec\.config\.storage\.files\[1\]\.contents no container engine is certain to read .*; write it as plain YAML/,
      ),
    ]);
    expect(found[0]).toMatch(says);
  });

  test("are nothing to warn of that engines read, or do not look at [runtime-lookaside-files-2]", () => {
    expect(
      warnings({
        [`${folder}/a.yaml`]:
          "default-docker:\n  lookaside: file:///x\ndocker:\n  a.example:\n    use-sigstore-attachments: true\n",
        [`${folder}/b.yaml`]:
          "docker: {b.example: {sigstore: https://x}, c.example: , d.example: {other: [1]}}\nmore: 1",
        [`${folder}/c.yaml`]: "",
        [`${folder}/d.yaml`]: "# nothing\n",
        [`${folder}/e.conf`]: "docker: [",
        [`${folder}/below/f.yaml`]: "docker: [",
      }),
    ).toEqual([]);
  });

  test.for([
    { one: "docker: {a.example: {}}", says: 'docker["a.example"]' },
    { one: "default-docker: {lookaside: https://x}", says: "default-docker" },
  ])("are warned of where two define $says [runtime-lookaside-files-3]", ({ one, says }) => {
    expect(warnings({ [`${folder}/a.yaml`]: one, [`${folder}/b.yaml`]: one })).toEqual([
      `warning spec.config.storage.files[1].contents ${folder}/b.yaml defines ${says}, as ${folder}/a.yaml does: where two files define one place, container engines pull no image at all; take it out of one of the files`,
    ]);
  });

  test("are warned of that are not read, once for each, and for 100 at most [runtime-lookaside-files-4]", () => {
    expect(warnings({ [`${folder}/a.yaml`]: `#${"x".repeat(40_000)}` })).toEqual([
      expect.stringContaining("a.yaml is not read: with those before it, it has more than 32768 characters"),
    ]);
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`${folder}/${i}.yaml`, "docker: x"]));
    expect(warnings(many)).toHaveLength(100);
  });

  const [few, blanks] = [gzipSync(" ".repeat(30_000)), gzipSync(" ".repeat(256 * 1024))];
  test.for([
    { what: "too large", packed: blanks, says: "32768 characters" },
    { what: "broken", packed: Buffer.concat([few.subarray(0, -8), Buffer.alloc(8)]), says: "cannot be decoded" },
    { what: "no text", packed: gzipSync(Buffer.alloc(10_000, 0xff)), says: "no text in UTF-8" },
  ])("are decoded no more after three compressed ones that are $what [runtime-lookaside-files-6]", (row) => {
    let looks = 0;
    const source = `data:;base64,${row.packed.toString("base64")}`;
    const files = Array.from({ length: 20 }, (_, i) => ({
      path: `${folder}/x${i}.yaml`,
      contents: {
        compression: "gzip",
        get source() {
          looks += 1;
          return source;
        },
      },
    }));
    const three = lookasideTexts(files.slice(0, 3));
    const looksAtThree = looks;
    const texts = lookasideTexts([...files, { path: `${folder}/plain.yaml`, contents: { source: "data:,docker:" } }]);
    // Of each of the others, the length is asked.
    expect(looks - looksAtThree).toBeLessThanOrEqual(looksAtThree + 17);
    expect([three[2], texts[2], texts[3], texts[19]].map((one) => one?.verdict === "unread" && one.reason)).toEqual([
      ...[1, 2].map(() => expect.stringContaining(row.says) as string),
      ...[3, 19].map(() => "3 compressed files before it are not read"),
    ]);
    expect(texts[20]).toMatchObject({ verdict: "text", text: "docker:" });
  });

  test("have the places that are written into them, however it is written [runtime-lookaside-files-5]", () => {
    const place = fc.stringMatching(/^[a-z]{1,8}\.example(:[1-9][0-9]{0,3})?(\/[a-z]{1,5})?$/);
    const quotes = fc.constantFrom("", '"', "'");
    fc.assert(
      fc.property(fc.uniqueArray(place, { maxLength: 8 }), quotes, fc.boolean(), (places, quote, isFlow) => {
        const keys = places.map((name) => `${quote}${name}${quote}`);
        const text = isFlow
          ? `docker: {${keys.map((key) => `${key}: {lookaside: x}`).join(", ")}}\n`
          : `docker:\n${keys.map((key) => `  ${key}: # a comment\n    lookaside: x\n`).join("")}default-docker: {}\n`;
        expect(readLookaside(text)).toEqual({ places, hasDefault: !isFlow });
      }),
    );
  });
});
