import { describe, expect, test } from "vitest";
import { heldClock } from "../../test/support/held-clock.ts";
import { untilSeen } from "../../test/support/until-seen.ts";
import { McoError } from "../api/errors.ts";
import { type ImageAccess, type Images, withDeadlines } from "./images.ts";

const never = new AbortController().signal;
const access: ImageAccess = {
  pool: "worker",
  pull: undefined,
  push: undefined,
  registries: undefined,
  policy: undefined,
  certificates: {},
  trust: [],
  architecture: "amd64",
};
const image = `r.example.com/os@sha256:${"a".repeat(64)}`;

/** A registry that never answers, and counts who waits for it. Searches for files are answered as `files` says. */
function harness(files?: (signal: AbortSignal) => Promise<ReadonlyMap<string, Uint8Array>>) {
  const stop = new AbortController();
  const clock = heldClock();
  const asked: string[] = [];
  let waiting = 0;
  let answer: (() => Promise<never>) | undefined;
  const silent = (name: string, signal: AbortSignal) =>
    new Promise<never>((resolve, reject) => {
      asked.push(name);
      if (answer !== undefined) return resolve(answer());
      waiting += 1;
      signal.addEventListener("abort", () => {
        waiting -= 1;
        reject(signal.reason as Error);
      });
    });
  const images: Images = {
    resolve: silent,
    inspect: silent,
    readFiles(name, _, signal) {
      if (files === undefined) return silent(name, signal);
      asked.push(name);
      return files(signal);
    },
    delete: silent,
    mayPush: silent,
    isWorldReadable: silent,
  };
  return {
    clock,
    asked,
    stop,
    waiting: () => waiting,
    /** From now on it answers. */
    answerWith: (how: () => Promise<unknown>) => (answer = how as () => Promise<never>),
    open: withDeadlines(() => images, clock, stop.signal),
  };
}

const queries: Readonly<
  Record<Exclude<keyof Images, "readFiles">, (images: Images, signal?: AbortSignal) => Promise<unknown>>
> = {
  resolve: (images, signal = never) => images.resolve(image, signal),
  inspect: (images, signal = never) => images.inspect(image, signal),
  delete: (images, signal = never) => images.delete(image, signal),
  mayPush: (images, signal = never) => images.mayPush("r.example.com/os", signal),
  isWorldReadable: (images, signal = never) => images.isWorldReadable("r.example.com/os", signal),
};
const outcome = (query: Promise<unknown>) =>
  query.then(
    (answer) => answer,
    (error: unknown) => (error as { readonly code?: string }).code ?? String(error),
  );
const unreachable: Readonly<Record<string, unknown>> = {
  inspect: { is: "unreachable", problem: "the registry did not answer in time" },
  mayPush: "unreachable",
};

