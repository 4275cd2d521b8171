import { ignitionVersionOf } from "../core/join/boot-program.ts";
import { negotiateVersion } from "../core/join/negotiate-version.ts";
import type { ServedVersion } from "../ignition/convert-ignition.ts";
import type { Clock } from "../ports/clock.ts";
import { type ConfigAnswer, type ConfigHandler, type ConfigRequest, lengthOf } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";
import type { ResponseCache, PreparedBody } from "./response-cache.ts";
import { type AccessRefusal, type Admitted, type AccessControl, useOf } from "./credentials.ts";
import type { Limits } from "./limits.ts";

/** The result of one request, for metrics, log and journal. It contains no secrets. */
export interface RequestOutcome {
  readonly is: "served" | "notModified" | "described" | "refused" | "broken" | "health";
  readonly status: number;
  readonly reason: string;
  /** Address of the client. */
  readonly requester: string;
  /** The requested pool; empty if the request names none. */
  readonly pool: string;
  readonly config: string;
  readonly version: string;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** How the client was authenticated. */
  readonly by: string;
  /** The machine that the client is, as its token says; empty if it says none. */
  readonly node: string;
  /** The version of Ignition that asks, as the request says; absent if it says none. */
  readonly ignition?: string;
}

export interface AnswerRequestOptions {
  readonly answers: ResponseCache;
  readonly credentials: AccessControl;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Logger;
  /** What keeps the server from serving; empty: nothing. Visible to every client. */
  readonly unready: () => readonly string[];
  /**
   * Problems that keep single pools from being served, with the number of affected pools; the server is unready only if
   * all are affected.
   */
  readonly troubles: () => readonly string[];
  readonly onOutcome: (outcome: RequestOutcome) => void;
}

type Route = { readonly to: "config"; readonly pool: string } | { readonly to: "alive" | "ready" | "nowhere" };

const poolName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const longestTarget = 2048;
const methods = "GET, HEAD";
/**
 * Ignition retries after 5xx only, and gives up on lower error codes (coreos/ignition docs/operator-notes.md): never
 * answer 429 for a temporary problem.
 */
const retrySeconds = 5;

/** The route of a target: the exact path, not a path that merely ends with it. */
export function routeOf(target: string): Route {
  const path = target.length > longestTarget ? "" : (target.split("?", 1)[0] ?? "");
  if (path === "/healthz") return { to: "alive" };
  if (path === "/readyz") return { to: "ready" };
  const [, segment] = /^\/config\/([^/]+)\/?$/.exec(path) ?? [];
  if (segment === undefined) return { to: "nowhere" };
  let pool: string;
  try {
    pool = decodeURIComponent(segment);
  } catch {
    return { to: "nowhere" };
  }
  return poolName.test(pool) && !pool.includes("..") ? { to: "config", pool } : { to: "nowhere" };
}

/** Whether a client takes gzip: https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3 */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  const qualities = new Map(
    (acceptEncoding ?? "").split(",").map((entry) => {
      const [coding = "", ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
      const quality = Number(parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? 1);
      return [coding, Number.isNaN(quality) ? 0 : quality] as const;
    }),
  );
  return (qualities.get("gzip") ?? qualities.get("x-gzip") ?? qualities.get("*") ?? 0) > 0;
}

/** Tags are compared weakly: https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2 */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, "");
  return (
    ifNoneMatch !== undefined &&
    (ifNoneMatch.trim() === "*" || ifNoneMatch.split(",").some((one) => opaque(one) === opaque(etag)))
  );
}

function problem(
  status: number,
  reason: string,
  message: string,
  more: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly facts?: Readonly<Record<string, unknown>>;
  } = {},
): ConfigAnswer {
  const body = Buffer.from(`${JSON.stringify({ error: { reason, message, ...more.facts } })}\n`);
  return {
    status,
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      ...more.headers,
    },
    body,
  };
}

const withRetry = { headers: { "retry-after": String(retrySeconds) } };

function denied({ status, reason, message }: AccessRefusal): ConfigAnswer {
  if (status === 503) return problem(status, reason, message, withRetry);
  return problem(status, reason, message, status === 401 ? { headers: { "www-authenticate": "Bearer" } } : {});
}

/** A refusal and its reason. */
interface Refused {
  readonly is: "refused";
  readonly answer: ConfigAnswer;
  readonly reason: string;
  readonly config?: string;
}
interface Found {
  readonly is: "found";
  readonly representation: PreparedBody;
  readonly version: ServedVersion;
  readonly config: string;
  readonly admitted: Admitted;
}

const refusal = (answer: ConfigAnswer, reason: string, config?: string): Refused => ({
  is: "refused",
  answer,
  reason,
  ...(config === undefined ? {} : { config }),
});

type OutcomeOf = (outcome: Partial<RequestOutcome> & Pick<RequestOutcome, "is" | "status" | "reason">) => void;

