import { connect } from "node:tls";
import { describe, expect, test, vi } from "vitest";
import { JoinPlace } from "../api/kinds/join-place.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { systemClock } from "../ports/node/index.ts";
import { placeLifeMs } from "../core/join/judge-csr.ts";
import {
  ServerHarness,
  type Got,
  credentialIn,
  problemOf,
  pullSecret,
  tokenText,
} from "../../test/support/server-harness.ts";

const refusalOf = (got: Got) => [got.status, problemOf(got).reason, got.headers["www-authenticate"]];

/** A server, and a client that breaks off while the server makes a place for its machine. */
async function breakingOff() {
  const harness = await ServerHarness.make();
  let hold: { readonly held: () => void; readonly released: Promise<void> } | undefined;
  const server = await harness.start({
    intercept: (handler) => async (request, signal) => {
      const answer = await handler(request, signal);
      if (hold === undefined || request.method !== "POST" || !request.target.includes("joinplaces")) return answer;
      const { held, released } = hold;
      hold = undefined;
      held();
      await released;
      return answer;
    },
  });
  const breakOff = async (token: string, localAddress: string): Promise<void> => {
    const [isHeld, isReleased] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    hold = { held: isHeld.resolve, released: isReleased.promise };
    const to = { host: "127.0.0.1", port: server.port, localAddress, ca: harness.authority.certificate };
    const socket = connect(to, () =>
      socket.write(`GET /config/worker HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`),
    );
    const gone = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await isHeld.promise;
    socket.destroy();
    await gone;
    // The server answers a later connection only after it has seen the end of the first.
    for (let rounds = 0; rounds < 3; rounds += 1) await server.get({ path: "/healthz" });
    isReleased.resolve();
  };
  return { harness, server, breakOff };
}

/** The places of the credentials in answers that a client got. */
async function placesOf({ kube }: ServerHarness, answers: readonly Got[]): Promise<readonly JoinPlace[]> {
  const held = answers.map(({ text }) => credentialIn(text).id);
  return (await kube.list(JoinPlace)).items.filter(({ spec }) => held.includes(spec.credential ?? ""));
}

