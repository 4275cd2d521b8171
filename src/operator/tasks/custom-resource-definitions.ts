import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { apiGatesOf } from "../../api/feature-sets.ts";
import { definedResources } from "../../api/index.ts";
import { configGroup, labels, operatorGroup } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { applyManifest } from "../apply-manifest.ts";
import { observeFeatureGate } from "../cluster-sources.ts";
import { type OperatorTask, taskDone } from "../operator-task.ts";
import { watchSources } from "../operator-watches.ts";

interface DefinedKind {
  readonly crd: KubeObject;
  /** OpenShift has this kind too, and there it belongs to another operator. */
  readonly isForeign: boolean;
  readonly existing: KubeObject | undefined;
}

/** The suite's kinds. */
export const customResourceDefinitions: OperatorTask<readonly DefinedKind[], readonly KubeObject[]> = {
  name: "CustomResourceDefinitions",
  watches: [watchSources],

  async observe(context) {
    const cache = context.caches.of(kubernetes.CustomResourceDefinition);
    const gates = apiGatesOf(await observeFeatureGate(context));
    return definedResources.map((resource) => {
      const crd = resource.crd(gates);
      const isForeign = resource.group === operatorGroup || resource.group === configGroup;
      return { crd, isForeign, existing: cache.get(crd.metadata.name) };
    });
  },

  /** Foreign kinds are installed only where they are missing. */
  decide: (kinds) =>
    kinds
      .filter(
        ({ isForeign, existing }) =>
          !isForeign || existing === undefined || existing.metadata.labels?.[labels.operatorManaged] !== undefined,
      )
      .map(({ crd }) => crd),

  async perform(crds, context) {
    for (const crd of crds) await applyManifest(kubernetes.CustomResourceDefinition, crd, context, { watched: true });
    return taskDone;
  },
};
