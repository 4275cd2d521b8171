import { describe, expect, test } from "vitest";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { tokenHash } from "../core/join/provisioning-token.ts";
import { systemClock } from "../ports/node/system-clock.ts";
import { silentLogger } from "../ports/logger.ts";
import type { TokenStore } from "./config-source.ts";
import { type AccessRefusal, Credentials, type TokenUse } from "./credentials.ts";

/** Tokens with the rules of an API server: who writes names the version that it read. */
class FakeTokens implements TokenStore {
  readonly objects = new Map<string, ProvisioningToken>();
  writes = 0;
  /** Held writes go on when a test lets them. */
  gate: Promise<void> = Promise.resolve();
  /** What the watch brought last; the objects themselves when absent. */
  watched: Map<string, ProvisioningToken> | undefined;

  add(id: string, spec: Partial<ProvisioningToken["spec"]>): void {
    this.objects.set(id, {
      apiVersion: ProvisioningToken.apiVersion,
      kind: "ProvisioningToken",
      metadata: { name: id, uid: id, resourceVersion: "1" },
      spec: { pool: "worker", tokenHash: tokenHash("s".repeat(32)), ...spec },
    });
  }

  token(id: string) {
    return (this.watched ?? this.objects).get(id);
  }

  lookUp(id: string) {
    return this.reread(id);
  }

  reread(id: string) {
    return Promise.resolve(this.objects.get(id));
  }

  async store(token: ProvisioningToken, status: NonNullable<ProvisioningToken["status"]>) {
    await this.gate;
    const id = token.metadata.name;
    const now = this.objects.get(id);
    if (now === undefined) return "gone" as const;
    if (now.metadata.resourceVersion !== token.metadata.resourceVersion) return "conflict" as const;
    this.writes += 1;
    const stored = {
      ...now,
      metadata: { ...now.metadata, resourceVersion: String(Number(now.metadata.resourceVersion) + 1) },
      status,
    };
    this.objects.set(id, stored);
    return stored;
  }
}

const id = "a".repeat(10);
const authorization = `Bearer ${id}.${"s".repeat(32)}`;
const over = (tokens: TokenStore) =>
  new Credentials({ mode: "required", tokens, places: undefined, clock: systemClock, log: silentLogger });

async function useOf(credentials: Credentials, requester = "192.0.2.1"): Promise<TokenUse> {
  const admission = await credentials.admit("worker", { authorization, client: undefined, requester });
  if (admission.verdict !== "admitted" || admission.by !== "token") throw new Error(JSON.stringify(admission));
  return admission.use;
}

const reasons = (outcomes: readonly ("booked" | AccessRefusal)[]) =>
  outcomes.map((outcome) => (outcome === "booked" ? outcome : outcome.reason));

