import { expect, test } from "vitest";
import { heldClock } from "../../../test/support/held-clock.ts";
import { McoError } from "../../api/errors.ts";
import { extensionPackagesPath, osReleasePath, runtimePaths } from "../../core/preview/os-image-demands.ts";
import type { ImageStore } from "../../registry/image-store.ts";
import { extensionFactsIn, osImageFactsIn } from "./read-os-image.ts";

type Store = Pick<ImageStore, "readFiles" | "hasFiles">;

const [runtime = ""] = runtimePaths;
const whole: Store = {
  readFiles: () => Promise.resolve(new Map([[osReleasePath, new TextEncoder().encode("ID=rhel\n")]])),
  hasFiles: () => Promise.resolve(new Set([runtime])),
};

/** Never answers, and ends with its signal. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("fetch ended"))));

const cases: readonly (readonly [string, Store])[] = [
  ["the release", { ...whole, readFiles: (_image, _paths, signal) => untilAborted(signal) }],
  ["the runtimes", { ...whole, hasFiles: (_image, _paths, signal) => untilAborted(signal) }],
];

test.for(cases)("a plan does not wait for %s of an image that does not end [read-os-image-1]", async ([, store]) => {
  const clock = heldClock();
  const facts = osImageFactsIn(store, "r.example.com/os", clock, new AbortController().signal);
  // What the store answers at once is taken first.
  await new Promise((resolve) => setImmediate(resolve));
  clock.pass(5 * 60_000);
  expect(await facts).toEqual({ verdict: "unread", problem: "its registry did not send it within 300 seconds" });
});

test("a plan that is ended, or that meets a bug, says nothing of the image [read-os-image-2]", async () => {
  const clock = heldClock();
  const ending = new AbortController();
  const hangs: Store = { ...whole, readFiles: (_image, _paths, signal) => untilAborted(signal) };
  const facts = osImageFactsIn(hangs, "r.example.com/os", clock, ending.signal);
  ending.abort(new Error("ended"));
  await expect(facts).rejects.toThrow("ended");
  const broken: Store = { ...whole, readFiles: () => Promise.reject(new Error("bug")) };
  await expect(osImageFactsIn(broken, "r.example.com/os", clock, new AbortController().signal)).rejects.toThrow("bug");
});

test("an image that answers is read, and one that cannot be used has its reason [read-os-image-3]", async () => {
  const { signal } = new AbortController();
  expect(await osImageFactsIn(whole, "r.example.com/os", heldClock(), signal)).toEqual({
    verdict: "read",
    osRelease: { ID: "rhel" },
    files: new Set([runtime]),
  });
  const bad: Store = {
    ...whole,
    readFiles: () => Promise.reject(new McoError("MCO_IMAGE_INVALID", { problem: "no manifest for amd64" })),
  };
  expect(await osImageFactsIn(bad, "r.example.com/os", heldClock(), signal)).toEqual({
    verdict: "unread",
    problem: "no manifest for amd64",
  });
});

test("an image with extensions has the packages of its list, and one that cannot be read its reason [read-os-image-4]", async () => {
  const { signal } = new AbortController();
  const read = (readFiles: Store["readFiles"]) =>
    extensionFactsIn({ readFiles }, "r.example.com/extensions", heldClock(), signal);
  const list = new TextEncoder().encode('{"usbguard": "1.0.0-15.el10.x86_64"}');
  expect(await read(() => Promise.resolve(new Map([[extensionPackagesPath, list]])))).toEqual({
    verdict: "read",
    packages: new Set(["usbguard"]),
  });
  expect(await read(() => Promise.resolve(new Map()))).toEqual({
    verdict: "unread",
    problem: "it has no /usr/share/rpm-ostree/extensions.json",
  });
  expect(await read(() => Promise.reject(new McoError("MCO_IMAGE_ABSENT", { problem: "no such image" })))).toEqual({
    verdict: "unread",
    problem: "no such image",
  });
});
