import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { defaultPoolPolicy, newPolicyProblems, poolAnnotations, poolPolicy } from "./pool-policy.ts";

const pool = (has: Readonly<Record<string, string>>) => ({ metadata: { annotations: has } });

describe("poolPolicy", () => {
  test("a pool that says nothing, and no pool at all, have the defaults [pool-policy-1]", () => {
    for (const said of [undefined, { metadata: {} }, pool({})])
      expect(poolPolicy(said)).toEqual({ policy: defaultPoolPolicy, problems: [] });
    expect(defaultPoolPolicy).toEqual({
      canary: { count: undefined, seconds: 300 },
      drain: { deadlineSeconds: undefined, afterDeadline: { do: "wait" } },
      oneZoneAtATime: false,
      retainedConfigs: 5,
      retentionQuietSeconds: 3600,
    });
  });

  test.for([
    { key: annotations.drainDeadlineSeconds, text: "90", read: { drain: { deadlineSeconds: 90 } } },
    { key: annotations.oneZoneAtATime, text: "true", read: { oneZoneAtATime: true } },
    { key: annotations.oneZoneAtATime, text: "false", read: { oneZoneAtATime: false } },
    { key: annotations.retainedConfigs, text: "0", read: { retainedConfigs: 0 } },
    { key: annotations.retentionQuietSeconds, text: "0", read: { retentionQuietSeconds: 0 } },
    { key: annotations.retainedConfigs, text: " 12 ", read: { retainedConfigs: 12 } },
  ])("$key: $text [pool-policy-2]", ({ key, text, read }) => {
    const { policy, problems } = poolPolicy(pool({ [key]: text }));
    expect(problems).toEqual([]);
    expect(policy).toMatchObject(read);
  });

  test.for([
    { text: "wait", read: { do: "wait" } },
    { text: "skip", read: { do: "skip" } },
    { text: "force: unmanaged, pdb", read: { do: "force", despite: ["pdb", "unmanaged"] } },
    { text: "force:refused,emptyDir", read: { do: "force", despite: ["refused", "emptyDir"] } },
  ])("after the deadline: $text [pool-policy-3]", ({ text, read }) => {
    const { policy, problems } = poolPolicy(
      pool({ [annotations.drainDeadlineSeconds]: "60", [annotations.drainAfterDeadline]: text }),
    );
    expect(problems).toEqual([]);
    expect(policy.drain.afterDeadline).toEqual(read);
  });

  test.for([
    [annotations.drainDeadlineSeconds, "0"],
    [annotations.drainDeadlineSeconds, "-5"],
    [annotations.drainDeadlineSeconds, "1.5"],
    [annotations.drainDeadlineSeconds, "10m"],
    [annotations.drainDeadlineSeconds, "99999999"],
    [annotations.drainAfterDeadline, "force"],
    [annotations.drainAfterDeadline, "force:"],
    [annotations.drainAfterDeadline, "force: pdb, everything"],
    [annotations.drainAfterDeadline, "Skip"],
    [annotations.oneZoneAtATime, "yes"],
    [annotations.oneZoneAtATime, "constructor"],
    [annotations.retainedConfigs, "some"],
    [annotations.retainedConfigs, ""],
  ] as const)("%s: %j is told with its place and remedy, and counts as absent [pool-policy-4]", ([key, text]) => {
    const { policy, problems } = poolPolicy(pool({ [annotations.drainDeadlineSeconds]: "60", [key]: text }));
    expect(problems).toEqual([
      {
        severity: "error",
        path: `metadata.annotations[${key}]`,
        reason: `"${text}" is not understood`,
        remedy: expect.stringMatching(/write/) as string,
      },
    ]);
    expect({ ...policy, drain: { ...policy.drain, deadlineSeconds: undefined } }).toEqual(defaultPoolPolicy);
  });

  test("what follows a deadline that there is not is warned of [pool-policy-5]", () => {
    expect(poolPolicy(pool({ [annotations.drainAfterDeadline]: "skip" })).problems).toMatchObject([
      { severity: "warning", path: `metadata.annotations[${annotations.drainAfterDeadline}]` },
    ]);
  });
});

test("existing problems of a pool block no change", () => {
  const before = pool({ [annotations.retainedConfigs]: "some" });
  expect(newPolicyProblems(pool({ [annotations.retainedConfigs]: "some", other: "x" }), before)).toEqual([]);
  expect(newPolicyProblems(pool({ [annotations.retainedConfigs]: "many" }), before)).toHaveLength(1);
  expect(newPolicyProblems(before, undefined)).toHaveLength(1);
});

test("every documented annotation is read, and an invalid one is reported at its path", () => {
  const all = Object.fromEntries(poolAnnotations.map(({ key }) => [key, "?"]));
  expect(
    poolPolicy(pool(all))
      .problems.filter(({ severity }) => severity === "error")
      .map(({ path }) => path),
  ).toEqual(poolAnnotations.map(({ key }) => `metadata.annotations[${key}]`));
});
