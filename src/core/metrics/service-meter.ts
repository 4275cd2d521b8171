import { leastOf } from "../../api/schema/extremes.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";
import { Histogram } from "./histogram.ts";
import type { MetricFamily } from "./metrics.ts";
import { isReady } from "../books/phase.ts";

/** Why a machine is out of service. */
export type UnavailableCause = "Update" | "Cordoned" | "NotReady";

interface Away {
  /** Milliseconds. */
  readonly since: number;
  pool: string;
  cause: UnavailableCause;
}

const unschedulableTaint = "node.kubernetes.io/unschedulable";

/** Why a node is out of service now; `undefined`: it takes pods. */
export function unavailableCause(node: Node): UnavailableCause | undefined {
  const has = node.metadata.annotations ?? {};
  const isOurs = has[annotations.cordonedFor] !== undefined || has[annotations.postConfigAction] === "Rebooting";
  if (node.spec?.unschedulable === true) return isOurs ? "Update" : "Cordoned";
  return isReady(node) ? undefined : isOurs ? "Update" : "NotReady";
}

/** Measures how long machines are out of service, from the successive states of their Nodes. */
export class ServiceMeter {
  readonly #seconds = new Histogram(
    "mco_node_out_of_service_seconds",
    "How long a machine took no pods: for its update, because it was cordoned, or because its kubelet was not ready.",
    ["pool", "cause"],
  );
  readonly #away = new Map<string, Away>();

  /**
   * @param node `undefined`: it was deleted.
   * @param pool the pool of the node; empty for none.
   * @param now milliseconds since the epoch.
   */
  putNode(name: string, node: Node | undefined, pool: string, now: number): void {
    const cause = node === undefined ? undefined : unavailableCause(node);
    const known = this.#away.get(name);
    if (node === undefined || cause === undefined) {
      this.#away.delete(name);
      // A deleted machine never comes back.
      if (known !== undefined && node !== undefined)
        this.#seconds.observe({ pool: known.pool, cause: known.cause }, (now - known.since) / 1000);
      return;
    }
    if (known === undefined) {
      this.#away.set(name, { since: Math.min(now, sinceOf(node) ?? now), pool, cause });
      return;
    }
    known.pool = pool === "" ? known.pool : pool;
    // Once an update uses the outage, it counts as the update's, whatever caused it.
    if (cause === "Update") known.cause = "Update";
  }

  /** The Nodes are no longer watched: the return of machines that are out of service now stays unknown. */
  forget(): void {
    this.#away.clear();
  }

  /** @param now milliseconds since the epoch. */
  families(now: number): readonly MetricFamily[] {
    const longest = new Map<string, { readonly pool: string; readonly cause: UnavailableCause; seconds: number }>();
    for (const { pool, cause, since } of this.#away.values()) {
      const key = `${pool}\n${cause}`;
      const seconds = Math.max(0, Math.round((now - since) / 1000));
      const known = longest.get(key);
      if (known === undefined) longest.set(key, { pool, cause, seconds });
      else known.seconds = Math.max(known.seconds, seconds);
    }
    return [
      this.#seconds.family(),
      {
        name: "mco_node_out_of_service_longest_seconds",
        help: "How long the machine has taken no pods by now that has been away for longest; nothing while none is.",
        type: "gauge",
        labels: ["pool", "cause"],
        samples: [...longest.values()].map(({ pool, cause, seconds }) => ({ labels: { pool, cause }, value: seconds })),
      },
    ];
  }
}

/** Since when, if the node itself records it. */
function sinceOf({ spec, status }: Node): number | undefined {
  const tainted = spec?.taints?.find(({ key }) => key === unschedulableTaint)?.timeAdded;
  const silent = status?.conditions?.find(
    ({ type, status: is }) => type === "Ready" && is !== "True",
  )?.lastTransitionTime;
  const times = [tainted, silent]
    .flatMap((time) => (time === undefined ? [] : [new Date(time).getTime()]))
    .filter((time) => !Number.isNaN(time));
  return times.length === 0 ? undefined : leastOf(times);
}
