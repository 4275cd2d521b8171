import type { ReportedNotice } from "../../api/books/reports.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { Resource } from "../../api/schema/object.ts";
import {
  type SettingsDecision,
  type SettingsObject,
  type SettingsView,
  settingsProblemsText,
} from "../../core/kubelet/decide-generated.ts";
import { heldBy, configHolder } from "../../core/kubelet/held-configs.ts";
import { baseContents } from "../../core/render/base-config-of.ts";
import { generatedFiles } from "../../core/render/generated-config.ts";
import { isOfPeople, mayReplace, overriddenFiles } from "../../core/render/overridden-files.ts";
import { trimMachineConfig } from "../../core/pool/trim.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { type Caches, type Context, type Controller, type Watch, watching } from "../../kube/controller.ts";
import { isConflict, isNotFound } from "../../kube/kube-error.ts";
import { type Outcome, done, stalled, waiting } from "../../kube/outcome.ts";
import type { ObjectChange } from "../../kube/watch-cache.ts";
import { removeGenerated, writeGenerated } from "./generated-configs.ts";
import { settingsApplied, settingsRefused } from "../reports.ts";

/** What every decision about an object with settings sees. */
export type CommonView<T extends SettingsObject> = Omit<SettingsView<T>, "kind" | "filesOf" | "decides">;

export interface SettingsKind<T extends SettingsObject> {
  readonly name: string;
  readonly resource: Resource<T>;
  /** The field manager of the MachineConfigs. */
  readonly owner: string;
  readonly generatorVersion: string;
  /** What else the decision reads; a change of it concerns every object. */
  readonly inputs: readonly Watch[];
  /** A MachineConfig that the decision reads, by its name: a base configuration. */
  readonly isInput: (config: string) => boolean;
  /** `undefined`: what the decision reads is not there yet. */
  readonly decide: (view: CommonView<T>, caches: Caches) => SettingsDecision | undefined;
}

/** How long a missing base configuration is waited for; its arrival wakes the object sooner. */
const waitSeconds = 30;

/** Turns each object of a kind into one MachineConfig for every pool that it selects, and says in its status which. */
export function settingsController<T extends SettingsObject>(kind: SettingsKind<T>): Controller {
  const { resource } = kind;
  /** Object → what was last said about it, so that each Event is sent once. */
  const told = new Map<string, string>();
  const all = (caches: Caches): readonly string[] =>
    caches
      .of(resource)
      .list()
      .map(({ metadata }) => metadata.name);
  /** Whether a person's MachineConfig came, went or changed that names a file of this kind's MachineConfigs. */
  const mayChangeWhatCounts = (before: MachineConfig | undefined, after: MachineConfig | undefined, caches: Caches) => {
    // Most changes are of generated and rendered ones, and cost no look at the others.
    const ofPeople = [before, after].filter((config) => config !== undefined && isOfPeople(config));
    if (ofPeople.length === 0 || all(caches).length === 0) return false;
    const paths = new Set(
      caches
        .of(MachineConfig)
        .list()
        .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.kind === resource.kind))
        .flatMap((config) => generatedFiles(config).map(({ path }) => path)),
    );
    return ofPeople.some((config) => config !== undefined && mayReplace(config, paths));
  };
  return {
    name: kind.name,
    watches: [
      // Which objects there are decides which one of them is the last.
      watching<T>({
        resource,
        concerns: (change, caches) => (isOwnStatus(change) ? [] : [change.key, ...all(caches)]),
      }),
      watching<MachineConfigPool>({
        resource: MachineConfigPool,
        concerns: ({ before, after }, caches) =>
          before !== undefined && after !== undefined && equalValues(before.metadata.labels, after.metadata.labels)
            ? []
            : all(caches),
      }),
      watching<MachineConfig>({
        resource: MachineConfig,
        keep: trimMachineConfig,
        concerns: ({ key, before, after }, caches) =>
          (kind.isInput(key) && !equalValues(baseContents(before), baseContents(after))) ||
          mayChangeWhatCounts(before, after, caches)
            ? all(caches)
            : ((after ?? before)?.metadata.ownerReferences ?? []).flatMap((owner) =>
                owner.kind === resource.kind ? [owner.name] : [],
              ),
      }),
      ...kind.inputs.map((watch) => ({ ...watch, concerns: (_: unknown, caches: Caches) => all(caches) })),
    ],
    owns: [`MachineConfig/${kind.name}`, `${resource.kind}.status`, `${resource.kind}.metadata.finalizers`],

    async reconcile(name, context): Promise<Outcome> {
      const { caches, clock } = context;
      const object = caches.of(resource).get(name);
      if (object === undefined) {
        told.delete(name);
        return done();
      }
      const others = caches
        .of(resource)
        .list()
        .filter(({ metadata }) => metadata.name !== name && metadata.deletionTimestamp === undefined);
      const decision = kind.decide(
        {
          object,
          others,
          pools: caches
            .of(MachineConfigPool)
            .list()
            .filter(({ metadata }) => metadata.deletionTimestamp === undefined),
          holderOf: (config) => configHolder(caches.of(MachineConfig).get(config), object),
          held: heldBy(object, caches.of(MachineConfig).list()),
          overriddenOf: (config) =>
            overriddenFiles(config, {
              pools: caches.of(MachineConfigPool).list(),
              machineConfigs: caches.of(MachineConfig).list(),
            }),
          generatorVersion: kind.generatorVersion,
          now: clock.now(),
        },
        caches,
      );
      if (decision === undefined)
        return waiting("BaseConfigMissing", "the base configurations of its pools are not there yet", waitSeconds);
      return perform(decision, object, { kind, told }, context);
    },
  };
}

