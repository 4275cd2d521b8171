import { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, fieldManagers, objects } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { type MachineApi, optsInByDefault } from "../../core/operator/boot-image-managers.ts";
import { machineConfigurationStatus } from "../../core/operator/machine-configuration-status.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { updateObject } from "../../kube/kube-client.ts";
import { observeMachineApi } from "../cluster-sources.ts";
import { logLevelOf, settingsIn } from "../operator-options.ts";
import { type OperatorTask, taskDone, progressing } from "../operator-task.ts";
import { watchMachineConfigurations, watchSources } from "../operator-watches.ts";

interface View {
  readonly existing: MachineConfiguration | undefined;
  readonly machineApi: MachineApi;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

type Decision =
  | { readonly do: "create" }
  | { readonly do: "nothing"; readonly existing: MachineConfiguration }
  | {
      readonly do: "writeStatus";
      readonly existing: MachineConfiguration;
      readonly machineApi: MachineApi;
      /** Boot images begin to follow the release, and nobody asked for it. */
      readonly optsIn: boolean;
    };

const { machineConfiguration: name } = objects;

/** The cluster's settings, and what they mean for machines. */
export const machineConfiguration: OperatorTask<View, Decision> = {
  name: "MachineConfiguration",
  watches: [watchMachineConfigurations, watchSources],
  observe: (context) => ({
    existing: settingsIn(context),
    machineApi: observeMachineApi(context),
    now: context.clock.now(),
  }),

  decide({ existing, machineApi, now }) {
    if (existing === undefined) return { do: "create" };
    return equalValues(existing.status, machineConfigurationStatus(existing, now, machineApi))
      ? { do: "nothing", existing }
      : { do: "writeStatus", existing, machineApi, optsIn: optsInByDefault(existing, machineApi) };
  },

  async perform(decision, { kube, clock, signal, options }) {
    const owner = fieldManagers.operator;
    switch (decision.do) {
      case "create":
        await kube.apply(
          MachineConfiguration,
          { metadata: { name }, spec: { managementState: "Managed" } },
          { owner, signal },
        );
        return progressing("settings are being made");
      case "nothing":
        options.setLogLevel?.(logLevelOf(decision.existing));
        return taskDone;
      case "writeStatus":
        options.setLogLevel?.(logLevelOf(decision.existing));
        if (decision.optsIn) {
          const noted = { [annotations.bootImagesOptedInAt]: timestampOf(clock.now()) };
          await kube.patch(
            MachineConfiguration,
            { name },
            { type: "merge", body: { metadata: { annotations: noted } } },
            { owner, signal },
          );
        }
        await updateObject(
          kube,
          MachineConfiguration,
          { name },
          (live) => {
            const status = machineConfigurationStatus(live, clock.now(), decision.machineApi);
            return equalValues(live.status, status) ? undefined : { status };
          },
          { subresource: "status", owner, signal, cached: decision.existing },
        );
        return taskDone;
    }
  },
};
