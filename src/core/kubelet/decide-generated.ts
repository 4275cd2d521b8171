import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { finalizers as finalizerNames, settingsConditions as types } from "../../api/names.ts";
import { type ConditionInput, setCondition, withTransition } from "../../api/schema/conditions.ts";
import { type Progress, withProgress } from "../../api/schema/progress-conditions.ts";
import { type GeneratedFile, generatedConfig } from "../render/generated-config.ts";
import { type OverriddenFile, overriddenText } from "../render/overridden-files.ts";
import { clipText } from "../text/clip-text.ts";
import { shortList } from "../text/list-text.ts";
import type { FieldProblem } from "./decode-go.ts";
import type { Holder } from "./held-configs.ts";
import { type LostField, lostFieldText } from "./lost-fields.ts";
import { type GeneratedKind, generatedName, isGeneratedName } from "./generated-names.ts";
import { selectPools } from "./select-pools.ts";

/** An object whose settings become one MachineConfig in each pool that it selects. */
export type SettingsObject = KubeletConfig | ContainerRuntimeConfig;
type Status = NonNullable<SettingsObject["status"]>;
type LooseCondition = NonNullable<Status["conditions"]>[number];

/** What an object writes on the machines of a pool. */
export type PoolFiles =
  | {
      readonly verdict: "files";
      readonly files: readonly GeneratedFile[];
      /** Fields that change nothing there. */
      readonly withoutEffect: readonly LostField[];
    }
  | { readonly verdict: "refused"; readonly problems: readonly FieldProblem[] };

