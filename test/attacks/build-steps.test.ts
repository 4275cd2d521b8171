import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildFiles, buildPaths } from "../../src/core/build/image-build.ts";
import { type BuildHarness, buildHarness, missing } from "../support/build-harness.ts";
import { temporaryFolder } from "../support/registry/pull-harness.ts";
import { password } from "../support/registry/registries.ts";

const because = missing.length === 0 ? "" : ` (left out: ${missing.join("; ")})`;

/** Its number: capabilities(7). */
const capSysChroot = 18;

/** A PATH with a buildah whose steps keep what lets them leave their chroot: what would a step find that gets out? */
async function pathWithTrustingBuildah(): Promise<string> {
  const folder = await temporaryFolder();
  const path = process.env["PATH"] ?? "";
  const script = `#!/bin/sh
PATH=${path}
for argument; do
  shift
  [ "$argument" = --cap-drop ] || [ "$argument" = CAP_SYS_CHROOT ] || set -- "$@" "$argument"
done
exec buildah "$@"
`;
  await writeFile(join(folder, "buildah"), script, { mode: 0o755 });
  return `${folder}:${path}`;
}

describe.skipIf(missing.length > 0)(`a malicious build step${because}`, () => {
  let harness: BuildHarness;
  beforeAll(async () => {
    harness = await buildHarness();
  }, 600_000);
  afterAll(() => harness.close());

  test("finds no credential in its root, environment and mounts, in /proc, or after a breakout [attack-build-steps-1]", async ({
    skip,
  }) => {
    const { withShell } = harness;
    if (withShell === undefined) return skip("there is no /bin/busybox on this machine (package busybox-static)");
    const secrets = ["builder", "puller"].map((user) => Buffer.from(`${user}:${password}`).toString("base64"));
    // The pattern does not find itself, in the Containerfile.
    const wanted = secrets.map((secret) => `-e '[${secret.slice(0, 1)}]${secret.slice(1)}'`).join(" ");
    // A folder that is held open leads out of the chroot: from it, ".." ends at the root of the container only.
    const search = [
      "cd -P /self/fd/3",
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cd -P ..; done",
      `for file in $(/self/fd/4/busybox find .${harness.folder}/pod-* -name "buildah*" -prune -o -type f -print); do`,
      "echo seen=$file",
      `/self/fd/4/busybox grep -q ${wanted} $file && echo stolen=$file`,
      "done",
      "true",
    ].join("\n");
    const { outcome, log } = await harness.build({
      custom: [
        "FROM os",
        `RUN env | grep -q ${wanted} && echo stolen=environment; cat /proc/[0-9]*/environ 2>/dev/null | grep -q ${wanted} && echo stolen=environ; true`,
        `RUN grep -rsq ${wanted} /etc /run /var /root /tmp && echo stolen=root; for root in /proc/[0-9]*/root; do grep -rsl ${wanted} $root${harness.folder}/pod-* && echo stolen=$root; done; true`,
        `RUN exec 3</ 4</bin; chroot /proc /self/fd/4/sh /self/fd/3/attack.sh`,
        "",
      ]
        .join("\n")
        .replace("RUN exec", "COPY attack.sh /attack.sh\nRUN exec"),
      files: { "attack.sh": search },
      request: { base: withShell },
      options: { environment: { PATH: await pathWithTrustingBuildah() } },
    });
    expect(outcome).toHaveProperty("digest");
    const lines = log.join("\n");
    if (!lines.includes(`${buildPaths.context}/${buildFiles.request}`))
      return skip("this buildah's steps cannot break out to their container");
    expect(log.filter((line) => line.startsWith("stolen="))).toEqual([]);
  }, 600_000);

  test("leaves its chroot by no system call, and has no capability to [attack-build-steps-2]", async ({ skip }) => {
    const { withShell } = harness;
    if (withShell === undefined) return skip("there is no /bin/busybox on this machine (package busybox-static)");
    const { outcome, log } = await harness.build({
      custom: [
        "FROM os",
        "COPY attack.sh /attack.sh",
        "RUN exec 3</ 4</bin; chroot /proc /self/fd/4/sh /self/fd/3/attack.sh; grep CapBnd /proc/self/status; /bin/busybox unshare -U /bin/busybox true 2>&1 || echo no namespace; true",
        "",
      ].join("\n"),
      files: {
        "attack.sh": [
          "cd -P /self/fd/3",
          "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cd -P ..; done",
          `for file in $(/self/fd/4/busybox find .${harness.folder}/pod-* -name ${buildFiles.request}); do echo seen=$file; done`,
          "true",
        ].join("\n"),
      },
      request: { base: withShell },
    });
    expect(outcome).toHaveProperty("digest");
    expect(log.filter((line) => line.startsWith("seen="))).toEqual([]);
    // No program that it starts gets the capability, and the kernel makes no namespace of users in a chroot.
    const [, bounding] = /CapBnd:\s+([0-9a-f]+)/.exec(log.join("\n")) ?? [];
    expect(bounding).toBeDefined();
    expect(BigInt(`0x${bounding}`) & (1n << BigInt(capSysChroot))).toBe(0n);
    expect(log).toEqual(expect.arrayContaining([expect.stringMatching("unshare.*not permitted"), "no namespace"]));
  }, 600_000);
});
