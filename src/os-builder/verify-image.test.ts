import { expect, test } from "vitest";
import { imageLabels } from "../api/names.ts";
import type { Images } from "./images.ts";
import { verifyImage } from "./verify-image.ts";

const long = "x".repeat(4 * 1024 * 1024);
const good = {
  architecture: "amd64",
  labels: { [imageLabels.content]: "full", [imageLabels.baseDigest]: "sha256:base", "ostree.linux": long },
};

/** What is kept or said of a finished image like this one. */
async function verified(image: { readonly architecture: string; readonly labels: Readonly<Record<string, string>> }) {
  const nodes = { inspect: async () => ({ is: "image", ...image, layers: [] }) } as unknown as Images;
  const expected = { architecture: "amd64", mode: "full", baseDigest: "sha256:base" } as const;
  return verifyImage("registry.example/os@sha256:1", expected, nodes, new AbortController().signal);
}

test("of an image's texts, only as much is kept as an annotation takes [os-builder-verify-1]", async () => {
  const result = await verified(good);
  expect(result).toMatchObject({ verdict: "good", facts: { kernel: `${"x".repeat(255)}…` } });
});

test.for<[title: string, image: Parameters<typeof verified>[0]]>([
  ["its architecture", { ...good, architecture: long }],
  ["its content", { ...good, labels: { ...good.labels, [imageLabels.content]: long } }],
  ["its base", { ...good, labels: { ...good.labels, [imageLabels.baseDigest]: long } }],
])(
  "of a text by which an image is refused, only the beginning is shown: %s [os-builder-verify-2]",
  async ([, image]) => {
    const result = await verified(image);
    expect(result.verdict).toBe("failed");
    expect(JSON.stringify(result).length).toBeLessThan(1024);
  },
);
