import { expect, test } from "vitest";
import { McoError } from "../../api/errors.ts";
import { systemClock } from "../../ports/node/index.ts";
import type { ImageInfo, MissingImage } from "../../registry/image-store.ts";
import { readImageSizes } from "./read-image-sizes.ts";

const image = (host: string, digit: number) => `${host}/app@sha256:${String(digit).repeat(64)}`;
const layers = [{ mediaType: "layer", digest: `sha256:${"a".repeat(64)}`, sizeBytes: 5, annotations: {} }];
const found: ImageInfo = {
  is: "image",
  digest: "",
  architecture: "amd64",
  created: 0,
  labels: {},
  layers,
  diffIds: [],
};
const read = (images: readonly string[], inspect: (image: string) => Promise<ImageInfo | MissingImage>) =>
  readImageSizes(images, { inspect }, systemClock, new AbortController().signal);

test("a registry that does not answer is left alone, and keeps no other one's sizes [read-image-sizes-1]", async () => {
  const asked: string[] = [];
  const dead = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((digit) => image("dead.example.com", digit));
  const live = image("live.example.com", 1);
  const sizes = await read([...dead, live, image("dead.example.com", 0)], (name) => {
    asked.push(name);
    return Promise.resolve(name === live ? found : { is: "unreachable", problem: "connect: refused" });
  });
  expect(sizes.get(live)).toEqual({ verdict: "read", layers });
  expect(sizes.get(dead[0] ?? "")).toEqual({ verdict: "unread", problem: "connect: refused" });
  expect(sizes.get(image("dead.example.com", 0))).toMatchObject({
    problem: "dead.example.com did not answer for the images before it",
  });
  expect(asked).not.toContain(image("dead.example.com", 0));
});

test("an image that is not there or cannot be used has its reason; a bug ends the plan [read-image-sizes-2]", async () => {
  const [gone, bad] = [image("r.example.com", 1), image("r.example.com", 2)];
  const sizes = await read([gone, bad], (name) =>
    name === gone
      ? Promise.resolve({ is: "absent", problem: "the registry answered 404" })
      : Promise.reject(new McoError("MCO_IMAGE_INVALID", { problem: "no manifest for amd64" })),
  );
  expect([...sizes.values()]).toEqual([
    { verdict: "unread", problem: "the registry answered 404" },
    { verdict: "unread", problem: "no manifest for amd64" },
  ]);
  await expect(read([gone], () => Promise.reject(new Error("bug")))).rejects.toThrow("bug");
});
