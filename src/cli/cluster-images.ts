import { kubernetes } from "../api/foreign/kubernetes.ts";
import { mergedAuth, registryAccessOf } from "../core/images/registry-access.ts";
import type { ClusterObjects } from "../core/preview/plan-cluster.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import { fileText } from "../core/render/config-file.ts";
import { mostStoredTextBytes } from "../ignition/held-contents.ts";
import { isOpenShiftBy } from "../core/render/openshift-inputs.ts";
import { pullSecretKey } from "../core/render/pull-secret.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isForbidden } from "../kube/kube-error.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { type ImageStore, imageStore } from "../registry/image-store.ts";
import { httpsWire } from "../registry/node/https-wire.ts";
import { own } from "../api/schema/own.ts";

/** Images as the cluster's machines reach them: with its own credentials, authorities and mirrors. */
export interface ClusterImages {
  /** @param architecture of the machines that run the images: `amd64`, `arm64`. */
  store(architecture: string): ImageStore;
  close(): void;
}

/** Opens the registries of a cluster. The caller closes them. */
export async function clusterImages(
  kube: KubeClient,
  { controllerConfig, pools, machineConfigs }: Pick<ClusterObjects, "controllerConfig" | "pools" | "machineConfigs">,
): Promise<ClusterImages> {
  const { trust, certificates, proxy, nodeAuth } = registryAccessOf(controllerConfig?.spec);
  const worker = pools.find(({ metadata }) => metadata.name === "worker")?.spec.configuration?.name;
  const pull = mergedAuth([await pullSecret(kube, isOpenShiftBy(controllerConfig)), nodeAuth]);
  const registries = fileText(
    machineConfigs.find(({ metadata }) => metadata.name === worker),
    "/etc/containers/registries.conf",
    mostStoredTextBytes,
  );
  const wire = httpsWire();
  return {
    store: (architecture) =>
      imageStore({
        wire: wire.send,
        clock: systemClock,
        random: systemRandom,
        auth: { pull, push: undefined },
        certificates: (host) =>
          Promise.resolve([...(own(certificates, host) ?? []), ...(trust === undefined ? [] : [trust])]),
        registries,
        architecture,
        proxy,
      }),
    close: () => wire.close(),
  };
}

/** Text of the cluster's auth file; `undefined`: there is none, or this user may not read it. */
async function pullSecret(kube: KubeClient, onOpenShift: boolean): Promise<string | undefined> {
  try {
    const encoded = (await kube.get(kubernetes.Secret, pullSecretKey(onOpenShift)))?.data?.[".dockerconfigjson"];
    return encoded === undefined ? undefined : textOfBase64(encoded);
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}