describe("uses of a token", () => {
  test("that come while one is being stored are stored together [server-credentials-1]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 100 });
    const credentials = over(tokens);
    let open: () => void = () => undefined;
    tokens.gate = new Promise((resolve) => (open = resolve));
    const uses = await Promise.all(Array.from({ length: 50 }, (_, index) => useOf(credentials, `192.0.2.${index}`)));
    const first = credentials.book(uses[0] as TokenUse);
    const rest = uses.slice(1).map((use) => credentials.book(use));
    open();
    expect(reasons(await Promise.all([first, ...rest]))).toEqual(Array(50).fill("booked"));
    expect(tokens.writes).toBe(2);
    expect(tokens.objects.get(id)?.status).toMatchObject({ uses: 50 });
    // The newest first, and not all of them.
    expect(tokens.objects.get(id)?.status?.lastUsedBy).toEqual(
      Array.from({ length: 10 }, (_, index) => `192.0.2.${49 - index}`),
    );
  });

  test("are refused where there are too many of them, one by one [server-credentials-2]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 2 });
    const credentials = over(tokens);
    const uses = await Promise.all(Array.from({ length: 4 }, () => useOf(credentials)));
    expect(reasons(await Promise.all(uses.map((use) => credentials.book(use)))).toSorted()).toEqual([
      "TokenUsedUp",
      "TokenUsedUp",
      "booked",
      "booked",
    ]);
    expect(tokens.objects.get(id)?.status?.uses).toBe(2);
  });

  test("of two servers with old news never exceed what there is [server-credentials-3]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 5 });
    tokens.watched = new Map(tokens.objects);
    const servers = [over(tokens), over(tokens), over(tokens)];
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const credentials = servers[index % servers.length] as Credentials;
        const admission = await credentials.admit("worker", {
          authorization,
          client: undefined,
          requester: "192.0.2.1",
        });
        return admission.verdict === "admitted" && admission.by === "token"
          ? credentials.book(admission.use)
          : (admission as AccessRefusal);
      }),
    );
    expect(reasons(outcomes).filter((reason) => reason === "booked").length).toBe(5);
    expect(tokens.objects.get(id)?.status?.uses).toBe(5);
  });

  test("that were given back can be had again, also by a server that has not heard of it [server-credentials-4]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 1 });
    const [one, two] = [over(tokens), over(tokens)];
    const use = await useOf(one);
    expect(await one.book(use)).toBe("booked");
    tokens.watched = new Map(tokens.objects);
    one.giveBack(use);
    await one.flush(new AbortController().signal);
    expect(tokens.objects.get(id)?.status?.uses).toBe(0);
    expect(await two.book(await useOf(two))).toBe("booked");
    expect(tokens.objects.get(id)?.status?.uses).toBe(1);
  });

  test("are not given back for ever: connections that always break are no accident [server-credentials-5]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 1 });
    const credentials = over(tokens);
    let answered = 0;
    for (let turn = 0; turn < 50; turn += 1) {
      const admission = await credentials.admit("worker", { authorization, client: undefined, requester: "192.0.2.1" });
      if (admission.verdict !== "admitted" || admission.by !== "token") break;
      if ((await credentials.book(admission.use)) !== "booked") break;
      answered += 1;
      credentials.giveBack(admission.use);
      await credentials.flush(new AbortController().signal);
    }
    expect(answered).toBe(11);
  });

  test("a place whose answer was never begun is for the same pool and machine only [server-credentials-8]", async () => {
    const made: string[] = [];
    const places = {
      add: ({ pool }: { readonly pool: string }) => Promise.resolve(`${pool}-${made.push(pool)}`),
    };
    const credentials = new Credentials({
      mode: "insecure",
      tokens: undefined,
      places,
      clock: systemClock,
      log: silentLogger,
    });
    expect(await credentials.makePlace("master", "192.0.2.1", undefined)).toBe("master-1");
    credentials.keepPlace("master-1", "master", "192.0.2.1", undefined);
    expect(await credentials.makePlace("worker", "192.0.2.1", undefined)).toBe("worker-2");
    expect(await credentials.makePlace("master", "192.0.2.2", undefined)).toBe("master-3");
    expect(await credentials.makePlace("master", "192.0.2.1", undefined)).toBe("master-1");
    expect(await credentials.makePlace("master", "192.0.2.1", undefined)).toBe("master-4");
  });

  test("of a token that was revoked meanwhile are refused [server-credentials-6]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { expiresAt: "2099-01-01T00:00:00Z" });
    const credentials = over(tokens);
    const use = await useOf(credentials);
    tokens.watched = new Map(tokens.objects);
    tokens.objects.delete(id);
    expect(await credentials.book(use)).toMatchObject({ status: 401, reason: "Unauthorized" });
  });

  test("are looked at when they are stored, not only when they are asked for [server-credentials-7]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { expiresAt: new Date(Date.parse("2026-01-01T00:00:00Z")).toISOString() });
    let now = Date.parse("2025-12-31T23:59:59Z");
    const credentials = new Credentials({
      mode: "required",
      tokens,
      places: undefined,
      clock: { ...systemClock, now: () => now },
      log: silentLogger,
    });
    const use = await useOf(credentials);
    now += 2000;
    expect(await credentials.book(use)).toMatchObject({ status: 401, reason: "TokenExpired" });
    expect(tokens.objects.get(id)?.status?.uses ?? 0).toBe(0);
  });
});
