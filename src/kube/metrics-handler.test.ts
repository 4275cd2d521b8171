import { describe, expect, test } from "vitest";
import { heldClock } from "../../test/support/held-clock.ts";
import { silentLogger } from "../ports/logger.ts";
import type { KubeClient } from "./kube-client.ts";
import { metricsHandler } from "./metrics-handler.ts";

/** A handler before an API server that knows the tokens in `known`, and a count of the reviews that it did. */
function served() {
  const clock = heldClock();
  const known = new Set(["good", "other"]);
  const mayRead = new Set(["good", "other"]);
  let reviews = 0;
  const request: KubeClient["request"] = ({ target, body }) => {
    const { spec } = JSON.parse(typeof body === "string" ? body : "") as { spec: { token?: string; user?: string } };
    if (target.endsWith("/subjectaccessreviews"))
      return Promise.resolve({ status: { allowed: mayRead.has(spec.user ?? "") } });
    reviews += 1;
    const token = spec.token ?? "";
    return Promise.resolve({ status: known.has(token) ? { authenticated: true, user: { username: token } } : {} });
  };
  const handle = metricsHandler({ kube: { request } as KubeClient, clock, log: silentLogger, text: () => "up 1\n" });
  return {
    clock,
    known,
    mayRead,
    reviews: () => reviews,
    async scrape(token: string | undefined, from = "192.0.2.1") {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const target = "/metrics";
      return (await handle({ method: "GET", target, headers }, undefined, new AbortController().signal, from)).status;
    },
  };
}

describe("metrics", () => {
  test("a revoked caller is let in for at most ten seconds [kube-metrics-1]", async () => {
    const { clock, known, scrape } = served();
    expect(await scrape("good")).toBe(200);
    known.delete("good");
    clock.pass(9_000);
    expect(await scrape("good")).toBe(200);
    clock.pass(1_001);
    expect(await scrape("good")).toBe(401);
  });

  test("a scrape within ten seconds costs no review, and what was just granted works within five [kube-metrics-2]", async () => {
    const { clock, mayRead, reviews, scrape } = served();
    mayRead.delete("good");
    expect([await scrape("good"), await scrape("good")]).toEqual([403, 403]);
    expect(reviews()).toBe(1);
    mayRead.add("good");
    clock.pass(5_001);
    expect([await scrape("good"), await scrape("good")]).toEqual([200, 200]);
    expect(reviews()).toBe(2);
  });

  test("a source that fails ten times within a minute waits, and costs the API server nothing more [kube-metrics-3]", async () => {
    const { clock, reviews, scrape } = served();
    for (let guess = 0; guess < 10; guess++) expect(await scrape(`guess-${guess}`)).toBe(401);
    for (let guess = 10; guess < 1_000; guess++) expect(await scrape(`guess-${guess}`)).toBe(429);
    expect(reviews()).toBe(10);
    expect(await scrape("good", "192.0.2.2")).toBe(200);
    clock.pass(60_001);
    expect(await scrape("good")).toBe(200);
  });

  test("who was let in before goes on being so from an address from which others guess [kube-metrics-4]", async () => {
    const { clock, scrape } = served();
    expect(await scrape("good")).toBe(200);
    for (let guess = 0; guess < 200; guess++) await scrape(`guess-${guess}`);
    expect(await scrape("good")).toBe(200);
    clock.pass(30_000);
    for (let guess = 0; guess < 200; guess++) await scrape(`again-${guess}`);
    expect(await scrape("good")).toBe(200);
    expect(await scrape("other")).toBe(429);
  });

  test("addresses of one IPv6 network are one source [kube-metrics-5]", async () => {
    const { scrape } = served();
    const from = (last: number) => `2001:db8:0:1:${last.toString(16)}::1`;
    for (let guess = 0; guess < 10; guess++) await scrape(`guess-${guess}`, from(guess + 1));
    expect(await scrape("guess", from(100))).toBe(429);
    expect(await scrape("good", "2001:db8:0:2::1")).toBe(200);
    for (let guess = 0; guess < 10; guess++) await scrape(`more-${guess}`, `2001:db8::${guess + 1}`);
    expect(await scrape("other", "2001:db8::ff")).toBe(429);
  });
});
