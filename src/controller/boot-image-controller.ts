import { base64OfText } from "../core/text/base64-of-text.ts";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import { type MachineSet, openshift } from "../api/foreign/openshift.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, fieldManagers, machineNamespace, namespace, objects } from "../api/names.ts";
import { setCondition } from "../api/schema/conditions.ts";
import { type Condition, conditionOf, timestampOf } from "../api/schema/object.ts";
import { bootImagePlatform, effectiveManagers, isManaged } from "../core/operator/boot-image-managers.ts";
import {
  type JudgedSet,
  bootImageConditions,
  bootImageReasons,
  bootImagesUnread,
  describeBootImages,
  releaseAwaited,
} from "../core/operator/boot-image-report.ts";
import { type BootImagePlatform, parseBootImageStream } from "../core/operator/boot-image-stream.ts";
import { type BootImageDecision, type BootImageFacts, decideBootImage } from "../core/operator/decide-boot-image.ts";
import { machineApiRemedy } from "../core/operator/decide-rights.ts";
import { decideStub } from "../core/operator/user-data-stub.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import { equalValues } from "../ignition/canonical.ts";
import { isRecord } from "../ignition/shape.ts";
import { type Caches, type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { KubeError, isForbidden, isInvalid, isNotFound, isPassing } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";
import { bootImageUpdated } from "./reports.ts";

/** Time after which an update that the API server refused is tried again. */
const retrySeconds = 60;
const inMachineApi = { namespace: machineNamespace } as const;
const bootImagesMap = { namespace, fieldSelector: `metadata.name=${objects.bootImages}` } as const;
const key = [objects.machineConfiguration];
/** Reasons of conditions that this controller alone writes. */
const ownReasons: ReadonlySet<string> = new Set([
  bootImageReasons.reconciled,
  bootImageReasons.skipped,
  bootImageReasons.waiting,
  bootImageReasons.updating,
  bootImageReasons.healthy,
  bootImageReasons.failing,
]);

/** Of a set, the cache holds what decides about its boot image. */
const keepMachineSet = ({ apiVersion, kind, metadata, spec, status }: MachineSet): MachineSet => {
  const { managedFields: _, ...kept } = metadata;
  const value = spec?.template?.spec?.providerSpec?.value;
  const labels = spec?.template?.metadata?.labels;
  const fields = isRecord(value) ? value : {};
  return {
    apiVersion,
    kind,
    metadata: kept,
    spec: {
      template: {
        ...(labels === undefined ? {} : { metadata: { labels } }),
        spec: {
          providerSpec: isRecord(value)
            ? {
                value: Object.fromEntries(
                  ["ami", "placement", "disks", "userDataSecret"].flatMap((field) =>
                    field in fields ? [[field, fields[field]]] : [],
                  ),
                ),
              }
            : {},
        },
      },
    },
    ...(status?.authoritativeAPI === undefined ? {} : { status: { authoritativeAPI: status.authoritativeAPI } }),
  };
};

interface View {
  readonly configuration: MachineConfiguration;
  readonly platform: BootImagePlatform | undefined;
  readonly sets: readonly MachineSet[];
  readonly map: ConfigMap | undefined;
  readonly awaited: string | undefined;
  readonly isMultiArchitecture: boolean;
}

/** What is decided before anything is written. */
interface Plan {
  readonly judged: readonly { readonly set: MachineSet; readonly decision: BootImageDecision }[];
  readonly awaited: string | undefined;
  readonly problem: string | undefined;
  readonly unsupported: readonly string[];
}

/**
 * Gives the MachineSets that the settings select the boot images of the release, and says of the others why they keep theirs.
 *
 * @param architecture of the control plane, as Kubernetes calls it.
 */
export function bootImageController({ architecture }: { readonly architecture: string | undefined }): Controller {
  return {
    name: "boot-images",
    watches: [
      watching({ resource: MachineConfiguration, concerns: ({ key: name }) => [name] }),
      watching({
        resource: openshift.MachineSet,
        selection: inMachineApi,
        optional: true,
        // The rights of earlier releases lack it.
        mayBeForbidden: true,
        keep: keepMachineSet,
        concerns: ({ before, after }) => (equalValues(decisiveOf(before), decisiveOf(after)) ? [] : key),
      }),
      watching({ resource: kubernetes.ConfigMap, selection: bootImagesMap, concerns: () => key }),
      watching({
        resource: ControllerConfig,
        concerns: ({ before, after }) => (platformIn(before) === platformIn(after) ? [] : key),
      }),
      watching({
        resource: openshift.ClusterVersion,
        optional: true,
        concerns: ({ before, after }) => (equalValues(before?.status, after?.status) ? [] : key),
      }),
      watching({
        resource: MachineConfigPool,
        concerns: ({ key: pool, before, after }) =>
          // A new pool's user data is kept from now on.
          before === undefined ||
          (pool === "master" && releaseAwaited(before, undefined) !== releaseAwaited(after, undefined))
            ? key
            : [],
      }),
    ],
    owns: ["MachineConfiguration.status.conditions.BootImageUpdate", "MachineSet.spec.template.spec.providerSpec"],

    async reconcile(name, context): Promise<Outcome> {
      const view = observe(name, context.caches);
      if (view === undefined || (view.platform === undefined && !hasOwnConditions(view.configuration))) return done();
      const plan = planOf(view, architecture);
      const { sets, failures } = await perform(plan, context);
      await writeConditions(view.configuration, { ...plan, sets }, context);
      // The pass is tried again.
      if (failures.length > 0) throw failures[0];
      const isRefused = sets.some(
        ({ decision }, index) =>
          plan.judged[index]?.decision.verdict === "update" &&
          decision.verdict !== "current" &&
          decision.verdict !== "update",
      );
      return done(isRefused ? retrySeconds : undefined);
    },
  };
}

const decisiveOf = (set: MachineSet | undefined): unknown =>
  set === undefined
    ? undefined
    : [
        set.metadata.annotations,
        set.metadata.labels,
        set.metadata.ownerReferences,
        set.metadata.deletionTimestamp,
        set.spec,
        set.status,
      ];

function platformIn(config: Pick<ControllerConfig, "spec"> | undefined): string | undefined {
  const status = config?.spec.infra?.["status"];
  const platform =
    isRecord(status) && isRecord(status["platformStatus"]) ? status["platformStatus"]["type"] : undefined;
  return typeof platform === "string" ? platform : undefined;
}

function hasOwnConditions({ status }: MachineConfiguration): boolean {
  const conditions = (status?.conditions ?? []) as readonly Condition[];
  return Object.values(bootImageConditions).some((type) => ownReasons.has(conditionOf(conditions, type)?.reason ?? ""));
}

function observe(name: string, caches: Caches): View | undefined {
  const configuration = caches.of(MachineConfiguration).get(name);
  if (configuration === undefined || name !== objects.machineConfiguration) return undefined;
  const sets = caches.of(openshift.MachineSet, inMachineApi).list();
  const [version] = caches.of(openshift.ClusterVersion).list();
  return {
    configuration,
    platform: bootImagePlatform({
      platform: platformIn(caches.of(ControllerConfig).get(objects.controllerConfig)),
      hasMachineSets: sets.length > 0,
    }),
    sets,
    map: caches.of(kubernetes.ConfigMap, bootImagesMap).list()[0],
    awaited: releaseAwaited(caches.of(MachineConfigPool).get("master"), version),
    isMultiArchitecture: version?.status?.desired?.architecture === "Multi",
  };
}

function planOf(view: View, architecture: string | undefined): Plan {
  const { configuration, platform, map, isMultiArchitecture } = view;
  if (platform === undefined) return { judged: [], awaited: undefined, problem: undefined, unsupported: [] };
  const { managers, unsupported } = effectiveManagers(configuration.spec.managedBootImages?.machineManagers, {
    platform,
    hasMachineSets: true,
  });
  const selected = view.sets.filter((set) => isManaged(set, managers));
  const stream = parseBootImageStream(map?.data?.["stream"]);
  const decide = (set: MachineSet): BootImageDecision => {
    if (map === undefined) return noneBrought;
    const facts: BootImageFacts = {
      platform,
      images: stream.verdict === "read" ? stream.images : {},
      isMultiArchitecture,
      architecture,
    };
    return decideBootImage(set, facts);
  };
  const isUnread = map !== undefined && stream.verdict === "refused";
  return {
    // Without boot images there is nothing to say about single sets.
    judged: isUnread ? [] : selected.map((set) => ({ set, decision: decide(set) })),
    awaited: view.awaited,
    problem: isUnread && selected.length > 0 ? bootImagesUnread(stream.problem) : undefined,
    unsupported: unsupported.map(({ resource, apiGroup }) => `${resource}.${apiGroup}`),
  };
}

const noneBrought: BootImageDecision = {
  verdict: "skipped",
  because: `the cluster has no ConfigMap ${objects.bootImages} with the boot images of the release`,
  remedy: `put the metadata of its CoreOS stream into the key stream of ${namespace}/${objects.bootImages}`,
};

type Update = Extract<BootImageDecision, { readonly verdict: "update" }>;

/** Gives each set its boot image. A failure of one set is no other set's: all failures are returned. */
async function perform(
  plan: Plan,
  context: Context,
): Promise<{ readonly sets: readonly JudgedSet[]; readonly failures: readonly KubeError[] }> {
  const sets: JudgedSet[] = [];
  const failures: KubeError[] = [];
  for (const { set, decision } of plan.judged) {
    const { name } = set.metadata;
    if (decision.verdict !== "update" || plan.awaited !== undefined) {
      sets.push({ name, decision });
      continue;
    }
    try {
      sets.push({ name, decision: await giveBootImage(set, decision, context) });
    } catch (error) {
      // Without an answer of the API server, that of the next set would take as long.
      if (!(error instanceof KubeError)) throw error;
      failures.push(error);
      sets.push({ name, decision: afterFailure(decision, error) });
    }
  }
  return { sets, failures };
}

/** What is said of a set whose update failed, and is tried again: another writer, or the set's deletion, is no fault of it. */
function afterFailure(decision: Update, error: KubeError): BootImageDecision {
  const { message } = error;
  if (isPassing(error) || isNotFound(error)) return decision;
  return {
    verdict: "refused",
    because: `its update to ${decision.to} failed: ${message}`,
    remedy: "the controller tries again by itself",
  };
}

/** Patches the boot image, and nothing else, of a set whose machines can start from it. */
async function giveBootImage(set: MachineSet, decision: Update, context: Context): Promise<BootImageDecision> {
  const { kube, signal, report, log } = context;
  const { name } = set.metadata;
  const { from, to, operations } = decision;
  try {
    const stub = await readyUserData(decision.userData, context);
    if (stub !== undefined) return stub;
    await kube.patch(
      openshift.MachineSet,
      { name, namespace: machineNamespace },
      { type: "json", operations },
      { owner: fieldManagers.bootImages, signal },
    );
  } catch (error) {
    if (!isForbidden(error) && !isInvalid(error)) throw error;
    return {
      verdict: "refused",
      because: `the API server refuses its update to ${to}: ${error.message}`,
      remedy: isForbidden(error) ? machineApiRemedy : "the controller tries again by itself",
    };
  }
  log.info({ machineSet: name, from, to }, "boot image updated");
  report(bootImageUpdated(set, from, to));
  return { verdict: "current", image: to };
}

/**
 * Brings user data to a form that the release's boot images read.
 *
 * @returns why it is none, and the set keeps its boot image.
 */
async function readyUserData(name: string | undefined, context: Context): Promise<BootImageDecision | undefined> {
  const { caches, kube, signal, clock, log } = context;
  const ours = `worker${objects.userDataSuffix}`;
  const other = `name a Secret in userDataSecret that the operator keeps, such as ${ours}`;
  if (name === undefined) return { verdict: "skipped", because: "it names no Secret with user data", remedy: other };
  // The operator writes that of each pool in a form that every boot image reads.
  if (
    name.endsWith(objects.userDataSuffix) &&
    caches.of(MachineConfigPool).get(name.slice(0, -objects.userDataSuffix.length)) !== undefined
  )
    return undefined;
  const at = { name, namespace: machineNamespace };
  const secret = await kube.get(kubernetes.Secret, at, { signal }).catch((error: unknown) => {
    if (isForbidden(error)) return "refused" as const;
    throw error;
  });
  if (secret === "refused")
    return {
      verdict: "skipped",
      because: `the controller may not read the Secret ${name} with its user data`,
      remedy: `${other}; or allow get and patch of the Secret to the account ${objects.controller}`,
    };
  if (secret === undefined)
    return { verdict: "refused", because: `the Secret ${name} with its user data is missing`, remedy: other };
  const encoded = secret.data?.["userData"];
  const decision = decideStub(encoded === undefined ? undefined : textOfBase64(encoded));
  switch (decision.verdict) {
    case "readable":
      return undefined;
    case "refused":
      return {
        verdict: "refused",
        because: `the boot images of the release cannot read the Secret ${name}: ${decision.because}`,
        remedy: other,
      };
    case "upgrade":
      await kube.patch(
        kubernetes.Secret,
        at,
        {
          type: "merge",
          body: {
            metadata: {
              ...(secret.metadata.resourceVersion === undefined
                ? {}
                : { resourceVersion: secret.metadata.resourceVersion }),
              annotations: {
                [annotations.stubUpgradedTo]: decision.version,
                [annotations.stubUpgradedAt]: timestampOf(clock.now()),
              },
            },
            data: { userData: base64OfText(decision.text) },
          },
        },
        { owner: fieldManagers.bootImages, signal },
      );
      log.info({ secret: name, version: decision.version }, "user data upgraded");
      return undefined;
  }
}

/** Writes these two conditions where they differ; the others of the status belong to other writers. */
async function writeConditions(
  cached: MachineConfiguration,
  outcome: Parameters<typeof describeBootImages>[0],
  { kube, clock, signal }: Context,
): Promise<void> {
  const said = describeBootImages(outcome);
  await updateObject(
    kube,
    MachineConfiguration,
    cached.metadata,
    (object) => {
      const before = (object.status?.conditions ?? []) as readonly Condition[];
      let after: readonly Condition[] = before;
      for (const condition of said) after = setCondition(after, condition, clock.now());
      return equalValues(before, after)
        ? undefined
        : ({ status: { conditions: after } } as Partial<MachineConfiguration>);
    },
    { subresource: "status", owner: fieldManagers.bootImages, cached, signal },
  );
}
