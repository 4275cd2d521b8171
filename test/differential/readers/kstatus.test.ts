import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../../src/api/kinds/machine-config-pool.ts";
import type { Condition, KubeObject } from "../../../src/api/schema/object.ts";
import { conditionsOfBuild } from "../../../src/core/build/build-state.ts";
import { withNodeProgress } from "../../../src/core/books/node-progress.ts";
import { progressOfConfig } from "../../../src/core/build/image-progress.ts";
import type { BuildState } from "../../../src/core/config/build-phase.ts";
import { type Progress, withProgress } from "../../../src/api/schema/progress-conditions.ts";
import { withOverallDegraded } from "../../../src/core/pool/pool-status.ts";
import { askKstatus, goKstatusProgram } from "../../support/go-kstatus.ts";
import { runs } from "./runs.ts";

const program = goKstatusProgram();

type Conditions = NonNullable<NonNullable<MachineConfigPool["status"]>["conditions"]>;
const at = Date.UTC(2030, 0, 1);
const condition = (type: string, status: "True" | "False" | "Unknown", reason = "", message = "") => ({
  type,
  status,
  reason,
  message,
});
const rollout = (isUpdated: boolean, isUpdating: boolean, reason: string, message = "") => [
  condition("Updated", isUpdated ? "True" : "False", reason),
  condition("Updating", isUpdating ? "True" : "False", reason, message),
  condition("Degraded", "False"),
];
const pool = (conditions: readonly object[], metadata: object = {}, spec: object = {}) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name: "worker", generation: 3, ...metadata },
  spec,
  status: { observedGeneration: 3, conditions: withOverallDegraded(conditions as Conditions, at) },
});
const settings = (progress: Progress) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "KubeletConfig",
  metadata: { name: "a", generation: 3 },
  status: { observedGeneration: 3, conditions: withProgress([condition("Success", "True")], progress, at) },
});
const build = (state: BuildState) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineOSBuild",
  metadata: { name: "worker-1", generation: 1 },
  status: { conditions: conditionsOfBuild(state, undefined, at) },
});
const imageConfig = (...conditions: Omit<Condition, "lastTransitionTime">[]) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineOSConfig",
  metadata: { name: "worker", generation: 2 },
  status: { observedGeneration: 2, conditions: withProgress(conditions, progressOfConfig(conditions), at) },
});
const node = (conditions: readonly Omit<Condition, "lastTransitionTime">[], metadata: object = {}) => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigNode",
  metadata: { name: "worker-0", generation: 2, ...metadata },
  status: { observedGeneration: 2, conditions: withNodeProgress(conditions as Condition[], at) },
});
const [hasTarget, awaitsTarget] = [
  condition("Updated", "True", "Updated"),
  condition("Updated", "False", "UpdateRequested", "an update to b was asked for"),
];
const updated = rollout(true, false, "AllNodesUpdated");

const script = readFileSync(join(import.meta.dirname, "../../../install/argocd/health.lua"), "utf8");

/** An object of any kind, a word of what it is, and how kstatus and Argo CD judge it. */
type Case = readonly [object: KubeObject, kstatus: string, argo: string];
const cases: readonly Case[] = [
  [pool(updated), "Current", "Healthy"],
  [pool(rollout(false, true, "RollingOut", "1 of 3 updated")), "InProgress", "Progressing"],
  [pool(rollout(false, true, "WaitingForBuild")), "InProgress", "Progressing"],
  [pool(rollout(false, false, "NotRendered")), "InProgress", "Progressing"],
  [pool(rollout(false, false, "Paused"), {}, { paused: true }), "InProgress", "Suspended"],
  [pool(rollout(false, false, "RolloutBlocked", "the target is in quarantine")), "Failed", "Degraded"],
  [pool(rollout(false, false, "BuildFailed")), "Failed", "Degraded"],
  [pool([...updated, condition("RegistriesDegraded", "True", "MirrorsRefused", "no mirror")]), "Failed", "Degraded"],
  [pool([...updated, condition("RegistriesDegraded", "False")]), "Current", "Healthy"],
  [pool(updated, { generation: 4 }), "InProgress", "Progressing"],
  [settings({ verdict: "current" }), "Current", "Healthy"],
  [settings({ verdict: "stalled", reason: "Invalid", message: "maxPods" }), "Failed", "Degraded"],
  [build({ phase: "Initial", reason: "", message: "" }), "InProgress", "Progressing"],
  [build({ phase: "Building", reason: "StepPush", message: "" }), "InProgress", "Progressing"],
  [build({ phase: "Succeeded", reason: "Ready", message: "" }), "Current", "Healthy"],
  [build({ phase: "Failed", reason: "PushRejected", message: "" }), "Failed", "Degraded"],
  [build({ phase: "Interrupted", reason: "Superseded", message: "" }), "Current", "Healthy"],
  [node([]), "InProgress", "Progressing"],
  [node([hasTarget]), "Current", "Healthy"],
  [node([hasTarget], { generation: 3 }), "InProgress", "Progressing"],
  [node([awaitsTarget]), "InProgress", "Progressing"],
  [node([awaitsTarget, condition("Drained", "Unknown", "Draining", "2 pods are left")]), "InProgress", "Progressing"],
  [node([hasTarget, condition("NodeDegraded", "True", "ConfigDrift", "/etc/a differs")]), "Failed", "Degraded"],
  [node([awaitsTarget, condition("NodeDegraded", "True", "UpdateFailed", "no")]), "Failed", "Degraded"],
  [node([hasTarget, condition("PinnedImageSetsProgressing", "True", "ImagePrefetch")]), "InProgress", "Progressing"],
  [node([hasTarget, condition("PinnedImageSetsProgressing", "False", "AwaitsTurn")]), "Current", "Healthy"],
  [node([hasTarget, condition("PinnedImageSetsDegraded", "True", "PrefetchFailed", "no")]), "Failed", "Degraded"],
  [imageConfig(condition("Accepted", "True", "Accepted")), "InProgress", "Progressing"],
  [imageConfig(condition("UpToDate", "True", "UpToDate")), "Current", "Healthy"],
  [imageConfig(condition("InputsValid", "False", "SecretMissing")), "Failed", "Degraded"],
];