/** Answers requests for configurations: authenticates the client, finds the configuration, and chooses its form. */
export function answerRequest(options: AnswerRequestOptions): ConfigHandler {
  const { clock, log, onOutcome } = options;
  const readiness = sharedReadiness(options);
  return async (request) => {
    const began = clock.monotonic();
    const route = routeOf(request.target);
    const pool = route.to === "config" ? route.pool : "";
    const report: OutcomeOf = (outcome) =>
      onOutcome({
        requester: request.from,
        pool,
        config: "",
        version: "",
        sizeBytes: 0,
        by: "",
        node: "",
        ...outcome,
        durationMs: Math.max(0, Math.round(clock.monotonic() - began)),
      });
    const refuse = (answer: ConfigAnswer, reason: string) => {
      report({ is: "refused", status: answer.status, reason });
      return request.method === "HEAD" ? withoutBody(answer) : answer;
    };
    if (request.method !== "GET" && request.method !== "HEAD")
      return refuse(
        problem(405, "MethodNotAllowed", `this is asked for with ${methods}`, { headers: { allow: methods } }),
        "MethodNotAllowed",
      );
    switch (route.to) {
      case "nowhere":
        return refuse(problem(404, "NotFound", "there is nothing here"), "NotFound");
      case "alive":
        report({ is: "health", status: 200, reason: "Alive" });
        return { status: 200, headers: { "cache-control": "no-store", "content-length": "0" } };
      case "ready": {
        const answer = readiness();
        report({ is: "health", status: answer.status, reason: answer.status === 200 ? "Ready" : "NotReady" });
        return request.method === "HEAD" ? withoutBody(answer) : answer;
      }
      case "config":
        try {
          const answer = await answerConfig(options, request, route.pool, report);
          return request.method === "HEAD" ? withoutBody(answer) : answer;
        } catch (error) {
          log.error({ error, pool }, "a request could not be answered");
          return refuse(problem(500, "Failed", "the request could not be answered", withRetry), "Failed");
        }
    }
  };
}

/** How long one look that finds the server ready answers everybody who asks. */
const readinessMs = 1000;

/**
 * Whoever asks for the readiness of a ready server, and however often, costs one look a second. No such request is refused: a prober that
 * is refused takes the server for broken, and it may share its address with the one who asks too often.
 */
function sharedReadiness(options: AnswerRequestOptions): () => ConfigAnswer {
  let last: { readonly at: number; readonly answer: ConfigAnswer } | undefined;
  return () => {
    const now = options.clock.monotonic();
    if (last !== undefined && now - last.at < readinessMs) return last.answer;
    const answer = readinessOf(options);
    // A server that is not ready has little else to do, and its probers wait for a change.
    last = answer.status === 200 ? { at: now, answer } : undefined;
    return answer;
  };
}

function readinessOf({ unready, troubles, credentials }: AnswerRequestOptions): ConfigAnswer {
  const missing = unready();
  const status = missing.length === 0 ? 200 : 503;
  const body = Buffer.from(
    `${JSON.stringify({ ready: status === 200, access: credentials.mode, missing, pools: troubles() })}\n`,
  );
  return {
    status,
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      ...(status === 200 ? {} : withRetry.headers),
    },
    body,
  };
}

/** Holds the request against the limits, and counts it as under way until its answer has ended. */
async function answerConfig(
  options: AnswerRequestOptions,
  request: ConfigRequest,
  pool: string,
  report: OutcomeOf,
): Promise<ConfigAnswer> {
  const { limits, credentials } = options;
  const wait = limits.take(request.from);
  const hasCredential =
    request.headers["authorization"] !== undefined || request.client !== undefined || credentials.mode === "insecure";
  const end = wait > 0 ? undefined : limits.begin(request.from);
  if (end === undefined) {
    const status = hasCredential || wait === 0 ? 503 : 429;
    const reason = wait > 0 ? "TooManyRequests" : "TooManyAnswers";
    report({ is: "refused", status, reason });
    return problem(status, reason, wait > 0 ? "this source asks too often" : "too many answers are under way", {
      headers: { "retry-after": String(Math.max(wait, 1)) },
    });
  }
  try {
    return await answerWithin(options, request, pool, report, end);
  } catch (error) {
    end();
    throw error;
  }
}

