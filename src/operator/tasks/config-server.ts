import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { joinNamespace, namespace, objects } from "../../api/names.ts";
import { type KubeObject, keyOf } from "../../api/schema/object.ts";
import { type TlsSecurityProfile, tlsOfProfile } from "../../core/certificates/tls-profile.ts";
import {
  type ConfigServerAccess,
  type ConfigServerFacts,
  apiServerForMachines,
  configServerAccess,
  configServerHosts,
  configServerUrls,
} from "../../core/join/config-server.ts";
import { applyManifest, forgetApplied } from "../apply-manifest.ts";
import { nodeBootstrappers, observeClusterInfo, observeTlsProfile, ownMap } from "../cluster-sources.ts";
import { isLoopbackAddress, manifestInputs } from "../components.ts";
import { keepConfigServerCertificates } from "../config-server-certificates.ts";
import { bootstrapAccounts, clientCaKey, configServerDaemonSet, tlsFlags, tlsFlagsIn } from "../manifests.ts";
import { settingsIn } from "../operator-options.ts";
import { type OperatorTask, type TaskContext, taskDone, failed, progressing } from "../operator-task.ts";
import {
  one,
  watchControllerConfigs,
  watchDaemonSets,
  watchMachineConfigurations,
  watchMachines,
  watchPools,
  watchSecrets,
  watchSources,
} from "../operator-watches.ts";
import { controlPlaneAddresses } from "../serving-certificate.ts";
import { certificateRotated } from "../reports.ts";

interface View {
  readonly facts: ConfigServerFacts;
  /** Of the control plane. */
  readonly addresses: readonly string[];
  /** Names of the pools that machines can join. */
  readonly pools: readonly string[];
  /** Accounts that machines which join ask for their certificates as. */
  readonly accounts: readonly KubeObject[];
  readonly tlsProfile: TlsSecurityProfile | undefined;
  /** Arguments of the config server as it is deployed. */
  readonly arguments: readonly string[];
  readonly hasClientCa: boolean;
}

interface Serving {
  /** Names and addresses that machines reach the config server by. */
  readonly hosts: readonly string[];
  /** URLs at which daemons reach it. */
  readonly servers: readonly string[];
  readonly access: ConfigServerAccess;
  readonly apiServer: string;
  readonly oneMachine: boolean;
  readonly tls: readonly string[];
  readonly hasClientCa: boolean;
}

type Decision =
  | { readonly do: "wait"; readonly message: string }
  | {
      readonly do: "serve";
      readonly serving: Serving;
      /** What machines join with, by pool. */
      readonly wanted: readonly KubeObject[];
      /** Accounts that are gone: they are applied again. */
      readonly missingAccounts: readonly string[];
      /** Accounts of pools that are gone. */
      readonly removed: readonly { readonly name: string; readonly uid: string }[];
      /** What of the cluster's TLS profile is not followed. */
      readonly tlsNotes: string;
      /** Problems of the settings. */
      readonly problems: readonly string[];
    };

/**
 * The config server for joining machines: its certificates, the accounts that machines join with, and its pods on the
 * control plane.
 */
