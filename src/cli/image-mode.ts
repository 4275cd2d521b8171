import { existsSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { McoError } from "../api/errors.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import type { ClusterRegistry } from "../standin/cluster.ts";
import type { Layout } from "../standin/index.ts";
import { buildConfigKeys } from "../core/build/build-settings.ts";
import { pullSecretKey } from "../core/render/pull-secret.ts";
import { packedStockOs, stockOsRepository } from "../standin/stock-os.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { parseAuthFile } from "../registry/auth-file.ts";
import { httpsWire } from "../registry/node/https-wire.ts";
import { pushImage } from "../registry/push-image.ts";
import { registryClient } from "../registry/registry-client.ts";
import { refusePushesFile } from "../standin/registry.ts";

export const pushSecretName = "image-mode-push";
/** With it builds pull what they build on. */
export const pullSecretName = "image-mode-pull";
/** Repository of the images of pools that opt in by label. */
export const imageRepository = "os/images";

/** How long the registry may take to answer. */
const registryPatienceMs = 30_000;

const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");
const credentials = (inNamespace: string, name: string, auth: string): KubeObject =>
  ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: inNamespace },
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": base64(auth) },
  }) as KubeObject;

/**
 * Credentials, certificates and settings where an administrator puts them, so that a pool needs nothing but its label to
 * opt in: machines pull with the cluster's pull secret, builds push with one of their own.
 */
export function imageModeManifests({ host, authority, pushAuth, pullAuth }: ClusterRegistry): readonly KubeObject[] {
  const { namespace: ofPullSecret, name: ownName } = pullSecretKey(false);
  return [
    credentials(ofPullSecret, ownName, pullAuth),
    credentials(namespace, pushSecretName, pushAuth),
    credentials(namespace, pullSecretName, pullAuth),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: objects.buildConfig, namespace },
      data: {
        [buildConfigKeys.basePullSecret]: pullSecretName,
        [buildConfigKeys.pushSecret]: pushSecretName,
        [buildConfigKeys.pushSpec]: `${host}/${imageRepository}`,
      },
    } as KubeObject,
    // A key knows no colon: `host..port`.
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "image-registry-ca", namespace },
      data: { [host.replace(":", "..")]: authority },
    } as KubeObject,
  ];
}

/** Waits until the registry's process answers, and puts the stock OS there. */
export async function fillRegistry(
  { process: { host, pushAuth }, authority }: ClusterRegistry,
  signal: AbortSignal,
): Promise<void> {
  const wire = httpsWire();
  const client = registryClient({
    wire: wire.send,
    clock: systemClock,
    auth: parseAuthFile(pushAuth),
    certificates: () => Promise.resolve([authority]),
  });
  const began = systemClock.monotonic();
  try {
    for (;;) {
      try {
        await pushImage(
          packedStockOs,
          { host, path: stockOsRepository, insecure: false, tag: "latest" },
          { client, clock: systemClock, random: systemRandom },
          signal,
        );
        return;
      } catch (error) {
        if (
          !(error instanceof McoError) ||
          error.code !== "MCO_IMAGE_UNREACHABLE" ||
          systemClock.monotonic() - began > registryPatienceMs
        )
          throw error;
        await systemClock.sleep(100, signal);
      }
    }
  } finally {
    wire.close();
  }
}

/** Makes the registry of a cluster refuse every push from now on, or accept them again. */
export function refusePushes(
  layout: Layout,
  refusal: { readonly status: number; readonly text: string } | undefined,
): void {
  const file = join(layout.registry, refusePushesFile);
  if (refusal === undefined) rmSync(file, { force: true });
  else writeFileSync(file, `${refusal.status} ${refusal.text}\n`);
}

/** Whether steps of a Containerfile can be run on this machine. */
export const hasBuildah = (environment: NodeJS.ProcessEnv): boolean =>
  (environment["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, "buildah")));
