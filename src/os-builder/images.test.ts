import { describe, expect, test } from "vitest";
import { heldClock } from "../../test/support/held-clock.ts";
import { type ImageAccess, type Images, withDeadlines } from "./images.ts";

const never = new AbortController().signal;
const access: ImageAccess = {
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
  const silent = (name: string, signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      asked.push(name);
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
  return { clock, asked, stop, waiting: () => waiting, open: withDeadlines(() => images, clock, stop.signal) };
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
      const later = outcome(query(open(access)));
      expect(asked.length).toBe(2);
      clock.pass(600_000);
      await later;
    },
  );

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
    clock.pass(1_800_000);
    const second = search();
    const files = new Map([["/etc/passwd", new Uint8Array()]]);
    found?.(files);
    expect([await second, asked.length]).toEqual([files, 1]);
  });

  test("a search ends after an hour, with its caller's patience only for the caller, and with the builder [os-builder-images-5]", async () => {
    const { clock, asked, waiting, stop, open } = harness();
    const search = () => outcome(open(access).readFiles(image, [], never));
    const first = search();
    clock.pass(31_000);
    expect([await first, waiting()]).toEqual(["MCO_IMAGE_UNREACHABLE", 1]);
    clock.pass(3_600_000);
    expect([await search(), waiting(), asked.length]).toEqual(["MCO_IMAGE_UNREACHABLE", 0, 1]);
    const again = search();
    expect([waiting(), asked.length]).toEqual([1, 2]);
    stop.abort(new Error("the builder ends"));
    await again;
    expect(waiting()).toBe(0);
  });

  test("sixteen searches go on at once [os-builder-images-6]", async () => {
    const { asked, waiting, open } = harness();
    const search = (number: number) => outcome(open(access).readFiles(`r${number}.example.com/os`, [], never));
    for (let number = 0; number < 16; number += 1) void search(number);
    expect(await search(16)).toBe("MCO_IMAGE_UNREACHABLE");
    expect([waiting(), asked.length]).toEqual([16, 16]);
  });
});