describe.skipIf(program === undefined)("objects judged by kstatus, as Flux does, and by Argo CD", () => {
  test("on its way is in progress, stopped or degraded has failed, there is current [readers-kstatus-1]", async () => {
    const objects = cases.map(([object]) => object);
    const answers = await askKstatus(program ?? "", objects);
    expect(answers.map(({ status, error }) => error ?? status)).toEqual(cases.map(([, status]) => status));
    expect(answers[1]?.message).toBe("1 of 3 updated");
    expect(answers[5]?.message).toBe("the target is in quarantine");
    const [deleted] = await askKstatus(program ?? "", [pool(updated, { deletionTimestamp: "2030-01-01T00:00:00Z" })]);
    expect(deleted?.status).toBe("Terminating");
  });

  test("the health script of Argo CD says the same [readers-kstatus-3]", async () => {
    const objects = cases.map(([object]) => object);
    const answers = await askKstatus(program ?? "", objects, script);
    expect(answers.map(({ status, error }) => error ?? status)).toEqual(cases.map(([, , status]) => status));
    const [fresh] = await askKstatus(program ?? "", [{ ...pool([]), status: undefined } as KubeObject], script);
    expect(fresh).toMatchObject({ status: "Progressing", message: "no controller has looked at it yet" });
  });

  test("the command for Argo CD gives it the script for each of these kinds, and for ContainerRuntimeConfigs [readers-kstatus-4]", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/pipelines.md"), "utf8");
    const named = [...page.matchAll(/health\.machineconfiguration\.openshift\.io_(\w+)=install\/argocd\/health\.lua/g)];
    const judged = new Set([...cases.map(([{ kind }]) => kind), "ContainerRuntimeConfig"]);
    expect(named.map(([, kind]) => kind).toSorted()).toEqual([...judged].toSorted());
  });

  test("no order of conditions, and no part of a pool, makes kstatus say otherwise [readers-kstatus-2]", async () => {
    const part = fc.record({
      type: fc.constantFrom("RenderDegraded", "NodeDegraded", "RegistriesDegraded", "ImageInputsValid", "Building"),
      status: fc.constantFrom("True", "False", "Unknown"),
    });
    const some = fc
      .tuple(
        fc.constantFrom(updated, rollout(false, true, "RollingOut"), rollout(false, false, "RolloutBlocked")),
        fc.uniqueArray(part, { selector: ({ type }) => type, maxLength: 4 }),
      )
      .chain(([course, parts]) =>
        fc.shuffledSubarray([...course, ...parts], { minLength: course.length + parts.length }),
      );
    const pools = fc.sample(some, runs(300, 5000)).map((conditions) => pool(conditions));
    const answers = await askKstatus(program ?? "", pools);
    const expected = pools.map(({ status }) => {
      const is = (type: string) => status.conditions.find((one) => one.type === type)?.status === "True";
      const isDegraded = status.conditions.some(
        ({ type, status: has }) => type?.endsWith("Degraded") === true && type !== "Degraded" && has === "True",
      );
      if (isDegraded) return "Failed";
      return is("Updated") ? "Current" : is("Updating") ? "InProgress" : "Failed";
    });
    expect(answers.map(({ status }) => status)).toEqual(expected);
  });
});
