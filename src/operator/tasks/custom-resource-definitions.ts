import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { type ApiGate, allApiGates, apiGatesOf } from "../../api/feature-sets.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { definedResources } from "../../api/index.ts";
import { configGroup, labels, operatorGroup } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { rightsRemedy } from "../../core/operator/decide-rights.ts";
import { isForbidden } from "../../kube/kube-error.ts";
import { applyManifest } from "../apply-manifest.ts";
import { observeFeatureGate } from "../cluster-sources.ts";
import { type OperatorTask, type TaskContext, taskDone } from "../operator-task.ts";
import { watchSources } from "../operator-watches.ts";

interface Kinds {
  readonly kinds: readonly DefinedKind[];
  /** The right that the operator lacks to know the cluster's features; `undefined`: it knows them. */
  readonly lacking: string | undefined;
}

interface Definitions {
  readonly crds: readonly KubeObject[];
  readonly lacking: string | undefined;
}

interface DefinedKind {
  readonly crd: KubeObject;
  /** OpenShift has this kind too, and there it belongs to another operator. */
  readonly isForeign: boolean;
  readonly existing: KubeObject | undefined;
}

/** The suite's kinds. */
export const customResourceDefinitions: OperatorTask<Kinds, Definitions> = {
  name: "CustomResourceDefinitions",
  watches: [watchSources],

  async observe(context) {
    const cache = context.caches.of(kubernetes.CustomResourceDefinition);
    const { gates, lacking } = await chosenGates(context);
    const kinds = definedResources.map((resource) => {
      const crd = resource.crd(gates);
      const isForeign = resource.group === operatorGroup || resource.group === configGroup;
      return { crd, isForeign, existing: cache.get(crd.metadata.name) };
    });
    return { kinds, lacking };
  },

  /** Foreign kinds are installed only where they are missing. */
  decide: ({ kinds, lacking }) => ({
    lacking,
    crds: kinds
      .filter(
        ({ isForeign, existing }) =>
          !isForeign || existing === undefined || existing.metadata.labels?.[labels.operatorManaged] !== undefined,
      )
      .map(({ crd }) => crd),
  }),

  async perform({ crds, lacking }, context) {
    for (const crd of crds) await applyManifest(kubernetes.CustomResourceDefinition, crd, context, { watched: true });
    return lacking === undefined
      ? taskDone
      : {
          kind: "failed",
          reason: "RightsOutdated",
          message: `the operator may not ${lacking}, which say what features the cluster has: until it may, its definitions have the fields of all features; ${rightsRemedy}`,
        };
  },
};

/** A field too many loses nothing, and one too few is lost in the next write of an object. */
async function chosenGates(
  context: TaskContext,
): Promise<{ readonly gates: ReadonlySet<ApiGate> } & Pick<Kinds, "lacking">> {
  try {
    return { gates: apiGatesOf(await observeFeatureGate(context)), lacking: undefined };
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const { plural, group } = openshift.FeatureGate;
    return { gates: allApiGates, lacking: `get ${plural} of ${group}` };
  }
}
