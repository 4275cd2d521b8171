import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDocuments } from "../../../src/cli/manifests.ts";
import { hasKubernetes, kubectlProgram } from "../../support/kubernetes/control-plane.ts";
import { manifestFiles } from "./manifest-files.ts";
import { runs } from "./runs.ts";

const exec = promisify(execFile);

/** Parts of which people write modes, sizes, switches and versions, and what looks like them. */
const parts = [
  "0123456789+-._eExXoObB~".split(""),
  ["on", "off", "yes", "no", "y", "n", "true", "false", "null", "inf", "nan", "On", "YES", "True", "NULL"],
  ["0o", "0x", "0b", "00", "0644", "644", "e3", ".5", "1.", "%", "/", "Ki", "d", "f"],
].flat();
const plain = fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 4 }).map((given) => given.join(""));
const scalar = fc.oneof(
  { weight: 6, arbitrary: plain },
  { weight: 1, arbitrary: plain.map((text) => `"${text}"`) },
  { weight: 1, arbitrary: plain.map((text) => `'${text}'`) },
  { weight: 1, arbitrary: plain.map((text) => `!!str ${text}`) },
);

const documentOf = (text: string) =>
  `apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec:\n- ${text}\n- end\n`;

/** The value as JSON; `undefined`: the manifest is refused. */
type Read = string | undefined;

function readByUs(text: string): Read {
  const [document] = parseDocuments(documentOf(text), "f.yaml");
  return document?.verdict === "read" ? JSON.stringify(document.manifest.spec) : undefined;
}

describe.skipIf(!hasKubernetes)("scalars of manifests, as kubectl reads them", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mco-kubectl-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** One run of kubectl for all of them; if it refuses one, each half is read by itself. */
  async function readByKubectl(texts: readonly string[]): Promise<readonly Read[]> {
    const file = join(folder, "manifests.yaml");
    writeFileSync(file, texts.map(documentOf).join("---\n"));
    try {
      const { stdout } = await exec(kubectlProgram, ["annotate", "--local", "-f", file, "a=b", "-o", "json"], {
        maxBuffer: 64 * 1024 * 1024,
      });
      // The objects follow each other without a separator.
      const objects = JSON.parse(`[${stdout.trim().replaceAll(/^\}\n\{/gm, "},{")}]`) as { readonly spec: unknown }[];
      expect(objects.length).toBe(texts.length);
      return objects.map(({ spec }) => JSON.stringify(spec));
    } catch (error) {
      if (typeof (error as { readonly code?: unknown }).code !== "number") throw error;
      if (texts.length === 1) return [undefined];
      const half = texts.length >> 1;
      return [...(await readByKubectl(texts.slice(0, half))), ...(await readByKubectl(texts.slice(half)))];
    }
  }

  test("300 of them are the same value, or refused by both [readers-kubectl-1]", { timeout: 600_000 }, async () => {
    const { numRuns, seed } = runs(300, 3000);
    const texts = [...new Set(fc.sample(scalar, { numRuns, ...(seed === undefined ? {} : { seed }) }))];
    const theirs = await readByKubectl(texts);
    const differing = texts.flatMap((text, i) => {
      const ours = readByUs(text);
      // A number out of range is an error in JSON and a text in YAML: it is refused here in both.
      const isRefused = ours === undefined && /^["']?[-+]?[\d._]+[eE][-+]?\d{3,}["']?$/.test(text);
      return isRefused || ours === theirs[i] ? [] : [{ text, ours, theirs: theirs[i] }];
    });
    expect(differing).toEqual([]);
    expect(theirs.filter((read) => read !== undefined).length).toBeGreaterThan(texts.length / 2);
  });

  test("modes and switches as people write them [readers-kubectl-2]", { timeout: 600_000 }, async () => {
    const texts = ["0o644", "0644", "420", "644", '"0644"', "yes", "on", "true", "no", "off", "'yes'"];
    expect(await readByKubectl(texts)).toEqual(texts.map(readByUs));
    expect(texts.slice(0, 8).map(readByUs)).toEqual(
      [420, 420, 420, 644, "0644", true, true, true].map((value) => JSON.stringify([value, "end"])),
    );
  });
});

describe.skipIf(!hasKubernetes)("files of manifests, as kubectl applies them", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mco-kubectl-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The objects that kubectl would send of a file; `undefined`: it refuses the file. */
  async function objectsByKubectl(text: string): Promise<readonly unknown[] | undefined> {
    const file = join(folder, "file.yaml");
    writeFileSync(file, text);
    try {
      const { stdout } = await exec(kubectlProgram, ["annotate", "--local", "-f", file, "mark=1", "-o", "json"]);
      const objects = JSON.parse(`[${stdout.trim().replaceAll(/^\}\n\{/gm, "},{")}]`) as {
        readonly metadata: { readonly annotations?: unknown };
      }[];
      return objects.map(({ metadata: { annotations: _, ...metadata }, ...object }) => ({ ...object, metadata }));
    } catch (error) {
      if (typeof (error as { readonly code?: unknown }).code !== "number") throw error;
      return undefined;
    }
  }

  test("a file that is read has the objects that kubectl sends [readers-kubectl-3]", { timeout: 600_000 }, async () => {
    const { numRuns, seed } = runs(1000, 10_000);
    const texts = new Set(fc.sample(manifestFiles, { numRuns, ...(seed === undefined ? {} : { seed }) }));
    let both = 0;
    for (const text of texts) {
      const ours = parseDocuments(text, "f.yaml");
      // kubectl annotates nothing where there is nothing, and says so with an error.
      if (ours.length === 0 || ours.some(({ verdict }) => verdict !== "read")) continue;
      const manifests = ours.flatMap((one) => (one.verdict === "read" ? [one.manifest as unknown] : []));
      expect({ text, objects: await objectsByKubectl(text) }).toEqual({
        text,
        objects: JSON.parse(JSON.stringify(manifests)) as unknown,
      });
      both += 1;
    }
    expect(both).toBeGreaterThan(texts.size / 50);
  });
});
