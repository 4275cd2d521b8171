import { expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { judgeAmongMembers, judgeMembersOfPool } from "./judge-admission.ts";
import type { PoolForecast } from "./plan-cluster.ts";

const reason = (at: number, place = at) =>
  `spec.config.systemd.units[${place}]: the unit u${at}.service has two contents`;

/** A pool that is refused for so many reasons, of which the first `standing` stood before, one place further up. */
const refusedPool = (reasons: number, standing: number): PoolForecast => ({
  pool: "worker",
  verdict: "refused",
  refusals: Array.from({ length: reasons }, (_, at) => ({
    code: "PathConflict" as const,
    reason: reason(at, at + 1),
    involves: [{ member: "99-new", path: `spec.config.systemd.units[${at + 1}]` }],
  })),
  stood: Array.from({ length: standing }, (_, at) => reason(at)),
});

test("reasons that stood before a change refuse nothing, wherever their items are by now [preview-judge-admission-1]", () => {
  const judge = (reasons: number, standing: number) =>
    judgeAmongMembers("99-new", { pools: [refusedPool(reasons, standing)] });
  expect(judge(3, 3)).toEqual({ verdict: "allowed", warnings: [] });
  expect(judge(3, 2)).toMatchObject({
    verdict: "refused",
    causes: [{ field: "spec.config.systemd.units[3]", message: reason(2, 3) }],
  });
});

test("thousands of reasons are compared with as many that stood before in time in proportion to their number [preview-judge-admission-2]", async () => {
  const pools = [refusedPool(3_001, 3_000)];
  for (const judge of [judgeAmongMembers, judgeMembersOfPool]) {
    const name = judge === judgeAmongMembers ? "99-new" : "worker";
    expect(await countWork(() => expect(judge(name, { pools })).toMatchObject({ verdict: "refused" }))).toBeLessThan(
      100_000,
    );
  }
});
