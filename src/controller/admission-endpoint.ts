import type { McoError } from "../api/errors.ts";
import { sourceGroup } from "../core/join/source-group.ts";
import { metricsPath } from "../kube/metrics-handler.ts";
import type { HttpRequest, HttpResponse } from "../ports/http.ts";
import type { Ports } from "../ports/index.ts";
import { keepListening } from "../ports/keep-listening.ts";
import type { Listen, ListenLimits, ServerHandler, TlsFiles } from "../ports/listener.ts";
import type { ParentThread, StartThread, Thread } from "../ports/threads.ts";
import { type AdmissionAccess, admissionHandler } from "./admission-handler.ts";
import { keepThread } from "./keep-thread.ts";
import { PlanQueue, type PlannerMessage } from "./plan-queue.ts";

/** The threads of the endpoint, which the program runs when it is started as one of them. */
export const admissionThreads = { endpoint: "admission-endpoint", planner: "admission-planner" } as const;

/** Heaps at which the threads are ended, in MiB: several times what docs/decisions/0022-admission-in-threads.md measured. */
const heapMb = { endpoint: 128, planner: 768 } as const;

/** What the endpoint's threads are started with: plain data. */
export interface AdmissionSettings {
  readonly host: string;
  readonly port: number;
  readonly network: boolean;
  readonly tls: TlsFiles;
  readonly access: AdmissionAccess;
  /** As `--kubeconfig`. */
  readonly kubeconfig: string | undefined;
}

/** From the endpoint's thread to the controllers' thread. */
type EndpointMessage =
  | { readonly is: "metrics"; readonly id: number; readonly request: HttpRequest; readonly from: string | undefined }
  | { readonly is: "plannerEnded"; readonly why: string }
  | { readonly is: "plannerReady" };

/** To the endpoint's thread. */
interface MetricsMessage {
  readonly id: number;
  readonly response: HttpResponse;
}

/** Limits of the admission endpoint: the API server's own size of requests, and less time than it waits for a webhook. */
export const admissionLimits: ListenLimits = {
  connections: 256,
  connectionsOfOneSource: 32,
  requests: 64,
  arriveMs: 4000,
  requestMs: 4000,
  bodyBytes: 3 * 1024 * 1024,
  burst: 400,
  perSecond: 100,
  sourceOf: sourceGroup,
};

type EndpointPorts = Pick<Ports, "clock" | "random" | "log">;

/**
 * Listens for reviews and for metrics, in its own thread. Passes reviews to the planner, a thread that this one starts,
 * and gets metrics from the controllers. Runs until `signal` aborts.
 */
export async function runAdmissionEndpoint(
  parent: ParentThread,
  settings: AdmissionSettings,
  { startThread, listen, ...ports }: EndpointPorts & { readonly startThread: StartThread; readonly listen: Listen },
  signal: AbortSignal,
): Promise<void> {
  const { host, port, network, tls } = settings;
  const queue = new PlanQueue(ports.clock, admissionLimits.requestMs);
  const metrics = metricsFrom(parent);
  const reviews = admissionHandler({
    access: settings.access,
    isReady: () => queue.isReady,
    review: (body, until) => queue.review(body, until),
  });
  const answer: ServerHandler = (request, ...rest) =>
    (request.target.split("?", 1)[0] === metricsPath ? metrics : reviews)(request, ...rest);

  const start = (): Thread => {
    const planner = startThread({
      name: admissionThreads.planner,
      data: settings,
      heapMb: heapMb.planner,
      onMessage: (message) => {
        queue.hear(planner, message as PlannerMessage);
        if ((message as PlannerMessage).is === "ready") parent.send({ is: "plannerReady" } satisfies EndpointMessage);
      },
    });
    return planner;
  };
  const onEnd = (failure: McoError) => {
    queue.plannerEnded("the planner of changes ended, and is started again");
    ports.log.error({ error: failure, code: failure.code }, "the planner of changes ended, starting it again");
    parent.send({ is: "plannerEnded", why: failure.message } satisfies EndpointMessage);
  };
  await Promise.all([
    keepThread(admissionThreads.planner, start, onEnd, ports, signal),
    keepListening(
      (until) => listen({ limits: admissionLimits, host, port, network, tls }, answer, until),
      "answering admission reviews",
      ports,
      signal,
    ),
  ]);
}

/** Asks the controllers for metrics. A controller that is busy answers late; the listener's limit ends the wait. */
function metricsFrom(parent: ParentThread): ServerHandler {
  const asked = new Map<number, (response: HttpResponse) => void>();
  const last = { id: 0 };
  parent.listen((message) => {
    const { id, response } = message as MetricsMessage;
    asked.get(id)?.(response);
    asked.delete(id);
  });
  return (request, _client, signal, from) =>
    new Promise((resolve, reject) => {
      const id = ++last.id;
      asked.set(id, resolve);
      signal.addEventListener(
        "abort",
        () => {
          asked.delete(id);
          reject(signal.reason as Error);
        },
        { once: true },
      );
      const { method, target, headers } = request;
      parent.send({ is: "metrics", id, request: { method, target, headers }, from } satisfies EndpointMessage);
    });
}

/** What the endpoint's threads report to the process. */
export interface AdmissionReports {
  readonly ended: (failure: string) => void;
  readonly ready: () => void;
}

/** Runs the admission endpoint until `signal` aborts. `metrics` answers requests for metrics. */
export type RunAdmission = (
  metrics: ServerHandler,
  reports: AdmissionReports,
  ports: EndpointPorts,
  signal: AbortSignal,
) => Promise<void>;

/**
 * Runs the endpoint in threads of its own, so that neither side delays the other. The controllers' thread only answers
 * requests for metrics, and starts the endpoint again if it ends.
 */
export const admissionInThreads =
  (startThread: StartThread, settings: AdmissionSettings): RunAdmission =>
  (metrics, reports, ports, signal) => {
    const start = (): Thread => {
      const endpoint = startThread({
        name: admissionThreads.endpoint,
        data: settings,
        heapMb: heapMb.endpoint,
        onMessage: (given) => {
          const message = given as EndpointMessage;
          switch (message.is) {
            case "plannerEnded":
              return reports.ended(message.why);
            case "plannerReady":
              return reports.ready();
            case "metrics":
              void answerMetrics(message, metrics, ports).then((answer) => endpoint.send(answer));
          }
        },
      });
      return endpoint;
    };
    const onEnd = (failure: McoError) => {
      ports.log.error({ error: failure, code: failure.code }, "the admission endpoint ended, starting it again");
      reports.ended(failure.message);
    };
    return keepThread(admissionThreads.endpoint, start, onEnd, ports, signal);
  };

async function answerMetrics(
  { id, request, from }: Extract<EndpointMessage, { readonly is: "metrics" }>,
  metrics: ServerHandler,
  { clock, log }: EndpointPorts,
): Promise<MetricsMessage> {
  const deadline = clock.deadline(admissionLimits.requestMs);
  try {
    return { id, response: await metrics(request, undefined, deadline.signal, from) };
  } catch (error) {
    log.warn({ error }, "metrics could not be collected");
    return { id, response: { status: 503, headers: { "content-type": "text/plain" }, body: "no metrics now\n" } };
  } finally {
    deadline.cancel();
  }
}
