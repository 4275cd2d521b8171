import { expect, test } from "vitest";
import { annotations, labels, nodeStates, pinnedImageConditions } from "../../api/names.ts";
import { PinnedImageSet } from "../../api/kinds/pinned-image-set.ts";
import { type PinAnswer, pinAnswerText, pinGrantText } from "../images/pin-grant.ts";
import { factsOf } from "../pool/pool-queries.ts";
import { explainPool } from "./explain.ts";
import { explainPinnedImageSet, pinnedImagesOf } from "./explain-pinned-images.ts";
import { explanationText } from "./explanation.ts";

const now = Date.UTC(2030, 0, 1);
const set: PinnedImageSet = {
  apiVersion: PinnedImageSet.apiVersion,
  kind: PinnedImageSet.kind,
  metadata: { name: "a", uid: "u", generation: 2, labels: { [labels.role]: "worker" } },
  spec: { pinnedImages: [{ name: `r.example.com/a@sha256:${"0".repeat(64)}` }] },
};
const pool = {
  metadata: { name: "worker" },
  spec: {
    machineConfigSelector: { matchLabels: { [labels.role]: "worker" } },
    nodeSelector: { matchLabels: { worker: "" } },
  },
};
const node = (name: string, generation?: number, answer?: Omit<PinAnswer, "of">) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name,
    labels: { worker: "" },
    annotations: {
      [annotations.state]: nodeStates.done,
      ...(generation === undefined
        ? {}
        : {
            [annotations.pinnedImageSets]: pinGrantText({
              number: 1,
              at: now,
              failures: 0,
              sets: [{ name: "a", uid: "u", generation }],
            }),
          }),
      ...(answer === undefined ? {} : { [annotations.pinnedImageSetsAnswer]: pinAnswerText({ of: 1, ...answer }) }),
    },
  },
});
const explained = (...nodes: readonly object[]) =>
  explainPinnedImageSet(set, factsOf({ pools: [pool], nodes, machineConfigNodes: [] } as never, now));

test("names who has the images, who fetches, who waits, and why one has failed, with the remedy of its code [explain-pinned-images-1]", () => {
  const found = explained(
    node("w0", 2, { is: "done" }),
    node("w1", 2),
    node("w2", 1, { is: "done" }),
    node("w3"),
    node("w4", 2, {
      is: "failed",
      set: "a",
      field: "spec.pinnedImages[0].name",
      code: "MCO_IMAGE_ABSENT",
      problem: "no such image",
    }),
  );
  expect(found.reason).toBe("PrefetchFailed");
  const text = explanationText(found);
  for (const words of [
    "1 of 5 machines of pool worker have its image",
    "w4: spec.pinnedImages[0].name: MCO_IMAGE_ABSENT: no such image; tried again at 2030-01-01T00:01:00Z",
    "Fetching:\n  w1",
    "Waiting for their turn:\n  w2, w3",
    "MCO_IMAGE_ABSENT: Check the image reference",
  ])
    expect(text).toContain(words);
});

test("asks for nothing once every machine has the images [explain-pinned-images-2]", () => {
  const found = explained(node("w0", 2, { is: "done" }));
  expect([found.reason, found.next, found.todo]).toEqual(["Pinned", [], []]);
});

test("a machine says how far it is and what it lacks, and nothing once it has its images [explain-pinned-images-4]", () => {
  const of = (type: string, status: "True" | "False", reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastTransitionTime: "2030-01-01T00:00:00Z",
  });
  const { progressing, degraded } = pinnedImageConditions;
  expect(
    pinnedImagesOf([of(progressing, "True", "ImagePrefetch", "1 of 2"), of(degraded, "True", "PrefetchFailed", "no")]),
  ).toEqual(["1 of 2", "no"]);
  expect(pinnedImagesOf([of(progressing, "False", "AwaitsTurn", "1 of 2")])).toEqual([
    "1 of 2; the others wait for its next turn",
  ]);
  expect(
    pinnedImagesOf([of(progressing, "False", "AsExpected", "all"), of(degraded, "False", "AsExpected", "")]),
  ).toEqual([]);
});

test("a degraded pool leads to the sets that its machines cannot have [explain-pinned-images-5]", () => {
  const degraded = (reason: string) => ({
    ...pool,
    spec: { ...pool.spec, pinnedImageSets: [{ name: "a" }, { name: "b" }] },
    status: {
      conditions: [{ type: "PinnedImageSetsDegraded", status: "True", reason, message: "1 of 2 machines cannot" }],
      poolSynchronizersStatus: [{ poolSynchronizerType: "PinnedImageSets", machineCount: 2, updatedMachineCount: 1 }],
    },
  });
  const text = (reason: string) => {
    const nodes = [node("w0", 2, { is: "done" }), node("w1", 2, { is: "failed", set: "a" })];
    const facts = factsOf({ pools: [degraded(reason)], nodes, machineConfigNodes: [] } as never, now);
    return explanationText(explainPool(facts, "worker") ?? expect.fail());
  };
  expect(text("PrefetchFailed")).toContain("Pinned images:\n  on 1 of 2 machines\n  1 of 2 machines cannot");
  expect(text("PrefetchFailed")).toContain("mco explain pinnedimageset/a says what to do about its images");
  expect(text("PrefetchFailed")).not.toContain("pinnedimageset/b");
  expect(text("TooManySets")).toContain("put the images of its PinnedImageSets into fewer sets");
});

test("a code that no error has gets no remedy of its own [explain-pinned-images-3]", () => {
  const found = explained(node("w0", 2, { is: "failed", set: "a", code: "__proto__" }));
  expect(found.todo.join()).toContain("__proto__: read the message");
});
