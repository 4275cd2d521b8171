import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock, systemFiles, systemRandom } from "../ports/node/index.ts";
import type { Incoming } from "./blob-store.ts";
import { folderStore } from "./node/folder-store.ts";
import { processWord } from "./node/process-identity.ts";
import { bytesOf, failure, sha256Of, temporaryFolder } from "../../test/support/registry/pull-harness.ts";

const never = new AbortController().signal;
const blob = bytesOf(300_000, 5);
const digest = sha256Of(blob);
const wanted = { digest, sizeBytes: blob.length };
const storeIn = (folder: string, clock = systemClock) =>
  folderStore(folder, { files: systemFiles, clock, random: systemRandom });

/** A source that records the requested offset, and fails after `upTo` bytes of the whole. */
function source(bytes: Buffer, upTo = bytes.length, begin = (from: number) => from) {
  const asked: number[] = [];
  const fetch = async (from: number): Promise<Incoming> => {
    asked.push(from);
    const start = begin(from);
    return {
      from: start,
      chunks: (async function* () {
        for (let at = start; at < upTo; at += 10_000) yield bytes.subarray(at, Math.min(upTo, at + 10_000));
      })(),
    };
  };
  return { asked, fetch };
}

test("received bytes are kept, and the rest is requested", async () => {
  const store = storeIn(await temporaryFolder());
  const first = source(blob, 120_000);
  const second = source(blob);
  expect(await failure(store.receive(wanted, first.fetch, never))).toMatchObject({
    code: "MCO_IMAGE_UNREACHABLE",
    arrivedBytes: 120_000,
    retryable: true,
  });
  expect(await store.has(digest)).toBe(false);
  await store.receive(wanted, second.fetch, never);
  expect([first.asked, second.asked]).toEqual([[0], [120_000]]);
  expect(Buffer.compare((await store.read(digest)) ?? Buffer.alloc(0), blob)).toBe(0);
  await store.receive(wanted, () => Promise.reject(new Error("asked although it is there")), never);
});

test("a source may start earlier than requested", async () => {
  const store = storeIn(await temporaryFolder());
  await failure(store.receive(wanted, source(blob, 120_000).fetch, never));
  await store.receive(wanted, source(blob, blob.length, (from) => from - 50_000).fetch, never);
  expect(await store.has(digest)).toBe(true);
});

test("wrong bytes are discarded, and the error reports whether an earlier attempt brought some of them", async () => {
  const store = storeIn(await temporaryFolder());
  const other = bytesOf(blob.length, 6);
  await failure(store.receive(wanted, source(other, 120_000).fetch, never));
  expect(await failure(store.receive(wanted, source(blob).fetch, never))).toMatchObject({
    code: "MCO_IMAGE_DIGEST_MISMATCH",
    resumed: true,
  });
  expect(await failure(store.receive(wanted, source(other).fetch, never))).toMatchObject({
    code: "MCO_IMAGE_DIGEST_MISMATCH",
    resumed: false,
  });
  const last = source(blob);
  await store.receive(wanted, last.fetch, never);
  expect(last.asked).toEqual([0]);
  expect(await failure(store.put(digest, other))).toMatchObject({ code: "MCO_IMAGE_DIGEST_MISMATCH" });
});

test("a download of a dead process is taken over; one that progresses is waited for", async () => {
  const folder = await temporaryFolder();
  const partial = join(folder, "partial");
  await mkdir(partial, { recursive: true });
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  await once(child, "spawn");
  const start = (await systemFiles.readText(`/proc/${child.pid}/stat`))?.replace(/^.*\) /, "").split(" ")[19];
  const theirs = `${digest.slice(7)}~${child.pid}-${start}-x`;
  await writeFile(join(partial, theirs), blob.subarray(0, 100_000));

  const stop = new AbortController();
  let looks = 0;
  const sleep = (milliseconds: number, signal?: AbortSignal) => {
    looks += 1;
    if (looks === 3) stop.abort(new Error("enough"));
    return systemClock.sleep(Math.min(milliseconds, 5), signal);
  };
  const impatient = { ...systemClock, sleep };
  await expect(
    storeIn(folder, impatient).receive(
      wanted,
      () => Promise.reject(new Error("fetched beside the other")),
      stop.signal,
    ),
  ).rejects.toThrow("enough");

  child.kill("SIGKILL");
  await once(child, "exit");
  const after = source(blob);
  await storeIn(folder).receive(wanted, after.fetch, never);
  expect(after.asked).toEqual([100_000]);
  expect(await readdir(partial)).toEqual([]);
});

test("a living process without progress is not waited for forever", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "partial"), { recursive: true });
  await writeFile(join(folder, "partial", `${digest.slice(7)}~${await processWord()}-other`), "x");
  let now = 0;
  const clock = {
    ...systemClock,
    monotonic: () => now,
    sleep: async (milliseconds: number) => {
      now += milliseconds;
    },
  };
  const own = source(blob);
  await storeIn(folder, clock).receive(wanted, own.fetch, never);
  expect(own.asked).toEqual([0]);
  expect(now).toBeGreaterThanOrEqual(10_000);
});

test("two concurrent requests get the same blob, in one store and in two stores", async () => {
  const folder = await temporaryFolder();
  const [a, b] = [storeIn(folder), storeIn(folder)];
  await Promise.all([a, a, b].map((store) => store.receive(wanted, source(blob).fetch, never)));
  expect(await b.has(digest)).toBe(true);
  expect(await readdir(join(folder, "partial"))).toEqual([]);
});

test("kept and recently used blobs stay", async () => {
  let offset = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + offset };
  const store = storeIn(await temporaryFolder(), clock);
  const digests = ["a", "b", "c"].map((text) => sha256Of(text));
  for (const text of ["a", "b", "c"]) await store.put(sha256Of(text), Buffer.from(text));
  await failure(store.receive(wanted, source(blob, 10_000).fetch, never));
  const there = async () => Promise.all(digests.map((each) => store.has(each)));
  await store.keep(new Set(), 60_000);
  expect(await there()).toEqual([true, true, true]);
  offset = 120_000;
  await store.read(digests[1] ?? "");
  await store.keep(new Set([digests[0] ?? ""]), 60_000);
  expect(await there()).toEqual([true, true, false]);
  const again = source(blob);
  await store.receive(wanted, again.fetch, never);
  expect(again.asked).toEqual([0]);
});
