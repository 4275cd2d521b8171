import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { untilSeen } from "../../../test/support/until-seen.ts";
import { watchPaths } from "./watch-paths.ts";

const turns = 300;

test("a user who changes a folder again and again makes the daemon look for its folders once in a while [host-watch-1]", async () => {
  const root = fs.mkdtempSync(join(tmpdir(), "mco-watch-"));
  onTestFinished(() => fs.rmSync(root, { recursive: true, force: true }));
  const keys = join(root, "home/.ssh/keys");
  fs.mkdirSync(keys, { recursive: true });
  fs.mkdirSync(join(root, "etc"));
  const managed = Array.from({ length: 80 }, (_, i) => join(root, `etc/f${i}`));
  const [marker = ""] = managed;
  let looks = 0;
  const changes: string[] = [];
  const pauses: (() => void)[] = [];
  const stop = watchPaths([...managed, join(keys, "ignition")], (path) => void changes.push(path), {
    locate: (path) => Promise.resolve(path),
    exists: (path) => {
      looks += 1;
      return Promise.resolve(fs.existsSync(path));
    },
    pause: () => new Promise((resolve) => void pauses.push(resolve)),
  });
  onTestFinished(stop);
  const pausedTimes = (count: number) =>
    untilSeen(
      `it pauses for the time ${count}`,
      () => Promise.resolve(pauses.length),
      (now) => now >= count,
      { everyMs: 5 },
    );
  await pausedTimes(1);
  // Two folders.
  expect(looks).toBe(2);
  changes.length = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    fs.chmodSync(keys, turn % 2 === 0 ? 0o700 : 0o755);
    fs.writeFileSync(join(keys, "keys"), "");
  }
  fs.writeFileSync(marker, "");
  const seen = (path: string) =>
    untilSeen(
      `a change of ${path}`,
      () => Promise.resolve(changes),
      (now) => now.includes(path),
      { everyMs: 5 },
    );
  await seen(marker);
  expect(looks).toBe(2);
  pauses[0]?.();
  await pausedTimes(2);
  expect(looks).toBe(4);
  // It watches as before.
  changes.length = 0;
  fs.writeFileSync(join(keys, "ignition"), "");
  await seen(join(keys, "ignition"));
});
