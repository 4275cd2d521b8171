import { poolOrganizationPrefix } from "../api/names.ts";
import { type ProvisioningToken, maxLastUsedBy } from "../api/kinds/provisioning-token.ts";
import { timestampOf } from "../api/schema/object.ts";
import { maxMachineAddresses } from "../api/kinds/node-binding.ts";
import { sourceGroup } from "../core/join/source-group.ts";
import { placeLifeMs } from "../core/join/judge-csr.ts";
import { type TokenRefusal, bearerOf, judgeToken, parseToken } from "../core/join/provisioning-token.ts";
import type { Clock } from "../ports/clock.ts";
import type { ClientIdentity } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";
import type { PlaceStore, TokenStore } from "./config-source.ts";

/** `insecure`: everybody is served, for machines that were made before there were credentials. */
export type AccessMode = "required" | "insecure";

/** One use of a token that is to be booked, or was. */
export interface TokenUse {
  /** The token's name. */
  readonly id: string;
  /** The whole of it. */
  readonly presented: string;
  readonly pool: string;
  readonly requester: string;
}

export interface AccessRefusal {
  readonly verdict: "refused";
  readonly status: 401 | 403 | 503;
  readonly reason: string;
  readonly message: string;
}

export type Admitted =
  /** `machine`: what the token says of the only machine that may join with it. */
  | {
      readonly verdict: "admitted";
      readonly by: "token";
      readonly use: TokenUse;
      readonly machine: Pick<ProvisioningToken["spec"], "node" | "addresses">;
    }
  /** `credential`: what all requests of the same caller share. */
  | { readonly verdict: "admitted"; readonly by: "certificate" | "insecure"; readonly credential: string };
export type AccessVerdict = Admitted | AccessRefusal;

/** The place of one machine, with the credential that its answer holds. */
export interface MadePlace {
  readonly verdict: "made";
  readonly token: string;
}

/** What became of a use whose answer was never begun. */
export const givenBack = ["Returned", "Refused"] as const;
export type GivenBack = (typeof givenBack)[number];

export interface AccessControlOptions {
  readonly mode: AccessMode;
  /** Absent: tokens open nothing here. */
  readonly tokens: TokenStore | undefined;
  /** Absent: there is no cluster yet that a machine could join by a certificate. */
  readonly places: PlaceStore | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onGivenBack?: (outcome: GivenBack) => void;
}

/** Conflicts of one write with other servers in a row. */
const mostConflicts = 20;
/** Uses of one token that are given back by one server: a connection that breaks again and again is no accident. */
const mostGivenBack = 10;
/**
 * Places that one credential makes with one server while they last: more machines than join at once, and fewer objects
 * than harm the API server. Uses of a token need not be limited, and those of a certificate are not.
 */
const mostPlaces = 5000;
/**
 * Places that one source makes in one pool without a credential while they last: a machine needs one, and a hundred
 * machines may stand behind one address. Others of them wait.
 */
const mostInsecurePlacesOfSource = 100;
/** Places of all callers without credentials together: anybody may have many addresses. */
const mostInsecurePlaces = 4 * mostPlaces;
/** How long nobody asks again for a credential to be measured that could not be made. */
const sampleFailureMs = 1000;
/** Tokens that are remembered as they were written last. */
const mostFresh = 1000;

/** The same answer for every cause: guessing reveals nothing. */
const unknown: AccessRefusal = {
  verdict: "refused",
  status: 401,
  reason: "Unauthorized",
  message: "a credential is needed: a provisioning token as a bearer token, or a client certificate",
};
const busy: AccessRefusal = {
  verdict: "refused",
  status: 503,
  reason: "TokenNotBooked",
  message: "the use of the token cannot be stored at the moment",
};

const placeNotStored: AccessRefusal = {
  verdict: "refused",
  status: 503,
  reason: "PlaceNotStored",
  message: "the place of the machine cannot be stored at the moment",
};

/** Name of a refusal in answers and metrics. */
const wordOf: Readonly<Record<TokenRefusal, string>> = {
  NoToken: "Unauthorized",
  WrongToken: "Unauthorized",
  Expired: "TokenExpired",
  UsedUp: "TokenUsedUp",
  WrongPool: "WrongPool",
};

interface Waiting {
  readonly use: TokenUse;
  readonly resolve: (outcome: "booked" | AccessRefusal) => void;
}

/** Pending writes of one token: uses, and uses taken back. */
interface WriteBatch {
  readonly waiting: Waiting[];
  /** How many; those that are being written count until they are. */
  returned: number;
  isOpen: boolean;
}

