import { expect, test } from "vitest";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import { imageOf } from "../../test/support/image-harness.ts";
import { type Content, machineConfigOf } from "../../test/support/machine-harness.ts";
import { annotations, hostPaths } from "../api/names.ts";
import type { ContentMode } from "../core/config/node-config.ts";
import { systemRandom } from "../ports/node/index.ts";
import { findAdoption } from "./adopt-machine.ts";

const { signal } = new AbortController();
const content: Content = { files: { "/etc/app.conf": "one" } };
const digest = (digit: string) => `sha256:${digit.repeat(64)}`;

/** What a machine takes over that runs `booted`, with a record of `recorded` and a Node that asks for `desired`. */
async function adopted(names: { booted: string; recorded: string; desired: string }, mode: ContentMode) {
  const images = { [names.booted]: imageOf(content, mode) };
  const host = memoryHost({ image: names.booted, images, random: systemRandom, onReboot: () => undefined });
  const put = (path: string, text: string) =>
    host.files.write(
      [
        {
          path,
          entry: { kind: "file", contents: new TextEncoder().encode(text), mode: 0o600, uid: 0, gid: 0 },
        },
      ],
      signal,
    );
  await put(hostPaths.currentConfig, JSON.stringify(machineConfigOf("rendered-1", content)));
  await put(hostPaths.currentImage, `${names.recorded}\n`);
  const notes = { [annotations.desiredImage]: names.desired, [annotations.desiredImageContent]: "full" };
  const adoption = await findAdoption(host, notes, () => Promise.resolve(undefined), signal);
  return adoption.verdict === "adopted" ? adoption.previous.pair : adoption;
}

const full = `docker.io/library/os@${digest("1")}`;
const other = `docker.io/library/os@${digest("2")}`;

test.for([
  { title: "as it runs", recorded: full, booted: full, desired: other, held: "full" },
  { title: "without host", recorded: `os@${digest("1")}`, booted: full, desired: other, held: "full" },
  {
    title: "by another name of the host",
    recorded: `index.docker.io/os@${digest("1")}`,
    booted: full,
    desired: other,
    held: "full",
  },
  {
    title: "with a tag beside its digest",
    recorded: `docker.io/library/os:4@${digest("1")}`,
    booted: full,
    desired: other,
    held: "full",
  },
  {
    title: "as what it is to run, without host",
    recorded: `os@${digest("2")}`,
    booted: full,
    desired: other,
    held: "full",
  },
  { title: "as neither", recorded: `os@${digest("3")}`, booted: full, desired: other, held: "os-only" },
] as const)(
  "the content of a recorded image that is named $title is known [daemon-adopt-machine-1]",
  async ({ recorded, booted, desired, held }) => {
    expect(await adopted({ recorded, booted, desired }, "full")).toEqual({ image: recorded, content: held });
  },
);
