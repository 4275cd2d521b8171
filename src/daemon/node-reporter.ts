import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, fieldManagers, notYetSet } from "../api/names.ts";
import type { IrreconcilableChange } from "../core/config/irreconcilable-changes.ts";
import {
  type PhaseReport,
  type PhaseSpan,
  isRunLeft,
  phasesAtEnd,
  withPhases,
} from "../core/books/update-conditions.ts";
import type { Condition } from "../api/schema/object.ts";
import { own } from "../api/schema/own.ts";
import { equalValues } from "../ignition/canonical.ts";
import { type KubeClient, updateObject } from "../kube/kube-client.ts";
import { isNewerVersion } from "../kube/own-writes.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { RefusedTarget } from "../core/machine/machine-record.ts";

/** Reasons are cut to this length before they are stored. */
const reasonLimit = 2000;
/** A write is assumed to stand for this long; afterwards, another writer may have recreated the object. */
const seenMs = 290_000;

/**
 * What the daemon reports about its own node: annotations of the Node, and its part of the MachineConfigNode's status.
 */
export interface NodeReporter {
  /** Begins a pass with this node from the cache: our own writes count until the cache shows them. */
  begin(node: Node): void;
  /**
   * Whether this value of an annotation is our own last write, which no pass has seen yet, so that its event contains no
   * news. Somebody else may write the same value later.
   */
  hasWritten(key: string, value: string | undefined): boolean;
  /** Writes annotations that differ from the node as known, including our own writes; `undefined` removes one. */
  annotate(node: Node, annotations: Readonly<Record<string, string | undefined>>): Promise<void>;
  /** Records phases; `flush` writes them together. */
  phases(reports: readonly PhaseReport[]): void;
  /**
   * Records that the update to `target` is over: its phases are complete, and later ones belong to the time after it.
   * `spans`: when they began and ended, by condition type. Unless that is news, only phases that an earlier daemon left
   * under way or done are completed.
   */
  ended(target: string, spans: ReadonlyMap<string, PhaseSpan>, isNews: boolean): void;
  /** Whether the MachineConfigNode names targets that this machine went back from. */
  namesRefused(): Promise<boolean>;
  /** Adds the names there, or removes them. */
  refused(targets: readonly RefusedTarget[]): Promise<void>;
  /** The configuration, and the separate image if any, that the machine should have and has. */
  versions(versions: { readonly desired?: string; readonly current?: string; readonly images?: ImageVersions }): void;
  /** Records where the machine differs permanently from its configuration. */
  irreconcilable(changes: readonly IrreconcilableChange[]): void;
  /**
   * Writes the changes since the last flush in one request; a failure is kept and logged, and a flush is due
   * again soon.
   */
  flush(): Promise<"reported" | "behind">;
}

/** A key without a value means none. A missing key makes no statement. */
export type ImageVersions = { readonly desired?: string | undefined; readonly current?: string | undefined };

/** Recorded changes that are not written yet. */
interface Notes {
  readonly phases: ReadonlyMap<string, PhaseReport>;
  /** An update that is over but not reported yet, with its records. */
  readonly over:
    | {
        readonly target: string;
        readonly run: readonly PhaseReport[];
        readonly spans: ReadonlyMap<string, PhaseSpan>;
        readonly isNews: boolean;
      }
    | undefined;
  readonly versions: { readonly desired?: string; readonly current?: string; readonly images?: ImageVersions };
  readonly changes: readonly IrreconcilableChange[] | undefined;
}

const noNotes: Notes = { phases: new Map(), over: undefined, versions: {}, changes: undefined };

