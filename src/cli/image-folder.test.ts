import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { failure, registry, temporaryFolder } from "../../test/support/registry/pull-harness.ts";
import { authJson, settings } from "../../test/support/registry/settings.ts";
import { gzippedLayer } from "../../test/support/registry/tar-builder.ts";
import type { TestRegistry } from "../../test/support/registry/test-registry.ts";
import { systemClock } from "../ports/node/index.ts";
import { imageFolder } from "./image-folder.ts";

const never = new AbortController().signal;
const none = () => false;
/** An image of one layer that says its name. */
const pushed = (to: TestRegistry, name: string) =>
  `${to.host}/apps/${name}@${to.addImage(`apps/${name}`, [gzippedLayer({ path: "name", contents: name })])}`;

test("an image is there once it was pulled whole, and its sizes are the registry's [image-folder-1]", async () => {
  const from = await registry({ auth: { kind: "bearer", user: "machine", password: "s3cret" } });
  const auth = authJson(from.host, "machine", "s3cret");
  const image = pushed(from, "a");
  const folder = await temporaryFolder();
  const images = imageFolder(folder);
  expect(await images.has(image)).toBe(false);
  const layers = await images.layersOf(image, settings({ auth }), never);
  expect(layers.map(({ sizeBytes }) => sizeBytes > 0)).toEqual([true]);
  await images.pull(image, settings({ auth }), none, never);
  expect(await images.has(image)).toBe(true);
  // Another process sees the same; an image whose blob is gone is not there.
  await rm(join(folder, "blobs", (layers[0]?.digest ?? "").slice("sha256:".length)));
  expect(await imageFolder(folder).has(image)).toBe(false);
});

test("what a registry lacks or denies, and what the machine's policy forbids, is told by its code [image-folder-2]", async () => {
  const from = await registry({ auth: { kind: "bearer", user: "machine", password: "s3cret" } });
  const auth = authJson(from.host, "machine", "s3cret");
  const image = pushed(from, "a");
  const images = imageFolder(await temporaryFolder());
  const absent = `${from.host}/apps/a@sha256:${"1".repeat(64)}`;
  expect([
    (await failure(images.layersOf(absent, settings({ auth }), never)))["code"],
    (await failure(images.layersOf(image, settings(), never)))["code"],
    (await failure(images.pull(image, settings({ auth, policy: '{"default":[{"type":"reject"}]}' }), none, never)))[
      "code"
    ],
    (await failure(images.pull(`${from.host}/apps/a:1`, settings({ auth }), none, never)))["code"],
  ]).toEqual(["MCO_IMAGE_ABSENT", "MCO_IMAGE_UNAUTHORIZED", "MCO_IMAGE_REFUSED", "MCO_IMAGE_INVALID"]);
});

test("an image that nothing pins goes an hour after it came, when another one comes; a pinned one stays [image-folder-3]", async () => {
  const from = await registry();
  const [one, two, three] = [pushed(from, "one"), pushed(from, "two"), pushed(from, "three")];
  const folder = await temporaryFolder();
  let ahead = 0;
  const images = imageFolder(folder, { clock: { ...systemClock, now: () => systemClock.now() + ahead } });
  await images.pull(one, settings(), none, never);
  await images.pull(two, settings(), none, never);
  ahead = 3_700_000;
  await images.pull(three, settings(), (image) => image === two, never);
  expect([await images.has(one), await images.has(two), await images.has(three)]).toEqual([false, true, true]);
  const left = await readdir(join(folder, "images"));
  expect(left).toHaveLength(2);
});

test("a note that cannot be read stands for no image, and the next pull corrects it [image-folder-4]", async () => {
  const from = await registry();
  const image = pushed(from, "a");
  const folder = await temporaryFolder();
  const images = imageFolder(folder);
  await images.pull(image, settings(), none, never);
  const [name = ""] = await readdir(join(folder, "images"));
  await writeFile(join(folder, "images", name), "{");
  expect(await images.has(image)).toBe(false);
  await images.pull(image, settings(), none, never);
  expect(await images.has(image)).toBe(true);
});
