import { describe, expect, test } from "vitest";
import { poolOrganizationPrefix } from "../api/names.ts";
import type { JoinPlace } from "../api/kinds/join-place.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { tokenHash } from "../core/join/provisioning-token.ts";
import { placeLifeMs } from "../core/join/judge-csr.ts";
import { systemClock } from "../ports/node/system-clock.ts";
import { silentLogger } from "../ports/logger.ts";
import type { PlaceStore, TokenStore } from "./config-source.ts";
import {
  type AccessRefusal,
  type Admitted,
  AccessControl,
  type GivenBack,
  type TokenUse,
  insecurely,
} from "./credentials.ts";

/** Tokens with the rules of an API server: who writes names the version that it read. */
class FakeTokens implements TokenStore {
  readonly objects = new Map<string, ProvisioningToken>();
  writes = 0;
  /** Held writes continue when a test releases them. */
  gate: Promise<void> = Promise.resolve();
  /** The last state from the watch; the objects themselves when absent. */
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

/** Places that a test looks at, each with a credential of its own. */
function countedPlaces(): { readonly places: PlaceStore; readonly made: JoinPlace["spec"][] } {
  const made: JoinPlace["spec"][] = [];
  let minted = 0;
  const places: PlaceStore = {
    mint(pool) {
      minted += 1;
      return Promise.resolve({ token: `${pool}-${minted}`, id: `JTI=${pool}-${minted}` });
    },
    add: (place) => Promise.resolve(void made.push(place)),
  };
  return { places, made };
}

const id = "a".repeat(10);
const authorization = `Bearer ${id}.${"s".repeat(32)}`;
const over = (tokens: TokenStore) =>
  new AccessControl({ mode: "required", tokens, places: undefined, clock: systemClock, log: silentLogger });

async function useOf(credentials: AccessControl, requester = "192.0.2.1"): Promise<TokenUse> {
  const admission = await credentials.admit("worker", { authorization, client: undefined, requester });
  if (admission.verdict !== "admitted" || admission.by !== "token") throw new Error(JSON.stringify(admission));
  return admission.use;
}

const reasons = (outcomes: readonly ("booked" | AccessRefusal)[]) =>
  outcomes.map((outcome) => (outcome === "booked" ? outcome : outcome.reason));

describe("uses of a token", () => {
  test("that arrive during a write are stored together [server-credentials-1]", async () => {
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

  test("beyond the limit are refused one by one [server-credentials-2]", async () => {
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

  test("of two servers with outdated caches never exceed the limit [server-credentials-3]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 5 });
    tokens.watched = new Map(tokens.objects);
    const servers = [over(tokens), over(tokens), over(tokens)];
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const credentials = servers[index % servers.length] as AccessControl;
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

  test("that were taken back are available again, even on a server with an outdated cache [server-credentials-4]", async () => {
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

  test("are not taken back without limit: a client that always disconnects loses its uses [server-credentials-5]", async () => {
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

  test("a place whose answer never started serves only the same pool and machine [server-credentials-8]", async () => {
    const { places } = countedPlaces();
    const credentials = new AccessControl({
      mode: "insecure",
      tokens: undefined,
      places,
      clock: systemClock,
      log: silentLogger,
    });
    const make = async (pool: string, from: string) => {
      const made = await credentials.makePlace(pool, from, insecurely(from));
      if (made?.verdict !== "made") throw new Error("no place");
      return made;
    };
    const first = await make("master", "192.0.2.1");
    expect(first.token).toBe("master-1");
    credentials.keepPlace(first, "master", "192.0.2.1");
    expect((await make("worker", "192.0.2.1")).token).toBe("worker-2");
    expect((await make("master", "192.0.2.2")).token).toBe("master-3");
    expect((await make("master", "192.0.2.1")).token).toBe("master-1");
    expect((await make("master", "192.0.2.1")).token).toBe("master-4");
  });

  test("that are given back are counted, and those beyond the limit of a token apart [server-credentials-9]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { maxUses: 100 });
    const outcomes: GivenBack[] = [];
    const credentials = new AccessControl({
      mode: "required",
      tokens,
      places: undefined,
      clock: systemClock,
      log: silentLogger,
      onGivenBack: (outcome) => outcomes.push(outcome),
    });
    for (let uses = 0; uses < 12; uses += 1) {
      const use = await useOf(credentials);
      expect(await credentials.book(use)).toBe("booked");
      credentials.giveBack(use);
      await credentials.flush(AbortSignal.timeout(5000));
    }
    expect(outcomes).toEqual([...Array<GivenBack>(10).fill("Returned"), "Refused", "Refused"]);
    expect(tokens.objects.get(id)?.status?.uses).toBe(2);
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

  test("are checked again when they are stored [server-credentials-7]", async () => {
    const tokens = new FakeTokens();
    tokens.add(id, { expiresAt: new Date(Date.parse("2026-01-01T00:00:00Z")).toISOString() });
    let now = Date.parse("2025-12-31T23:59:59Z");
    const credentials = new AccessControl({
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

test("one credential makes no more places than machines join at once, and another one still does [server-credentials-places-1]", async () => {
  const { places, made } = countedPlaces();
  const credentials = new AccessControl({
    mode: "required",
    tokens: undefined,
    places,
    clock: { ...systemClock, now: () => 0 },
    log: silentLogger,
  });
  const byToken = (token: string): Admitted => ({
    verdict: "admitted",
    by: "token",
    use: { id: token, presented: "", pool: "worker", requester: "192.0.2.1" },
    machine: {},
  });
  for (let index = 0; index < 6000; index += 1) await credentials.makePlace("worker", "192.0.2.1", byToken("a"));
  expect(made).toHaveLength(5000);
  expect(await credentials.makePlace("worker", "192.0.2.1", byToken("a"))).toMatchObject({ reason: "TooManyPlaces" });
  expect(await credentials.makePlace("worker", "192.0.2.1", byToken("b"))).toMatchObject({ verdict: "made" });
  for (let index = 0; index < 6000; index += 1) await credentials.makePlace("worker", "192.0.2.1", byToken("b"));
  expect(made).toHaveLength(10_000);
});

test.for([
  { title: "that the watch does not show yet", change: (tokens: FakeTokens) => (tokens.watched = new Map()) },
  { title: "that is revoked meanwhile", change: (tokens: FakeTokens) => tokens.objects.clear(), late: true },
])("a token $title makes a place for its machine alone [server-credentials-places-4]", async ({ change, late }) => {
  const { places, made } = countedPlaces();
  const tokens = new FakeTokens();
  tokens.add(id, { maxUses: 1, node: "w1", addresses: ["10.0.0.1"] });
  const credentials = new AccessControl({
    mode: "required",
    tokens,
    places,
    clock: systemClock,
    log: silentLogger,
  });
  if (late !== true) change(tokens);
  const requester = "192.0.2.1";
  const admission = await credentials.admit("worker", { authorization, client: undefined, requester });
  if (admission.verdict === "refused" || admission.by !== "token") throw new Error(JSON.stringify(admission));
  expect(await credentials.book(admission.use)).toBe("booked");
  if (late === true) change(tokens);
  await credentials.makePlace("worker", requester, admission);
  expect(made).toEqual([
    expect.objectContaining({ node: "w1", addresses: [requester, "10.0.0.1"], token: id, credential: "JTI=worker-1" }),
  ]);
});

test("a certificate makes no more places from many addresses than from one [server-credentials-places-2]", async () => {
  const { places, made } = countedPlaces();
  const credentials = new AccessControl({
    mode: "required",
    tokens: undefined,
    places,
    clock: { ...systemClock, now: () => 0 },
    log: silentLogger,
  });
  const ask = async (commonName: string, requester: string) => {
    const client = { commonName, organizations: [`${poolOrganizationPrefix}worker`] };
    const admission = await credentials.admit("worker", { authorization: undefined, client, requester });
    if (admission.verdict === "refused") throw new Error(admission.reason);
    return credentials.makePlace("worker", requester, admission);
  };
  for (let index = 0; index < 6000; index += 1)
    await ask("machines", `192.0.${Math.floor(index / 250)}.${index % 250}`);
  expect(made).toHaveLength(5000);
  expect(await ask("machines", "198.51.100.1")).toMatchObject({ status: 503, reason: "TooManyPlaces" });
  expect(await ask("others", "198.51.100.1")).toMatchObject({ verdict: "made" });
});

test("without credentials, one source makes as many places in a pool as machines stand behind one address [server-credentials-places-5]", async () => {
  const { places, made } = countedPlaces();
  let now = 0;
  const credentials = new AccessControl({
    mode: "insecure",
    tokens: undefined,
    places,
    clock: { ...systemClock, now: () => now },
    log: silentLogger,
  });
  const ask = (pool: string, requester: string) => credentials.makePlace(pool, requester, insecurely(requester));
  for (let index = 0; index < 645; index += 1) await ask("worker", "192.0.2.1");
  expect(made).toHaveLength(100);
  expect(await ask("worker", "192.0.2.1")).toMatchObject({ status: 503, reason: "TooManyPlaces" });
  // Another pool, another source, and the same one in an hour.
  expect(await ask("infra", "192.0.2.1")).toMatchObject({ verdict: "made" });
  expect(await ask("worker", "192.0.2.2")).toMatchObject({ verdict: "made" });
  for (let index = 0; index < 645; index += 1) await ask("worker", `2001:db8::${index.toString(16)}`);
  expect(made).toHaveLength(202);
  now += placeLifeMs;
  expect(await ask("worker", "192.0.2.1")).toMatchObject({ verdict: "made" });
});

test("without credentials, many addresses together make places of four credentials at most [server-credentials-places-3]", async () => {
  const { places, made } = countedPlaces();
  const credentials = new AccessControl({
    mode: "insecure",
    tokens: undefined,
    places,
    clock: { ...systemClock, now: () => 0 },
    log: silentLogger,
  });
  const ask = (requester: string) => credentials.makePlace("worker", requester, insecurely(requester));
  // One address that asks in vain takes no place from the others.
  for (let index = 0; index < 25_000; index += 1) await ask("192.0.2.1");
  expect(made).toHaveLength(100);
  for (let index = 0; index < 25_000; index += 1) await ask(`2001:db8:${index.toString(16)}::1`);
  expect(made).toHaveLength(20_000);
});

test("answers without a body are measured with one credential for each pool and a while [server-credentials-10]", async () => {
  let now = 0;
  let fails = true;
  const minted: string[] = [];
  const credentials = new AccessControl({
    mode: "insecure",
    tokens: undefined,
    places: {
      mint: (pool) => {
        minted.push(pool);
        return fails
          ? Promise.reject(new Error("no answer"))
          : Promise.resolve({ id: "JTI=1", token: `${pool}.${minted.length}` });
      },
      add: () => Promise.resolve(),
    },
    clock: { ...systemClock, now: () => now },
    log: silentLogger,
  });
  const ask = (pool: string) => Promise.all(Array.from({ length: 50 }, () => credentials.sampleCredential(pool)));
  expect(new Set(await ask("worker"))).toEqual(new Set([expect.objectContaining({ reason: "PlaceNotStored" })]));
  expect(minted).toHaveLength(1);
  fails = false;
  now += 1001;
  expect(new Set([...(await ask("worker")), ...(await ask("worker"))])).toEqual(new Set(["worker.2"]));
  expect(await ask("infra")).toContain("infra.3");
  now += placeLifeMs;
  expect(await ask("worker")).toContain("worker.4");
  expect(minted).toHaveLength(4);
});
