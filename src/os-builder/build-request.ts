import { textToParse } from "../core/config/node-config.ts";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import type { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { annotations, imageLabels, objects } from "../api/names.ts";
import { type VisibleFile, recipeVersion } from "../core/build/build-key.ts";
import { plannedParent } from "../core/build/build-plan.ts";
import { layerEntries } from "../core/config/image-content.ts";
import type { Caches } from "../kube/controller.ts";
import { packLayer } from "../registry/pack-layer.ts";
import type { BuildRequest, HostContent } from "./backend.ts";
import { buildSettingsIn, configMapIn, secretIn, surroundings } from "./cluster-facts.ts";
import { type Want, type WantObserver, basePullSecretOf, policyIn } from "./observe-want.ts";
import { attemptLimits } from "../core/build/build-settings.ts";
import { defined } from "../api/schema/defined.ts";

/** Everything that one attempt of a build needs. @throws McoError `MCO_IMAGE_*`, `MCO_OWNER_UNKNOWN` */
export async function buildRequest(
  build: MachineOSBuild,
  attempt: number,
  want: Want,
  observer: WantObserver,
  caches: Caches,
  how: { readonly moreMemory: boolean; readonly noCache: boolean },
  signal: AbortSignal,
): Promise<BuildRequest> {
  const { inputs, sources, images, mode } = want;
  const has = build.metadata.annotations ?? {};
  const { content } = inputs;
  const runs = has[annotations.buildStrategy] === "build";
  const parent = plannedParent(build) ?? { image: sources.base, hasConfigLayer: false };
  const epoch = await observer.epochOf(sources.base, images, signal);
  // Owners that a configuration names are those of the image that it is laid on.
  const owners = await observer.ownersOf(runs ? sources.base : parent.image, content, images, signal);
  const layer = mode === "full" ? packLayer(layerEntries(content, owners), epoch) : undefined;
  const visible = runs ? packVisible(inputs.visible, epoch) : undefined;
  const { trust, certificates, proxy } = surroundings(caches);
  const [registries, policy] = [textToParse(content, "/etc/containers/registries.conf"), policyIn(content)];
  return {
    id: `${build.metadata.name}-${attempt}`,
    build: { metadata: build.metadata, spec: build.spec },
    attempt,
    pool: want.pool,
    mode,
    architecture: want.architecture,
    base: sources.base,
    ...defined({ extensions: sources.extensionsImage }),
    ...(runs && inputs.containerfile !== undefined ? { containerfile: inputs.containerfile } : {}),
    ...(runs ? {} : { parent }),
    context: Object.entries(sources.context ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, text]) => ({ path, contents: utf8ToBytes(text), mode: 0o644 })),
    ...(layer === undefined ? {} : { configLayer: { bytes: layer.bytes, digest: layer.digest, diffId: layer.diffId } }),
    ...defined({ buildVisible: visible }),
    mounts: runs ? mountsOf(want.pool, caches) : [],
    auth: { pull: basePullSecretOf(want.config, caches), push: want.config.spec.renderedImagePushSecret.name },
    trust: trust === undefined ? [] : [trust],
    registryCertificates: certificates,
    ...defined({ registries, policy, proxy }),
    target: { repository: inputs.repository, tag: build.metadata.name },
    epoch,
    noCache: how.noCache,
    isolation: buildSettingsIn(caches).isolation,
    limits: attemptLimits(buildSettingsIn(caches), { doubled: how.moreMemory }),
    labels: {
      [imageLabels.content]: mode,
      [imageLabels.recipe]: recipeVersion,
      [imageLabels.baseDigest]: sources.base.slice(sources.base.indexOf("@") + 1),
    },
  };
}

/** The configuration's files that steps of a build see. */
function packVisible(visible: readonly VisibleFile[], epoch: number): Uint8Array | undefined {
  if (visible.length === 0) return undefined;
  const entries = visible.map(
    ({ path, contents, mode }) => ({ path, kind: "file", contents, mode, uid: 0, gid: 0 }) as const,
  );
  return packLayer(entries, epoch).bytes;
}

/** Files of the cluster that steps see, where there are any. */
function mountsOf(pool: string, caches: Caches): readonly HostContent[] {
  const entitlement = `${objects.entitlementPrefix}${pool}`;
  return [
    ...(secretIn(caches, entitlement) === undefined
      ? []
      : [{ kind: "entitlement", source: { kind: "Secret", name: entitlement } } as const]),
    ...(secretIn(caches, objects.rpmGpg) === undefined
      ? []
      : [{ kind: "rpmGpg", source: { kind: "Secret", name: objects.rpmGpg } } as const]),
    ...(configMapIn(caches, objects.yumRepos) === undefined
      ? []
      : [{ kind: "yumRepos", source: { kind: "ConfigMap", name: objects.yumRepos } } as const]),
  ];
}
