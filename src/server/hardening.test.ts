import { once } from "node:events";
import { connect as plainConnect } from "node:net";
import { connect } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { heldClock } from "../../test/support/held-clock.ts";
import { ServerHarness, problemOf, pullSecret, send, shownBy } from "../../test/support/server-harness.ts";
import type { Listen, ListenPlain } from "../ports/listener.ts";
import { httpListen, httpsListen } from "../ports/node/index.ts";

describe("paths that try to escape", () => {
  test("with a valid token reach nothing else [server-hardening-5]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("paths", "a", { expiresAt: "2099-01-01T00:00:00Z" });
    const statuses: Record<string, number> = {};
    const paths = [
      "/config/worker",
      "/config/worker/",
      "/config/worker?x=1&y=/config/master",
      "/config/%77orker",
      "/config/a/b/worker",
      "/config//worker",
      "//config/worker",
      "/config",
      "/config/",
      "/config/..",
      "/config/%2e%2e",
      "/config/%2e%2e/worker",
      "/config/../config/worker",
      "/config/worker%00",
      "/config/%00",
      "/config/worker%2F",
      "/config/%",
      "/config/%ff",
      "/config/WORKER",
      "/CONFIG/worker",
      "/config/worker;x",
      "/config/worker.",
      "/config/w..r",
      `/config/${"w".repeat(300)}`,
      `/config/worker?${"x".repeat(4000)}`,
      "/",
      "/healthz/",
      "/healthz?x",
      "/readyz",
      "/metrics",
      "*",
      "http://other.example.com/config/worker",
    ];
    for (const path of paths) {
      const got = await server.get({ token, path });
      statuses[path.slice(0, 40)] = got.status;
      if (got.status !== 200) expect(got.text.includes(pullSecret), path).toBe(false);
    }
    expect(statuses).toMatchInlineSnapshot(`
      {
        "*": 400,
        "/": 404,
        "//config/worker": 404,
        "/CONFIG/worker": 404,
        "/config": 404,
        "/config/": 404,
        "/config/%": 400,
        "/config/%00": 404,
        "/config/%2e%2e": 404,
        "/config/%2e%2e/worker": 404,
        "/config/%77orker": 200,
        "/config/%ff": 404,
        "/config/..": 404,
        "/config/../config/worker": 404,
        "/config//worker": 404,
        "/config/WORKER": 404,
        "/config/a/b/worker": 404,
        "/config/w..r": 404,
        "/config/worker": 200,
        "/config/worker%00": 404,
        "/config/worker%2F": 404,
        "/config/worker.": 404,
        "/config/worker/": 200,
        "/config/worker;x": 404,
        "/config/worker?x=1&y=/config/master": 200,
        "/config/worker?xxxxxxxxxxxxxxxxxxxxxxxxx": 404,
        "/config/wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww": 404,
        "/healthz/": 404,
        "/healthz?x": 200,
        "/metrics": 404,
        "/readyz": 200,
        "http://other.example.com/config/worker": 400,
      }
    `);
  });

  test("without a credential every path gets the same answer, whether the pool exists or not [server-hardening-6]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const [one, other] = [await server.get({ path: "/config/worker" }), await server.get({ path: "/config/nothing" })];
    const headers = ({ date: _, ...rest }: (typeof one)["headers"]) => rest;
    expect([one.status, one.text, headers(one.headers)]).toEqual([other.status, other.text, headers(other.headers)]);
  });
});

describe("floods", () => {
  test("from one source are refused with a time to wait; a machine with a credential is asked to retry [server-hardening-2]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ limits: { burst: 3, perSecond: 0.1 } });
    const token = await harness.token("flood", "a", { expiresAt: "2099-01-01T00:00:00Z" });
    for (let turn = 0; turn < 3; turn += 1) expect((await server.get()).status).toBe(401);
    const refused = await server.get();
    expect([refused.status, problemOf(refused).reason]).toEqual([429, "TooManyRequests"]);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(1);
    // Ignition gives up at 429.
    expect((await server.get({ token })).status).toBe(503);
    expect((await server.get({ path: "/healthz" })).status).toBe(200);
  });

  test("of concurrent answers are refused until there is room [server-hardening-3]", async () => {
    const harness = await ServerHarness.make();
    await harness.point("worker", await harness.render("worker", { "/etc/large": "x".repeat(1_000_000) }));
    const clock = heldClock();
    const server = await harness.start({ access: "insecure", limits: { answers: 0 }, clock });
    const got = await server.get();
    expect([got.status, problemOf(got).reason, got.headers["retry-after"]]).toEqual([503, "TooManyAnswers", "1"]);
  });

  test("of refusals become a few journal lines with counts [server-hardening-4]", async () => {
    const harness = await ServerHarness.make();
    const clock = heldClock();
    const server = await harness.start({ clock });
    for (let turn = 0; turn < 100; turn += 1) await server.get({ path: `/config/pool-${turn}` });
    clock.pass(61_000);
    const lines = server.journal.lines.filter(({ reason }) => reason === "ServeRefused");
    expect(lines.map(({ path, data }) => [path, data?.["requests"], data?.["status"]])).toEqual([
      ["Served/-", 1, 401],
      ["Served/-", 99, 401],
    ]);
  });
});

