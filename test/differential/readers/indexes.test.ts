import { execFile, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { type ImageIndex, manifestFor, mediaTypes, parseManifest } from "../../../src/registry/manifest.ts";
import { bytesOf, registry, temporaryFolder } from "../../support/registry/pull-harness.ts";

const hasSkopeo = spawnSync("skopeo", ["--version"]).status === 0;

interface Entry {
  readonly architecture: string;
  readonly variant?: string;
  readonly os?: string;
}

const entries: readonly Entry[] = [
  { architecture: "amd64" },
  { architecture: "amd64", variant: "v3" },
  { architecture: "arm64" },
  { architecture: "arm64", variant: "v8" },
  { architecture: "arm64", variant: "v9" },
  { architecture: "amd64", os: "windows" },
];
const pairs = entries.flatMap((first, i) =>
  entries.flatMap((second, j) => (i === j ? [] : [[first, second] as const])),
);

describe.skipIf(!hasSkopeo)("an index of images", () => {
  test("leads to the image that skopeo takes, or is refused [readers-indexes-1]", { timeout: 600_000 }, async () => {
    let both = 0;
    const lab = await registry();
    const folder = await temporaryFolder();
    for (const [number, pair] of pairs.entries())
      for (const architecture of ["amd64", "arm64"]) {
        const repository = `team/os-${number}-${architecture}`;
        const manifests = pair.map(({ os = "linux", ...platform }, i) => {
          const digest = lab.addImage(repository, [{ bytes: bytesOf(100, i) }], { tag: `t${i}`, architecture });
          const size = [...lab.manifests].find(([key]) => key.includes(digest))?.[1].bytes.length ?? 0;
          return { mediaType: mediaTypes.ociManifest, digest, size, platform: { os, ...platform } };
        });
        const index = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests };
        lab.addManifest(index, mediaTypes.ociIndex, [`${repository}:index`]);
        const what = `${JSON.stringify(pair)} for ${architecture}`;
        const ours = chosen(parseManifest(Buffer.from(JSON.stringify(index))) as ImageIndex, architecture);
        if (ours === undefined) continue;
        const target = join(folder, `${number}-${architecture}`);
        await promisify(execFile)("skopeo", [
          "--override-os=linux",
          `--override-arch=${architecture}`,
          "--insecure-policy",
          "copy",
          "--quiet",
          "--src-tls-verify=false",
          `docker://${lab.host}/${repository}:index`,
          `dir:${target}`,
        ]);
        const theirs = await readFile(join(target, "manifest.json"));
        const own = [...lab.manifests].find(([key]) => key.includes(ours))?.[1].bytes;
        expect(theirs.equals(Buffer.from(own ?? [])), what).toBe(true);
        both += 1;
      }
    expect(both).toBeGreaterThan(pairs.length / 3);
  });
});

/** `undefined`: refused. */
function chosen(index: ImageIndex, architecture: string): string | undefined {
  try {
    return manifestFor(index, architecture).digest;
  } catch {
    return undefined;
  }
}
