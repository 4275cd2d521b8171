import { machineTokens, namespace, objects } from "../api/names.ts";
import { givenConfigs, judgeDelivery } from "../core/config/given-configs.ts";
import { poolInRenderedName } from "../core/config/is-rendered.ts";
import { sourceGroup } from "../core/join/source-group.ts";
import { type CallerVerdict, CallerReviews, bearerToken, reviewToken } from "../kube/caller-reviews.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { ConfigAnswer, ConfigHandler } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";
import { takesGzip } from "./answer-request.ts";
import type { MachineStore } from "./config-source.ts";
import { ConfigTexts } from "./config-texts.ts";
import type { Limits } from "./limits.ts";

/** The outcome of one request as one word, which labels the metric. */
export const deliveryReasons = [
  "Delivered",
  "MethodNotAllowed",
  "TooManyRequests",
  "Unauthorized",
  "Forbidden",
  "NoMachine",
  "NotYours",
  "NotFound",
  "Unavailable",
] as const;
export type DeliveryReason = (typeof deliveryReasons)[number];

export interface DeliverConfigOptions {
  readonly kube: KubeClient;
  readonly machines: MachineStore;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onOutcome: (reason: DeliveryReason) => void;
  /** Ends the process. Reads are shared, so that no single request ends them. */
  readonly signal: AbortSignal;
}

/** Callers of one rollout whose tokens are not reviewed twice. */
const mostCallers = 1024;
/** Answers of one machine under way at the same time: one that reads slowly must not take those of all machines. */
const mostAnswersOfNode = 4;
const retrySeconds = 2;
const daemonAccount = `system:serviceaccount:${namespace}:${objects.daemon}`;
/** What the API server says of a token of a pod: k8s.io/apiserver pkg/authentication/serviceaccount (v0.34). */
const claims = {
  name: "authentication.kubernetes.io/node-name",
  uid: "authentication.kubernetes.io/node-uid",
} as const;

