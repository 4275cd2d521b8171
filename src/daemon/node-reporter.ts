import { MachineConfigNode } from "../api/machine-config-node.ts";
import { type Node, kubernetes } from "../api/kubernetes.ts";
import { fieldManagers } from "../api/names.ts";
import { type PhaseReport, withPhases } from "../core/update-conditions.ts";
import { type KubeClient, updateObject } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";

/** Reasons are cut to this length before they are stored. */
const reasonLimit = 2000;

/** What the daemon says about its own node: annotations of the Node, and its part of the MachineConfigNode's status. */
export interface NodeReporter {
  /** A new look begins with this node from the cache: what we wrote counts until the cache shows it. */
  begin(node: Node): void;
  /** Writes annotations that differ from the node as far as it is known with what we wrote since; `undefined` removes one. */
  annotate(node: Node, annotations: Readonly<Record<string, string | undefined>>): Promise<void>;
  /** Notes phases; they are written together by `flush`. */
  phases(reports: readonly PhaseReport[]): void;
  versions(versions: { readonly desired?: string; readonly current?: string }): void;
  /** Writes what was noted since the last time, in one request; what fails is kept and logged. */
  flush(): Promise<void>;
}

export function nodeReporter(options: { readonly kube: KubeClient; readonly clock: Clock; readonly log: Logger; readonly nodeName: string }): NodeReporter {
  const { kube, clock, log, nodeName } = options;
  let noted = new Map<string, PhaseReport>();
  let notedVersions: { desired?: string; current?: string } = {};
  /** What we wrote and the cache may not show yet. `version` is missing while nobody knows whether the write arrived. */
  const written = new Map<string, { readonly value: string | undefined; readonly version?: number }>();

  return {
    begin(node) {
      for (const [key, { version }] of written) if (version !== undefined && Number(node.metadata.resourceVersion) >= version) written.delete(key);
    },
    async annotate(node, annotations) {
      const has = node.metadata.annotations ?? {};
      const changes = Object.entries(annotations)
        .map(([key, value]) => [key, value?.slice(0, reasonLimit)] as const)
        .filter(([key, value]) => {
          const ours = written.get(key);
          if (ours === undefined) return has[key] !== value;
          return ours.version === undefined || ours.value !== value;
        });
      if (changes.length === 0) return;
      for (const [key, value] of changes) written.set(key, { value });
      const after = await kube.patch(kubernetes.Node, { name: nodeName }, { type: "merge", body: { metadata: { annotations: Object.fromEntries(changes.map(([key, value]) => [key, value ?? null])) } } }, { owner: fieldManagers.daemon });
      const version = Number(after.metadata.resourceVersion);
      for (const [key, value] of changes) written.set(key, { value, version });
    },
    phases(reports) {
      for (const report of reports) noted.set(report.type, report);
    },
    versions(versions) {
      notedVersions = { ...notedVersions, ...versions };
    },
    async flush() {
      if (noted.size === 0 && Object.keys(notedVersions).length === 0) return;
      const reports = [...noted.values()];
      const versions = notedVersions;
      noted = new Map();
      notedVersions = {};
      try {
        await updateObject(
          kube,
          MachineConfigNode,
          { name: nodeName },
          (object) => {
            const before = object.status?.conditions ?? [];
            const conditions = withPhases(before, reports, clock.now());
            const configVersion = { desired: versions.desired ?? object.status?.configVersion?.desired ?? "", ...(object.status?.configVersion?.current === undefined ? {} : { current: object.status.configVersion.current }), ...(versions.current === undefined ? {} : { current: versions.current }) };
            const sameVersions = configVersion.desired === (object.status?.configVersion?.desired ?? "") && configVersion.current === object.status?.configVersion?.current;
            if (conditions === before && sameVersions) return undefined;
            const observedGeneration = Math.max(object.status?.observedGeneration ?? 1, object.metadata.generation ?? 1);
            return { status: { observedGeneration, conditions: [...conditions], ...(configVersion.desired === "" ? {} : { configVersion }) } };
          },
          { subresource: "status", owner: fieldManagers.daemon },
        );
      } catch (error) {
        // The newest state is written with the next flush; an update never waits for its own story.
        log.warn({ error }, "MachineConfigNode not written");
        noted = new Map([...reports.map((report) => [report.type, report] as const), ...noted]);
        notedVersions = { ...versions, ...notedVersions };
      }
    },
  };
}