/** Everything that decides what such an object makes. */
export interface SettingsView<T extends SettingsObject> {
  readonly object: T;
  readonly pools: readonly MachineConfigPool[];
  /** The other objects of the kind, without those that are being deleted. */
  readonly others: readonly T[];
  readonly kind: GeneratedKind;
  /** The file that several objects of one pool would write; the last of them decides it. */
  readonly decides: string;
  /** @param selected names of all pools that the object selects. */
  filesOf(pool: string, selected: readonly string[]): PoolFiles;
  /** Whose the MachineConfig of a name is. */
  holderOf(name: string): Holder;
  /** Names of the MachineConfigs that the object controls. */
  readonly held: readonly string[];
  /** The files of a MachineConfig of the object that a person's MachineConfig replaces. */
  overriddenOf(config: MachineConfig): readonly OverriddenFile[];
  readonly generatorVersion: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type SettingsDecision =
  /** It is being deleted: its MachineConfigs go, then its finalizers. */
  | { readonly do: "remove"; readonly configs: readonly string[]; readonly finalizers: readonly string[] }
  /** It changes no machine; what it made before stays, so that no machine loses its settings by a typing error. */
  | { readonly do: "refuse"; readonly problems: readonly FieldProblem[]; readonly status: Status }
  | {
      readonly do: "apply";
      readonly configs: readonly MachineConfig[];
      /** MachineConfigs for pools that it no longer selects. */
      readonly stale: readonly string[];
      readonly finalizers: readonly string[];
      readonly status: Status;
    };

/** What to do about a KubeletConfig or a ContainerRuntimeConfig. */
export function decideSettings<T extends SettingsObject>(view: SettingsView<T>): SettingsDecision {
  const { object, kind, held } = view;
  const present = object.metadata.finalizers ?? [];
  const isOwn = (finalizer: string) => finalizer === finalizerNames.generated || isGeneratedName(finalizer, kind);
  const made = [...new Set([...present.filter((name) => isGeneratedName(name, kind)), ...held])];
  const foreign = present.filter((name) => !isOwn(name));
  if (object.metadata.deletionTimestamp !== undefined) return { do: "remove", configs: made, finalizers: foreign };
  const selection = selectPools(object.spec.machineConfigPoolSelector, view.pools);
  if (selection.verdict === "refused") return refused(view, [selection.problem]);
  const names = selection.pools.map(({ metadata }) => metadata.name);
  const configs: MachineConfig[] = [];
  const withoutEffect = new Map<string, LostField>();
  const overridden: string[] = [];
  for (const pool of selection.pools) {
    const result = configFor(view, pool, names);
    if (result.verdict === "refused") return refused(view, result.problems);
    configs.push(result.config);
    for (const field of result.withoutEffect) withoutEffect.set(field.path, withoutEffect.get(field.path) ?? field);
    if (result.winner !== undefined) overridden.push(`${pool.metadata.name} by ${result.winner}`);
  }
  const wanted = configs.map(({ metadata }) => metadata.name);
  return {
    do: "apply",
    configs,
    stale: made.filter((name) => !wanted.includes(name)),
    finalizers: finalizersFor(present, wanted, isOwn),
    status: accepted(
      view,
      [...withoutEffect.values()],
      overridden,
      configs.flatMap((config) => view.overriddenOf(config)),
    ),
  };
}

/** A finalizer has 63 characters at most; configs with longer names are found by their owner alone. */
const longestFinalizer = 63;

/** The finalizers of an object that makes MachineConfigs of these names; those that it keeps stay in their places. */
function finalizersFor(
  present: readonly string[],
  configs: readonly string[],
  isOwn: (finalizer: string) => boolean,
): readonly string[] {
  const wanted = [
    ...new Set(configs.map((name) => (name.length <= longestFinalizer ? name : finalizerNames.generated))),
  ];
  return [
    ...present.filter((name) => !isOwn(name) || wanted.includes(name)),
    ...wanted.filter((name) => !present.includes(name)),
  ];
}

type Made =
  | {
      readonly verdict: "made";
      readonly config: MachineConfig;
      readonly withoutEffect: readonly LostField[];
      /** The object whose file the machines of the pool take instead. */
      readonly winner: string | undefined;
    }
  | { readonly verdict: "refused"; readonly problems: readonly FieldProblem[] };

function configFor<T extends SettingsObject>(
  view: SettingsView<T>,
  pool: MachineConfigPool,
  selected: readonly string[],
): Made {
  const { object, others, generatorVersion } = view;
  const role = pool.metadata.name;
  const result = view.filesOf(role, selected);
  if (result.verdict === "refused") return result;
  const rivals = others.filter(
    ({ spec }) => selectPools(spec.machineConfigPoolSelector, [pool]).verdict === "selected",
  );
  const name = nameFor(object, role, rivals, view);
  if (view.holderOf(name) === "another")
    return {
      verdict: "refused",
      problems: [
        {
          path: "metadata.name",
          reason: `leads to the MachineConfig ${name}, which another writer made: rename or delete that one, or give this object another name`,
        },
      ],
    };
  const winner = rivals.find(
    (one) => nameFor(one, role, [object, ...rivals.filter((rival) => rival !== one)], view) > name,
  );
  return {
    verdict: "made",
    config: generatedConfig({ name, role, owner: object, files: result.files, generatorVersion }),
    withoutEffect: result.withoutEffect,
    winner: winner?.metadata.name,
  };
}

const nameFor = <T extends SettingsObject>(
  config: T,
  pool: string,
  others: readonly T[],
  { object, kind, held, holderOf }: SettingsView<T>,
): string =>
  generatedName({
    kind,
    pool,
    config,
    others,
    held: config === object ? held : [],
    exists: (name) => holderOf(name) !== "nothing",
    // About the MachineConfigs of another object, its own finalizers tell.
    isTaken: (name) => config === object && holderOf(name) === "another",
  });

/** The last condition is what readers of the reference's statuses look at. */
function statusOf<T extends SettingsObject>(
  { object, now }: SettingsView<T>,
  effective: ConditionInput<LooseCondition>,
  isAccepted: boolean,
  message: string,
): Status {
  const before: readonly LooseCondition[] = object.status?.conditions ?? [];
  const legacy = isAccepted ? types.success : types.failure;
  const kept = before.filter(({ type }) => type !== types.success && type !== types.failure);
  const reason = isAccepted ? "Applied" : "Invalid";
  const said = [effective, { type: types.accepted, status: isAccepted ? "True" : "False", reason, message }].reduce<
    readonly LooseCondition[]
  >((list, next) => setCondition<LooseCondition>(list, next, now), kept);
  // Machines get what is accepted by their pools, which say how far they are.
  const progress: Progress = isAccepted
    ? { verdict: "current" }
    : { verdict: "stalled", reason, message: clipText(message, longestName) };
  const conditions = [
    ...withProgress<LooseCondition>(said, progress, now),
    withTransition<LooseCondition>(
      before.find(({ type }) => type === legacy),
      { type: legacy, status: "True", reason, message },
      now,
    ),
  ];
  return {
    ...(object.metadata.generation === undefined ? {} : { observedGeneration: object.metadata.generation }),
    conditions,
  };
}

/** What a message names of an object that may hold a hundred thousand fields; the API server takes no longer text. */
const mostNamed = 20;
const longestName = 1024;

/** The first texts about fields, and how many more there are. */
const fieldTexts = <T>(fields: readonly T[], textOf: (field: T) => string): string =>
  shortList(fields, mostNamed, (field) => clipText(textOf(field), longestName)).join("; ");

/** Why an object with settings is refused, as its conditions and its Event say it. */
export const settingsProblemsText = (problems: readonly FieldProblem[]): string =>
  fieldTexts(problems, ({ path, reason }) => `${path} ${reason}`);

function refused<T extends SettingsObject>(view: SettingsView<T>, problems: readonly FieldProblem[]): SettingsDecision {
  const message = settingsProblemsText(problems);
  const effective = {
    type: types.effective,
    status: "False",
    reason: "Invalid",
    message: view.held.length === 0 ? "no machine gets it" : "machines keep what this object said before",
  };
  return { do: "refuse", problems, status: statusOf(view, effective, false, message) };
}

function accepted<T extends SettingsObject>(
  view: SettingsView<T>,
  withoutEffect: readonly LostField[],
  overridden: readonly string[],
  replaced: readonly OverriddenFile[],
): Status {
  const lost = withoutEffect.length === 0 ? [] : [fieldTexts(withoutEffect, lostFieldText)];
  const others =
    overridden.length === 0 ? [] : [`newer objects decide ${view.decides}: pool ${overridden.join(", pool ")}`];
  const byPeople = replaced.slice(0, mostNamed).map((file) => clipText(overriddenText(file), longestName));
  const found = [
    { reason: "Replaced", texts: byPeople },
    { reason: "Overridden", texts: others },
    { reason: "FieldsWithoutEffect", texts: lost },
  ].filter(({ texts }) => texts.length > 0);
  const effective = {
    type: types.effective,
    status: found.length > 0 ? "False" : "True",
    reason: found[0]?.reason ?? "AsWritten",
    message: found.flatMap(({ texts }) => texts).join("; "),
  };
  return statusOf(view, effective, true, "Success");
}
