import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { normalisedContainerfile } from "../../../src/core/build/build-containerfile.ts";
import { readInstructions } from "../../../src/core/build/read-instructions.ts";
import { missing } from "../../support/build-harness.ts";
import { temporaryFolder } from "../../support/registry/pull-harness.ts";
import { anyContainerfile, readers } from "./containerfile-readers.ts";
import { runs } from "./runs.ts";

describe("instructions of a Containerfile", () => {
  test("a text that is read has the same instructions for builders of every version [readers-containerfile-1]", () => {
    const how = runs(2000, 100_000);
    let [withHeredocs, without] = [0, 0];
    fc.assert(
      fc.property(anyContainerfile, (given) => {
        const text = normalisedContainerfile(given);
        const read = readInstructions(text);
        if (read.verdict === "refused") return;
        const ours = read.instructions.map(({ name, arguments: rest }) => `${name} ${rest}`);
        const has = read.instructions.some(({ heredocs }) => heredocs > 0);
        if (has) withHeredocs += 1;
        else without += 1;
        for (const { title, readsHeredocs, read: theirs } of readers)
          // A builder that fails builds nothing; one without here-documents is given no text that has some.
          if (readsHeredocs || !has) expect([title, theirs(text) ?? ours]).toEqual([title, ours]);
      }),
      how,
    );
    expect(Math.min(withHeredocs, without)).toBeGreaterThan(how.numRuns / 200);
  });

  test.skipIf(missing.length > 0)(
    `a text without here-documents has as many stages and instructions for buildah${missing.length === 0 ? "" : ` (left out: ${missing.join("; ")})`} [readers-containerfile-2]`,
    async () => {
      const { numRuns, seed } = runs(8, 200);
      const folder = await temporaryFolder();
      await mkdir(join(folder, "context"));
      const buildah = (file: string) =>
        new Promise<string>((resolve) => {
          const store = ["--root", join(folder, "root"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];
          const how = ["--isolation", "chroot", "--pull-never", "-f", file, join(folder, "context")];
          execFile("buildah", [...store, "build", ...how], (_, out, errors) => resolve(`${out}\n${errors}`));
        });
      const texts = fc
        .sample(anyContainerfile, { numRuns: numRuns * 20, ...(seed === undefined ? {} : { seed }) })
        .map((given) => normalisedContainerfile(given).replace("FROM configs", "FROM scratch"))
        .flatMap((text) => {
          const read = readInstructions(text);
          return read.verdict === "read" && read.instructions.every(({ heredocs }) => heredocs === 0)
            ? [{ text, names: read.instructions.map(({ name }) => name) }]
            : [];
        })
        // What buildah tells of is the first stage.
        .filter(({ text, names }) => text.includes("<") && names.length > 1);
      let compared = 0;
      for (const { text, names } of texts) {
        if (compared === numRuns) break;
        const file = join(folder, "Containerfile");
        await writeFile(file, text);
        const [, stages = "1", steps] =
          /^(?:\[1\/(\d+)\] )?STEP 1\/(\d+): FROM scratch/m.exec(await buildah(file)) ?? [];
        if (steps === undefined) continue; // It does not take the text at all.
        compared += 1;
        const next = names.indexOf("FROM", 1);
        expect({ text, stages: Number(stages), steps: Number(steps) }).toEqual({
          text,
          stages: names.filter((name) => name === "FROM").length,
          steps: next < 0 ? names.length : next,
        });
      }
      expect(compared).toBe(numRuns);
    },
  );
});
