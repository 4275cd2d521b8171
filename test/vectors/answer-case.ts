import type { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { classifyAsReference } from "../../src/core/config/classify-as-reference.ts";
import type { UserPolicies } from "../../src/core/config/disruption-policy.ts";
import { renderPool } from "../../src/core/render/render-pool.ts";
import { convertIgnition } from "../../src/ignition/convert-ignition.ts";

/** One line of cases.jsonl. */
export type ReferenceCase =
  | {
      readonly id: string;
      readonly op: "render";
      readonly pool: MachineConfigPool;
      readonly configs: readonly MachineConfig[];
      readonly osImageURL: string;
      readonly extensionsImage: string;
    }
  | {
      readonly id: string;
      readonly op: "diff";
      readonly Old: MachineConfig;
      readonly New: MachineConfig;
      readonly policy?: UserPolicies;
    }
  | { readonly id: string; readonly op: "convert"; readonly ign: unknown; readonly target: string };

/** One line of expected.jsonl. */
export interface ReferenceAnswer {
  readonly ID: string;
  readonly Op: string;
  readonly Error?: string;
  readonly Name?: string;
  readonly Spec?: unknown;
  readonly Reconcile?: string;
  readonly Diff?: Readonly<Record<string, unknown>>;
  readonly Converted?: unknown;
}

/** This suite's answer to a case. */
export function answerCase(one: ReferenceCase): ReferenceAnswer {
  const head = { ID: one.id, Op: one.op };
  switch (one.op) {
    case "render": {
      const result = renderPool({
        pool: one.pool,
        members: one.configs,
        controllerConfig: {
          spec: { baseOSContainerImage: one.osImageURL, baseOSExtensionsContainerImage: one.extensionsImage },
        },
      });
      if (result.verdict === "refused")
        return { ...head, Error: result.refusals.map(({ reason }) => reason).join("; ") };
      return { ...head, Name: result.config.metadata.name, Spec: result.config.spec };
    }
    case "diff": {
      const result = classifyAsReference(one.Old, one.New, one.policy);
      if (result.verdict === "refused")
        return { ...head, Error: result.problems.map(({ path, reason }) => `${path} ${reason}`).join("; ") };
      const c = result.classification;
      return {
        ...head,
        ...(c.isReconcilable ? {} : { Reconcile: "irreconcilable" }),
        Diff: {
          OS: c.os,
          Kargs: c.kernelArguments,
          FIPS: c.fips,
          Passwd: c.passwd,
          Files: c.files,
          Units: c.units,
          KernelType: c.kernelType,
          Extensions: c.extensions,
          FileSet: c.changedPaths,
          UnitSet: c.changedUnits,
          Actions: [c.legacyAction],
          PolicyActions: c.policyActions,
        },
      };
    }
    case "convert": {
      const result = convertIgnition(one.ign, one.target);
      if (result.verdict === "refused")
        return { ...head, Error: result.problems.map(({ path, reason }) => `${path} ${reason}`).join("; ") };
      return { ...head, Converted: result.config };
    }
  }
}

/** Rewrites an answer so that answers with the same meaning are equal: see the comparison rules in README.md. */
export function comparable(answer: ReferenceAnswer): unknown {
  const plain = JSON.parse(JSON.stringify(answer)) as ReferenceAnswer;
  if (plain.Error !== undefined) return { ID: plain.ID, Op: plain.Op, Error: "refused" };
  if (plain.Diff === undefined) return plain;
  const actions = (Array.isArray(plain.Diff["PolicyActions"]) ? plain.Diff["PolicyActions"] : [])
    .map((action) => JSON.stringify(sorted(action)))
    .toSorted();
  return {
    ...plain,
    ...(plain.Reconcile === undefined ? {} : { Reconcile: "irreconcilable" }),
    Diff: { ...plain.Diff, PolicyActions: actions.length === 1 && actions[0] === '{"type":"None"}' ? [] : actions },
  };
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, field]) => [name, sorted(field)]),
  );
}
