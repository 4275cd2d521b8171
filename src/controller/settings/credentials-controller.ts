import { type CredentialProviderConfig, openshift } from "../../api/foreign/openshift.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { fieldManagers, objects as names } from "../../api/names.ts";
import { trimMachineConfig } from "../../core/pool/trim.ts";
import { baseContents, basePartOf } from "../../core/render/base-config-of.ts";
import {
  type CredentialsDecision,
  decideCredentials,
  isCredentialsConfig,
  skippedText,
} from "../../core/runtime/decide-credentials.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { type Context, type Controller, watching } from "../../kube/controller.ts";
import { type Outcome, done, stalled, waiting } from "../../kube/outcome.ts";
import { clusterSettingsOf, clusterSettingsWatches } from "./cluster-settings-watches.ts";
import { removeGenerated, writeGenerated } from "./generated-configs.ts";
import { writeConditions } from "./write-conditions.ts";
import { settingsRefused } from "../reports.ts";

const waitSeconds = 30;
const resource = openshift.CRIOCredentialProviderConfig;

/** There is one object of the kind; every change concerns it. */
const only = [names.clusterSingleton];

/** What was last told about the object, so that each Event is sent once. */
interface CredentialsMemory {
  told: string;
}

/** Says to the kubelets of the built-in pools for which images they ask CRI-O for credentials. */
export function credentialsController({ generatorVersion }: { readonly generatorVersion: string }): Controller {
  const memory: CredentialsMemory = { told: "" };
  return {
    name: "credentials",
    watches: [
      watching<CredentialProviderConfig>({
        resource,
        optional: true,
        concerns: ({ before, after }) =>
          before !== undefined && equalValues(before.spec, after?.spec) && before.metadata.uid === after?.metadata.uid
            ? []
            : only,
      }),
      watching({
        resource: MachineConfigPool,
        concerns: ({ before, after }) =>
          before !== undefined && after !== undefined && equalValues(before.metadata.labels, after.metadata.labels)
            ? []
            : only,
      }),
      watching({
        resource: MachineConfig,
        keep: trimMachineConfig,
        concerns: ({ key, before, after }) =>
          isCredentialsConfig(key) ||
          (basePartOf(key) !== undefined && !equalValues(baseContents(before), baseContents(after)))
            ? only
            : [],
      }),
      ...clusterSettingsWatches.map((watch) => ({ ...watch, concerns: () => only })),
    ],
    owns: ["MachineConfig/credentials", "CRIOCredentialProviderConfig.status"],

    async reconcile(name, context): Promise<Outcome> {
      const { caches, clock } = context;
      const object = caches.of(resource).get(name);
      // What was made of it goes with it: it is the owner.
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
        memory.told = "";
        return done();
      }
      const decision = decideCredentials({
        object,
        pools: caches
          .of(MachineConfigPool)
          .list()
          .filter(({ metadata }) => metadata.deletionTimestamp === undefined),
        machineConfigs: caches.of(MachineConfig).list(),
        gates: clusterSettingsOf(caches).gates,
        generatorVersion,
        now: clock.now(),
      });
      return perform(decision, object, memory, context);
    },
  };
}

async function perform(
  decision: CredentialsDecision,
  object: CredentialProviderConfig,
  memory: CredentialsMemory,
  context: Context,
): Promise<Outcome> {
  switch (decision.do) {
    case "wait":
      return waiting(
        "BaseConfigMissing",
        `the base configuration of the pool ${decision.pool} is not there yet`,
        waitSeconds,
      );
    case "refuse": {
      const message = decision.problems.map(({ path, reason }) => `${path} ${reason}`).join("; ");
      await writeConditions(resource, object, () => decision.conditions, fieldManagers.credentials, context);
      tell(object, message, memory, context);
      return stalled("Invalid", message);
    }
    case "write": {
      for (const config of decision.configs) await writeGenerated(config, fieldManagers.credentials, context);
      for (const config of decision.stale) await removeGenerated(config, object, context);
      await writeConditions(resource, object, () => decision.conditions, fieldManagers.credentials, context);
      tell(object, decision.skipped.length === 0 ? "" : skippedText(decision.skipped), memory, context);
      return done();
    }
  }
}

/** An Event about what does not reach the machines, unless the last one said the same. */
function tell(
  object: CredentialProviderConfig,
  message: string,
  memory: CredentialsMemory,
  { report }: Pick<Context, "report">,
): void {
  if (memory.told === message) return;
  memory.told = message;
  if (message !== "") report(settingsRefused(object, message));
}
