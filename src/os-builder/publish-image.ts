import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { annotations, machineOSConfigConditions as types } from "../api/names.ts";
import { timestampOf } from "../api/schema/object.ts";
import { activeRebuild } from "../core/build/build-rebuild.ts";
import type { Context } from "../kube/controller.ts";
import { nodesIn } from "./cluster-facts.ts";
import type { Configured } from "./report-image.ts";
import { annotateBuild, annotateConfig, annotatePool, writeConfigStatus } from "./write-objects.ts";
import { imagePublished, imageRolledOut, rebuildUnchanged } from "./reports.ts";

type Noted = { readonly metadata: MachineOSBuild["metadata"] };
const noted = (object: Noted, annotation: string) => object.metadata.annotations?.[annotation];

export const referenceTo = (build: MachineOSBuild) => ({
  group: MachineOSBuild.group,
  resource: MachineOSBuild.plural,
  name: build.metadata.name,
});

const isPublished = (config: MachineOSConfig, { metadata: { name } }: MachineOSBuild, image: string): boolean =>
  config.status?.currentImagePullSpec === image &&
  config.status.machineOSBuild?.name === name &&
  noted(config, annotations.currentMachineOSBuild) === name;

/** The desired image is built: report it first to the controllers that roll it out. */
export async function publishImage(
  pool: MachineConfigPool,
  intent: Configured,
  build: MachineOSBuild,
  image: string,
  context: Context,
): Promise<void> {
  if (isPublished(intent.config, build, image)) await reportRolledOut(pool, build, image, context);
  else await pointTo(pool, intent.config, build, image, context);
  const legacy = intent.source === "PoolLabel" ? { [annotations.newestImageEquivalentConfig]: image } : {};
  await annotatePool(pool, { ...legacy, [annotations.buildRetries]: null }, context);
}

async function pointTo(
  pool: MachineConfigPool,
  config: MachineOSConfig,
  build: MachineOSBuild,
  image: string,
  context: Context,
): Promise<void> {
  const { report } = context;
  const { name } = build.metadata;
  await writeConfigStatus(
    config,
    [{ type: types.upToDate, status: "True", reason: "UpToDate", message: `${name}: ${image}` }],
    context,
    (object) =>
      object.status?.currentImagePullSpec === image && object.status.machineOSBuild?.name === name
        ? undefined
        : { currentImagePullSpec: image, machineOSBuild: referenceTo(build) },
  );
  await annotateConfig(config, { [annotations.currentMachineOSBuild]: name }, context);
  if (config.status?.currentImagePullSpec === image && activeRebuild(config) !== undefined)
    report(rebuildUnchanged(pool, image));
  report(imagePublished(build, image, pool.metadata.name));
}

/** When every machine of the pool runs an image, the build's book reports it, once. */
async function reportRolledOut(
  pool: MachineConfigPool,
  build: MachineOSBuild,
  image: string,
  context: Context,
): Promise<void> {
  if (noted(build, annotations.rolledOutAt) !== undefined) return;
  const members = nodesIn(context.caches).filter((node) => node.pool === pool.metadata.name);
  const runs = ({ node }: (typeof members)[number]) =>
    noted(node, annotations.currentImage) === image &&
    noted(node, annotations.currentConfig) === build.spec.machineConfig.name;
  if (members.length === 0 || !members.every(runs)) return;
  await annotateBuild(build, { [annotations.rolledOutAt]: timestampOf(context.clock.now()) }, context);
  context.report(imageRolledOut(build, image, { pool: pool.metadata.name, machines: members.length }));
}
