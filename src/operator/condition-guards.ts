import { namespace, objects, operatorGroup } from "../api/names.ts";
import { healthTypes, keepingTypes, overallType } from "../core/operator/health.ts";
import type { Guard } from "./admission-guard.ts";

/** All fields, also those that this release does not know: the definition may be a newer one. */
const statusIn = (object: string) => `has(${object}.status) ? dyn(${object}.status) : dyn({})`;

/**
 * An account writes conditions of some types into a status, and nothing else of it: RBAC knows no fields.
 *
 * @param resource that of the status, such as `machineconfigpools/status`.
 */
export const conditionGuard = ({
  name,
  account,
  apiGroup,
  resource,
  types,
  message,
}: {
  readonly name: string;
  readonly account: string;
  readonly apiGroup: string;
  readonly resource: string;
  readonly types: readonly string[];
  readonly message: string;
}): Guard => {
  const others = (status: string) =>
    `('conditions' in ${status} ? ${status}.conditions : []).filter(c, !(c.type in [${types.map((type) => `'${type}'`).join(", ")}]))`;
  return {
    name,
    rule: { apiGroup, resources: [resource], operations: ["UPDATE"] },
    conditions: { "by-the-account": `request.userInfo.username == 'system:serviceaccount:${namespace}:${account}'` },
    variables: { status: statusIn("object"), statusBefore: statusIn("oldObject") },
    validations: [
      {
        field: "status",
        expression: [
          `${others("variables.status")} == ${others("variables.statusBefore")}`,
          "variables.status.all(k, k == 'conditions' || (k in variables.statusBefore && variables.statusBefore[k] == variables.status[k]))",
          "variables.statusBefore.all(k, k == 'conditions' || k in variables.status)",
        ].join(" && "),
        message,
        reason: "Forbidden",
      },
    ],
  };
};

/** Daemons act on the disruption policies in the same status. */
export const stateConditions = conditionGuard({
  name: "machine-state-conditions",
  account: objects.state,
  apiGroup: operatorGroup,
  resource: "machineconfigurations/status",
  types: [...healthTypes, ...keepingTypes, overallType],
  message: "of MachineConfigurations, the state process writes its conditions about health alone",
});
