import { describe, expect, test } from "vitest";
import { clipWarning, forecastSummary, mostWarnings, warningLimit } from "./forecast-summary.ts";
import type { NodeForecast, PoolForecast } from "./plan-cluster.ts";

const reboots: NodeForecast = { node: "w", drains: true, reboots: true, actions: [], disruption: "reboot" };
const reloads: NodeForecast = {
  node: "w",
  drains: false,
  reboots: false,
  actions: ["reload crio.service"],
  disruption: "services",
};
const nothing: NodeForecast = { node: "w", drains: false, reboots: false, actions: [], disruption: "nothing" };
const pool = (name: string, more: Partial<Extract<PoolForecast, { verdict: "changes" }>> = {}): PoolForecast => ({
  pool: name,
  verdict: "changes",
  from: "a",
  to: `rendered-${name}-1`,
  paused: false,
  changes: [],
  services: [],
  because: [],
  irreconcilable: [],
  warnings: [],
  nodes: [],
  ...more,
});
const summary = (...pools: PoolForecast[]) => forecastSummary({ pools }, "99-x");

describe("forecastSummary", () => {
  test("pools that stay are not mentioned", () => {
    expect(summary({ pool: "worker", verdict: "unchanged", rendered: "r" })).toEqual([]);
  });

  test("machines are counted by consequence, the worst first, with the reason", () => {
    const because = [{ consequence: { kind: "reboot" }, changes: [], why: "/etc/x has no disruption policy" }] as const;
    expect(summary(pool("worker", { nodes: [nothing, reloads, reboots, reboots], because }))).toEqual([
      "pool worker gets rendered-worker-1; 2 machines: drain and reboot; 1 machine: reload crio.service; 1 machine: only take the change, because /etc/x has no disruption policy",
    ]);
  });

  test("paused pools and pools without machines say so", () => {
    expect(summary(pool("a", { paused: true, nodes: [nothing] }), pool("b"))).toEqual([
      "pool a gets rendered-a-1, paused: its machines keep their configuration until it is resumed; 1 machine: only take the change",
      "pool b gets rendered-b-1; no machine is in it",
    ]);
  });

  test("new conflicts with other members are reported, existing ones are not", () => {
    const warnings = [
      { code: "Conflict", member: "99-x", reason: "99-x replaces the contents that 00-worker gives /etc/a" },
      { code: "Conflict", member: "50-b", reason: "50-b replaces the contents that 00-worker gives /etc/b" },
    ] as const;
    expect(summary(pool("worker", { warnings })).slice(1)).toEqual([
      "conflict in pool worker: 99-x replaces the contents that 00-worker gives /etc/a",
    ]);
  });

  test("a refusal by machines replaces the forecast of their steps", () => {
    expect(
      summary(
        pool("worker", {
          irreconcilable: [{ field: "spec.fips", reason: "no", remedy: "leave it", rule: "ours" }],
          nodes: [reboots],
        }),
      ),
    ).toEqual(["machines of pool worker would refuse it: spec.fips: no"]);
  });

  test("render failures come first, and the number of warnings is limited", () => {
    const refused: PoolForecast = {
      pool: "z",
      verdict: "refused",
      refusals: [{ code: "Irreconcilable", reason: "99-x: the section disks changes", remedy: "leave it" }],
      stood: [],
    };
    const lines = summary(...Array.from({ length: 9 }, (_, i) => pool(`p${i}`)), refused);
    expect(lines).toHaveLength(mostWarnings);
    expect(lines[0]).toBe("pool z would not render: 99-x: the section disks changes (leave it)");
    expect(lines.at(-1)).toBe("and 6 more; mco plan says everything");
  });

  test("machines that cannot have what their pool gets are named before its course [preview-forecast-summary-1]", () => {
    const unfit = "pool worker: the kernel type 64k-pages exists on arm64 only; of another architecture: w";
    const forecast = { pools: [pool("worker", { nodes: [reboots] })], unfitMachines: [unfit] };
    expect(forecastSummary(forecast, "99-x")).toEqual([
      unfit,
      "pool worker gets rendered-worker-1; 1 machine: drain and reboot",
    ]);
  });

  test("of files that the daemon writes itself, machines take nothing [preview-forecast-summary-2]", () => {
    const file = (path: string) => ({ kind: "file", path, op: "create", parts: ["contents"] }) as const;
    const lineOf = (...changes: Extract<PoolForecast, { verdict: "changes" }>["changes"]) =>
      summary(pool("worker", { changes, nodes: [nothing] }))[0];
    expect(lineOf(file("/etc/kubernetes/kubelet-ca.crt"))).toBe(
      "pool worker gets rendered-worker-1; 1 machine: nothing: the machine config daemon writes these files itself",
    );
    expect(lineOf(file("/etc/kubernetes/kubelet-ca.crt"), file("/etc/a"))).toContain("only take the change");
    expect(lineOf({ kind: "storage", section: "disks", op: "create", names: ["/dev/vdb"] })).toContain(
      "running machines keep what they have, and new ones follow",
    );
  });

  test("no line is longer than clients print", () => {
    expect(clipWarning(`${"word ".repeat(100)}\nend`).length).toBeLessThanOrEqual(warningLimit);
    expect(clipWarning("a\n b")).toBe("a b");
    expect(clipWarning("/etc/\u4e2d\u0000")).toBe("/etc/\\u4e2d\\u0000");
  });
});
