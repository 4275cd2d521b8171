import { kubernetes } from "../api/foreign/kubernetes.ts";
import { namespace, objects } from "../api/names.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { componentHealth, factsAbout } from "../core/pool/pool-queries.ts";
import { deploymentFacts } from "../core/pool/component-facts.ts";
import type { BuilderBounds } from "./admission-policies.ts";
import { ownMap } from "./cluster-sources.ts";
import type { ManifestInputs } from "./manifests.ts";
import { logLevelOf, settingsIn } from "./operator-options.ts";
import type { TaskContext } from "./operator-task.ts";

/** The inputs of the components' manifests. @param certificateHash empty if the component serves nothing. */
export function manifestInputs(context: TaskContext, certificateHash = ""): ManifestInputs {
  const { version, image, builderImage } = context.options;
  return {
    version,
    image,
    builderImage: builderImage ?? image,
    certificateHash,
    logLevel: logLevelOf(settingsIn(context)),
  };
}

/** What the pods of builds are made of, and what the builder may opt in. */
export function builderBoundsIn(context: TaskContext): BuilderBounds {
  const { isolation, defaultOptIn } = buildSettings(ownMap(objects.buildConfig, context)?.data);
  return { image: manifestInputs(context).builderImage, isolation, defaultOptIn };
}

/** Whether the controller runs in this version. */
export function controllerRuns({ caches, clock, memory, options }: TaskContext): boolean {
  const deployment = caches.of(kubernetes.Deployment).get(`${namespace}/${objects.controller}`);
  const health = componentHealth(
    factsAbout(memory.cluster, clock.now()),
    objects.controller,
    deploymentFacts(deployment, options.version),
  );
  return health.value.is === "Healthy";
}

/** Machines that are reached on loopback are all one machine, which has no network of Services. */
export const isLoopbackAddress = (address: string): boolean => address.startsWith("127.") || address === "::1";
