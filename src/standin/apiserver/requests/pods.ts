import type { HttpRequest, HttpResponse } from "../../../ports/http.ts";
import { deleteObject } from "./deletes.ts";
import type { LiveObject, LiveObjects } from "../storage/live-objects.ts";
import { bodyObject } from "../http/request-body.ts";
import { isTrue } from "../http/request-target.ts";
import type { KubeObject, Share } from "../schema/contract.ts";
import { cloneJson, isObject } from "../schema/json-values.ts";
import { compileLabelSelector } from "../schema/selectors.ts";
import type { Engine } from "./engine.ts";
import {
  badRequest,
  conflict,
  internalError,
  jsonResponse,
  notFound,
  Refusal,
  type Status,
  tooManyRequests,
  unforeseen,
} from "../schema/status.ts";
import { type DeleteOptions, readDeleteOptions } from "../http/write-options.ts";
import { modifyObject, type WriteContext } from "./writes.ts";
import { timestamp } from "../schema/timestamp.ts";

/** Where the output of a container is. */
export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly nodeName: string;
  /**
   * The query of the caller, with the container filled in: follow, previous, tailLines, sinceSeconds, timestamps,
   * limitBytes …
   */
  readonly query: URLSearchParams;
  /** Whose share of what is read at once it takes. */
  readonly reader: Share;
}
export type LogSource = (request: LogRequest, signal: AbortSignal) => Promise<HttpResponse>;

const done: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
const raceAttempts = 12;
/**
 * More pods in disruption than this and a budget counts as broken: `k8s.io/kubernetes
 * pkg/registry/core/pod/storage/eviction.go (master)`.
 */
const disruptedPodsLimit = 2_000;
const wouldViolate = "Cannot evict pod as it would violate the pod's disruption budget.";

/** What admission says of the creation of a subresource. */
function objectionTo(
  subresource: string,
  object: KubeObject,
  { engine, exchange, served, target }: WriteContext,
  dryRun: boolean,
): Promise<Refusal | undefined> {
  return engine.admission.validate(
    {
      operation: "CREATE",
      served,
      subresource,
      namespace: target.namespace,
      name: target.name,
      object,
      before: undefined,
      dryRun,
      options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
    },
    exchange,
  );
}

/** POST …/pods/x/eviction: a deletion that asks the disruption budgets first. */
export async function evictPod(context: WriteContext, request: HttpRequest): Promise<HttpResponse | Refusal> {
  const { engine, exchange, served, target } = context;
  const body = bodyObject(request);
  if (body instanceof Refusal) return body;
  const metadata = isObject(body["metadata"]) ? body["metadata"] : {};
  if (metadata["name"] !== undefined && metadata["name"] !== target.name)
    return badRequest("name in URL does not match name in Eviction object");
  const given = readDeleteOptions(isObject(body["deleteOptions"]) ? body["deleteOptions"] : undefined, target.query);
  if (given instanceof Refusal) return given;
  const options: DeleteOptions = { ...given, dryRun: given.dryRun || context.options.dryRun };

  const eviction = {
    ...body,
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: target.name, namespace: target.namespace },
  };
  const objection = await objectionTo("eviction", eviction, context, options.dryRun);
  if (objection !== undefined) return objection;

  for (let attempt = 1; ; attempt++) {
    const live = engine.live.get({ resource: "pods", namespace: target.namespace, name: target.name });
    if (live === undefined) return notFound(served.definition, target.name);
    const taken = takeBudget(context, live.object, options);
    if (taken instanceof Refusal) return taken;
    if (taken === "raced") {
      if (attempt === raceAttempts) return tooManyRequests("couldn't update PodDisruptionBudget due to conflicts", 10);
      continue;
    }
    const deleted = await deleteObject(engine, exchange, served, target, {
      ...options,
      uid: options.uid ?? live.object.metadata.uid,
    });
    return deleted instanceof Refusal ? deleted : jsonResponse(201, done);
  }
}

type Matches = (labels: Readonly<Record<string, string>>) => boolean;

const budgets = "poddisruptionbudgets.policy";

/** Selectors of budgets, each read once: whoever fills a namespace with budgets does not make each eviction read them all. */
const selectors = new WeakMap<LiveObject, Matches | undefined>();