export const configServer: OperatorTask<View, Decision> = {
  name: "ConfigServer",
  watches: [
    watchMachineConfigurations,
    watchPools,
    watchControllerConfigs,
    watchMachines,
    watchDaemonSets,
    watchSecrets,
    watchSources,
  ],

  async observe(context) {
    const { caches, options } = context;
    const running = caches.of(kubernetes.DaemonSet).get(`${namespace}/${objects.configServer}`);
    return {
      facts: {
        controllerConfig: caches.of(ControllerConfig).get(objects.controllerConfig),
        machineConfiguration: settingsIn(context),
        clusterInfo: observeClusterInfo(context),
        ownServer: options.apiServer,
        installedAddress: options.configServerAddress,
      },
      addresses: controlPlaneAddresses(context),
      pools: caches
        .of(MachineConfigPool)
        .list()
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name)
        .sort(),
      accounts: caches.of(kubernetes.ServiceAccount, nodeBootstrappers).list(),
      tlsProfile: await observeTlsProfile(context),
      arguments: running?.spec?.template.spec?.containers[0]?.args ?? [],
      hasClientCa: ownMap(objects.configServerClientCa, context)?.data?.[clientCaKey] !== undefined,
    };
  },

  decide(view) {
    const { facts, addresses, pools, accounts } = view;
    if (addresses.length === 0) return { do: "wait", message: "waiting for a control-plane machine to run on" };
    const { access, problem } = configServerAccess(facts.machineConfiguration);
    const tls = tlsOfProfile(view.tlsProfile);
    const wanted = bootstrapAccounts(pools);
    const known = new Set(accounts.map(keyOf));
    return {
      do: "serve",
      serving: {
        hosts: [...new Set([...configServerHosts(facts), ...addresses, `${objects.configServer}.${namespace}.svc`])],
        servers: configServerUrls(facts, addresses),
        access,
        apiServer: apiServerForMachines(facts),
        oneMachine: isLoopbackAddress(addresses[0] ?? ""),
        // A profile that cannot be followed changes nothing.
        tls: tls.verdict === "settings" ? tlsFlags(tls.settings.minVersion, tls.flags) : tlsFlagsIn(view.arguments),
        hasClientCa: view.hasClientCa,
      },
      wanted,
      missingAccounts: wanted.map(keyOf).filter((key) => !known.has(key)),
      removed: removedAccounts(accounts, pools),
      tlsNotes: tls.verdict === "settings" ? tls.notes.join("; ") : "",
      problems: [
        ...(problem === undefined ? [] : [problem]),
        ...(tls.verdict === "refused" ? [`APIServer ${one}: ${tls.reason}`] : []),
      ],
    };
  },

  async perform(decision, context) {
    switch (decision.do) {
      case "wait":
        return progressing(decision.message);
      case "serve": {
        const { hosts, servers, ...serving } = decision.serving;
        await keepCertificates({ hosts, servers }, context);
        await removeAccounts(decision.removed, context);
        for (const key of decision.missingAccounts) forgetApplied(kubernetes.ServiceAccount.kind, key, context);
        for (const manifest of decision.wanted) await applyManifest(kubernetes.ServiceAccount, manifest, context);
        logSettings(serving.access, decision.tlsNotes, context);
        await applyManifest(
          kubernetes.DaemonSet,
          configServerDaemonSet({ ...manifestInputs(context), ...serving }),
          context,
          { watched: true },
        );
        return decision.problems.length === 0 ? taskDone : failed(decision.problems.join("; "));
      }
    }
  },
};

/** No machine joins a deleted pool: its account is removed, and with it the tokens issued for it. */
function removedAccounts(
  accounts: readonly KubeObject[],
  pools: readonly string[],
): readonly { readonly name: string; readonly uid: string }[] {
  const prefix = objects.nodeBootstrapperPrefix;
  return accounts.flatMap(({ metadata: { name, uid, deletionTimestamp } }) =>
    // The label alone does not identify these accounts: other programs that use it choose other names.
    !name.startsWith(prefix) ||
    pools.includes(name.slice(prefix.length)) ||
    uid === undefined ||
    deletionTimestamp !== undefined
      ? []
      : [{ name, uid }],
  );
}

async function removeAccounts(
  accounts: readonly { readonly name: string; readonly uid: string }[],
  context: TaskContext,
): Promise<void> {
  const { kube, log, signal } = context;
  for (const { name, uid } of accounts) {
    await kube.delete(kubernetes.ServiceAccount, { name, namespace: joinNamespace }, { uid, signal });
    forgetApplied(kubernetes.ServiceAccount.kind, `${joinNamespace}/${name}`, context);
    log.info({ account: name }, "the account of a pool that is gone is removed");
  }
}

async function keepCertificates(reached: Pick<Serving, "hosts" | "servers">, context: TaskContext): Promise<void> {
  const kept = await keepConfigServerCertificates(
    reached,
    (resource, manifest) => applyManifest(resource, manifest, context, { watched: true }),
    context,
  );
  if (kept?.rotated !== undefined) context.report(certificateRotated(kept.rotated));
}

/** Logs a warning once. */
function logSettings(access: ConfigServerAccess, notes: string, { log, memory }: TaskContext): void {
  const logged = memory.configServerLog;
  if (notes !== "" && notes !== logged.tlsNotes)
    log.warn({ notes }, "the cluster's TLS profile is not followed in everything");
  logged.tlsNotes = notes;
  if (access === "insecure" && logged.access !== access)
    log.warn({ access }, "the config server gives configurations, secrets included, to clients without a credential");
  logged.access = access;
}
