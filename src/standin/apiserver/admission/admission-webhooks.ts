import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Random } from "../../../ports/random.ts";
import { asMatched, describeRequest, selectorsMatch } from "./admission-match.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import { decodeBase64Text } from "../http/base64url.ts";
import { problemOfJson } from "../http/request-body.ts";
import { inVersion } from "../schema/event-conversion.ts";
import type { Catalog } from "../schema/kinds/catalog.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import {
  compileAdmissionPolicy,
  policyRequest,
  type CompiledPolicy,
  type PolicyRequest,
} from "../schema/validation/cel-policies.ts";
import type { KubeObject, Served } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { jsonPatch } from "../schema/merge/patches.ts";
import { internalError, Refusal, type StatusCause } from "../schema/status.ts";
import type { Exchange } from "../access/exchange.ts";

/** Posts an AdmissionReview. Rejects when there is no answer. */
export type WebhookCaller = (
  call: {
    readonly url: string;
    /** PEM; absent: the system's trust. */ readonly ca: string | undefined;
    readonly body: string;
  },
  signal: AbortSignal,
) => Promise<{ readonly status: number; readonly body: string }>;

export interface WebhookOptions {
  readonly live: LiveObjects;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly call: WebhookCaller | undefined;
}

interface Hook {
  readonly name: string;
  readonly url: string | undefined;
  readonly ca: string | undefined;
  readonly rules: unknown;
  readonly selectors: Readonly<Record<string, unknown>>;
  readonly failurePolicy: "Fail" | "Ignore";
  readonly timeoutSeconds: number;
  readonly conditions: CompiledPolicy | "none" | "broken";
}

/** Webhooks must not block their own repair. */
const exemptGroup = "admissionregistration.k8s.io";
const defaultTimeoutSeconds = 10;

/**
 * Mutating and validating webhooks that are named by URL. Their configurations are read when they change, not with each
 * request.
 */
export function admissionWebhooks(options: WebhookOptions): AdmissionPlugin {
  const mutating = hooksOf(options, "mutatingwebhookconfigurations.admissionregistration.k8s.io");
  const validating = hooksOf(options, "validatingwebhookconfigurations.admissionregistration.k8s.io");
  return {
    async mutate(request, exchange) {
      let { object } = request;
      const { apiVersion } = request.served;
      for (const { hook, matched } of concerned(mutating(), request, exchange, options)) {
        const shown = object === undefined ? undefined : inVersion(object, matched.served.apiVersion);
        const answer = await ask(hook, { ...matched, object: shown }, exchange, options);
        if (answer instanceof Refusal) return answer;
        if (answer !== undefined) object = inVersion(answer, apiVersion);
      }
      return object;
    },
    async validate(request, exchange) {
      const hooks = concerned(validating(), request, exchange, options);
      if (hooks.length === 0) return undefined;
      const answers = await Promise.all(hooks.map(({ hook, matched }) => ask(hook, matched, exchange, options)));
      return answers.find((answer) => answer instanceof Refusal);
    },
  };
}

/** The hooks of all configurations of a kind, in order of name. */
function hooksOf({ live }: WebhookOptions, resource: string): () => readonly Hook[] {
  let hooks: readonly Hook[] | undefined;
  live.subscribe({ resource }, () => {
    hooks = undefined;
  });
  return () =>
    (hooks ??= live
      .list(resource)
      .flatMap(({ object }) =>
        Array.isArray(object["webhooks"]) ? object["webhooks"].filter(isObject).map(readHook) : [],
      ));
}

function readHook(hook: Record<string, unknown>): Hook {
  const client = isObject(hook["clientConfig"]) ? hook["clientConfig"] : {};
  const bundle = client["caBundle"];
  const timeout = hook["timeoutSeconds"];
  let conditions: Hook["conditions"] = "none";
  if (Array.isArray(hook["matchConditions"]) && hook["matchConditions"].length > 0) {
    const compiled = compileAdmissionPolicy({
      matchConditions: hook["matchConditions"],
      validations: [],
      failurePolicy: hook["failurePolicy"],
    });
    conditions = compiled.verdict === "compiled" ? compiled.policy : "broken";
  }
  return {
    name: String(hook["name"]),
    url: typeof client["url"] === "string" ? client["url"] : undefined,
    ca: typeof bundle === "string" && bundle !== "" ? decodeBase64Text(bundle) : undefined,
    rules: hook["rules"],
    selectors: hook,
    failurePolicy: hook["failurePolicy"] === "Ignore" ? "Ignore" : "Fail",
    timeoutSeconds: typeof timeout === "number" ? timeout : defaultTimeoutSeconds,
    conditions,
  };
}

