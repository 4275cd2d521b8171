import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { sqliteStore } from "../../src/standin/apiserver/node/sqlite-store.ts";

interface Acknowledged {
  readonly revision: number;
  readonly name: string;
  readonly value: string | null;
}

const folder = mkdtempSync(join(tmpdir(), "mco-kill-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Lets a writer run until it has acknowledged `enough` writes, then kills it. */
function killedWriter(file: string, enough: number): Promise<readonly Acknowledged[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "store-writer.ts"), file],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let text = "";
    let lines = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      lines += chunk.toString().split("\n").length - 1;
      if (lines >= enough) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", () => {
      const whole = text.slice(0, text.lastIndexOf("\n"));
      resolve(whole.split("\n").map((line) => JSON.parse(line) as Acknowledged));
    });
  });
}

describe("an SQLite store whose process was killed", () => {
  test("has every acknowledged write, continues its counter, and still has its events", async () => {
    const file = join(folder, "store.db");
    let last = 1;
    for (const enough of [1, 150, 40, 900]) {
      const acknowledged = await killedWriter(file, enough);
      const store = sqliteStore({ file });
      const newest = acknowledged.at(-1)?.revision ?? 0;
      expect(acknowledged[0]?.revision).toBeGreaterThan(last);
      // One write may have been stored without an acknowledgement.
      expect(store.revision() - newest).toBeGreaterThanOrEqual(0);
      expect(store.revision() - newest).toBeLessThanOrEqual(1);
      const unsaid = store.events(newest, 10);
      const touched = new Set(unsaid.verdict === "events" ? unsaid.events.map((event) => event.key.name) : []);
      const expected = new Map(acknowledged.map(({ name, value }) => [name, value]));
      for (const [name, value] of expected) {
        if (!touched.has(name))
          expect(store.get({ resource: "things", namespace: "", name })?.value ?? null).toBe(value);
      }
      const told = store.events(last, Number.MAX_SAFE_INTEGER);
      expect(told.verdict === "events" ? told.events.map((event) => event.revision) : []).toEqual(
        Array.from({ length: store.revision() - last }, (_, index) => last + 1 + index),
      );
      last = store.revision();
      store.close();
    }
  });
});
