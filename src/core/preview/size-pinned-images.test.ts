import { expect, test } from "vitest";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { labels } from "../../api/names.ts";
import { pinnedImagesLines } from "./pinned-images-lines.ts";
import { type ImageSize, architecturesIn, sizePinnedImages } from "./size-pinned-images.ts";

const [one, two, shared] = ["1", "2", "3"].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string, string];
const image = (name: string, digest: string) => `r.example.com/${name}@${digest}`;
const [a, b] = [image("a", one), image("b", two)];
const mib = 1024 * 1024;
const layer = (digest: string, sizeBytes: number) => ({ digest, sizeBytes });
const sizes: Readonly<Record<string, ImageSize>> = {
  [a]: { verdict: "read", layers: [layer(one, 300 * mib), layer(shared, 200 * mib)] },
  [b]: { verdict: "read", layers: [layer(two, 100 * mib), layer(shared, 200 * mib)] },
};
const unread: ImageSize = { verdict: "unread", problem: "r.example.com did not answer" };

const node = (
  name: string,
  { disk, images, arch }: { disk?: string; images?: readonly string[]; arch?: string },
): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, ...(arch === undefined ? {} : { labels: { [labels.arch]: arch } }) },
  status: {
    ...(disk === undefined ? {} : { allocatable: { "ephemeral-storage": disk } }),
    ...(images === undefined ? {} : { images: [{ names: [...images] }] }),
  },
});
const pool = (...nodes: readonly string[]) => ({ pool: "worker", nodes, fetched: [a, b], unpinned: [] });
const sized = (nodes: readonly Node[], sizeOf: (image: string) => ImageSize = (name) => sizes[name] ?? unread) =>
  sizePinnedImages(pool(...nodes.map(({ metadata }) => metadata.name)), nodes, sizeOf, "amd64");

test("a machine fetches what its kubelet does not list, a shared layer once, and the disk is judged before [size-pinned-images-1]", () => {
  const found = sized([
    node("w0", { disk: "10Gi" }),
    node("w1", { disk: "10Gi", images: [a] }),
    node("w2", { disk: "1Gi" }),
    node("w3", { images: [a, b] }),
    node("w4", {}),
  ]);
  expect(
    found.machines.map(({ verdict, fetchBytes, needBytes }) => [verdict, fetchBytes / mib, needBytes / mib]),
  ).toEqual([
    ["fits", 600, 1200],
    ["fits", 300, 600],
    ["short", 600, 1200],
    ["fits", 0, 0],
    ["unknown", 600, 1200],
  ]);
  expect(found.unread).toEqual([]);
  const lines = pinnedImagesLines([found], 20).slice(4);
  expect(lines).toEqual([
    "  w0: 2 images, 600 MiB to fetch, 1.2 GiB to be free; its kubelet offers 10 GiB",
    "  w1: 1 image, 300 MiB to fetch, 600 MiB to be free; its kubelet offers 10 GiB",
    "  w2: too small: 2 images, 600 MiB to fetch, 1.2 GiB to be free, and its kubelet offers 1 GiB: nothing would be fetched (MCO_IMAGE_NO_SPACE)",
    "  w3: has the images",
    "  w4: 2 images, 600 MiB to fetch, 1.2 GiB to be free; its kubelet does not say how large its disk is",
  ]);
});

test("an image whose size is not known makes no forecast that fits, and says why [size-pinned-images-2]", () => {
  const found = sized([node("w0", { disk: "10Gi" })], (name) => (name === a ? unread : (sizes[b] ?? unread)));
  expect(found.machines).toMatchObject([{ verdict: "unknown", fetchBytes: 300 * mib }]);
  expect(pinnedImagesLines([found], 20).slice(4)).toEqual([
    "  w0: 2 images, 300 MiB to fetch, 600 MiB to be free, as far as sizes are known; its kubelet offers 10 GiB",
    `  not known: the size of ${a}: r.example.com did not answer`,
  ]);
  // What is known already exceeds the disk.
  expect(sized([node("w0", { disk: "500Mi" })], (name) => (name === a ? unread : (sizes[b] ?? unread)))).toMatchObject({
    machines: [{ verdict: "short" }],
  });
});

test("sizes are those of each machine's own architecture [size-pinned-images-3]", () => {
  const nodes = [node("w0", { arch: "arm64" }), node("w1", {})];
  expect(architecturesIn(pool("w0", "w1"), nodes, "amd64")).toEqual(["amd64", "arm64"]);
  const found = sizePinnedImages(
    pool("w0", "w1"),
    nodes,
    (_, architecture) => ({ verdict: "read", layers: [layer(one, architecture === "arm64" ? 7 : 5)] }),
    "amd64",
  );
  expect(found.machines.map(({ fetchBytes }) => fetchBytes)).toEqual([7, 5]);
});