function concerned(
  hooks: readonly Hook[],
  request: AdmissionRequest,
  { user }: Exchange,
  { live, catalog }: WebhookOptions,
): readonly { readonly hook: Hook; readonly matched: AdmissionRequest }[] {
  if (hooks.length === 0 || request.served.definition.group === exemptGroup) return [];
  const asked = new Map<Served, PolicyRequest>();
  return hooks.flatMap((hook) => {
    const matched = asMatched(hook.rules, hook.selectors["matchPolicy"], request, catalog);
    if (matched === undefined || !selectorsMatch(hook.selectors, request, live)) return [];
    if (hook.conditions === "none" || hook.conditions === "broken") return [{ hook, matched }];
    const read =
      asked.get(matched.served) ??
      policyRequest({
        object: matched.object,
        oldObject: matched.before,
        request: describeRequest(matched, user, ""),
        namespaceObject: null,
      });
    asked.set(matched.served, read);
    return hook.conditions.decide(read, null).verdict === "skipped" ? [] : [{ hook, matched }];
  });
}

async function ask(
  hook: Hook,
  request: AdmissionRequest,
  exchange: Exchange,
  { clock, random, log, call }: WebhookOptions,
): Promise<Refusal | KubeObject | undefined> {
  const uid = random.uuid();
  const review = {
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: {
      ...describeRequest(request, exchange.user, uid),
      object: request.object ?? null,
      oldObject: request.before ?? null,
    },
  };
  const failed = (why: string): Refusal | undefined => {
    log.warn({ webhook: hook.name, why, failurePolicy: hook.failurePolicy }, "admission webhook failed");
    return hook.failurePolicy === "Ignore"
      ? undefined
      : internalError(`failed calling webhook ${JSON.stringify(hook.name)}: failed to call webhook: ${why}`);
  };
  if (hook.conditions === "broken") return failed("its matchConditions do not compile");
  const { url } = hook;
  if (url === undefined || call === undefined) return failed("only webhooks with clientConfig.url can be reached");

  const deadline = clock.deadline(hook.timeoutSeconds * 1_000, exchange.signal);
  let answer: { readonly status: number; readonly body: string };
  try {
    answer = await call(
      {
        url: `${url}${url.includes("?") ? "&" : "?"}timeout=${hook.timeoutSeconds}s`,
        ca: hook.ca,
        body: JSON.stringify(review),
      },
      deadline.signal,
    );
  } catch (error) {
    const why = deadline.signal.aborted
      ? "context deadline exceeded"
      : error instanceof Error
        ? error.message
        : String(error);
    return failed(`Post ${JSON.stringify(url)}: ${why}`);
  } finally {
    deadline.cancel();
  }
  // The rest is the user's work again.
  await exchange.turn();
  if (answer.status !== 200) return failed(`the server answered with status ${answer.status}`);
  const response = readResponse(answer.body, uid);
  if (typeof response === "string") return failed(response);

  for (const warning of Array.isArray(response["warnings"]) ? response["warnings"] : [])
    exchange.warnings.push(String(warning));
  if (response["allowed"] !== true) return denial(hook.name, response["status"]);
  if (typeof response["patch"] !== "string" || request.object === undefined) return undefined;
  const patch = decodeBase64Text(response["patch"]);
  try {
    const patched = jsonPatch(request.object, JSON.parse(patch ?? ""));
    if (patched.verdict === "refused" || !isObject(patched.object)) return failed("its patch cannot be applied");
    const problem = problemOfJson(patched.object, request.object);
    if (problem !== undefined) return failed(`its patch makes an object that cannot be stored: ${problem}`);
    return patched.object as KubeObject;
  } catch {
    return failed("its patch is no JSON");
  }
}

function readResponse(body: string, uid: string): Readonly<Record<string, unknown>> | string {
  try {
    const review: unknown = JSON.parse(body);
    const response = isObject(review) ? review["response"] : undefined;
    if (!isObject(response)) return "webhook response is no AdmissionReview";
    if (response["uid"] !== uid)
      return `expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response["uid"])}`;
    return response;
  } catch {
    return "webhook response is no JSON";
  }
}

function denial(name: string, status: unknown): Refusal {
  const said = isObject(status) ? status : {};
  const message = typeof said["message"] === "string" ? said["message"] : "";
  const reason = typeof said["reason"] === "string" && said["reason"] !== "" ? said["reason"] : "";
  const code = typeof said["code"] === "number" && said["code"] >= 400 && said["code"] < 600 ? said["code"] : 400;
  const tail =
    message !== ""
      ? `denied the request: ${message}`
      : reason !== ""
        ? `denied the request: ${reason}`
        : "denied the request without explanation";
  const given = isObject(said["details"]) ? said["details"] : undefined;
  const text = (field: "name" | "group" | "kind") =>
    typeof given?.[field] === "string" && given[field] !== "" ? { [field]: given[field] } : {};
  const causes = Array.isArray(given?.["causes"]) ? { causes: given["causes"].filter(isObject) as StatusCause[] } : {};
  return new Refusal(
    code,
    reason,
    `admission webhook ${JSON.stringify(name)} ${tail}`,
    given === undefined ? undefined : { ...text("name"), ...text("group"), ...text("kind"), ...causes },
  );
}
