import { daemonMetrics } from "../core/metrics/daemon-metrics.ts";
import { type MetricFamily, metricsText } from "../core/metrics/metrics.ts";
import type { Clock } from "../ports/clock.ts";
import type { HttpResponse } from "../ports/http.ts";
import type { ServerHandler } from "../ports/listener.ts";
import type { DaemonFacts } from "./daemon-facts.ts";

/** A pass may fetch an image and stage it; a pass that takes longer hangs. */
const lookLimitMs = 45 * 60_000;

const text = (status: number, body: string, type = "text/plain; charset=utf-8"): HttpResponse => ({
  status,
  headers: { "content-type": type },
  body,
});

/**
 * Serves `/metrics`, and `/readyz` for the kubelet, to the machine itself. They contain no secrets, and the listener is
 * on loopback.
 */
export function statusHandler({
  facts,
  clock,
  nodeName,
  more = () => [],
}: {
  readonly facts: DaemonFacts;
  readonly clock: Pick<Clock, "monotonic" | "now">;
  readonly nodeName: string;
  /** Further figures. */ readonly more?: () => readonly MetricFamily[];
}): ServerHandler {
  return async ({ method, target }) => {
    const path = target.split("?")[0];
    if (method !== "GET" && method !== "HEAD") return text(405, "GET is all there is\n");
    if (path === "/metrics")
      return text(
        200,
        metricsText([...daemonMetrics(facts, nodeName, clock.now()), ...more()]),
        "text/plain; version=0.0.4; charset=utf-8",
      );
    if (path !== "/readyz") return text(404, "there are /metrics and /readyz\n");
    if (!facts.hasSeenNode) return text(503, `node ${nodeName} has not been seen yet\n`);
    const sinceMs = facts.lookingSince === undefined ? 0 : clock.monotonic() - facts.lookingSince;
    if (sinceMs > lookLimitMs) return text(503, `a step has taken ${Math.round(sinceMs / 1000)} s\n`);
    return text(200, "ok\n");
  };
}