/** Whether only the status of an object changed: the controller's own writing. */
const isOwnStatus = <T extends SettingsObject>({ before, after }: ObjectChange<T>): boolean =>
  before !== undefined &&
  after !== undefined &&
  equalValues(before.spec, after.spec) &&
  equalValues({ ...before.metadata, resourceVersion: "" }, { ...after.metadata, resourceVersion: "" });

interface Performing<T extends SettingsObject> {
  readonly kind: SettingsKind<T>;
  readonly told: Map<string, string>;
}

async function perform<T extends SettingsObject>(
  decision: SettingsDecision,
  object: T,
  { kind, told }: Performing<T>,
  context: Context,
): Promise<Outcome> {
  const { resource } = kind;
  switch (decision.do) {
    case "remove":
      for (const config of decision.configs) await removeGenerated(config, object, context);
      await writeFinalizers(resource, object, decision.finalizers, context);
      return done();
    case "refuse": {
      const message = settingsProblemsText(decision.problems);
      await writeStatus(resource, object, decision.status, context);
      tell(object, settingsRefused(object, message), told, context);
      return stalled("Invalid", message);
    }
    case "apply": {
      // Before a MachineConfig is made, its name is held, so that no deletion leaves it behind.
      const isHeld = await writeFinalizers(resource, object, decision.finalizers, context);
      if (!isHeld) return done();
      const written: string[] = [];
      for (const config of decision.configs)
        if (await writeGenerated(config, kind.owner, context)) written.push(config.metadata.name);
      for (const config of decision.stale) await removeGenerated(config, object, context);
      await writeStatus(resource, object, decision.status, context);
      if (written.length > 0) tell(object, settingsApplied(object, written), told, context);
      else told.delete(object.metadata.name);
      return done();
    }
  }
}

/** An Event, unless the last one about the object said the same. */
function tell(
  object: SettingsObject,
  happening: ReportedNotice,
  told: Map<string, string>,
  { report }: Pick<Context, "report">,
): void {
  const { name } = object.metadata;
  const text = `${happening.notice} ${happening.message}`;
  if (told.get(name) === text) return;
  told.set(name, text);
  report(happening);
}

/** @returns `false`: another writer was first, and the watch brings what it wrote. */
async function writeFinalizers<T extends SettingsObject>(
  resource: Resource<T>,
  { metadata }: T,
  finalizers: readonly string[],
  { kube, signal }: Context,
): Promise<boolean> {
  if (equalValues(metadata.finalizers ?? [], finalizers)) return true;
  const { name, resourceVersion } = metadata;
  return unlessOvertaken(
    kube.patch(
      resource,
      { name },
      { type: "merge", body: { metadata: { resourceVersion, finalizers: [...finalizers] } } },
      { signal },
    ),
  );
}

async function writeStatus<T extends SettingsObject>(
  resource: Resource<T>,
  object: T,
  status: NonNullable<T["status"]>,
  { kube, signal }: Context,
): Promise<void> {
  if (equalValues(object.status ?? {}, status)) return;
  // No version: the finalizers were just written, and nobody else writes the status.
  const { name, uid } = object.metadata;
  await unlessOvertaken(
    kube.patch(
      resource,
      { name },
      { type: "merge", body: { metadata: { uid }, status } },
      { subresource: "status", signal },
    ),
  );
}

async function unlessOvertaken(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}