describe("who is served", () => {
  test("no client without a credential, and all wrong credentials get the same answer [server-tokens-2]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("right", "a", { maxUses: 5 });
    const wrongs = [undefined, "x", tokenText("right", "b").text, tokenText("other", "a").text, `${token}x`, "."];
    const answers: Got[] = [];
    for (const wrong of wrongs)
      for (const path of ["/config/worker", "/config/no-such-pool"])
        answers.push(await server.get({ token: wrong, path }));
    answers.push(await server.get({ headers: { authorization: `Basic ${token}` } }));
    for (const answer of answers) {
      expect(refusalOf(answer)).toEqual([401, "Unauthorized", "Bearer"]);
      expect(answer.text).toBe(answers[0]?.text);
    }
    expect(await harness.uses(token)).toBe(0);
    expect((await server.get({ token })).status).toBe(200);
  });

  test("a correct secret gets the reason why it gives no access [server-tokens-3]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    expect(
      refusalOf(await server.get({ token: await harness.token("late", "a", { expiresAt: "2020-01-01T00:00:00Z" }) })),
    ).toEqual([401, "TokenExpired", "Bearer"]);
    expect(
      refusalOf(await server.get({ token: await harness.token("else", "b", { pool: "master", maxUses: 1 }) })),
    ).toEqual([403, "WrongPool", undefined]);
    const once = await harness.token("once", "c", { maxUses: 1 });
    expect((await server.get({ token: once })).status).toBe(200);
    expect(refusalOf(await server.get({ token: once }))).toEqual([401, "TokenUsedUp", "Bearer"]);
    expect(
      refusalOf(
        await server
          .get({ token: once, method: "HEAD", path: "/config/worker" })
          .then((got) => ({ ...got, text: '{"error":{"reason":""}}' })),
      ),
    ).toEqual([401, "", "Bearer"]);
  });

  test("a revoked token gives no access from then on [server-tokens-4]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("gone", "a", { expiresAt: "2099-01-01T00:00:00Z" });
    expect((await server.get({ token })).status).toBe(200);
    await harness.kube.delete(ProvisioningToken, { name: token.slice(0, 10) });
    // Its use cannot be booked any more, whether or not the server has heard of it.
    expect(refusalOf(await server.get({ token }))).toEqual([401, "Unauthorized", "Bearer"]);
  });

  test("two servers never exceed a token's uses, in any order [server-tokens-5]", async () => {
    const harness = await ServerHarness.make();
    const [one, two] = [await harness.start(), await harness.start()];
    const token = await harness.token("race", "a", { maxUses: 3 });
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? one : two).get({ token })),
    );
    expect(answers.filter(({ status }) => status === 200).length).toBe(3);
    for (const answer of answers)
      if (answer.status !== 200) expect(refusalOf(answer)).toEqual([401, "TokenUsedUp", "Bearer"]);
    expect(await harness.uses(token)).toBe(3);
  });

  test("if a use cannot be stored, nothing is served, and the machine is asked to retry [server-tokens-7]", async () => {
    const harness = await ServerHarness.make();
    let isAway = false;
    const server = await harness.start({
      intercept: (handler) => (request, signal) =>
        isAway && request.target.includes("provisioningtokens") && request.method !== "GET"
          ? Promise.resolve({ status: 403, headers: {}, body: '{"kind":"Status","reason":"Forbidden","code":403}' })
          : handler(request, signal),
    });
    const token = await harness.token("away", "a", { maxUses: 1 });
    isAway = true;
    const refused = await server.get({ token });
    expect([refused.status, problemOf(refused).reason, refused.headers["retry-after"]]).toEqual([
      503,
      "TokenNotBooked",
      "5",
    ]);
    expect(refused.text).not.toContain(pullSecret);
    isAway = false;
    expect((await server.get({ token })).status).toBe(200);
  });

  test("a one-use token is read once, even if the client disconnects late [server-tokens-6]", async () => {
    const harness = await ServerHarness.make();
    await harness.point("worker", await harness.render("worker", { "/etc/large": "x".repeat(900_000) }));
    const server = await harness.start();
    const token = await harness.token("broken", "a", { maxUses: 1 });
    // The reader takes all but the last bytes and breaks off, so that the answer never ends.
    const read = () =>
      new Promise<string>((resolve, reject) => {
        let text = "";
        const socket = connect({ host: "127.0.0.1", port: server.port, ca: harness.authority.certificate }, () =>
          socket.write(`GET /config/worker HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`),
        );
        socket.on("data", (bytes: Buffer) => {
          text += bytes.toString("latin1");
          const head = text.indexOf("\r\n\r\n");
          const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN);
          if (text.length < head + 4 + length - 65_536 && text.startsWith("HTTP/1.1 200")) return;
          socket.destroy();
          resolve(text.slice(0, 12));
        });
        socket.once("error", reject);
      });
    const answers: string[] = [];
    for (let tries = 0; tries < 12; tries += 1) answers.push(await read());
    expect(answers.filter((answer) => answer === "HTTP/1.1 200")).toHaveLength(1);
    expect(await harness.uses(token)).toBe(1);
    expect((await harness.kube.list(JoinPlace)).items).toHaveLength(1);
  });

  test("a use and its place are taken back if the client disconnects before the first byte [server-tokens-10]", async () => {
    const { harness, server, breakOff } = await breakingOff();
    const token = await harness.token("unsent", "a", { maxUses: 1 });
    await breakOff(token, "127.0.0.1");
    const again = await server.until({ token }, ({ status }) => status !== 401);
    expect(again.status).toBe(200);
    expect(await harness.uses(token)).toBe(1);
    expect(await placesOf(harness, [again])).toHaveLength(1);
  });

  test("a client that disconnects from one address after the other has room for one machine [attack-joining-26]", async () => {
    const { harness, server, breakOff } = await breakingOff();
    const token = await harness.token("unsent", "a", { maxUses: 1 });
    for (const address of ["127.0.0.2", "127.0.0.3", "127.0.0.4"]) {
      await breakOff(token, address);
      await vi.waitFor(async () => expect(await harness.uses(token)).toBe(0), { timeout: 300_000, interval: 5 });
    }
    const got = await server.get({ token });
    expect(got.status).toBe(200);
    // It knows one credential, and that is good for one machine.
    expect(await placesOf(harness, [got])).toHaveLength(1);
    expect((await server.get({ token })).status).toBe(401);
  });

  test("each served configuration creates one place, with the token's facts about the machine [server-tokens-11]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("named", "a", { maxUses: 2, node: "worker-7", addresses: ["10.0.0.7"] });
    const got = await server.get({ token });
    expect(got.status).toBe(200);
    expect((await server.get({ token, method: "HEAD" })).status).toBe(200);
    const [place, ...more] = (await harness.kube.list(JoinPlace)).items;
    expect(more).toEqual([]);
    expect(place?.spec).toMatchObject({
      pool: "worker",
      node: "worker-7",
      token: token.split(".")[0],
      addresses: ["127.0.0.1", "10.0.0.7"],
      credential: credentialIn(got.text).id,
    });
    // The next machine gets another one.
    expect(credentialIn((await server.get({ token })).text)).not.toEqual(credentialIn(got.text));
    const left = Date.parse(place?.spec.expiresAt ?? "") - Date.now();
    expect(left).toBeGreaterThan(placeLifeMs - 60_000);
    expect(left).toBeLessThanOrEqual(placeLifeMs);
  });

  test("guessed tokens delay no one: beyond the look-up limit they get 503, and known tokens still work [server-tokens-12]", async () => {
    const harness = await ServerHarness.make();
    // All of it happens in one second.
    const server = await harness.start({ clock: { ...systemClock, monotonic: () => 1_000_000 } });
    const token = await harness.token("known", "a", { maxUses: 100 });
    await server.until({ token, method: "HEAD" }, ({ status }) => status === 200);
    const guesses: number[] = [];
    for (let tries = 0; tries < 12; tries += 1)
      guesses.push((await server.get({ token: tokenText(`guess${tries}`, "b").text })).status);
    expect(new Set(guesses.slice(0, 5))).toEqual(new Set([401]));
    expect(new Set(guesses.slice(6))).toEqual(new Set([503]));
    expect((await server.get({ token })).status).toBe(200);
  });

  test("a client certificate gives access to the pool that its organization names [server-tokens-8]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ clientCa: true });
    const worker = await harness.authority.client("a-machine", ["machineconfiguration.openshift.io:pool:worker"]);
    expect((await server.get({ client: worker })).status).toBe(200);
    expect(refusalOf(await server.get({ client: worker, path: "/config/master" }))).toEqual([
      403,
      "WrongPool",
      undefined,
    ]);
    expect(refusalOf(await server.get({ client: await harness.authority.client("a-machine", ["worker"]) }))).toEqual([
      401,
      "Unauthorized",
      "Bearer",
    ]);
    const { testAuthority } = await import("../../test/support/test-pki.ts");
    const stranger = await (
      await testAuthority()
    ).client("a-machine", ["machineconfiguration.openshift.io:pool:worker"]);
    expect(refusalOf(await server.get({ client: stranger }))).toEqual([401, "Unauthorized", "Bearer"]);
  });

  test("insecure mode serves every client, and reports it [server-tokens-9]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    expect((await server.get()).text).toContain(pullSecret);
    expect(JSON.parse((await server.get({ path: "/readyz" })).text)).toMatchObject({ access: "insecure" });
    expect(server.log.some((line) => line.startsWith("warn insecure access"))).toBe(true);
    expect(server.journal.lines.find(({ reason }) => reason === "Started")?.data).toMatchObject({ access: "insecure" });
  });
});