/** Reads each budget as it is written, in a turn of who writes it, and not of who evicts a pod. */
export function readWrittenBudgets(live: LiveObjects): void {
  live.subscribe({ resource: budgets }, ({ type, live: budget }) => {
    if (type !== "DELETED") selectorOf(budget);
  });
}

function selectorOf(budget: LiveObject): Matches | undefined {
  if (selectors.has(budget)) return selectors.get(budget);
  const { spec } = budget.object as { readonly spec?: unknown };
  const compiled = isObject(spec) ? compileLabelSelector(spec["selector"]) : undefined;
  const matches = compiled?.verdict === "valid" ? compiled.matches : undefined;
  selectors.set(budget, matches);
  return matches;
}

/** Takes one allowed disruption from the budget that covers the pod, if one does. */
function takeBudget(
  { engine, target }: WriteContext,
  pod: KubeObject,
  options: DeleteOptions,
): "free" | "raced" | Refusal {
  const phase = statusOf(pod)["phase"];
  if (
    pod.metadata.deletionTimestamp !== undefined ||
    phase === "Succeeded" ||
    phase === "Failed" ||
    phase === "Pending"
  )
    return "free";
  const covering = engine.live
    .list(budgets, target.namespace)
    .filter((budget) => selectorOf(budget)?.(pod.metadata.labels ?? {}) === true);
  const [budget] = covering;
  if (budget === undefined) return "free";
  if (covering.length > 1)
    return internalError(
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
  return spend(engine, budget, pod, options);
}

function spend(
  engine: WriteContext["engine"],
  budget: LiveObject,
  pod: KubeObject,
  options: DeleteOptions,
): "free" | "raced" | Refusal {
  const after = cloneJson(budget.object);
  const name = after.metadata.name ?? "";
  const spec = isObject(after["spec"]) ? after["spec"] : {};
  const status = statusOf(after);
  const metric = (field: string) => (typeof status[field] === "number" ? status[field] : 0);
  if (!isReady(pod)) {
    const policy = spec["unhealthyPodEvictionPolicy"];
    if (policy === "AlwaysAllow") return "free";
    // A pod that is not ready may be evicted while the healthy ones suffice.
    if (metric("currentHealthy") >= metric("desiredHealthy") && metric("desiredHealthy") > 0) return "free";
  }
  if (metric("observedGeneration") < (after.metadata.generation ?? 0)) {
    return tooManyRequests(wouldViolate, 10, [
      { reason: "DisruptionBudget", message: `The disruption budget ${name} is still being processed by the server.` },
    ]);
  }
  const disrupted = isObject(status["disruptedPods"]) ? status["disruptedPods"] : {};
  if (Object.keys(disrupted).length > disruptedPodsLimit)
    return new Refusal(
      403,
      "Forbidden",
      "pod disruption budget controller is not running: too many pods in disruption",
    );
  if (metric("disruptionsAllowed") <= 0) {
    return tooManyRequests(wouldViolate, 0, [
      {
        reason: "DisruptionBudget",
        message: `The disruption budget ${name} needs ${metric("desiredHealthy")} healthy pods and has ${metric("currentHealthy")} currently`,
      },
    ]);
  }
  if (options.dryRun) return "free";
  status["disruptionsAllowed"] = metric("disruptionsAllowed") - 1;
  status["disruptedPods"] = { ...disrupted, [pod.metadata.name ?? ""]: timestamp(engine.clock.now()) };
  after["status"] = status;
  // The server writes it, whoever evicts, and a full namespace must not keep its pods from being evicted.
  return engine.live.update(budget.key, budget.revision, after, "cluster").outcome === "written" ? "free" : "raced";
}

function statusOf(object: KubeObject): Record<string, unknown> {
  return isObject(object["status"]) ? object["status"] : {};
}

function isReady(pod: KubeObject): boolean {
  const { conditions } = statusOf(pod);
  return (
    Array.isArray(conditions) &&
    conditions.some(
      (condition) => isObject(condition) && condition["type"] === "Ready" && condition["status"] === "True",
    )
  );
}

/** POST …/pods/x/binding: gives a pod its node, once. */
export async function bindPod(context: WriteContext, request: HttpRequest): Promise<HttpResponse | Refusal> {
  const { engine, target } = context;
  const body = bodyObject(request);
  if (body instanceof Refusal) return body;
  const to = isObject(body["target"]) ? body["target"] : {};
  const node = to["name"];
  if (
    typeof node !== "string" ||
    node === "" ||
    (to["kind"] !== undefined && to["kind"] !== "Node" && to["kind"] !== "")
  ) {
    return unforeseen("target.name: Required value");
  }
  const binding = {
    ...body,
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name: target.name, namespace: target.namespace },
  };
  const objection = await objectionTo("binding", binding, context, context.options.dryRun);
  if (objection !== undefined) return objection;
  // As on the real server, the creation of a binding is judged, and not the change of the pod.
  const judged: Engine = {
    ...engine,
    admission: {
      approach: () => undefined,
      mutate: ({ object }) => Promise.resolve(object),
      validate: () => Promise.resolve(undefined),
    },
  };
  const written = await modifyObject(
    { ...context, engine: judged, target: { ...target, subresource: "binding" } },
    (pod) => {
      const spec = isObject(pod["spec"]) ? pod["spec"] : {};
      const refuse = (why: string) => conflict({ group: "", plural: "pods/binding" }, target.name, why);
      if (pod.metadata.deletionTimestamp !== undefined)
        return refuse(`pod ${target.name} is being deleted, cannot be assigned to a host`);
      if (typeof spec["nodeName"] === "string" && spec["nodeName"] !== "")
        return refuse(`pod ${target.name} is already assigned to node ${JSON.stringify(spec["nodeName"])}`);
      const status = statusOf(pod);
      const conditions = (Array.isArray(status["conditions"]) ? status["conditions"] : []).filter(
        (condition) => !isObject(condition) || condition["type"] !== "PodScheduled",
      );
      const scheduled = {
        type: "PodScheduled",
        status: "True",
        lastProbeTime: null,
        lastTransitionTime: timestamp(engine.clock.now()),
      };
      return {
        ...pod,
        spec: { ...spec, nodeName: node },
        status: { ...status, conditions: [...conditions, scheduled] },
      };
    },
    "patched",
  );
  return written instanceof Refusal ? written : jsonResponse(201, done);
}