const route = /^\/machineconfigs\/([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)$/;
/** Whether a request asks for the configuration of a machine that is in service. */
export const isDelivery = (target: string): boolean => target.startsWith("/machineconfigs/");

/** The Node whose daemon asks. */
interface CallingNode {
  readonly name: string;
  /** `undefined`: the API server names none. */
  readonly uid: string | undefined;
}

/** The means that all requests share. */
interface DeliveryMeans extends DeliverConfigOptions {
  readonly reviews: CallerReviews<CallingNode>;
  readonly texts: ConfigTexts;
  /** Node → its answers under way. */
  readonly underWay: Map<string, number>;
}

interface Delivery {
  readonly reason: DeliveryReason;
  readonly answer: ConfigAnswer;
}

/**
 * Gives daemons the configurations of their own machines. Their accounts cannot read MachineConfigs at all, because
 * RBAC knows no "own", and MachineConfigs hold secrets of every pool. A daemon presents a token that the kubelet of its
 * machine requested for it: its audience is this server, and the API server vouches for the name of the node in it.
 */
export function deliverConfig(options: DeliverConfigOptions): ConfigHandler {
  const { clock, kube, limits, log, onOutcome } = options;
  const reviews = new CallerReviews({
    clock,
    mostVerdicts: mostCallers,
    ask: (token, signal) => nodeOfToken(kube, token, signal),
  });
  const means: DeliveryMeans = { ...options, reviews, texts: new ConfigTexts(options), underWay: new Map() };
  return async (request, signal) => {
    const end = limits.begin(request.from);
    if (end === undefined) {
      onOutcome("TooManyRequests");
      return refusal(503, "TooManyRequests", "too many answers are under way").answer;
    }
    try {
      const { reason, answer } = await answerDelivery(request, means, signal);
      onOutcome(reason);
      const { onEnd } = answer;
      return {
        ...answer,
        onEnd(how) {
          onEnd?.(how);
          end();
        },
      };
    } catch (error) {
      end();
      log.warn({ error }, "a daemon cannot be answered");
      onOutcome("Unavailable");
      return refusal(503, "Unavailable", "the API server cannot be asked").answer;
    }
  };
}

/** Answers a request whose caller proves which node's daemon it is. */
async function answerDelivery(
  request: Parameters<ConfigHandler>[0],
  means: DeliveryMeans,
  signal: AbortSignal,
): Promise<Delivery> {
  const { limits, reviews } = means;
  if (request.method !== "GET") return refusal(405, "MethodNotAllowed", "this is asked for with GET");
  const asked = route.exec(request.target)?.[1];
  if (asked === undefined) return refusal(404, "NotFound", "there is nothing here");
  if (limits.take(request.from) > 0) return refusal(503, "TooManyRequests", "this source asks too often");
  const token = bearerToken(request.headers["authorization"]);
  if (token === undefined) return refusal(401, "Unauthorized", "a token of the machine's daemon is needed");
  const caller = await reviews.verdict(token, sourceGroup(request.from), signal);
  switch (caller.is) {
    case "busy":
      return refusal(503, "TooManyRequests", "too many callers that are not known");
    case "unknownCaller":
      return refusal(401, "Unauthorized", `the token is not good for ${machineTokens.audience}`);
    case "forbidden":
      return refusal(403, "Forbidden", "only the machines' daemons read their configurations here");
    case "allowed":
      return deliver({ ...caller.facts, asked, packs: takesGzip(request.headers["accept-encoding"]) }, means, signal);
  }
}

interface DeliveryRequest extends CallingNode {
  /** Name of the configuration. */
  readonly asked: string;
  readonly packs: boolean;
}

/** Delivers a configuration to a node that may have it. */
async function deliver(request: DeliveryRequest, means: DeliveryMeans, signal: AbortSignal): Promise<Delivery> {
  const { name: node, asked, packs } = request;
  const { log, texts, underWay } = means;
  const judged = await judgeRequest(request, means, signal);
  if (judged.verdict === "refused") {
    log.warn({ node, asked, reason: judged.reason }, "a daemon was refused a configuration");
    return refusal(403, judged.reason, judged.message);
  }
  const text = await texts.of(asked);
  if (text.config === undefined) return refusal(404, "NotFound", `there is no MachineConfig ${asked}`);
  const onEnd = begin(node, underWay);
  if (onEnd === undefined) return refusal(503, "TooManyRequests", `${node} has too many answers under way`);
  log.info({ node, config: asked, because: judged.because }, "a configuration was delivered");
  return {
    reason: "Delivered",
    answer: {
      status: 200,
      headers: {
        "content-type": "application/json",
        "cache-control": "no-store",
        vary: "Accept-Encoding, Authorization",
        "x-content-type-options": "nosniff",
        ...(packs ? { "content-encoding": "gzip" } : {}),
      },
      body: packs ? text.gzip : text.identity,
      onEnd,
    },
  };
}

/** Whether a node may have the configuration that it asks for. */
async function judgeRequest(
  { name: node, uid: nodeUid, asked }: DeliveryRequest,
  { machines, texts }: DeliveryMeans,
  signal: AbortSignal,
): Promise<ReturnType<typeof judgeDelivery>> {
  const machineConfigNode = await machines.machineConfigNode(node, signal);
  const pool =
    machineConfigNode === undefined ? undefined : machines.machineConfigPool(machineConfigNode.spec.pool.name);
  const facts = { node, nodeUid, asked, machineConfigNode, pool };
  const byName = judgeDelivery({ ...facts, config: undefined });
  // The configuration is read only if its owner decides: others' configurations cost nothing to ask for.
  const mayBeOwn =
    byName.verdict === "refused" &&
    byName.reason === "NotYours" &&
    machineConfigNode !== undefined &&
    givenConfigs(machineConfigNode).length === 0 &&
    pool !== undefined &&
    poolInRenderedName(asked) === pool.metadata.name;
  return mayBeOwn ? judgeDelivery({ ...facts, config: (await texts.of(asked)).config }) : byName;
}

/** Counts an answer to a node until it has ended; `undefined`: the node has too many. */
function begin(node: string, underWay: DeliveryMeans["underWay"]): (() => void) | undefined {
  const count = underWay.get(node) ?? 0;
  if (count >= mostAnswersOfNode) return undefined;
  underWay.set(node, count + 1);
  return () => {
    const left = (underWay.get(node) ?? 1) - 1;
    if (left === 0) underWay.delete(node);
    else underWay.set(node, left);
  };
}

/** The node whose daemon a token belongs to. */
async function nodeOfToken(kube: KubeClient, token: string, signal: AbortSignal): Promise<CallerVerdict<CallingNode>> {
  const user = await reviewToken(kube, token, [machineTokens.audience], signal);
  if (user === undefined) return { is: "unknownCaller" };
  const [name, ...more] = user.extra?.[claims.name] ?? [];
  const [uid] = user.extra?.[claims.uid] ?? [];
  return user.username === daemonAccount && name !== undefined && name !== "" && more.length === 0
    ? { is: "allowed", facts: { name, uid } }
    : { is: "forbidden" };
}

function refusal(status: number, reason: DeliveryReason, message: string): Delivery {
  const body = Buffer.from(`${JSON.stringify({ error: { reason, message } })}\n`);
  const headers = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(status === 503 ? { "retry-after": String(retrySeconds) } : {}),
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(status === 405 ? { allow: "GET" } : {}),
  };
  return { reason, answer: { status, headers, body } };
}
