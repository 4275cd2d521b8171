import { expect, test } from "vitest";
import type { CredentialProviderConfig } from "../../api/foreign/openshift.ts";
import type { Condition } from "../../api/schema/object.ts";
import { explainCredentials } from "./explain-credentials.ts";

const condition = (type: string, status: "True" | "False", reason: string, message: string): Condition => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 2,
  lastTransitionTime: "2026-01-01T00:00:00Z",
});
const validated = condition("Validated", "True", "Succeeded", "all match images are valid");
const rendered = condition("MachineConfigRendered", "True", "MachineConfigRenderingSucceeded", "written as 97-worker");
const failed = condition("MachineConfigRendered", "False", "MachineConfigRenderingFailed", "the gate is off");
const left = condition("Validated", "False", "ConfigurationPartiallyApplied", "a.io: ecr answers *.io");
const wrong = condition("Validated", "False", "ValidationFailed", "spec.matchImages[0] is wrong");

const config = (
  conditions: readonly Condition[],
  { name = "cluster", generation = 2, images = ["quay.io"] } = {},
): CredentialProviderConfig => ({
  apiVersion: "config.openshift.io/v1",
  kind: "CRIOCredentialProviderConfig",
  metadata: { name, generation },
  spec: { matchImages: images },
  status: { conditions },
});

test.for([
  { object: config([]), reason: "NotSeen", says: "has not been judged yet" },
  { object: config([validated, rendered], { generation: 3 }), reason: "NotSeen", says: "has not been judged yet" },
  { object: config([validated, rendered]), reason: "AsWritten", says: "is written as 97-worker" },
  { object: config([validated, rendered], { images: [] }), reason: "NothingToWrite", says: "names no images" },
  {
    object: config([wrong, failed]),
    reason: "Invalid",
    says: "spec.matchImages[0] is wrong",
    todo: "correct the named",
  },
  { object: config([validated, failed]), reason: "MachineConfigRenderingFailed", says: "the gate is off", todo: "fix" },
  { object: config([left, rendered]), reason: "ConfigurationPartiallyApplied", says: "in part", todo: "take out" },
  { object: config([], { name: "other" }), reason: "NotRead", says: "is not read", todo: "put its match images into" },
])("$reason: the object says $says [explain-credentials-1]", ({ object, reason, says, todo }) => {
  const explained = explainCredentials(object, 0);
  expect(explained.reason).toBe(reason);
  expect(explained.headline).toContain(says);
  expect(explained.todo.join(";").startsWith(todo ?? "")).toBe(true);
  expect(explained.todo).toHaveLength(todo === undefined ? 0 : 1);
  const sections = Object.fromEntries(explained.sections.map(({ title, lines }) => [title, lines]));
  expect(sections["Match images"]).toEqual(
    object.spec?.matchImages?.length === 0 ? undefined : ["quay.io: credentials by CRI-O (spec.matchImages[0])"],
  );
});
