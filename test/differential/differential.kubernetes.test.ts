import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inProcessTarget } from "../contract/in-process-target.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { hasKubernetes, kubernetesTarget } from "../support/kubernetes/control-plane.ts";
import { firstDifference } from "./differences.ts";
import { normaliseRun } from "./normalise.ts";
import { operationLists } from "./operations.ts";
import { prepareServer } from "./prepare-server.ts";
import { runList } from "./run-list.ts";

/**
 * `LISTS=10000` for the long run, with a random seed; without it, always the same 200 lists. `SEED` and
 * `PATH_TO_FAILURE`, as a failure prints them, replay one list alone.
 */
const lists = Number(process.env["LISTS"] ?? 200);
const seed = Number(
  process.env["SEED"] ?? (process.env["LISTS"] === undefined ? 34 : Math.floor(Math.random() * 2 ** 31)),
);
const path = process.env["PATH_TO_FAILURE"];

/** Generous: a list takes about 60 ms. */
const perListMs = 600;

describe.skipIf(!hasKubernetes)("the embedded API server beside a real kube-apiserver", () => {
  let controlPlane: Awaited<ReturnType<typeof startBareControlPlane>> | undefined;
  let real: Awaited<ReturnType<typeof kubernetesTarget>>;
  const embedded = inProcessTarget();

  beforeAll(async () => {
    controlPlane = await startBareControlPlane();
    real = await kubernetesTarget(controlPlane);
    await Promise.all([prepareServer(embedded), prepareServer(real)]);
  });
  afterAll(async () => {
    real.close();
    await controlPlane?.stop();
  });

  test(
    `gives the same answers and events for ${lists} lists of operations`,
    { timeout: 60_000 + lists * perListMs },
    async () => {
      process.stdout.write(`differential lists: LISTS=${lists} SEED=${seed}\n`);
      let count = 0;
      const differenceOf = async (list: Parameters<typeof runList>[2]): Promise<string | undefined> => {
        const id = `list-${count++}`;
        const [ours, theirs] = await Promise.all([runList(embedded, id, list), runList(real, id, list)]);
        return firstDifference(list, normaliseRun(ours), normaliseRun(theirs));
      };
      /** The first failure: one that does not recur cannot be made smaller, and must be reported all the same. */
      let first: string | undefined;
      const property = fc.asyncProperty(operationLists, async (list) => {
        const difference = await differenceOf(list);
        first ??= difference;
        return difference === undefined;
      });
      const result = await fc.check(property, {
        numRuns: lists,
        seed,
        ...(path === undefined ? {} : { path, endOnFailure: true }),
      });
      const [smallest] = result.counterexample ?? [];
      const history =
        smallest === undefined || first === undefined ? String(result.errorInstance) : await differenceOf(smallest);
      expect(
        result.failed,
        `${history ?? `a difference that did not come back: ${first ?? ""}`}\nagain: SEED=${result.seed} PATH_TO_FAILURE=${result.counterexamplePath ?? ""}`,
      ).toBe(false);
    },
  );
});
