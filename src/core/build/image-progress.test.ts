import { expect, test } from "vitest";
import { progressOfBuild, progressOfConfig } from "./image-progress.ts";

test.for([
  { phase: "Initial", reason: "", is: { verdict: "reconciling", reason: "Initial", message: "m" } },
  { phase: "Building", reason: "StepPush", is: { verdict: "reconciling", reason: "StepPush", message: "m" } },
  { phase: "Failed", reason: "PushRejected", is: { verdict: "stalled", reason: "PushRejected", message: "m" } },
  { phase: "Succeeded", reason: "Ready", is: { verdict: "current" } },
  { phase: "Interrupted", reason: "Superseded", is: { verdict: "current" } },
] as const)("a build that is $phase is $is.verdict [build-image-progress-1]", ({ phase, reason, is }) => {
  expect(progressOfBuild({ phase, reason, message: "m" })).toEqual(is);
});

const condition = (type: string, status: "True" | "False", reason: string) => ({ type, status, reason, message: "m" });
const accepted = condition("Accepted", "True", "Accepted");
const valid = condition("InputsValid", "True", "Valid");
test.for([
  { title: "that nobody looked at", conditions: [], is: "reconciling" },
  {
    title: "that another one decides for",
    conditions: [condition("Accepted", "False", "DuplicateForPool")],
    is: "stalled",
  },
  {
    title: "with wrong inputs",
    conditions: [accepted, condition("InputsValid", "False", "SecretMissing")],
    is: "stalled",
  },
  {
    title: "whose image is built",
    conditions: [accepted, valid, condition("UpToDate", "False", "Building")],
    is: "reconciling",
  },
  {
    title: "whose build failed",
    conditions: [accepted, valid, condition("UpToDate", "False", "BuildFailed")],
    is: "stalled",
  },
  { title: "with its image", conditions: [accepted, valid, condition("UpToDate", "True", "UpToDate")], is: "current" },
] as const)("a MachineOSConfig $title is $is [build-image-progress-2]", ({ conditions, is }) => {
  expect(progressOfConfig(conditions).verdict).toBe(is);
});
