import { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { definedResources } from "../api/index.ts";
import { type Pod, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import {
  annotations,
  configGroup,
  fieldManagers,
  finalizers,
  journals,
  labels,
  machineOSConfigConditions,
  namespace,
  notYetSet,
  objects,
  operatorGroup,
} from "../api/names.ts";
import { type KubeObject, type OwnerReference, type Resource, conditionOf, keyOf } from "../api/schema/object.ts";
import { type Facts, componentHealth, factsAbout } from "../core/pool/answers.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import { daemonSetFacts, deploymentFacts } from "../core/pool/component-facts.ts";
import { type TaskOutcome, clusterOperatorConditions } from "../core/operator/cluster-operator-status.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import {
  controllerConfigOf,
  failureOf,
  isCompleted,
  mergedRegistryCa,
  mergedRegistryCas,
} from "../core/render/controller-config-of.ts";
import { machineConfigurationStatus } from "../core/operator/machine-configuration-status.ts";
import { extensionOf, initialConditions, requiredPools, versionsOf } from "../core/operator/operator-report.ts";
import { buildSettings } from "../core/build/build-settings.ts";
import { layeringTold } from "../core/build/build-conditions.ts";
import {
  type ConfigServerAccess,
  type ConfigServerFacts,
  apiServerForMachines,
  configServerAccess,
  configServerHosts,
} from "../core/join/config-server.ts";
import { wantsImages } from "../core/config/opt-in.ts";
import { poolStatusInputs } from "../core/pool/pool-status.ts";
import { releaseOf } from "../core/render/release-of.ts";
import { relevantOfMachineConfigNode, relevantOfNode, slimBuild, slimNode } from "../core/pool/slim.ts";
import { stateSettings } from "../core/operator/state-settings.ts";
import { tlsOfProfile } from "../core/certificates/tls-profile.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { pathOf, updateObject } from "../kube/kube-client.ts";
import { isAlreadyExists, isConflict, isNotFound, isPassing } from "../kube/kube-error.ts";
import { settled } from "../kube/outcome.ts";
import { admissionPolicies, networkPolicies } from "./admission-policies.ts";
import {
  observeClusterInfo,
  nodeBootstrappers,
  observeGuardNeeds,
  observePullSecret,
  observeTlsProfile,
  pullSecretOf,
  observeServerProof,
  observeSources,
  ours,
  ownMap,
  publishedRegistryCa,
  sourceWatches,
} from "./cluster-sources.ts";
import {
  type ManifestInputs,
  admission,
  admissionService,
  admissionWebhook,
  builderDeployment,
  bootstrapRights,
  builtInPools,
  clientCaKey,
  configServerDaemonSet,
  controllerDeployment,
  daemonSet,
  fence,
  relatedObjects,
  stateDeployment,
  stateMetrics,
  stateService,
  tlsFlags,
  tlsFlagsIn,
} from "./manifests.ts";
import { keepConfigServerCertificates } from "./config-server-certificates.ts";
import { componentRights } from "./rights.ts";
import { controlPlaneAddresses, servingSecret } from "./serving-certificate.ts";

export interface OperatorOptions {
  readonly version: string;
  /** Pullspec of the suite, for the components. */
  readonly image: string;
  /** The same with buildah; `image` when absent. */
  readonly builderImage?: string;
  /**
   * Authorities that the API server proves itself by come in several steps; machines get them when nothing has changed
   * for this long.
   */
  readonly authoritiesSettleMs?: number;
  /** Where the operator reaches the API server. */
  readonly apiServer: string;
  /** `host` or `host:port` that machines which join reach the config server by, where the cluster does not say. */
  readonly configServerAddress?: string;
  /** Unique for each start of the process: which life of the operator its lines tell of. */
  readonly identity?: string;
  /** Told what the settings ask for, whenever they are looked at. */
  readonly setLogLevel?: (level: LogLevel) => void;
}

export type LogLevel = "info" | "debug";

/** `spec.operatorLogLevel` has four steps, and logs have two. */
const logLevelOf = (settings: MachineConfiguration | undefined): LogLevel =>
  ["Debug", "Trace", "TraceAll"].includes((settings?.spec.operatorLogLevel as string | undefined) ?? "")
    ? "debug"
    : "info";

const owner = fieldManagers.operator;
/** Everything is looked at again after this time, for what nobody tells of. */
const sweepSeconds = 300;
/** What is not watched is applied again after this time, in case somebody changed it. */
const reapplyMs = 10 * 60_000;
/** A task that fails is tried again after this time. */
const failedRetrySeconds = 5;
/** An API server that is away or busy for longer than this is told of: until then nothing is wrong with the task. */
const passingMs = 60_000;
const one = "cluster";
/** Cluster-scoped objects that outlive the operator. */
const stays: ReadonlySet<string> = new Set(["CustomResourceDefinition", "ControllerConfig"]);

/**
 * Field managers whose fields an apply would take: no later try helps there. None where somebody only wrote in between.
 */
const managersInConflict = (error: unknown): readonly string[] =>
  isConflict(error) && error instanceof Error
    ? [...error.message.matchAll(/conflicts? with "([^"]+)"/g)].flatMap(([, manager]) => manager ?? [])
    : [];

/**
 * The reference's operator, and what lays down its first manifests on a new cluster, write under the names of their
 * processes: openshift/machine-config-operator cmd/machine-config-operator (main), openshift/cluster-bootstrap
 * cmd/cluster-bootstrap (main).
 */
const managersOfReference: ReadonlySet<string> = new Set(["machine-config-operator", "cluster-bootstrap"]);
const isOfReference = (error: unknown): boolean =>
  managersInConflict(error).length > 0 &&
  managersInConflict(error).every((manager) => managersOfReference.has(manager));

/** The version that everything was last seen at. */
const reachedVersion = (operator: ClusterOperator | undefined) =>
  operator?.status?.versions?.find(({ name }) => name === "operator")?.version;

const isLoopbackAddress = (address: string) => address.startsWith("127.") || address === "::1";

const done = (task: string): TaskOutcome => ({ task, kind: "done" });
const progressing = (task: string, message: string): TaskOutcome => ({ task, kind: "progressing", message });

/**
 * Keeps the suite installed and its settings in force. One look goes through all tasks in order; one that fails is
 * reported and does not keep the others from their work.
 */
export function operatorController(options: OperatorOptions): Controller {
  const applied = new Map<string, { readonly text: string; readonly at: number }>();
  /** Tasks that the API server has kept from ending, and since when (monotonic). */
  const heldUp = new Map<string, number>();
  const settleMs = options.authoritiesSettleMs ?? 60_000;
  /** How long the builder may take to clean up after the last pool, and how often somebody looks. */
  const builderPatienceMs = 600_000;
  const builderLookSeconds = 5;
  /** How long inputs of images may be wrong before the operator is degraded by it. */
  const invalidInputsMs = 600_000;
  /** Secret with which machines of a subscription get packages, where a cluster has one. */
  const entitlementKey = { namespace: "openshift-config-managed", name: "etc-pki-entitlement" } as const;
  /** Authorities of the API server that are not handed to machines yet, and since when they are so (monotonic). */
  /** As the log was last told. */
  let accessTold: ConfigServerAccess | undefined;
  let tlsNotesTold = "";
  /** Monotonic. */
  let builderUnwantedSince: number | undefined;
  let changing: { readonly bundle: string; readonly since: number } | undefined;
  /** They were handed over in this look. */
  let isHandingOver = false;
  /** The way to this version was told of. */
  let announced = false;
  /** That everything is at this version was told of. */
  let isArrivalTold = false;
  const everything = () => [one];
  /** Tasks that were told of as failing. */
  const failing = new Set<string>();
  /**
   * Journals that are there as far as we know, when they were listed last (monotonic), and nodes that may have none.
   */
  const journalsThere = new Set<string>();
  let journalsListedAt: number | undefined;
  const journalsWanted = new Set<string>();
  const run = options.identity === undefined ? {} : { run: options.identity };
  /** Every machine by pool, kept from single changes. */
  const cluster = new ClusterMembers();
  let now: () => number = () => 0;

  return {
    name: "operator",
    watches: [
      watching({
        resource: kubernetes.Namespace,
        selection: { fieldSelector: `metadata.name=${namespace}` },
        concerns: everything,
      }),
      watching({ resource: ClusterOperator, concerns: everything }),
      watching({ resource: MachineConfiguration, concerns: everything }),
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }) => {
          cluster.putPool(key, after, now());
          // What the node controller says of a pool follows from what is known here as well.
          return before !== undefined &&
            after !== undefined &&
            equalValues(
              [before.spec, before.metadata.labels, poolStatusInputs(before)],
              [after.spec, after.metadata.labels, poolStatusInputs(after)],
            )
            ? []
            : [one];
        },
      }),
      watching({ resource: ControllerConfig, concerns: everything }),
      watching({
        resource: MachineOSConfig,
        concerns: ({ key, after }) => {
          cluster.putMachineOSConfig(key, after, now());
          // Whether the builder has to be there does not follow from images alone: what is being deleted waits for it.
          return [one];
        },
      }),
      watching({
        resource: MachineOSBuild,
        keep: slimBuild,
        concerns: ({ key, before, after }) =>
          cluster.putMachineOSBuild(key, after, before, now()).length > 0 ? [one] : [],
      }),
      watching({
        resource: MachineConfigNode,
        concerns: ({ key, before, after }) => {
          if (
            before !== undefined &&
            after !== undefined &&
            equalValues(relevantOfMachineConfigNode(before), relevantOfMachineConfigNode(after))
          )
            return [];
          cluster.putMachineConfigNode(key, after, now());
          return [one];
        },
      }),
      watching({
        resource: kubernetes.Node,
        keep: slimNode,
        concerns: ({ key, before, after }) => {
          const isSame =
            before !== undefined &&
            after !== undefined &&
            equalValues(
              [relevantOfNode(before), before.status?.addresses],
              [relevantOfNode(after), after.status?.addresses],
            );
          if (isSame) return [];
          cluster.putNode(key, after, now());
          if (after === undefined) journalsThere.delete(`${journals.nodePrefix}${key}`);
          else journalsWanted.add(key);
          return [one];
        },
      }),
      watching({ resource: kubernetes.Deployment, selection: ours, concerns: everything }),
      watching({ resource: kubernetes.DaemonSet, selection: ours, concerns: everything }),
      watching({ resource: kubernetes.Secret, selection: ours, concerns: everything }),
      ...sourceWatches(everything),
      watching({
        resource: kubernetes.ConfigMap,
        selection: ours,
        concerns: ({ key, after }) => {
          if (key === `${namespace}/${objects.buildConfig}`)
            cluster.setGrace(buildSettings(after?.data).optOutGraceMs, now());
          return [];
        },
      }),
      watching({
        resource: kubernetes.Pod,
        selection: { namespace, labelSelector: `k8s-app=${objects.controller}` },
        concerns: everything,
      }),
    ],
    owns: [
      "ClusterOperator.status",
      "ControllerConfig.spec",
      "MachineConfiguration.status.nodeDisruptionPolicyStatus",
      "MachineConfigNode.spec.node",
    ],

    start(_add, { clock }) {
      now = () => clock.now();
    },

    async reconcile(_key, context) {
      // Whoever removes the suite removes its namespace: what goes now is not to be made again.
      if (context.caches.of(kubernetes.Namespace).get(namespace)?.metadata.deletionTimestamp !== undefined)
        return settled();
      const outcomes: TaskOutcome[] = [];
      const attempt = async (task: string, work: () => Promise<TaskOutcome>): Promise<void> => {
        try {
          outcomes.push(await work());
          heldUp.delete(task);
        } catch (error) {
          if (context.signal.aborted) throw error;
          // Somebody wrote in between: the news of it brings the next look.
          const isLasting = managersInConflict(error).length > 0;
          if (isConflict(error) && !isLasting) outcomes.push(progressing(task, `${task} is settling`));
          else if (!isLasting && isPassing(error) && isShort(task, context)) {
            outcomes.push(progressing(task, `${task} waits for the API server`));
            context.log.info({ task, error }, "sync task held up");
          } else
            outcomes.push({ task, kind: "failed", message: error instanceof Error ? error.message : String(error) });
        }
      };
      await attempt("CustomResourceDefinitions", () => syncKinds(context));
      await attempt("RBAC", () => syncRights(context));
      await attempt("MachineConfiguration", () => syncMachineConfiguration(context));
      await attempt("MachineConfigPools", () => syncPools(context));
      await attempt("MachineConfigNodes", () => syncNodes(context));
      await attempt("Journals", () => syncJournals(context));
      await attempt("MachineConfigController", () => syncController(context));
      await attempt("KubeconfigAuthorities", () => syncKubeconfigAuthorities(context));
      await attempt("ConfigServer", () => syncConfigServer(context));
      await attempt("ControllerConfig", () => syncControllerConfig(context));
      await attempt("MachineConfigDaemon", () => syncDaemon(context));
      await attempt("StateController", () => syncState(context));
      await attempt("OsBuilder", () => syncBuilder(context));
      await attempt("Admission", () => syncAdmission(context));
      await attempt("AdmissionPolicies", () => syncAdmissionPolicies(context));
      await attempt("NetworkPolicies", () => syncNetworkPolicies(context));
      const facts = factsAbout(cluster, context.clock.now());
      await attempt("RequiredPools", () => syncRequiredPools(facts, context));
      tell(outcomes, context);
      await writeStatus(outcomes, facts, context);
      const unfinished = outcomes.filter((outcome) => outcome.kind !== "done");
      for (const outcome of unfinished)
        if (outcome.kind === "failed")
          context.log.warn({ task: outcome.task, message: outcome.message }, "sync task failed");
      if (heldUp.size > 0 || unfinished.some(({ kind }) => kind === "failed")) return settled(failedRetrySeconds);
      if (changing !== undefined) return settled(settleMs / 1000);
      return settled(builderUnwantedSince === undefined ? sweepSeconds : builderLookSeconds);
    },
  };

  /** What lies outside of the namespace goes with it all the same. */
  function belonging(manifest: KubeObject, context: Context): KubeObject {
    const uid = context.caches.of(kubernetes.Namespace).get(namespace)?.metadata.uid;
    if (uid === undefined) return manifest;
    return {
      ...manifest,
      metadata: {
        ...manifest.metadata,
        ownerReferences: [{ apiVersion: "v1", kind: "Namespace", name: namespace, uid }],
      },
    };
  }

  function isShort(task: string, { clock }: Context): boolean {
    const since = heldUp.get(task) ?? clock.monotonic();
    heldUp.set(task, since);
    return clock.monotonic() - since < passingMs;
  }

  /** Applies what is not as it was last applied; what is watched also when somebody changed or removed it. */
  async function keep(resource: Resource, given: KubeObject, context: Context, watched = false): Promise<void> {
    // Kinds and settings stay: they hold what administrators wrote.
    const manifest = resource.namespaced || stays.has(resource.kind) ? given : belonging(given, context);
    const id = `${resource.kind}/${keyOf(manifest)}`;
    const text = JSON.stringify(manifest);
    const before = applied.get(id);
    const gone =
      watched && context.caches.of(resource, resource.namespaced ? ours : undefined).get(keyOf(manifest)) === undefined;
    if (!gone && before?.text === text && context.clock.monotonic() - before.at < reapplyMs) return;
    try {
      await context.kube.apply(resource, manifest, { owner, signal: context.signal });
    } catch (error) {
      // On a cluster that the reference's operator set up, what has its names is taken over from it, and from nobody
      // else.
      if (!isOfReference(error)) throw error;
      await context.kube.apply(resource, manifest, { owner, force: true, signal: context.signal });
      context.log.info({ object: id }, "taken over from the reference's operator");
    }
    applied.set(id, { text, at: context.clock.monotonic() });
  }

  async function syncKinds(context: Context): Promise<TaskOutcome> {
    const cache = context.caches.of(kubernetes.CustomResourceDefinition);
    for (const resource of definedResources) {
      const crd = resource.crd();
      const existing = cache.get(crd.metadata.name);
      // On OpenShift these two belong to somebody else: they are installed only where they are missing.
      const foreign = resource.group === operatorGroup || resource.group === configGroup;
      if (foreign && existing !== undefined && existing.metadata.labels?.[labels.operatorManaged] === undefined)
        continue;
      await keep(kubernetes.CustomResourceDefinition, crd, context, true);
    }
    return done("CustomResourceDefinitions");
  }

  async function syncRights(context: Context): Promise<TaskOutcome> {
    const {
      ServiceAccount,
      ClusterRole,
      ClusterRoleBinding,
      Role,
      RoleBinding,
      ValidatingAdmissionPolicy,
      ValidatingAdmissionPolicyBinding,
    } = kubernetes;
    const kinds: readonly Resource[] = [
      ServiceAccount,
      ClusterRole,
      ClusterRoleBinding,
      Role,
      RoleBinding,
      ValidatingAdmissionPolicy,
      ValidatingAdmissionPolicyBinding,
    ];
    for (const manifest of [...componentRights(), ...fence()]) {
      const resource = kinds.find(({ kind }) => kind === manifest.kind);
      if (resource !== undefined) await keep(resource, manifest, context);
    }
    return done("RBAC");
  }

  async function syncMachineConfiguration(context: Context): Promise<TaskOutcome> {
    const name = objects.machineConfiguration;
    const existing = context.caches.of(MachineConfiguration).get(name);
    if (existing === undefined) {
      await context.kube.apply(
        MachineConfiguration,
        { metadata: { name }, spec: { managementState: "Managed" } },
        { owner, signal: context.signal },
      );
      return progressing("MachineConfiguration", "settings are being made");
    }
    options.setLogLevel?.(logLevelOf(existing));
    const statusOf = (object: MachineConfiguration) => machineConfigurationStatus(object, context.clock.now());
    if (equalValues(existing.status, statusOf(existing))) return done("MachineConfiguration");
    await updateObject(
      context.kube,
      MachineConfiguration,
      { name },
      (live) => {
        const status = statusOf(live);
        return equalValues(live.status, status) ? undefined : { status };
      },
      { subresource: "status", owner, signal: context.signal, cached: existing },
    );
    return done("MachineConfiguration");
  }

  async function syncPools(context: Context): Promise<TaskOutcome> {
    for (const manifest of builtInPools()) {
      const { name } = manifest.metadata;
      const existing = context.caches.of(MachineConfigPool).get(name);
      if (existing === undefined) {
        // Created, not applied: its spec belongs to the administrator from now on.
        if ((await context.kube.get(MachineConfigPool, { name }, context)) === undefined)
          await context.kube.create(MachineConfigPool, manifest as MachineConfigPool, {
            owner,
            signal: context.signal,
          });
        continue;
      }
      const missing = Object.entries(manifest.metadata.labels ?? {}).filter(
        ([key, value]) => existing.metadata.labels?.[key] !== value,
      );
      if (missing.length > 0)
        await context.kube.patch(
          MachineConfigPool,
          { name },
          { type: "merge", body: { metadata: { labels: Object.fromEntries(missing) } } },
          { owner, signal: context.signal },
        );
    }
    return done("MachineConfigPools");
  }

  /**
   * One MachineConfigNode for each node, from the moment that it registers; they go with their nodes by owner
   * reference.
   */
  async function syncNodes(context: Context): Promise<TaskOutcome> {
    for (const name of cluster.withoutMachineConfigNode) {
      const known = cluster.node(name);
      if (
        known?.membership.verdict !== "member" ||
        (await context.kube.get(MachineConfigNode, { name }, context)) !== undefined
      )
        continue;
      await context.kube.create(
        MachineConfigNode,
        {
          apiVersion: MachineConfigNode.apiVersion,
          kind: MachineConfigNode.kind,
          metadata: {
            name,
            ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid: known.node.metadata.uid ?? "" }],
          },
          spec: { node: { name }, pool: { name: known.membership.pool }, configVersion: { desired: notYetSet } },
        },
        { owner, signal: context.signal },
      );
    }
    for (const { metadata } of cluster.machineConfigNodesWithoutNode()) {
      const { name, uid } = metadata;
      // The news of a node may come later than that of its MachineConfigNode.
      if ((await context.kube.get(kubernetes.Node, { name }, context)) === undefined)
        await context.kube.delete(
          MachineConfigNode,
          { name },
          { signal: context.signal, ...(uid === undefined ? {} : { uid }) },
        );
    }
    return done("MachineConfigNodes");
  }

  /** One line when a task begins to fail, and one when it works again. */
  function tell(outcomes: readonly TaskOutcome[], { scribe }: Context): void {
    for (const outcome of outcomes) {
      const { task } = outcome;
      const line = { book: "cluster", chapter: "Operator", ...run, path: `Sync/${task}`, level: "boundary" } as const;
      if (outcome.kind === "failed" && !failing.has(task)) {
        failing.add(task);
        scribe.line({ ...line, mark: "fail", reason: "SyncFailed", message: `${task} fails: ${outcome.message}` });
      } else if (outcome.kind === "done" && failing.delete(task))
        scribe.line({ ...line, mark: "end", reason: "SyncMended", message: `${task} works again` });
    }
  }

  /**
   * A journal for each component, and one for each node from the moment that it has a MachineConfigNode; those go with
   * their nodes by owner reference. Their lines are not looked at: a cluster's journals are large.
   */
  async function syncJournals(context: Context): Promise<TaskOutcome> {
    const { kube, clock, signal } = context;
    if (journalsListedAt === undefined || clock.monotonic() - journalsListedAt >= reapplyMs) {
      const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
      const { items } = (await kube.request(
        { method: "GET", target: pathOf(MachineStateJournal, {}), headers: { accept } },
        { signal },
      )) as { readonly items: readonly Pick<KubeObject, "metadata">[] | null };
      journalsThere.clear();
      // Of none Kubernetes says null.
      for (const { metadata } of items ?? []) journalsThere.add(metadata.name);
      journalsListedAt = clock.monotonic();
      for (const { metadata } of cluster.pools())
        for (const { name } of cluster.members(metadata.name).all()) journalsWanted.add(name);
    }
    const create = async (name: string, ownerReferences: readonly OwnerReference[]): Promise<void> => {
      if (journalsThere.has(name)) return;
      const { apiVersion, kind } = MachineStateJournal;
      await kube
        .create(
          MachineStateJournal,
          {
            apiVersion,
            kind,
            metadata: { name, ownerReferences: [...ownerReferences] },
            spec: { lines: [], last: [] },
          },
          { owner, signal },
        )
        .catch((error: unknown) => {
          if (!isAlreadyExists(error)) throw error;
        });
      journalsThere.add(name);
    };
    const uid = context.caches.of(kubernetes.Namespace).get(namespace)?.metadata.uid;
    for (const name of [journals.operator, journals.controller, journals.server, journals.osBuilder])
      await create(name, uid === undefined ? [] : [{ apiVersion: "v1", kind: "Namespace", name: namespace, uid }]);
    for (const name of journalsWanted) {
      const known = cluster.node(name);
      if (known?.membership.verdict === "member")
        await create(`${journals.nodePrefix}${name}`, [
          { apiVersion: "v1", kind: "Node", name, uid: known.node.metadata.uid ?? "" },
        ]);
      // A node that some pool will select later is looked at again then, or with the next list.
      journalsWanted.delete(name);
    }
    return done("Journals");
  }

  /**
   * The process that keeps the books, as the administrator has switched it. Nobody waits for it, and nothing of it is
   * read.
   */
  async function syncState(context: Context): Promise<TaskOutcome> {
    const task = "StateController";
    const certificate = await servingSecret({ component: objects.state, secret: stateMetrics.secret }, context);
    if (certificate === undefined) return done(task);
    const { mode } = stateSettings(ownMap(objects.stateConfig, context)?.data);
    await keep(
      kubernetes.Deployment,
      stateDeployment(inputsOf(context, certificate.hash), mode === "off" ? 0 : 1),
      context,
      true,
    );
    return done(task);
  }

  /** What serves machines that join: its certificates, what they join with, and its pods on the control plane. */
  async function syncConfigServer(context: Context): Promise<TaskOutcome> {
    const task = "ConfigServer";
    const { caches, scribe } = context;
    const machineConfiguration = caches.of(MachineConfiguration).get(objects.machineConfiguration);
    const facts: ConfigServerFacts = {
      controllerConfig: caches.of(ControllerConfig).get(objects.controllerConfig),
      machineConfiguration,
      clusterInfo: observeClusterInfo(context),
      ownServer: options.apiServer,
      installedAddress: options.configServerAddress,
    };
    const addresses = controlPlaneAddresses(context);
    if (addresses.length === 0) return progressing(task, "waiting for a control-plane machine to run on");
    const hosts = [...new Set([...configServerHosts(facts), ...addresses, `${objects.configServer}.${namespace}.svc`])];
    const kept = await keepConfigServerCertificates(
      hosts,
      (resource, manifest) => keep(resource, manifest, context, true),
      context,
    );
    if (kept?.rotated !== undefined)
      scribe.line({
        book: "cluster",
        chapter: "Server",
        ...run,
        path: "Certificate",
        mark: "note",
        level: "boundary",
        reason: "CertificateRotated",
        message: `of the config server: ${kept.rotated}`,
      });
    const pools = caches
      .of(MachineConfigPool)
      .list()
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name)
      .sort();
    const { ServiceAccount, ClusterRole, ClusterRoleBinding, Role, RoleBinding } = kubernetes;
    const kinds: readonly Resource[] = [ServiceAccount, ClusterRole, ClusterRoleBinding, Role, RoleBinding];
    await removeBootstrappers(pools, context);
    const bootstrappers = caches.of(ServiceAccount, nodeBootstrappers);
    for (const manifest of bootstrapRights(pools)) {
      const resource = kinds.find(({ kind }) => kind === manifest.kind);
      if (resource === ServiceAccount && bootstrappers.get(keyOf(manifest)) === undefined)
        applied.delete(`${manifest.kind}/${keyOf(manifest)}`);
      if (resource !== undefined) await keep(resource, manifest, context);
    }
    const { access, problem } = configServerAccess(machineConfiguration);
    const tls = tlsOfProfile(await observeTlsProfile(context));
    const running = caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.configServer}`);
    // A profile that cannot be followed changes nothing.
    const flags =
      tls.verdict === "settings"
        ? tlsFlags(tls.settings.minVersion, tls.flags)
        : tlsFlagsIn(running?.spec?.template.spec?.containers[0]?.args ?? []);
    const notes = tls.verdict === "settings" ? tls.notes.join("; ") : "";
    if (notes !== "" && notes !== tlsNotesTold)
      context.log.warn({ notes }, "the cluster's TLS profile is not followed in everything");
    tlsNotesTold = notes;
    if (access === "insecure" && accessTold !== access)
      context.log.warn(
        { access },
        "the config server is set to give configurations, secrets included, to everybody who asks",
      );
    accessTold = access;
    await keep(
      kubernetes.DaemonSet,
      configServerDaemonSet({
        ...inputsOf(context, ""),
        access,
        apiServer: apiServerForMachines(facts),
        oneMachine: isLoopbackAddress(addresses[0] ?? ""),
        tls: flags,
        hasClientCa: ownMap(objects.configServerClientCa, context)?.data?.[clientCaKey] !== undefined,
      }),
      context,
      true,
    );
    const problems = [
      ...(problem === undefined ? [] : [problem]),
      ...(tls.verdict === "refused" ? [`APIServer ${one}: ${tls.reason}`] : []),
    ];
    return problems.length === 0 ? done(task) : { task, kind: "failed", message: problems.join("; ") };
  }

  /** Nobody joins a pool that is gone: its account goes, and with it the tokens that were given out for it. */
  async function removeBootstrappers(pools: readonly string[], { caches, kube, log, signal }: Context): Promise<void> {
    for (const { metadata } of caches.of(kubernetes.ServiceAccount, nodeBootstrappers).list()) {
      const { name, uid, deletionTimestamp } = metadata;
      // The label alone makes none of them: whoever else uses it has other names.
      const isOfPool = pools.some((pool) => name === `${objects.nodeBootstrapperPrefix}${pool}`);
      if (
        isOfPool ||
        !name.startsWith(objects.nodeBootstrapperPrefix) ||
        uid === undefined ||
        deletionTimestamp !== undefined
      )
        continue;
      await kube.delete(kubernetes.ServiceAccount, { name, namespace }, { uid, signal });
      applied.delete(`ServiceAccount/${namespace}/${name}`);
      log.info({ account: name }, "the account of a pool that is gone is removed");
    }
  }

  /** The builder is there while some pool boots images, and until it has cleaned up after the last one. */
  async function syncBuilder(context: Context): Promise<TaskOutcome> {
    const task = "OsBuilder";
    const { caches, clock, kube, log, signal } = context;
    const configs = caches.of(MachineOSConfig).list();
    const pools = caches.of(MachineConfigPool).list();
    // Whoever holds on to what is being deleted has to be there to let it go.
    const leaving = configs
      .filter(
        ({ metadata }) =>
          metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(finalizers.osBuildCleanup) === true,
      )
      .map(({ metadata }) => metadata.name);
    const isWanted = wantsImages(pools, configs, buildSettings(ownMap(objects.buildConfig, context)?.data));
    if (isWanted || leaving.length > 0) {
      builderUnwantedSince = undefined;
      await copyForBuilds(configs, context);
      await keep(kubernetes.Deployment, builderDeployment(inputsOf(context, "")), context, true);
      const invalid = configs.flatMap(({ metadata, status }) => {
        const condition = conditionOf(status?.conditions, machineOSConfigConditions.inputsValid);
        return condition?.status === "False" && clock.now() - Date.parse(condition.lastTransitionTime) > invalidInputsMs
          ? [`MachineOSConfig ${metadata.name}: ${condition.message}`]
          : [];
      });
      // Nobody waits for an image that cannot be made: somebody has to hear of it.
      return invalid.length === 0 ? done(task) : { task, kind: "failed", message: invalid.join("; ") };
    }
    if (caches.of(kubernetes.Deployment, ours).get(`${namespace}/${objects.osBuilder}`) === undefined)
      return done(task);
    builderUnwantedSince ??= clock.monotonic();
    const isLate = clock.monotonic() - builderUnwantedSince > builderPatienceMs;
    const untold = pools
      .filter(
        (pool) =>
          pool.metadata.deletionTimestamp === undefined &&
          (layeringTold(pool) === "layered" || pool.metadata.annotations?.[annotations.optOutAfter] !== undefined),
      )
      .map(({ metadata }) => metadata.name);
    const unheard = configs
      .filter(
        ({ metadata, status }) =>
          conditionOf(status?.conditions, machineOSConfigConditions.accepted)?.status !== "False" &&
          pools.some((pool) => pool.metadata.name === metadata.name),
      )
      .map(({ metadata }) => metadata.name);
    const jobs = await kube.list(kubernetes.Job, { namespace, labelSelector: labels.ephemeralBuildObject }, { signal });
    if (!isLate && untold.length + unheard.length + jobs.items.length > 0) return done(task);
    if (isLate)
      log.warn(
        { pools: untold, machineOSConfigs: unheard, jobs: jobs.items.map(({ metadata }) => metadata.name) },
        "the builder is removed before it has cleaned up",
      );
    await kube
      .delete(kubernetes.Deployment, { name: objects.osBuilder, namespace }, { signal })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    applied.delete(`Deployment/${namespace}/${objects.osBuilder}`);
    builderUnwantedSince = undefined;
    return done(task);
  }

  /**
   * Builds read Secrets of the suite's own namespace only: the cluster's pull secret and its entitlement are copied
   * there.
   */
  async function copyForBuilds(configs: readonly MachineOSConfig[], context: Context): Promise<void> {
    const copy = async (name: string, from: Secret | undefined) => {
      if (from?.data !== undefined)
        await keep(
          kubernetes.Secret,
          {
            apiVersion: "v1",
            kind: "Secret",
            metadata: { name, namespace },
            type: from.type ?? "Opaque",
            data: from.data,
          } as KubeObject,
          context,
        );
    };
    await copy(objects.globalPullSecret, pullSecretOf(context));
    const entitlement = await context.kube.get(kubernetes.Secret, entitlementKey, context);
    for (const { spec } of configs)
      await copy(`${objects.entitlementPrefix}${spec.machineConfigPool.name}`, entitlement);
  }

  /**
   * Hands the API server's authorities to machines once they have stayed the same for a while: each change restarts
   * kubelets.
   */
  async function syncKubeconfigAuthorities(context: Context): Promise<TaskOutcome> {
    const task = "KubeconfigAuthorities";
    const key = "ca-bundle.crt";
    isHandingOver = false;
    const bundle = observeServerProof(context);
    const handed = ownMap(objects.kubeconfigData, context)?.data?.[key];
    if (bundle === undefined || bundle === handed) {
      changing = undefined;
      return done(task);
    }
    if (changing?.bundle !== bundle) changing = { bundle, since: context.clock.monotonic() };
    if (handed !== undefined && context.clock.monotonic() - changing.since < settleMs) return done(task);
    await context.kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name: objects.kubeconfigData, namespace }, data: { [key]: bundle } },
      { owner, signal: context.signal },
    );
    isHandingOver = handed !== undefined;
    changing = undefined;
    return done(task);
  }

  async function syncControllerConfig(context: Context): Promise<TaskOutcome> {
    const task = "ControllerConfig";
    const name = objects.controllerConfig;
    const existing = context.caches.of(ControllerConfig).get(name);
    const release = releaseOf(ownMap(objects.osImageConfigMap, context)?.data, options.version, existing?.spec);
    if (release.verdict === "unknown")
      return { task, kind: release.lasting ? "failed" : "progressing", message: release.message };
    // A new release renders only once its controller has taken over from the old one.
    const by = existing?.metadata.annotations?.[annotations.generatedByVersion];
    if (by !== undefined && by !== options.version && !controllerRuns(context))
      return progressing(task, "waiting for the new controller before its settings are written");
    const sources = await observeSources(context);
    const bringUp = reachedVersion(context.caches.of(ClusterOperator).get(objects.clusterOperator)) === undefined;
    const secret = bringUp ? undefined : observePullSecret(context, sources.dns?.spec?.baseDomain);
    const kept = existing?.spec.internalRegistryPullSecret;
    const internalRegistryPullSecret =
      secret?.verdict === "merged" ? secret.json : kept === undefined || kept === null ? undefined : textOfBase64(kept);
    const made = controllerConfigOf(
      {
        ...sources,
        bringUp,
        internalRegistryPullSecret,
        release: release.images,
        suiteImage: options.image,
        releaseImage: options.image,
      },
      existing?.spec,
    );
    if (made.verdict === "waiting") return progressing(task, made.message);
    const { spec } = made;
    await keep(
      ControllerConfig,
      {
        apiVersion: ControllerConfig.apiVersion,
        kind: ControllerConfig.kind,
        metadata: {
          name,
          annotations: {
            [annotations.generatedByVersion]: options.version,
            [annotations.releaseImageVersion]: options.version,
            [annotations.serviceCaRotate]: String(isHandingOver),
          },
        },
        spec,
      } as KubeObject,
      context,
      true,
    );
    await publishRegistryCas(spec, context);
    const problems = [...made.problems, ...(secret?.verdict === "refused" ? [secret.problem] : [])];
    if (problems.length > 0) return { task, kind: "failed", message: problems.join("; ") };
    const failure = existing === undefined ? undefined : failureOf(existing);
    if (failure !== undefined)
      return { task, kind: "failed", message: `the base configurations cannot be made: ${failure}` };
    if (release.verdict === "ahead") return progressing(task, release.message);
    if (existing === undefined || !isCompleted(existing))
      return progressing(task, "waiting for the base configurations");
    return done(task);
  }

  /** The union of the registries' certificates, for others; also when the last one is gone. */
  async function publishRegistryCas(spec: ControllerConfig["spec"], context: Context): Promise<void> {
    const published = publishedRegistryCa(context);
    if (published === "nowhere") return;
    const data = mergedRegistryCas(spec);
    if (published !== "absent" && equalValues(published.data ?? {}, data)) return;
    if (published === "absent")
      await context.kube.apply(
        kubernetes.ConfigMap,
        { metadata: mergedRegistryCa, data },
        { owner, signal: context.signal },
      );
    else {
      // It may be the reference's: what that one put there and nobody wants any more goes as well.
      const gone = Object.fromEntries(
        Object.keys(published.data ?? {}).flatMap((file) => (file in data ? [] : [[file, null]])),
      );
      await context.kube.patch(
        kubernetes.ConfigMap,
        mergedRegistryCa,
        { type: "merge", body: { data: { ...data, ...gone } } },
        { owner, signal: context.signal },
      );
    }
  }

  async function syncDaemon(context: Context): Promise<TaskOutcome> {
    // A new release reaches machines last: its daemons come once its controller has taken over and its settings are
    // written.
    const running = context.caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.daemon}`);
    const settings = context.caches.of(ControllerConfig).get(objects.controllerConfig);
    if (
      running !== undefined &&
      !isOfThisVersion(running) &&
      !(settings !== undefined && settings.metadata.annotations?.[annotations.generatedByVersion] === options.version)
    )
      return progressing("MachineConfigDaemon", "the daemons wait for the settings of the new release");
    await keep(kubernetes.DaemonSet, daemonSet(inputsOf(context, "")), context, true);
    const health = componentHealth(
      factsAbout(cluster, context.clock.now()),
      objects.daemon,
      daemonSetFacts(context.caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.daemon}`), options.version),
    );
    // Daemons that are away belong to machines, and pools tell of those.
    return health.value.is === "Healthy" || health.because.reason === "NotAvailable"
      ? done("MachineConfigDaemon")
      : progressing("MachineConfigDaemon", health.because.message);
  }

  function inputsOf(context: Context, certificateHash: string): ManifestInputs {
    return {
      version: options.version,
      image: options.image,
      builderImage: options.builderImage ?? options.image,
      certificateHash,
      logLevel: logLevelOf(context.caches.of(MachineConfiguration).get(objects.machineConfiguration)),
    };
  }

  async function syncController(context: Context): Promise<TaskOutcome> {
    const certificate = await servingSecret({ component: objects.controller, secret: admission.secret }, context);
    if (certificate === undefined)
      return progressing("MachineConfigController", "waiting for a control-plane machine to run on");
    await keep(kubernetes.Deployment, controllerDeployment(inputsOf(context, certificate.hash)), context, true);
    return controllerRuns(context)
      ? done("MachineConfigController")
      : progressing("MachineConfigController", "the controller is being started");
  }

  function isOfThisVersion({ metadata }: KubeObject): boolean {
    return metadata.annotations?.[annotations.releaseImageVersion] === options.version;
  }

  function controllerRuns(context: Context): boolean {
    const deployment = context.caches.of(kubernetes.Deployment).get(`${namespace}/${objects.controller}`);
    return (
      componentHealth(
        factsAbout(cluster, context.clock.now()),
        objects.controller,
        deploymentFacts(deployment, options.version),
      ).value.is === "Healthy"
    );
  }

  async function syncAdmission(context: Context): Promise<TaskOutcome> {
    const running = context.caches
      .of(kubernetes.Pod)
      .list()
      .find(
        (pod: Pod) =>
          pod.metadata.deletionTimestamp === undefined &&
          pod.status?.phase === "Running" &&
          (pod.status.hostIP ?? "") !== "",
      );
    const secret = context.caches.of(kubernetes.Secret, ours).get(`${namespace}/${admission.secret}`);
    const ca = secret?.data?.["ca.crt"];
    if (running?.status?.hostIP === undefined || ca === undefined)
      return progressing("Admission", "waiting for the controller's pod");
    // Machines that are reached on loopback are all one machine, which has no network of Services.
    const { hostIP } = running.status;
    const isOneMachine = isLoopbackAddress(hostIP);
    if (!isOneMachine)
      for (const service of [admissionService(), stateService()]) await keep(kubernetes.Service, service, context);
    await keep(
      kubernetes.ValidatingWebhookConfiguration,
      admissionWebhook({ address: isOneMachine ? hostIP : undefined, ca: atob(ca) }),
      context,
    );
    return done("Admission");
  }

  /** Policies whose kinds have gone stay: they match nothing. */
  async function syncAdmissionPolicies(context: Context): Promise<TaskOutcome> {
    const { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } = kubernetes;
    for (const manifest of admissionPolicies(observeGuardNeeds(context)))
      await keep(
        manifest.kind === ValidatingAdmissionPolicy.kind ? ValidatingAdmissionPolicy : ValidatingAdmissionPolicyBinding,
        manifest,
        context,
      );
    return done("AdmissionPolicies");
  }

  async function syncNetworkPolicies(context: Context): Promise<TaskOutcome> {
    for (const manifest of networkPolicies({ admissionPort: admission.port, statePort: stateMetrics.port }))
      await keep(kubernetes.NetworkPolicy, manifest, context);
    return done("NetworkPolicies");
  }

  /** Whether the pools that an upgrade waits for are there; asked only while there is one, or the cluster comes up. */
  async function syncRequiredPools(facts: Facts, context: Context): Promise<TaskOutcome> {
    const before = reachedVersion(context.caches.of(ClusterOperator).get(objects.clusterOperator));
    if (before === options.version) return done("RequiredPools");
    const required = facts.members
      .pools()
      .filter(({ metadata }) => metadata.labels?.[labels.requiredForUpgrade] !== undefined);
    const images = new Map<string, { image: string; overridden: boolean }>();
    for (const { spec } of required) {
      const name = spec.configuration?.name ?? "";
      const rendered = name === "" ? undefined : await context.kube.get(MachineConfig, { name }, context);
      if (rendered !== undefined)
        images.set(name, {
          image: rendered.spec.osImageURL ?? "",
          overridden: rendered.metadata.annotations?.[annotations.osImageURLOverridden] === "true",
        });
    }
    return requiredPools(
      facts,
      { osImage: context.caches.of(ControllerConfig).get(objects.controllerConfig)?.spec.baseOSContainerImage },
      (name) => images.get(name),
    );
  }

  function upgrade(from: string) {
    return { book: "cluster", chapter: "Upgrade", run: `${from} to ${options.version}` } as const;
  }

  async function newClusterOperator(context: Context): Promise<ClusterOperator> {
    const name = objects.clusterOperator;
    const made = await context.kube.apply(
      ClusterOperator,
      { metadata: { name }, spec: {} },
      { owner, signal: context.signal },
    );
    if (made.status?.conditions !== undefined) return made;
    context.scribe.line({
      book: "cluster",
      chapter: "Install",
      run: options.version,
      path: "Begun",
      mark: "begin",
      level: "boundary",
      reason: "InstallBegan",
      message: `${options.version} is being installed`,
      data: { toVersion: options.version },
    });
    return context.kube.patch(
      ClusterOperator,
      { name },
      { type: "merge", body: { status: { conditions: initialConditions(context.clock.now()) } } },
      { subresource: "status", owner, signal: context.signal },
    );
  }

  async function writeStatus(outcomes: readonly TaskOutcome[], facts: Facts, context: Context): Promise<void> {
    const name = objects.clusterOperator;
    const existing = context.caches.of(ClusterOperator).get(name) ?? (await newClusterOperator(context));
    const before = reachedVersion(existing);
    const arrived = outcomes.every((outcome) => outcome.kind === "done");
    const reached = arrived ? options.version : before;
    const changes = (says: string) =>
      context.events.event(existing, { type: "Normal", reason: "OperatorVersionChanged", message: says });
    if (before !== options.version && !arrived && before !== undefined && !announced) {
      announced = true;
      // Another operator may have begun before this one was started.
      const isBegun = existing.status?.conditions?.find(({ type }) => type === "Progressing")?.reason === "Upgrading";
      context.scribe.line({
        ...upgrade(before),
        path: "Begun",
        mark: isBegun ? "retry" : "begin",
        level: "boundary",
        reason: "UpgradeBegan",
        message: `from ${before} to ${options.version}`,
        data: { fromVersion: before, toVersion: options.version },
      });
      changes(`the machine config operator is on its way from ${before} to ${options.version}`);
    }
    if (before !== options.version && arrived) changes(`the machine config operator is at ${options.version}`);
    if (before !== options.version && arrived && !isArrivalTold) {
      isArrivalTold = true;
      const which =
        before === undefined
          ? ({ book: "cluster", chapter: "Install", run: options.version } as const)
          : upgrade(before);
      for (const { metadata, spec } of facts.members.pools()) {
        if (metadata.labels?.[labels.requiredForUpgrade] === undefined) continue;
        context.scribe.line({
          ...which,
          path: `Pool/${metadata.name}`,
          mark: "end",
          level: "boundary",
          reason: "AllUpdated",
          message: `pool ${metadata.name} is at ${spec.configuration?.name ?? ""}`,
        });
      }
      const end = {
        ...which,
        path: "Finished",
        mark: "end",
        level: "boundary",
        outcome: "Succeeded",
        message: `everything is at ${options.version}`,
      } as const;
      if (end.chapter === "Install") context.scribe.line({ ...end, reason: "InstallDone" });
      else context.scribe.line({ ...end, reason: "UpgradeDone" });
    }
    const degradedBefore = existing.status?.conditions?.find(({ type }) => type === "Degraded");
    const extension = extensionOf(facts, outcomes);
    const after = await updateObject(
      context.kube,
      ClusterOperator,
      { name },
      (live) => {
        const conditions = clusterOperatorConditions(
          { version: options.version, reached, outcomes, cluster: facts },
          live.status?.conditions ?? [],
          context.clock.now(),
        );
        const versions = versionsOf(reached, live.status?.versions, options);
        const status = {
          conditions,
          ...(versions === undefined ? {} : { versions }),
          relatedObjects: relatedObjects.map((each) => ({ ...each })),
        };
        const same = equalValues(
          [live.status?.conditions, live.status?.versions, live.status?.relatedObjects, live.status?.extension ?? {}],
          [status.conditions, versions, status.relatedObjects, extension],
        );
        // A merge keeps what it does not name: lines of pools that are gone, and errors that are over, must be taken
        // out.
        const over = Object.fromEntries(
          Object.keys(live.status?.extension ?? {}).flatMap((key) => (key in extension ? [] : [[key, null]])),
        );
        return same
          ? undefined
          : { status: { ...status, extension: { ...extension, ...over } } as NonNullable<ClusterOperator["status"]> };
      },
      { subresource: "status", owner, signal: context.signal, cached: existing },
    );
    const degraded = after?.status?.conditions?.find(({ type }) => type === "Degraded");
    if (after !== undefined && degraded?.status === "True" && degraded.message !== degradedBefore?.message)
      context.events.event(after, {
        type: "Warning",
        reason: "OperatorDegraded",
        message: `${degraded.reason}: ${degraded.message}`,
      });
  }
}