/** Decides who gets which configuration. A use of a token is stored before the first byte of the answer is sent. */
export class AccessControl {
  readonly #options: AccessControlOptions;
  readonly #writeBatches = new Map<string, WriteBatch>();
  /** Tokens as this server wrote them last: watches bring that later. */
  readonly #fresh = new Map<string, ProvisioningToken>();
  readonly #givenBack = new Map<string, number>();
  /** Credential → the places that it made since `from`. */
  readonly #places = new Map<string, { readonly from: number; count: number }>();
  /** Pool → a credential that was made to be measured, and until when it stands for others. */
  readonly #samples = new Map<string, { readonly sample: Promise<string | undefined>; readonly until: number }>();
  /** Pool and requester without a token → the place that was made for an answer that was never begun. */
  readonly #unused = new Map<string, { readonly place: MadePlace; readonly until: number }>();

  constructor(options: AccessControlOptions) {
    this.#options = options;
  }

  get mode(): AccessMode {
    return this.#options.mode;
  }

  /** Whether the caller may have the configuration of a pool. Records nothing yet. */
  async admit(
    pool: string,
    {
      authorization,
      client,
      requester,
    }: {
      readonly authorization: string | undefined;
      readonly client: ClientIdentity | undefined;
      readonly requester: string;
    },
  ): Promise<AccessVerdict> {
    if (this.#options.mode === "insecure") return insecurely(requester);
    const own = (client?.organizations ?? []).filter((organization) => organization.startsWith(poolOrganizationPrefix));
    if (own.includes(`${poolOrganizationPrefix}${pool}`))
      return { verdict: "admitted", by: "certificate", credential: `certificate ${client?.commonName ?? ""}` };
    const presented = bearerOf(authorization) ?? "";
    const id = parseToken(presented)?.id;
    const { tokens } = this.#options;
    if (id === undefined || tokens === undefined)
      return own.length === 0
        ? unknown
        : { verdict: "refused", status: 403, reason: "WrongPool", message: "the certificate is for another pool" };
    const use: TokenUse = { id, presented, pool, requester };
    let known: ProvisioningToken | undefined;
    try {
      known = this.#known(id) ?? (await tokens.lookUp(id));
      const first = this.#judge(use, known, this.#usesOf(id, known));
      if (first === "allowed") return { verdict: "admitted", by: "token", use, machine: machineOf(known) };
      if (first.reason !== wordOf.UsedUp) return first;
      // A use may have been given back on another server: do not refuse on stale data.
      known = await tokens.reread(id);
    } catch (error) {
      this.#options.log.warn({ error }, "cannot look at a provisioning token");
      return busy;
    }
    const last = this.#judge(use, known, this.#usesOf(id, known));
    return last === "allowed" ? { verdict: "admitted", by: "token", use, machine: machineOf(known) } : last;
  }

  /** Stores a use. Simultaneous uses are stored together; each use over the limit is refused. */
  book(use: TokenUse): Promise<"booked" | AccessRefusal> {
    return new Promise((resolve) => {
      const batch = this.#batch(use.id);
      batch.waiting.push({ use, resolve });
      this.#open(use.id, batch);
    });
  }

  /**
   * Makes room in the pool for one new node, before its machine gets the first byte, with the credential by which that machine
   * will ask for its certificate. No other answer holds it: a request that comes with it is of that machine.
   *
   * @returns `undefined` where there are no places, or why nothing may be served.
   */
  async makePlace(pool: string, requester: string, admitted: Admitted): Promise<MadePlace | undefined | AccessRefusal> {
    const { places, clock, log } = this.#options;
    const use = useOf(admitted);
    if (places === undefined) return undefined;
    const unused = use === undefined ? this.#takeUnused(pool, requester) : undefined;
    if (unused !== undefined) return unused;
    if (!this.#mayMakePlace(pool, admitted))
      return {
        verdict: "refused",
        status: 503,
        reason: "TooManyPlaces",
        message: `this caller was given all configurations that it gets within ${placeLifeMs / 60_000} minutes: try again later`,
      };
    // As it was admitted: the watch may not show the token yet, or not any more, and its place is for its machine alone.
    const { node, addresses: named = [] } = admitted.by === "token" ? admitted.machine : {};
    const addresses = [...new Set([requester, ...named])].slice(0, maxMachineAddresses);
    try {
      const credential = await places.mint(pool);
      const spec = {
        pool,
        addresses,
        credential: credential.id,
        expiresAt: timestampOf(clock.now() + placeLifeMs),
        ...(use === undefined ? {} : { token: use.id }),
        ...(node === undefined ? {} : { node }),
      };
      await places.add(spec);
      return { verdict: "made", token: credential.token };
    } catch (error) {
      log.warn({ error, pool }, "a place for a machine that joins cannot be made");
      return placeNotStored;
    }
  }

  /**
   * A credential without a place, which lets nobody in: for the length of an answer whose body is not asked for. One for
   * each pool is made and kept a while, because anybody who may ask may ask often.
   */
  async sampleCredential(pool: string): Promise<string | undefined | AccessRefusal> {
    const { clock, log } = this.#options;
    try {
      return await this.#sampleOf(pool);
    } catch (error) {
      const known = this.#samples.get(pool);
      // All that wait for the same failure say so together.
      if (known !== undefined && known.until > clock.now() + sampleFailureMs) {
        this.#samples.set(pool, { ...known, until: clock.now() + sampleFailureMs });
        log.warn({ error, pool }, "no credential for a machine that joins");
      }
      return placeNotStored;
    }
  }

  #sampleOf(pool: string): Promise<string | undefined> {
    const { places, clock } = this.#options;
    const known = this.#samples.get(pool);
    if (known !== undefined && known.until > clock.now()) return known.sample;
    const sample = (async () => (await places?.mint(pool))?.token)();
    this.#samples.delete(pool);
    this.#samples.set(pool, { sample, until: clock.now() + placeLifeMs / 2 });
    forgetOldest(this.#samples, mostFresh);
    return sample;
  }

  #mayMakePlace(pool: string, admitted: Admitted): boolean {
    if (admitted.by === "token") return this.#countPlace(`token ${admitted.use.id}`, mostPlaces);
    if (admitted.by === "certificate") return this.#countPlace(admitted.credential, mostPlaces);
    // What one address asks in vain is not taken from the others.
    if (!this.#countPlace(`${admitted.credential} ${pool}`, mostInsecurePlacesOfSource)) return false;
    return this.#countPlace(admitted.by, mostInsecurePlaces);
  }

  #countPlace(credential: string, most: number): boolean {
    const now = this.#options.clock.now();
    const known = this.#places.get(credential);
    const made = known !== undefined && now - known.from < placeLifeMs ? known : { from: now, count: 0 };
    const isWithin = made.count < most;
    if (isWithin) made.count += 1;
    // One that is refused is remembered, too: others must not push it out.
    this.#places.delete(credential);
    this.#places.set(credential, made);
    forgetOldest(this.#places, mostFresh);
    return isWithin;
  }

  /** Keeps a place whose machine was given nothing, for the next request of the same machine without a token. */
  keepPlace(place: MadePlace, pool: string, requester: string): void {
    const key = placeKey(pool, requester);
    this.#unused.delete(key);
    this.#unused.set(key, { place, until: this.#options.clock.now() + placeLifeMs / 2 });
    forgetOldest(this.#unused, mostFresh);
  }

  #takeUnused(pool: string, requester: string): MadePlace | undefined {
    const key = placeKey(pool, requester);
    const unused = this.#unused.get(key);
    this.#unused.delete(key);
    return unused !== undefined && unused.until > this.#options.clock.now() ? unused.place : undefined;
  }

  /**
   * Takes a use back whose answer was never begun. A place that was made for it lets nobody in: no byte of its credential was
   * sent.
   */
  giveBack({ id }: TokenUse): void {
    const before = this.#givenBack.get(id) ?? 0;
    this.#options.onGivenBack?.(before >= mostGivenBack ? "Refused" : "Returned");
    if (before >= mostGivenBack) return;
    this.#givenBack.delete(id);
    this.#givenBack.set(id, before + 1);
    forgetOldest(this.#givenBack, mostFresh);
    const batch = this.#batch(id);
    batch.returned += 1;
    this.#open(id, batch);
  }

  /** Resolves when no writes are pending. */
  async flush(signal: AbortSignal): Promise<void> {
    while (this.#writeBatches.size > 0 && !signal.aborted)
      await this.#options.clock.sleep(20, signal).catch(() => undefined);
  }

  #batch(id: string): WriteBatch {
    const batch = this.#writeBatches.get(id) ?? { waiting: [], returned: 0, isOpen: false };
    this.#writeBatches.set(id, batch);
    return batch;
  }

  #open(id: string, batch: WriteBatch): void {
    if (batch.isOpen) return;
    batch.isOpen = true;
    void this.#serve(id, batch).finally(() => {
      this.#writeBatches.delete(id);
    });
  }

