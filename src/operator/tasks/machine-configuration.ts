import { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { fieldManagers, objects } from "../../api/names.ts";
import { machineConfigurationStatus } from "../../core/operator/machine-configuration-status.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { updateObject } from "../../kube/kube-client.ts";
import { logLevelOf, settingsIn } from "../operator-options.ts";
import { type OperatorTask, taskDone, progressing } from "../operator-task.ts";
import { watchMachineConfigurations } from "../operator-watches.ts";

interface View {
  readonly existing: MachineConfiguration | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

type Decision =
  | { readonly do: "create" }
  | { readonly do: "nothing"; readonly existing: MachineConfiguration }
  | { readonly do: "writeStatus"; readonly existing: MachineConfiguration };

const { machineConfiguration: name } = objects;

/** The cluster's settings, and what they mean for machines. */
export const machineConfiguration: OperatorTask<View, Decision> = {
  name: "MachineConfiguration",
  watches: [watchMachineConfigurations],
  observe: (context) => ({ existing: settingsIn(context), now: context.clock.now() }),

  decide({ existing, now }) {
    if (existing === undefined) return { do: "create" };
    return equalValues(existing.status, machineConfigurationStatus(existing, now))
      ? { do: "nothing", existing }
      : { do: "writeStatus", existing };
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
        await updateObject(
          kube,
          MachineConfiguration,
          { name },
          (live) => {
            const status = machineConfigurationStatus(live, clock.now());
            return equalValues(live.status, status) ? undefined : { status };
          },
          { subresource: "status", owner, signal, cached: decision.existing },
        );
        return taskDone;
    }
  },
};