describe("a registry that does not answer", () => {
  test.for(Object.entries(queries))(
    "%s ends in time, and the registry is left alone for a while [os-builder-images-1]",
    async ([name, query]) => {
      const { clock, asked, waiting, open } = harness();
      const first = outcome(query(open(access)));
      clock.pass(600_000);
      const expected = unreachable[name] ?? "MCO_IMAGE_UNREACHABLE";
      expect(await first).toEqual(expected);
      expect([asked.length, waiting()]).toEqual([1, 0]);
      // Another pass asks nothing.
      expect(await outcome(query(open(access)))).toEqual(expected);
      expect(asked.length).toBe(1);
      clock.pass(61_000);
      // It is asked again, and nobody waits for it; nor twice.
      for (let times = 0; times < 2; times += 1) expect(await outcome(query(open(access)))).toEqual(expected);
      expect([asked.length, waiting()]).toEqual([2, 1]);
      clock.pass(31_000);
      expect(waiting()).toBe(0);
      expect(await outcome(query(open(access)))).toEqual(expected);
      expect(asked.length).toBe(2);
    },
  );

  test("is used as soon as it answers again, be it with a refusal [os-builder-images-10]", async () => {
    for (const answer of [
      () => Promise.resolve("r.example.com/os@x"),
      () => Promise.reject(new McoError("MCO_IMAGE_ABSENT", { image, problem: "no", retryable: false })),
    ]) {
      const { clock, asked, open, answerWith } = harness();
      const ask = () => outcome(open(access).resolve("r.example.com/os:1", never));
      const first = ask();
      clock.pass(31_000);
      expect(await first).toBe("MCO_IMAGE_UNREACHABLE");
      clock.pass(61_000);
      answerWith(answer);
      expect(await ask()).toBe("MCO_IMAGE_UNREACHABLE");
      expect(asked.length).toBe(2);
      expect(await untilSeen("its answer", ask, (told) => told !== "MCO_IMAGE_UNREACHABLE")).toBe(
        await outcome(answer()),
      );
    }
  });

  test("holds up the builder once for each pool, and not again while it is slow [os-builder-images-11]", async () => {
    const { clock, open } = harness();
    const ask = (pool: string) => [
      outcome(open({ ...access, pool }).resolve(`${pool}.example.com/os:1`, never)),
      outcome(open({ ...access, pool }).readFiles(`${pool}.example.com/os`, [], never)),
    ];
    const pools = ["a", "b", "c", "d"];
    const first = pools.flatMap(ask);
    clock.pass(31_000);
    expect(new Set(await Promise.all(first))).toEqual(new Set(["MCO_IMAGE_UNREACHABLE"]));
    // No time passes in any of these.
    for (let minute = 0; minute < 20; minute += 1) {
      expect(new Set(await Promise.all(pools.flatMap(ask)))).toEqual(new Set(["MCO_IMAGE_UNREACHABLE"]));
      clock.pass(60_000);
    }
  });

  test("is asked by others, who reach it in another way, and is not the only one [os-builder-images-2]", async () => {
    const { clock, asked, open } = harness();
    const first = outcome(open(access).resolve("r.example.com/os:1", never));
    clock.pass(31_000);
    expect(await first).toBe("MCO_IMAGE_UNREACHABLE");
    void outcome(open({ ...access, pull: "others" }).resolve("r.example.com/os:1", never));
    void outcome(open(access).resolve("s.example.com/os:1", never));
    expect(asked).toEqual(["r.example.com/os:1", "r.example.com/os:1", "s.example.com/os:1"]);
  });

  test("a query that its caller ends is no answer of the registry [os-builder-images-3]", async () => {
    const { asked, open } = harness();
    const stopping = new AbortController();
    const first = open(access).resolve("r.example.com/os:1", stopping.signal);
    stopping.abort(new Error("the process ends"));
    await expect(first).rejects.toThrow("the process ends");
    void outcome(open(access).resolve("r.example.com/os:1", never));
    expect(asked.length).toBe(2);
  });

  test("a search for files goes on while nobody waits, and whoever asks again has what it found [os-builder-images-4]", async () => {
    let found: ((files: ReadonlyMap<string, Uint8Array>) => void) | undefined;
    const { clock, asked, open } = harness(() => new Promise((resolve) => (found = resolve)));
    const search = () => outcome(open(access).readFiles(image, ["/etc/passwd"], never));
    const first = search();
    clock.pass(31_000);
    expect(await first).toBe("MCO_IMAGE_UNREACHABLE");
    clock.pass(500_000);
    // Who asked before does not wait again.
    expect(await search()).toBe("MCO_IMAGE_UNREACHABLE");
    const files = new Map([["/etc/passwd", new Uint8Array()]]);
    found?.(files);
    expect(await untilSeen("what it found", search, (told) => told !== "MCO_IMAGE_UNREACHABLE")).toBe(files);
    expect(asked.length).toBe(1);
  });

  test("a search ends after an hour, with its caller's patience only for the caller, and with the builder [os-builder-images-5]", async () => {
    const { clock, asked, waiting, stop, open } = harness();
    const search = async () => {
      const found = outcome(open(access).readFiles(image, [], never));
      clock.pass(300_000);
      return found;
    };
    for (let minute = 0; minute < 60; minute += 5) {
      expect([asked.length, waiting()]).toEqual([minute === 0 ? 0 : 1, minute === 0 ? 0 : 1]);
      expect(await search()).toBe("MCO_IMAGE_UNREACHABLE");
    }
    // Who asks next is told how it ended.
    expect(await outcome(open(access).readFiles(image, [], never))).toBe("MCO_IMAGE_UNREACHABLE");
    expect([waiting(), asked.length]).toEqual([0, 1]);
    const again = outcome(open(access).readFiles(image, [], never));
    expect([waiting(), asked.length]).toEqual([1, 2]);
    stop.abort(new Error("the builder ends"));
    await again;
    expect(waiting()).toBe(0);
  });

  test("sixteen searches go on at once [os-builder-images-6]", async () => {
    const { asked, waiting, open } = harness();
    const search = (number: number) =>
      outcome(open({ ...access, pool: `p${number}` }).readFiles(`r${number}.example.com/os`, [], never));
    for (let number = 0; number < 16; number += 1) void search(number);
    expect(await search(16)).toBe("MCO_IMAGE_UNREACHABLE");
    expect([waiting(), asked.length]).toEqual([16, 16]);
  });

  test("a pool that asks for ever other images holds two places, and others have the rest [os-builder-images-7]", async () => {
    const { asked, waiting, open } = harness();
    for (let number = 0; number < 40; number += 1)
      void outcome(
        open({ ...access, pool: "infra", pull: `secret ${number}` }).readFiles(`r${number}.example.com/os`, [], never),
      );
    expect([waiting(), asked.length]).toEqual([2, 40]);
    for (let number = 0; number < 12; number += 1)
      void outcome(open({ ...access, pool: `p${number}` }).readFiles(image, [`/${number}`], never));
    expect(waiting()).toBe(14);
    // What a pool left goes on for another one that wants it.
    void outcome(open({ ...access, pool: "p0" }).readFiles(image, ["/1"], never));
    for (const path of ["/a", "/b"]) void outcome(open({ ...access, pool: "p1" }).readFiles(image, [path], never));
    void outcome(open({ ...access, pool: "p2" }).readFiles(image, ["/1"], never));
    expect([waiting(), asked.length]).toEqual([16, 40 + 12 + 2]);
  });

  test("a search that nobody asks for any more ends, and one that is asked for goes on [os-builder-images-8]", async () => {
    const { clock, asked, waiting, open } = harness();
    const search = (pool: string, name = image) => outcome(open({ ...access, pool }).readFiles(name, [], never));
    const left = search("infra", "r.example.com/other");
    const joined = search("infra");
    for (let minute = 0; minute < 30; minute += 5) {
      const wanted = search("worker");
      clock.pass(300_000);
      expect(await wanted).toBe("MCO_IMAGE_UNREACHABLE");
      // Infra asks once, and is told that it takes longer.
      expect([await left, await joined]).toEqual(["MCO_IMAGE_UNREACHABLE", "MCO_IMAGE_UNREACHABLE"]);
      expect(waiting()).toBe(minute === 0 ? 2 : 1);
    }
    expect(asked).toEqual(["r.example.com/other", image]);
    clock.pass(601_000);
    expect(waiting()).toBe(0);
    void search("infra");
    expect([waiting(), asked.length]).toEqual([1, 3]);
  });

  test.for([
    [{ policy: '{"default":[{"type":"reject"}]}' }, 2],
    [{ architecture: "arm64" }, 2],
    [{ pool: "other" }, 1],
  ] as const)(
    "who would judge the image by %o has a search of their own: %i [os-builder-images-9]",
    ([other, searches]) => {
      const { waiting, open } = harness();
      void outcome(open(access).readFiles(image, [], never));
      void outcome(open({ ...access, ...other }).readFiles(image, [], never));
      expect(waiting()).toBe(searches);
    },
  );
});