/** GET …/pods/x/log */
export async function podLog(
  context: WriteContext,
  source: LogSource | undefined,
  reader: Share,
): Promise<HttpResponse | Refusal> {
  const { engine, exchange, served, target } = context;
  const pod = engine.live.get({ resource: "pods", namespace: target.namespace, name: target.name })?.object;
  if (pod === undefined) return notFound(served.definition, target.name);
  const spec = isObject(pod["spec"]) ? pod["spec"] : {};
  const names = (field: string) =>
    Array.isArray(spec[field]) ? spec[field].filter(isObject).map((container) => String(container["name"])) : [];
  const containers = names("containers");
  const initial = names("initContainers");
  let container = target.query.get("container") ?? "";
  if (container === "") {
    const [only] = containers;
    if (containers.length !== 1 || only === undefined) {
      const also = initial.length > 0 ? ` or one of the init containers: [${initial.join(" ")}]` : "";
      return badRequest(
        `a container name must be specified for pod ${target.name}, choose one of: [${containers.join(" ")}]${also}`,
      );
    }
    container = only;
  } else if (!containers.includes(container) && !initial.includes(container)) {
    return badRequest(`container ${container} is not valid for pod ${target.name}`);
  }
  const nodeName = typeof spec["nodeName"] === "string" ? spec["nodeName"] : "";
  const empty: HttpResponse = { status: 200, headers: { "content-type": "text/plain" }, body: "" };
  if (nodeName === "" || source === undefined) return empty;
  const query = new URLSearchParams(target.query);
  query.set("container", container);
  if (isTrue(query.get("follow")) && query.has("limitBytes") && Number(query.get("limitBytes")) <= 0)
    return badRequest("limitBytes must be positive");
  return source({ namespace: target.namespace, pod: target.name, container, nodeName, query, reader }, exchange.signal);
}