/** Calls `end` when the answer has ended; a rejection leaves that to the caller. */
async function answerWithin(
  options: AnswerRequestOptions,
  request: ConfigRequest,
  pool: string,
  report: OutcomeOf,
  end: () => void,
): Promise<ConfigAnswer> {
  const { credentials } = options;
  const found = await findConfig(options, request, pool);
  if (found.is === "refused") {
    report({ is: "refused", status: found.answer.status, reason: found.reason, config: found.config ?? "" });
    end();
    return found.answer;
  }
  const { representation, version, admitted } = found;
  const use = useOf(admitted);
  const node = admitted.by === "token" ? (admitted.machine.node ?? "") : "";
  const ignition = ignitionVersionOf(request.headers["user-agent"]);
  const facts = {
    config: found.config,
    version,
    by: admitted.by,
    node,
    ...(ignition === undefined ? {} : { ignition }),
  };
  if (matches(request.headers["if-none-match"], representation.etag)) {
    report({ is: "notModified", status: 304, reason: "NotModified", ...facts });
    end();
    const { "content-type": _, "content-encoding": __, ...headers } = representation.headers;
    return { status: 304, headers };
  }
  const refuseFound = (refused: AccessRefusal): ConfigAnswer => {
    report({ is: "refused", status: refused.status, reason: refused.reason, config: found.config });
    end();
    return denied(refused);
  };
  if (request.method === "HEAD") {
    const sample = await credentials.sampleCredential(pool);
    if (typeof sample === "object") return refuseFound(sample);
    report({ is: "described", status: 200, reason: "Described", ...facts });
    end();
    const length = lengthOf(representation.bodyWith(sample));
    return { status: 200, headers: { ...representation.headers, "content-length": String(length) } };
  }
  if (use !== undefined) {
    const booked = await credentials.book(use);
    if (booked !== "booked") return refuseFound(booked);
  }
  const place = await credentials.makePlace(pool, request.from, admitted);
  if (place?.verdict === "refused") {
    if (use !== undefined) credentials.giveBack(use);
    return refuseFound(place);
  }
  const body = representation.bodyWith(place?.token);
  return {
    status: 200,
    headers: representation.headers,
    body,
    onEnd(how) {
      end();
      // A client that breaks off late may have read everything: only an answer that was never begun was not used.
      if (how === "unsent" && use !== undefined) credentials.giveBack(use);
      else if (how === "unsent" && place !== undefined) credentials.keepPlace(place, pool, request.from);
      report({
        is: how === "whole" ? "served" : "broken",
        status: 200,
        reason: how === "whole" ? "Served" : "Broken",
        sizeBytes: lengthOf(body),
        ...facts,
      });
    },
  };
}

async function findConfig(
  { answers, credentials }: AnswerRequestOptions,
  request: ConfigRequest,
  pool: string,
): Promise<Refused | Found> {
  const { headers, from, client } = request;
  const admission = await credentials.admit(pool, {
    authorization: headers["authorization"],
    client,
    requester: from,
  });
  if (admission.verdict === "refused") return refusal(denied(admission), admission.reason);
  const negotiated = negotiateVersion(headers["accept"]);
  if (negotiated.verdict === "refused")
    return refusal(
      problem(400, "UnsupportedVersion", `Ignition ${negotiated.asked} is not served`, {
        facts: { asked: negotiated.asked, offered: negotiated.offered },
      }),
      "UnsupportedVersion",
    );
  const { version } = negotiated;
  const answer = await answers.of(pool, version);
  switch (answer.verdict) {
    case "absent":
      return refusal(problem(404, "UnknownPool", `there is no pool ${pool}`, { facts: { pool } }), "UnknownPool");
    case "notReady":
      return refusal(problem(503, answer.reason, answer.message, withRetry), answer.reason);
    case "cannotSay":
      return fieldWouldBeLost(answer, version);
    case "invalid": {
      const message = `the configuration ${answer.config} cannot be served: ${answer.problem}`;
      return refusal(problem(503, "CannotRender", message, withRetry), "CannotRender", answer.config);
    }
    case "answer":
      return {
        is: "found",
        representation: takesGzip(headers["accept-encoding"]) ? answer.gzip : answer.identity,
        version,
        config: answer.config,
        admitted: admission,
      };
  }
}

/** The configuration has fields that the requested version of Ignition does not have. */
function fieldWouldBeLost(
  answer: Extract<Awaited<ReturnType<ResponseCache["of"]>>, { verdict: "cannotSay" }>,
  version: ServedVersion,
): Refused {
  const [first] = answer.losses;
  const lowest = answer.losses
    .map(({ lowestVersion }) => lowestVersion)
    .filter((one) => one !== undefined)
    .toSorted()
    .at(-1);
  const facts = {
    version,
    fields: answer.losses.slice(0, 20),
    ...(lowest === undefined ? {} : { lowestVersion: lowest }),
  };
  const message = `Ignition ${version} cannot say ${first?.path ?? "what the configuration says"}`;
  return refusal(problem(400, "FieldWouldBeLost", message, { facts }), "FieldWouldBeLost", answer.config);
}

const withoutBody = ({ body, headers, ...answer }: ConfigAnswer): ConfigAnswer => ({
  ...answer,
  headers: body === undefined ? headers : { ...headers, "content-length": String(lengthOf(body)) },
});
