import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations, fieldManagers, labels } from "../api/names.ts";
import { labelValue, printComponents } from "../core/build/build-key.ts";
import { type BuildPlan, type PlanFacts, nextBuildName } from "../core/build/build-plan.ts";
import type { ContentMode } from "../core/config/node-config.ts";
import type { Context } from "../kube/controller.ts";
import { isAlreadyExists } from "../kube/kube-error.ts";
import type { Want } from "./observe-want.ts";
import { buildPlanned } from "./reports.ts";
import { defined } from "../api/schema/defined.ts";

/** How a build gets its image, and why. */
export type BuildReason = Pick<BuildPlan, "strategy" | "because" | "turnedDown"> & {
  readonly from?: MachineOSBuild;
  readonly parent?: { readonly image: string; readonly hasConfigLayer: boolean };
  /** The image came with an installation; so did that of `from` if its build says so. */
  readonly isPreBuilt?: boolean;
};

/** Of an image from the installation. `hasKey`: it has the desired content. */
export interface Seeding {
  readonly mode: ContentMode;
  readonly hasKey: boolean;
}

/** Makes the object of a build; one that exists already is taken over. */
export async function createBuild(
  facts: PlanFacts,
  want: Want,
  plan: BuildReason,
  context: Context,
  seeding?: Seeding,
): Promise<MachineOSBuild> {
  const { kube, signal } = context;
  const name = nextBuildName(facts);
  try {
    const made = await kube.create(MachineOSBuild, buildFor(name, facts, want, plan, seeding), {
      owner: fieldManagers.osBuilder,
      signal,
    });
    context.report(
      buildPlanned(made, {
        strategy: plan.strategy,
        because: plan.because,
        rendered: facts.rendered,
        key: want.inputs.key.key,
        ...defined({ from: plan.from }),
      }),
    );
    return made;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const existing = await kube.get(MachineOSBuild, { name }, { signal });
    if (existing === undefined) throw error;
    return existing;
  }
}

/** The spec of a build for what is wanted. */
export const buildSpec = (
  name: string,
  { rendered, machineOSConfig, repository }: PlanFacts,
): MachineOSBuild["spec"] => ({
  machineConfig: { name: rendered },
  machineOSConfig: { name: machineOSConfig },
  renderedImagePushSpec: `${repository}:${name}`,
});

function buildFor(
  name: string,
  facts: PlanFacts,
  want: Want,
  { strategy, because, turnedDown, from, parent, isPreBuilt }: BuildReason,
  seeding: Seeding | undefined,
): MachineOSBuild {
  const { key, parentKey, components } = want.inputs.key;
  const keys =
    seeding?.hasKey === false
      ? { [annotations.contentKey]: "" }
      : {
          [annotations.contentKey]: key,
          [annotations.parentKey]: parentKey,
          [annotations.keyInputs]: printComponents(components),
        };
  const hasPreBuilt =
    seeding !== undefined || isPreBuilt === true || from?.metadata.labels?.[labels.preBuiltImage] !== undefined;
  return {
    apiVersion: MachineOSBuild.apiVersion,
    kind: MachineOSBuild.kind,
    metadata: {
      name,
      labels: {
        [labels.machineOSConfig]: labelValue(facts.machineOSConfig),
        [labels.targetPool]: labelValue(want.pool),
        [labels.renderedConfig]: labelValue(facts.rendered),
        ...(hasPreBuilt ? { [labels.preBuiltImage]: "true" } : {}),
      },
      annotations: {
        ...keys,
        [annotations.imageContent]: seeding?.mode ?? want.mode,
        [annotations.buildStrategy]: strategy,
        [annotations.buildBecause]: JSON.stringify({
          because,
          turnedDown,
          ...defined({ parent }),
        }),
        [annotations.buildAttempt]: "1",
        [annotations.pushSecret]: want.config.spec.renderedImagePushSecret.name,
        ...(from === undefined ? {} : { [annotations.reusedFrom]: from.metadata.name }),
      },
    },
    spec: buildSpec(name, facts),
  };
}
