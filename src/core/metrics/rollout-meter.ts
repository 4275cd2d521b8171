import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { poolConditions } from "../../api/names.ts";
import { conditionOf } from "../../api/schema/object.ts";
import type { MetricFamily } from "./metrics.ts";

/** Number of recent targets that are remembered of each pool, oldest first. */
const rememberedTargets = 64;

interface Course {
  /** Start of the current roll-out, in milliseconds since the epoch; `undefined`: there is none. */
  began: number | undefined;
  ended: number;
  seconds: number;
  saved: number;
  readonly targets: string[];
}

interface TimedCondition {
  readonly type: string;
  readonly status?: string;
  readonly lastTransitionTime?: string;
}

/**
 * Measures roll-outs from the successive states of pools and machines. For the time before the process began, it relies
 * on the pools' conditions.
 */
export class RolloutMeter {
  readonly #courses = new Map<string, Course>();

  #of(pool: string): Course {
    const known = this.#courses.get(pool) ?? { began: undefined, ended: 0, seconds: 0, saved: 0, targets: [] };
    this.#courses.set(pool, known);
    return known;
  }

  /** @param pool `undefined`: it was deleted. */
  putPool(name: string, pool: MachineConfigPool | undefined): void {
    if (pool === undefined) {
      this.#courses.delete(name);
      return;
    }
    const course = this.#of(name);
    const target = pool.spec.configuration?.name ?? "";
    if (target !== "" && course.targets.at(-1) !== target) {
      course.targets.push(target);
      if (course.targets.length > rememberedTargets) course.targets.shift();
    }
    const conditions = pool.status?.conditions as readonly TimedCondition[] | undefined;
    const [updating, updated] = [
      conditionOf(conditions, poolConditions.updating),
      conditionOf(conditions, poolConditions.updated),
    ];
    if (updating?.status === "True") course.began ??= Date.parse(updating.lastTransitionTime ?? "");
    // A pause stops the machines, not the clock.
    if (updated?.status === "True" && course.began !== undefined) {
      const seconds = (Date.parse(updated.lastTransitionTime ?? "") - course.began) / 1000;
      course.began = undefined;
      if (Number.isNaN(seconds) || seconds < 0) return;
      course.ended += 1;
      course.seconds += seconds;
    }
  }

  /** The target of a machine of the pool changed from `before` to `after`. */
  retargeted(pool: string, before: string, after: string): void {
    const course = this.#courses.get(pool);
    if (course === undefined) return;
    const to = course.targets.lastIndexOf(after);
    const from = course.targets.slice(0, Math.max(0, to)).lastIndexOf(before);
    if (from >= 0) course.saved += to - from - 1;
  }

  /** @param now milliseconds since the epoch. */
  families(now: number): readonly MetricFamily[] {
    const courses = [...this.#courses];
    return [
      {
        name: "mco_rollout_seconds",
        help: "How long roll-outs took that ended, from the first machine that had to wait until every machine had the target; pauses included.",
        type: "summary",
        labels: ["pool"],
        samples: courses.flatMap(([pool, { ended, seconds }]) => [
          { suffix: "_count", labels: { pool }, value: ended },
          { suffix: "_sum", labels: { pool }, value: seconds },
        ]),
      },
      {
        name: "mco_rollout_running_seconds",
        help: "How long the roll-out that is under way has taken so far; 0 when none is.",
        type: "gauge",
        labels: ["pool"],
        samples: courses.map(([pool, { began }]) => ({
          labels: { pool },
          value: began === undefined ? 0 : Math.max(0, Math.round((now - began) / 1000)),
        })),
      },
      {
        name: "mco_disruptions_saved_total",
        help: "Targets that machines never had to go to because a newer one came first: what several changes would have cost one by one, and did not.",
        type: "counter",
        labels: ["pool"],
        samples: courses.map(([pool, { saved }]) => ({ labels: { pool }, value: saved })),
      },
    ];
  }
}
