import type { CredentialProviderConfig } from "../../api/foreign/openshift.ts";
import { credentialConditions as types, objects } from "../../api/names.ts";
import { type Condition, conditionOf, timestampOf } from "../../api/schema/object.ts";
import { credentialsCauses } from "../runtime/credentials-causes.ts";
import { crioProvider, providerFolder } from "../runtime/credential-providers.ts";
import { type Explanation, type Remedies, section } from "./explanation.ts";

type State = Pick<Explanation, "reason" | "headline"> & Partial<Remedies>;

/**
 * Whether kubelets ask CRI-O's provider for the credentials of the named images, and if not, why.
 *
 * @param now milliseconds since the epoch.
 */
export function explainCredentials(object: CredentialProviderConfig, now: number): Explanation {
  const conditions = object.status?.conditions ?? [];
  return {
    subject: `${object.kind.toLowerCase()}/${object.metadata.name}`,
    asOf: timestampOf(now),
    freshness: "Fresh",
    next: [],
    todo: [],
    ...stateOf(object, conditions),
    sections: [
      ...section(
        "Match images",
        credentialsCauses(object).map(({ what, path }) => `${what} (${path})`),
      ),
      ...section(
        "Conditions",
        conditions.map(({ type, status, reason, message }) => `${type} ${status}, ${reason}: ${message}`),
      ),
      ...section("On the machines", [
        `the OS image must have ${providerFolder}/${crioProvider}: a kubelet does not start without it`,
      ]),
    ],
  };
}

function stateOf({ kind, metadata, spec }: CredentialProviderConfig, conditions: readonly Condition[]): State {
  const name = `${kind}/${metadata.name}`;
  const edit = `kubectl edit ${kind.toLowerCase()}/${metadata.name}`;
  const [validated, rendered] = [conditionOf(conditions, types.validated), conditionOf(conditions, types.rendered)];
  if (metadata.name !== objects.clusterSingleton)
    return {
      reason: "NotRead",
      headline: `${name} is not read: the only one is named ${objects.clusterSingleton}.`,
      todo: [`put its match images into ${kind}/${objects.clusterSingleton}`],
    };
  const isSeen = [validated, rendered].every(
    (one) => one?.observedGeneration === undefined || one.observedGeneration === (metadata.generation ?? 1),
  );
  if (validated === undefined || rendered === undefined || !isSeen)
    return {
      reason: "NotSeen",
      headline: `${name} has not been judged yet.`,
      next: ["the controller judges it by itself"],
    };
  if (validated.status !== "True" && validated.reason !== types.partiallyApplied)
    return {
      reason: "Invalid",
      headline: `${name} is refused, and machines keep what they have: ${validated.message}.`,
      todo: [`correct the named field: ${edit}`],
    };
  if (rendered.status !== "True")
    return {
      reason: rendered.reason,
      headline: `${name} is not written: ${rendered.message}.`,
      todo: ["fix what the condition MachineConfigRendered names"],
    };
  if (validated.status !== "True")
    return {
      reason: validated.reason,
      headline: `${name} is on the machines in part: ${validated.message}.`,
      todo: [`take out what another provider answers: ${edit}`],
    };
  if ((spec?.matchImages ?? []).length === 0)
    return { reason: "NothingToWrite", headline: `${name} names no images, and changes no machine.` };
  return {
    reason: "AsWritten",
    headline: `${name} is ${rendered.message}, and so on the machines once these have rolled out.`,
  };
}
