import { ClusterOperator } from "../../api/foreign/cluster-operator.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels, objects } from "../../api/names.ts";
import { requiredPools as outcomeOfPools } from "../../core/operator/operator-report.ts";
import { reachedVersion } from "../../core/operator/version-step.ts";
import { type Facts, factsAbout } from "../../core/pool/pool-queries.ts";
import { type OperatorTask, type TaskContext, type TaskResult, taskDone } from "../operator-task.ts";
import { watchClusterOperators, watchControllerConfigs, watchMachines, watchPools } from "../operator-watches.ts";

interface RenderedImage {
  readonly image: string;
  /** A MachineConfig chose the image. */
  readonly overridden: boolean;
}

interface Asked {
  readonly facts: Facts;
  /** OS image of the release. */
  readonly osImage: string | undefined;
  /** By rendered configuration. */
  readonly images: ReadonlyMap<string, RenderedImage>;
}

/**
 * Whether the pools that an upgrade waits for are updated; checked only during an upgrade or while the cluster starts.
 */
export const requiredPoolsTask: OperatorTask<Asked | "arrived", TaskResult> = {
  name: "RequiredPools",
  watches: [watchClusterOperators, watchPools, watchControllerConfigs, watchMachines],

  async observe(context) {
    const { caches, clock, memory, options } = context;
    if (reachedVersion(caches.of(ClusterOperator).get(objects.clusterOperator)) === options.version) return "arrived";
    const facts = factsAbout(memory.cluster, clock.now());
    return {
      facts,
      osImage: caches.of(ControllerConfig).get(objects.controllerConfig)?.spec.baseOSContainerImage,
      images: await observeImages(facts, context),
    };
  },

  decide(asked) {
    if (asked === "arrived") return taskDone;
    const { facts, osImage, images } = asked;
    return outcomeOfPools(facts, { osImage }, (name) => images.get(name));
  },

  perform: (result) => result,
};

async function observeImages(facts: Facts, { kube, signal }: TaskContext): Promise<ReadonlyMap<string, RenderedImage>> {
  const images = new Map<string, RenderedImage>();
  for (const { metadata, spec } of facts.members.pools()) {
    const name = spec.configuration?.name ?? "";
    if (metadata.labels?.[labels.requiredForUpgrade] === undefined || name === "") continue;
    const rendered = await kube.get(MachineConfig, { name }, { signal });
    if (rendered !== undefined)
      images.set(name, {
        image: rendered.spec.osImageURL ?? "",
        overridden: rendered.metadata.annotations?.[annotations.osImageURLOverridden] === "true",
      });
  }
  return images;
}
