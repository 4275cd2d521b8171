import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { buildImage } from "../../build-image/build-image.ts";
import { buildParts, buildPaths, isBuildPart, printOutcome } from "../../core/build/image-build.ts";
import { readBelow, systemClock, systemFiles, systemProcesses, systemRandom } from "../../ports/node/index.ts";
import { httpsWire } from "../../registry/node/https-wire.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { buildImages } from "../build-images.ts";
import { podPath } from "../connect.ts";
import { runProcess } from "../run-process.ts";
import { processIo } from "../io.ts";

/** On a machine with other workloads, the build yields to them. */
const niceness = 10;

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags["build-image"]);
  if (values.context !== buildPaths.context)
    throw usageError(`--context must be ${buildPaths.context}: the os-builder puts a build's files there`);
  const { part = "" } = values;
  if (!isBuildPart(part)) throw usageError(`--part must be one of ${buildParts.join(", ")}`);
  if (process.env["MCO_POD_ROOT"] !== undefined) setPriority(niceness);
  let exitCode = 1;
  const wire = httpsWire();
  const ended = await runProcess({ component: "build-image" }, async (_ports, signal) => {
    const outcome = await buildImage(
      {
        files: systemFiles,
        processes: systemProcesses,
        clock: systemClock,
        readBelow,
        environment: process.env,
        at: podPath,
        print: (line) => processIo().out(`${line}\n`),
        storeFor: buildImages(wire, { clock: systemClock, random: systemRandom }).storeFor,
      },
      part,
      signal,
    );
    exitCode = "failure" in outcome ? (outcome.failure.exitCode ?? 1) : 0;
    if ("done" in outcome) return;
    if ("failure" in outcome)
      processIo().out(`${outcome.failure.class}: ${outcome.failure.step}: ${outcome.failure.cause}\n`);
    // In place: the file is a mount, and no file can be renamed over it.
    writeFileSync(podPath(buildPaths.terminationMessage), printOutcome(outcome));
  });
  wire.close();
  return ended === 0 ? exitCode : ended;
}
