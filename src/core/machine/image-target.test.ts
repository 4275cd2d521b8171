import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { desiredImageOf, isTargetOf, pairOf, sameTarget, withImage } from "./image-target.ts";
import { emptyNodeConfig } from "../config/node-config.ts";

const image = `registry.example/a/b@sha256:${"a".repeat(64)}`;
const other = `registry.example/a/b@sha256:${"b".repeat(64)}`;
const { desiredImage, desiredOSImage, desiredImageContent } = annotations;

describe("what a Node's annotations ask for", () => {
  test.for([
    { title: "nothing is nothing", has: {}, desiredImage: { verdict: "none" } },
    {
      title: "empty values are none",
      has: { [desiredImage]: "", [desiredOSImage]: "", [desiredImageContent]: "full" },
      desiredImage: { verdict: "none" },
    },
    {
      title: "both names and the content",
      has: { [desiredImage]: image, [desiredOSImage]: image, [desiredImageContent]: "full" },
      desiredImage: { verdict: "image", pair: { image, content: "full" } },
    },
    {
      title: "the newer name alone holds no files",
      has: { [desiredImage]: image },
      desiredImage: { verdict: "image", pair: { image, content: "os-only" } },
    },
    {
      title: "the older name alone",
      has: { [desiredOSImage]: image, [desiredImageContent]: "os-only" },
      desiredImage: { verdict: "image", pair: { image, content: "os-only" } },
    },
    {
      title: "two images",
      has: { [desiredImage]: image, [desiredOSImage]: other },
      desiredImage: { verdict: "refused", reason: "ConflictingImageAnnotations" },
    },
    {
      title: "a tag",
      has: { [desiredImage]: "registry.example/a:latest" },
      desiredImage: { verdict: "refused", reason: "ImageNotDigest" },
    },
    {
      title: "a short digest",
      has: { [desiredImage]: "registry.example/a@sha256:abc" },
      desiredImage: { verdict: "refused", reason: "ImageNotDigest" },
    },
    {
      title: "a content that there is none of",
      has: { [desiredImage]: image, [desiredImageContent]: "Full" },
      desiredImage: { verdict: "refused", reason: "ImageContentMismatch" },
    },
  ])("$title", ({ has, desiredImage }) => {
    expect(desiredImageOf(has)).toMatchObject(desiredImage);
  });
});

test("a configuration with an image leaves packages and kernel to that, and keeps its kernel arguments", () => {
  const config = {
    ...emptyNodeConfig,
    name: "a",
    osImage: "stock",
    extensions: ["usbguard"],
    extensionsImage: "extensions",
    kernelType: "realtime",
    kernelArguments: ["nosmt"],
  } as const;
  const given = withImage(config, { image, content: "full" });
  expect(given).toMatchObject({
    osImage: image,
    extensions: [],
    extensionsImage: "",
    kernelType: "default",
    kernelArguments: ["nosmt"],
  });
  expect(pairOf(given)).toEqual({ image, content: "full" });
  expect(withImage(config, undefined)).toBe(config);
  expect(pairOf(config)).toBeUndefined();
});

test("a target is its configuration, its image and what that holds, together", () => {
  const config = { ...emptyNodeConfig, name: "a", osImage: "stock" };
  const full = withImage(config, { image, content: "full" });
  expect(sameTarget(full, { ...full })).toBe(true);
  for (const not of [
    config,
    withImage(config, { image: other, content: "full" }),
    withImage(config, { image, content: "os-only" }),
    { ...full, name: "b" },
  ])
    expect(sameTarget(full, not)).toBe(false);
  // Without an image of its own the system is the configuration's matter.
  expect(sameTarget(config, { ...config, osImage: "another" })).toBe(true);
  expect(isTargetOf({ target: "a", image, content: "full" }, full)).toBe(true);
  expect(isTargetOf({ target: "a" }, full)).toBe(false);
});
