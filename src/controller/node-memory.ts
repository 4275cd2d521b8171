import type { Node, Pod } from "../api/foreign/kubernetes.ts";
import type { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { ClusterMembers } from "../core/pool/cluster-members.ts";
import { equalValues } from "../ignition/canonical.ts";
import type { ObjectChange } from "../kube/watch-cache.ts";
import type { Clock } from "../ports/clock.ts";
import type { Report } from "../kube/report.ts";
import { ChoiceMemory } from "./choose-targets.ts";
import { MarkMemory } from "./mark-members.ts";
import { NodeWrites } from "./node-writes.ts";
import { WriteFaults } from "./refused-writes.ts";
import { ReportMemory, reportPoolStanding, standingOf } from "./report-pool.ts";
import { poolDeleted } from "./reports.ts";

/**
 * What the node controller knows between two passes. The view of pools and machines is updated change by change, so
 * that the cost of a pass over a pool depends only on the machines that change. The rest is the memory of each part of
 * the controller.
 */
export class NodeMemory {
  readonly cluster = new ClusterMembers();
  readonly faults = new WriteFaults();
  readonly writes = new NodeWrites(
    (name, node) => void this.putNode(name, node),
    (name) => this.faults.wrote({ kind: "Node", name }),
  );
  readonly choice = new ChoiceMemory();
  readonly marks = new MarkMemory();
  readonly reports = new ReportMemory();
  #clock: Pick<Clock, "now"> = { now: () => 0 };
  #report: Report | undefined;
  #add: (pool: string) => void = () => undefined;

  /** @param add has a pool reconciled. */
  start({ clock, report }: { readonly clock: Clock; readonly report: Report }, add: (pool: string) => void): void {
    this.#clock = clock;
    this.#report = report;
    this.#add = add;
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#clock.now();
  }

  /** Requests the reconcile of another pool. */
  reconcile(pool: string): void {
    this.#add(pool);
  }

  controlPlanePools(): readonly string[] {
    return [...this.cluster.controlPlane.keys()].flatMap((name) => {
      const membership = this.cluster.node(name)?.membership;
      return membership?.verdict === "member" ? [membership.pool] : [];
    });
  }

  /** Requests a comparison of the marks of every member of some pools. */
  markAll(pools: readonly string[]): void {
    for (const pool of pools)
      for (const { name } of this.cluster.members(pool).all()) this.marks.unmarked(pool).add(name);
  }

  /** @returns the pools that the change concerns, as do the other `put…`. */
  putPool(name: string, pool: MachineConfigPool | undefined): readonly string[] {
    const concerned = this.cluster.putPool(name, pool, this.now());
    if (pool !== undefined) return concerned;
    this.reports.forget(name);
    this.#report?.(poolDeleted(name));
    this.marks.forget(name);
    this.choice.forget(name);
    return concerned;
  }

  /** Takes in the newest state of a node: from the watch, or from our own write. */
  putNode(name: string, node: Node | undefined): readonly string[] {
    const { cluster } = this;
    const wasControlPlane = cluster.controlPlane.has(name);
    const concerned = new Set(this.#noting(name, () => cluster.putNode(name, node, this.now())));
    // Machines of the control plane wait for each other across pools.
    if (wasControlPlane || cluster.controlPlane.has(name))
      for (const pool of this.controlPlanePools()) concerned.add(pool);
    return [...concerned];
  }

  putMachineConfigNode(name: string, object: MachineConfigNode | undefined): readonly string[] {
    return this.#noting(name, () => this.cluster.putMachineConfigNode(name, object, this.now()));
  }

  putDaemonPod({ before, after }: ObjectChange<Pod>): readonly string[] {
    const concerned = new Set<string>();
    const [had, has] = [before?.spec?.nodeName, after?.spec?.nodeName];
    const put = (name: string, pod: Pod | undefined) => {
      for (const pool of this.#reporting(name, () => this.cluster.putDaemonPod(name, pod, this.now())))
        concerned.add(pool);
    };
    if (had !== undefined && had !== has) put(had, undefined);
    if (has !== undefined && !equalValues(before?.status, after?.status)) put(has, after);
    return [...concerned];
  }

  /** Takes in a change of a machine, and reports its state where that changed by it. */
  #reporting(name: string, put: () => readonly string[]): readonly string[] {
    const { cluster } = this;
    const before = standingOf(name, cluster);
    const concerned = put();
    reportPoolStanding(name, before, standingOf(name, cluster), this, this.#report);
    return concerned;
  }

  /** Takes in a change of a machine, reports its state, and requests a comparison of its marks. */
  #noting(name: string, put: () => readonly string[]): readonly string[] {
    const concerned = this.#reporting(name, put);
    for (const pool of concerned) this.marks.unmarked(pool).add(name);
    return concerned;
  }
}