  async #serve(id: string, batch: WriteBatch): Promise<void> {
    while (batch.waiting.length > 0 || batch.returned > 0) {
      const batchOf = batch.waiting.splice(0);
      const { returned } = batch;
      try {
        await this.#write(id, batchOf, returned);
      } catch (error) {
        this.#options.log.warn(
          { error, token: id, uses: batchOf.length, givenBack: returned },
          "uses of a provisioning token are not stored",
        );
        for (const { resolve } of batchOf) resolve(busy);
      }
      batch.returned -= returned;
    }
  }

  async #write(id: string, batchOf: readonly Waiting[], returned: number): Promise<void> {
    const { tokens, clock, log } = this.#options;
    let token = this.#known(id) ?? (await tokens?.lookUp(id));
    for (let conflicts = 0; conflicts <= mostConflicts; conflicts += 1) {
      const before = token?.status;
      let uses = Math.max(0, (before?.uses ?? 0) - returned);
      const taken: Waiting[] = [];
      const refused: (readonly [Waiting, AccessRefusal])[] = [];
      for (const one of batchOf) {
        const verdict = this.#judge(one.use, token, uses);
        if (verdict === "allowed") {
          taken.push(one);
          uses += 1;
        } else refused.push([one, verdict]);
      }
      const isUnchanged = taken.length === 0 && (returned === 0 || token === undefined);
      if (isUnchanged && conflicts > 0) return answerWaiting(refused);
      if (isUnchanged) {
        // The cache may be stale: refuse only by a fresh answer of the API server.
        token = await tokens?.reread(id);
        continue;
      }
      if (token === undefined || tokens === undefined) return answerWaiting(refused);
      const requesters = [...taken.map(({ use }) => use.requester).reverse(), ...(before?.lastUsedBy ?? [])];
      const status = {
        ...before,
        uses,
        ...(taken.length === 0
          ? {}
          : { lastUsedAt: timestampOf(clock.now()), lastUsedBy: [...new Set(requesters)].slice(0, maxLastUsedBy) }),
      };
      const stored = await tokens.store(token, status);
      if (stored === "gone") {
        this.#fresh.delete(id);
        return answerWaiting(batchOf.map((one) => [one, unknown]));
      }
      if (stored === "conflict") {
        this.#fresh.delete(id);
        token = await tokens.reread(id);
        continue;
      }
      this.#fresh.delete(id);
      this.#fresh.set(id, stored);
      forgetOldest(this.#fresh, mostFresh);
      if (returned > 0) log.info({ token: id, givenBack: returned }, "a use was given back: its answer did not arrive");
      for (const { resolve } of taken) resolve("booked");
      return answerWaiting(refused);
    }
    for (const { resolve } of batchOf) resolve(busy);
  }

  /** The newest known version; a token that the watch no longer has was revoked. */
  #known(id: string): ProvisioningToken | undefined {
    const [fresh, watched] = [this.#fresh.get(id), this.#options.tokens?.token(id)];
    if (fresh === undefined || watched === undefined || watched.metadata.uid !== fresh.metadata.uid) return watched;
    return (watched.status?.uses ?? 0) > (fresh.status?.uses ?? 0) ? watched : fresh;
  }

  #usesOf(id: string, token: ProvisioningToken | undefined): number {
    return Math.max(0, (token?.status?.uses ?? 0) - (this.#writeBatches.get(id)?.returned ?? 0));
  }

  #judge({ presented, pool }: TokenUse, token: ProvisioningToken | undefined, uses: number): "allowed" | AccessRefusal {
    const verdict = judgeToken({
      presented,
      pool,
      find: () => token,
      pending: () => uses - (token?.status?.uses ?? 0),
      now: this.#options.clock.now(),
    });
    if (verdict.verdict === "allowed") return "allowed";
    if (!verdict.proven) return unknown;
    return {
      verdict: "refused",
      status: verdict.reason === "WrongPool" ? 403 : 401,
      reason: wordOf[verdict.reason],
      message: verdict.message,
    };
  }
}

const answerWaiting = (refused: readonly (readonly [Waiting, AccessRefusal])[]): void => {
  for (const [{ resolve }, refusal] of refused) resolve(refusal);
};

/** Who is admitted without a credential counts by address. */
export const insecurely = (requester: string): Admitted => ({
  verdict: "admitted",
  by: "insecure",
  credential: `insecure ${sourceGroup(requester)}`,
});

const machineOf = (token: ProvisioningToken | undefined): Pick<ProvisioningToken["spec"], "node" | "addresses"> => ({
  ...(token?.spec.node === undefined ? {} : { node: token.spec.node }),
  ...(token?.spec.addresses === undefined ? {} : { addresses: token.spec.addresses }),
});

/** The use of a token that an answer takes. */
export const useOf = (admitted: Admitted): TokenUse | undefined => (admitted.by === "token" ? admitted.use : undefined);

const placeKey = (pool: string, requester: string) => `${pool} ${requester}`;

function forgetOldest(map: Map<string, unknown>, most: number): void {
  const oldest = map.keys().next();
  if (map.size > most && oldest.done !== true) map.delete(oldest.value);
}