test("a replaced certificate is served without a restart, and open connections continue [server-hardening-1]", async () => {
  const harness = await ServerHarness.make();
  const clock = heldClock();
  const server = await harness.start({ access: "insecure", clock });
  const open = () =>
    new Promise<ReturnType<typeof connect>>((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port: server.port, ca: harness.authority.certificate }, () =>
        resolve(socket),
      );
      onTestFinished(() => void socket.destroy());
      socket.once("error", reject);
    });
  const kept = await open();
  const before = shownBy(kept);
  const next = await harness.authority.server("127.0.0.1");
  // Half of it is there: the key of the other certificate.
  server.files.set("tls.crt", next.certificate);
  clock.pass(11_000);
  expect(
    (await server.until({ path: "/healthz" }, () => server.log.some((line) => line.includes("cannot be used")))).status,
  ).toBe(200);
  expect(shownBy(await open())).toBe(before);
  server.files.set("tls.key", next.key);
  clock.pass(11_000);
  await server.until({ path: "/healthz" }, () =>
    server.journal.lines.some(({ reason }) => reason === "CertificateRotated"),
  );
  expect(shownBy(await open())).not.toBe(before);
  const answer = new Promise<string>((resolve) => kept.once("data", (chunk: Buffer) => resolve(chunk.toString())));
  kept.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
  expect(await answer).toMatch(/^HTTP\/1\.1 200/);
});

test("a server with an expired certificate is not ready, and reports the expiry in advance [server-hardening-7]", async () => {
  const harness = await ServerHarness.make();
  const clock = heldClock();
  const server = await harness.start({ clock });
  // It is good for a day: the first look speaks of it.
  expect(server.journal.lines.some(({ reason }) => reason === "CertExpiring")).toBe(true);
  clock.pass(25 * 3_600_000);
  const got = await server.until({ path: "/readyz" }, ({ text }) => text.includes("has ended"));
  expect(got.status).toBe(503);
});

test("a stopping server reports the stop and the pending refusals", async () => {
  const harness = await ServerHarness.make();
  const server = await harness.start();
  for (let turn = 0; turn < 3; turn += 1) await server.get();
  await server.stop();
  expect(server.journal.lines.map(({ reason, data }) => [reason, data?.["requests"]])).toEqual([
    ["Started", undefined],
    ["CertExpiring", undefined],
    ["ServeRefused", 1],
    ["ServeRefused", 2],
    ["Stopped", undefined],
  ]);
});

test("its metrics take no body of a client without a token, and few connections of one source [attack-endpoints-1]", async () => {
  const harness = await ServerHarness.make();
  const opened = Promise.withResolvers<number>();
  const listen: Listen = async (...args) => {
    const listening = await httpsListen(...args);
    opened.resolve(listening.port);
    return listening;
  };
  await harness.start({ metrics: listen });
  const port = await opened.promise;
  const ca = harness.authority.certificate;
  const statuses = [{}, { body: "x".repeat(100_000) }].map((ask) => send(port, ca, { path: "/metrics", ...ask }));
  expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([401, 413]);
  const connected = await Promise.all(
    Array.from({ length: 80 }, async () => {
      const socket = connect({ host: "127.0.0.1", port, ca });
      onTestFinished(() => void socket.destroy());
      return new Promise<boolean>((resolve) => {
        socket.once("secureConnect", () => resolve(true));
        socket.once("error", () => resolve(false)).once("close", () => resolve(false));
      });
    }),
  );
  expect(connected.filter((isOpen) => isOpen).length).toBeLessThanOrEqual(64);
});

test("clients that hold all connections keep neither machines nor probes out [attack-endpoints-3]", async () => {
  const harness = await ServerHarness.make();
  const opened = Promise.withResolvers<number>();
  const probes: ListenPlain = async (...args) => {
    const listening = await httpListen(...args);
    opened.resolve(listening.port);
    return listening;
  };
  const server = await harness.start({ connections: { connections: 40, connectionsOfOneSource: 20 }, probes });
  for (const localAddress of ["127.0.0.2", "127.0.0.3"])
    for (let index = 0; index < 20; index += 1) {
      const socket = plainConnect({ host: "127.0.0.1", port: server.port, localAddress });
      onTestFinished(() => void socket.destroy());
      socket.on("error", () => undefined);
      await once(socket, "connect");
    }
  const token = await harness.token("others", "a", { expiresAt: "2099-01-01T00:00:00Z" });
  expect((await server.get({ token })).status).toBe(200);
  const asked = ["/healthz", "/readyz", "/config/worker", "/metrics"].map(async (path) => {
    const answer = await fetch(`http://127.0.0.1:${await opened.promise}${path}`);
    return [path, answer.status];
  });
  expect(Object.fromEntries(await Promise.all(asked))).toEqual({
    "/healthz": 200,
    "/readyz": 200,
    "/config/worker": 404,
    "/metrics": 404,
  });
});
