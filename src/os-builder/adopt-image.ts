import type { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, machineOSConfigConditions as types } from "../api/names.ts";
import { sha256Hex } from "../core/build/build-key.ts";
import type { PlanFacts } from "../core/build/build-plan.ts";
import type { BuildOpening } from "../core/build/decide-build.ts";
import type { Context } from "../kube/controller.ts";
import { createBuild } from "./create-build.ts";
import { succeed } from "./end-build.ts";
import type { Want } from "./observe-want.ts";
import { referenceTo } from "./publish-image.ts";
import { annotateConfig, writeConfigStatus } from "./write-objects.ts";

/** Takes an image over that was made before there was a cluster. Once: the request goes when that is written. */
export async function adoptImage(
  { image, mode, seen }: Extract<BuildOpening, { readonly do: "adopt" }>,
  want: Want,
  facts: PlanFacts,
  context: Context,
): Promise<void> {
  const { config } = want;
  // An image with other content than desired is rolled out all the same, and then replaced.
  const hasKey = mode === want.mode;
  const build =
    seen ??
    (await createBuild(
      hasKey ? facts : { ...facts, key: sha256Hex(image).slice(0, 32) },
      want,
      { strategy: "reuse", because: "its image came with the installation", turnedDown: [] },
      context,
      { mode, hasKey },
    ));
  await succeed(build, image, "Reused", undefined, context);
  await writeConfigStatus(
    config,
    [{ type: types.seeded, status: "True", reason: "PreBuiltImageSeeded", message: image }],
    context,
    () => ({ currentImagePullSpec: image, machineOSBuild: referenceTo(build) }),
  );
  await annotateConfig(
    config,
    { [annotations.currentMachineOSBuild]: build.metadata.name, [annotations.preBuiltImage]: null },
    context,
  );
}

/** Reports why an image from the installation is not adopted, or that it was, and removes the request. */
export async function closeSeed(
  config: MachineOSConfig,
  { isTaken, reason, message }: Extract<BuildOpening, { readonly do: "closeSeed" }>,
  context: Context,
): Promise<void> {
  await writeConfigStatus(
    config,
    [{ type: types.seeded, status: isTaken ? "True" : "False", reason, message }],
    context,
  );
  await annotateConfig(config, { [annotations.preBuiltImage]: null }, context);
}