test("no refusal, log or journal contains a secret [server-tokens-1]", async () => {
  const harness = await ServerHarness.make();
  const server = await harness.start();
  const token = await harness.token("quiet", "s", { maxUses: 1 });
  const wrong = tokenText("quiet", "t");
  const served = await server.get({ token });
  const credential = /token%3A%20([\w.-]+)/.exec(served.text)?.[1] ?? "";
  expect(credential.length).toBeGreaterThan(100);
  const refused: Got[] = [];
  // An answer for a pool name that looks like a token does not quote it to others.
  for (const path of [token, wrong.text]) await server.get({ token, path: `/config/${path}` });
  for (const shown of [undefined, wrong.text, token])
    for (const path of ["/config/worker", "/config/master", "/config/..", "/x", "/readyz"])
      for (const method of ["GET", "POST"]) refused.push(await server.get({ token: shown, path, method }));
  await server.stop();
  const told = [
    ...refused.map(({ text, headers }) => text + JSON.stringify(headers)),
    ...server.log,
    JSON.stringify(server.journal.lines),
  ].join("\n");
  expect(told).toContain("TokenUsedUp");
  for (const secret of [pullSecret, "s".repeat(32), wrong.secret, credential, "kind: Config"])
    expect(told.includes(secret), secret.slice(0, 8)).toBe(false);
  expect(server.journal.lines.find(({ reason }) => reason === "Served")).toMatchObject({
    path: "Served/worker",
    level: "boundary",
    data: {
      requester: "127.0.0.1",
      pool: "worker",
      version: "2.2.0",
      sizeBytes: served.body.length,
      config: expect.stringMatching(/^rendered-worker-/),
    },
  });
});
