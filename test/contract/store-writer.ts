/** Writes to an SQLite store as fast as it can and prints the acknowledged revisions, until it is killed. */
import { writeSync } from "node:fs";
import { sqliteStore } from "../../src/standin/apiserver/node/sqlite-store.ts";

const store = sqliteStore({ file: process.argv[2] ?? "" });
for (let number = 0; ; number++) {
  const key = { resource: "things", namespace: "", name: `thing-${number % 50}` };
  const before = store.get(key);
  const value = JSON.stringify({ number, filling: "x".repeat(500) });
  const outcome =
    before === undefined
      ? store.create(key, value)
      : number % 7 === 0
        ? store.delete(key, before.revision, before.value)
        : store.update(key, before.revision, value);
  // Straight to the pipe: no line may sit in a buffer of the process that dies.
  if (outcome.outcome === "written")
    writeSync(
      1,
      `${JSON.stringify({ revision: outcome.revision, name: key.name, value: store.get(key)?.value ?? null })}\n`,
    );
}