export function nodeReporter(options: {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
}): NodeReporter {
  const { kube, clock, log, nodeName } = options;
  let notes = noNotes;
  /** The MachineConfigNode as it was last seen or written here. */
  let seen: { readonly object: MachineConfigNode; readonly at: number } | undefined;

  return {
    ...annotator(kube, nodeName),
    ...refusalReporter(kube, nodeName),
    phases(reports) {
      notes = { ...notes, phases: new Map([...notes.phases, ...reports.map((one) => [one.type, one] as const)]) };
    },
    ended(target, spans, isNews) {
      // An end that is not written yet stays as it is.
      if (!isNews && notes.over !== undefined) return;
      const run = [...(notes.over?.run ?? []), ...notes.phases.values()];
      notes = { ...notes, over: { target, run, spans, isNews }, phases: new Map() };
    },
    versions(versions) {
      notes = { ...notes, versions: withVersions(notes.versions, versions) };
    },
    irreconcilable(changes) {
      notes = { ...notes, changes };
    },
    async flush() {
      if (isEmpty(notes)) return "reported";
      const sent = notes;
      notes = noNotes;
      const change = (object: MachineConfigNode) => statusChange(object, sent, clock.now());
      // Only the daemon writes its part, so its own last write need not be read again.
      if (seen !== undefined && clock.monotonic() - seen.at < seenMs && change(seen.object) === undefined)
        return "reported";
      try {
        const object = await updateObject(kube, MachineConfigNode, { name: nodeName }, change, {
          subresource: "status",
          owner: fieldManagers.daemon,
          byItem: true,
        });
        seen = object === undefined ? undefined : { object, at: clock.monotonic() };
        return "reported";
      } catch (error) {
        // The newest state is written with the next flush; an update never waits for its report.
        log.warn({ error }, "MachineConfigNode not written");
        notes = {
          phases: new Map([...sent.phases, ...notes.phases]),
          over: notes.over ?? sent.over,
          versions: withVersions(sent.versions, notes.versions),
          changes: notes.changes ?? sent.changes,
        };
        return "behind";
      }
    },
  };
}

const isEmpty = ({ phases, over, versions, changes }: Notes): boolean =>
  phases.size === 0 && over === undefined && Object.keys(versions).length === 0 && changes === undefined;

/** Annotations of the Node, including writes that the watch may not show yet. */
function annotator(kube: KubeClient, nodeName: string): Pick<NodeReporter, "begin" | "hasWritten" | "annotate"> {
  /** `version` is missing while it is unknown whether the write arrived; `isOld`: a pass has begun since. */
  const written = new Map<
    string,
    { readonly value: string | undefined; readonly version?: string | undefined; readonly isOld?: boolean }
  >();
  return {
    begin({ metadata }) {
      for (const [key, { value, version, isOld }] of written) {
        const isSeen =
          version === undefined
            ? own(metadata.annotations, key) === value || isOld === true
            : !isNewerVersion(version, metadata.resourceVersion);
        if (isSeen) written.delete(key);
        // This pass writes it again, or it is forgotten: somebody else may write the same.
        else if (version === undefined) written.set(key, { value, isOld: true });
      }
    },
    hasWritten(key, value) {
      const ours = written.get(key);
      return ours !== undefined && ours.isOld !== true && ours.value === value;
    },
    async annotate(node, changed) {
      const has = node.metadata.annotations ?? {};
      const changes = Object.entries(changed)
        .map(([key, value]) => [key, value?.slice(0, reasonLimit)] as const)
        .filter(([key, value]) => {
          const ours = written.get(key);
          if (ours === undefined) return has[key] !== value;
          return ours.version === undefined || ours.value !== value;
        });
      if (changes.length === 0) return;
      for (const [key, value] of changes) written.set(key, { value });
      const annotationsNow = Object.fromEntries(changes.map(([key, value]) => [key, value ?? null]));
      const after = await kube.patch(
        kubernetes.Node,
        { name: nodeName },
        { type: "merge", body: { metadata: { annotations: annotationsNow } } },
        { owner: fieldManagers.daemon },
      );
      const version = after.metadata.resourceVersion;
      for (const [key, value] of changes) written.set(key, { value, version });
    },
  };
}

