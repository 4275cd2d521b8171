import type { Context, Controller } from "../kube/controller.ts";
import { isPassing } from "../kube/kube-error.ts";
import type { Outcome } from "../kube/outcome.ts";
import type { Report } from "../kube/report.ts";
import { childFailed, childRecovered } from "./reports.ts";

/** Failures of one key in a row from which its controller counts as failing: the first may be a race with a writer. */
const failuresInARow = 3;
const longestMessage = 500;

/**
 * A controller that reports in the cluster's book when it fails again and again for some object, and when it works for
 * all of them again. An API server that is unavailable or busy is no failure of the controller.
 *
 * @param identity of the process.
 */
export function reportingFailures(controller: Controller, report: Report, identity: string): Controller {
  const { name } = controller;
  const failures = new Map<string, number>();
  const failing = new Set<string>();
  const child = { identity, name };

  function failed(key: string, error: unknown): void {
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    if (count !== failuresInARow) return;
    const message = `${key}: ${error instanceof Error ? error.message : String(error)}`.slice(0, longestMessage);
    report(childFailed(child, message, failing.size === 0));
    failing.add(key);
  }

  function worked(key: string): void {
    failures.delete(key);
    if (failing.delete(key) && failing.size === 0)
      report(childRecovered(child, `the controller ${name} works for ${key} again`));
  }

  return {
    ...controller,
    async reconcile(key: string, context: Context): Promise<Outcome> {
      try {
        const outcome = await controller.reconcile(key, context);
        worked(key);
        return outcome;
      } catch (error) {
        if (!context.signal.aborted && !isPassing(error)) failed(key, error);
        throw error;
      }
    },
  };
}