/** Targets that the machine went back from, as its MachineConfigNode names them. */
function refusalReporter(kube: KubeClient, nodeName: string): Pick<NodeReporter, "namesRefused" | "refused"> {
  return {
    async namesRefused() {
      const object = await kube.get(MachineConfigNode, { name: nodeName });
      return (object?.metadata.annotations?.[annotations.refusedTargets] ?? "") !== "";
    },
    async refused(targets) {
      const value =
        targets.length === 0
          ? null
          : JSON.stringify(targets.map(({ config, image, reason, at }) => ({ config, image, reason, at })));
      await kube.patch(
        MachineConfigNode,
        { name: nodeName },
        { type: "merge", body: { metadata: { annotations: { [annotations.refusedTargets]: value } } } },
        { owner: fieldManagers.daemon },
      );
    },
  };
}

const withVersions = (before: Notes["versions"], after: Notes["versions"]): Notes["versions"] => ({
  ...before,
  ...after,
  ...(after.images === undefined ? {} : { images: { ...before.images, ...after.images } }),
});

/** The changes of the status that the records make; `undefined` if none. */
function statusChange(object: MachineConfigNode, notes: Notes, now: number): Partial<MachineConfigNode> | undefined {
  const { over, versions, changes } = notes;
  const status = object.status;
  const before = status?.conditions ?? [];
  const conditions = withPhases(before, [...phasesOfEnd(before, over, now), ...notes.phases.values()], now);
  const desired = versions.desired ?? status?.configVersion?.desired ?? "";
  const current = versions.current ?? status?.configVersion?.current;
  const sameVersions = desired === (status?.configVersion?.desired ?? "") && current === status?.configVersion?.current;
  const sameChanges = changes === undefined || equalValues(changes, status?.irreconcilableChanges ?? []);
  const configImage = imageVersions(status?.configImage, versions.images);
  const sameImages = equalValues(configImage ?? {}, status?.configImage ?? {});
  // A target that the daemon has not seen yet is not observed: tools would take the machine for one that has it.
  const isSeen = [desired, notYetSet].includes(object.spec.configVersion.desired);
  const observedGeneration = Math.max(status?.observedGeneration ?? 1, isSeen ? (object.metadata.generation ?? 1) : 1);
  const sameGeneration = observedGeneration === (status?.observedGeneration ?? 1);
  if (conditions === before && sameVersions && sameImages && sameChanges && sameGeneration) return undefined;
  return {
    status: {
      observedGeneration,
      conditions: [...conditions],
      ...(desired === "" ? {} : { configVersion: { desired, ...(current === undefined ? {} : { current }) } }),
      ...(sameImages ? {} : { configImage: removing(status?.configImage, configImage) }),
      // The API refuses an empty list: the field goes.
      ...(sameChanges ? {} : { irreconcilableChanges: changes.length === 0 ? (null as never) : [...changes] }),
    },
  };
}

/** What the end of an update puts into the conditions; what was recorded before it where none is to be put there. */
function phasesOfEnd(before: readonly Condition[], over: Notes["over"], now: number): readonly PhaseReport[] {
  if (over === undefined) return [];
  const { target, run, spans, isNews } = over;
  const left = withPhases(before, run, now);
  return isNews || isRunLeft(left) ? phasesAtEnd(target, left, { now, spans }) : run;
}

/** The new images as a merge patch of the old ones: removed ones are `null`. */
function removing(before: ConfigImage, after: ConfigImage): NonNullable<ConfigImage> {
  const change =
    after === undefined
      ? null
      : {
          ...(before?.desiredImage === undefined ? {} : { desiredImage: null }),
          ...(before?.currentImage === undefined ? {} : { currentImage: null }),
          ...after,
        };
  return change as NonNullable<ConfigImage>;
}

type ConfigImage = NonNullable<MachineConfigNode["status"]>["configImage"];

/** The images in the status, with the current knowledge; `undefined` where there are none. */
function imageVersions(before: ConfigImage, now: ImageVersions = {}): ConfigImage {
  const desiredImage = "desired" in now ? now.desired : before?.desiredImage;
  const currentImage = "current" in now ? now.current : before?.currentImage;
  if (desiredImage === undefined && currentImage === undefined) return undefined;
  return {
    ...(desiredImage === undefined ? {} : { desiredImage }),
    ...(currentImage === undefined ? {} : { currentImage }),
  };
}
