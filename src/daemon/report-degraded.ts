import type { BookSections } from "../api/books/report-table.ts";
import { McoError } from "../api/errors.ts";
import { annotations, nodeStates } from "../api/names.ts";
import { KubeError, isPassing } from "../kube/kube-error.ts";
import { type Outcome, stalled } from "../kube/outcome.ts";
import type { PassContext } from "./pass-context.ts";
import { machineDegraded } from "./reports.ts";

export interface Failure {
  readonly reason: BookSections["node"]["Degraded"]["Failed"][number];
  readonly message: string;
  /** Only an administrator or a new target can resolve it. */
  readonly lasting: boolean;
}

/**
 * Reports that the machine cannot continue as it should.
 *
 * @returns an outcome if a retry cannot help.
 */
export async function reportDegraded(
  { reason, message, lasting }: Failure,
  { facts, reporter, node, journal, context }: PassContext,
): Promise<Outcome | undefined> {
  facts.state = nodeStates.degraded;
  facts.reason = reason;
  const isNews = node.metadata.annotations?.[annotations.reason] !== message.slice(0, 2000);
  journal.report(machineDegraded(reason, message, isNews ? node : undefined));
  await reporter
    .annotate(node, { [annotations.state]: nodeStates.degraded, [annotations.reason]: message })
    .catch((second: unknown) => context.log.warn({ error: second }, "state not written"));
  await reporter.flush();
  return lasting ? stalled(reason, message) : undefined;
}

/**
 * Reports an error that ended a pass.
 *
 * @returns an outcome if a retry cannot help.
 */
export async function afterFailure(error: unknown, pass: PassContext): Promise<Outcome | undefined> {
  // An API server that is unavailable or busy, or does not know the daemon's rights yet, is no fault of the machine.
  if (pass.context.signal.aborted || isPassing(error) || isRefusedToDaemon(error)) return undefined;
  pass.memory.failing = pass.memory.announced;
  pass.memory.fetchedImages.clear();
  return reportDegraded(failureOf(error), pass);
}

/** A newly started API server refuses requests until it has read the rights for them. */
const isRefusedToDaemon = (error: unknown) =>
  error instanceof KubeError && (error.httpStatus === 401 || error.httpStatus === 403);

/** The report of an error that ended a pass. */
function failureOf(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  const codes = [...causesOf(error)].map(({ code }) => code);
  if (codes.includes("MCO_LEDGER_NEWER")) return { reason: "WrittenByNewerVersion", message, lasting: true };
  if (codes.some((code) => code.startsWith("MCO_IMAGE_") || code === "MCO_HOST_IMAGE_UNKNOWN"))
    return { reason: "ImagePullFailed", message, lasting: false };
  if (codes.includes("MCO_CONFIG_NOT_DELIVERED")) return { reason: "ConfigNotDelivered", message, lasting: false };
  if (codes.includes("MCO_SERVICE_FAILED") || [...causesOf(error)].some(({ facts }) => isServiceStep(facts["step"])))
    return { reason: "ServiceFailed", message, lasting: false };
  return { reason: "UpdateFailed", message, lasting: false };
}

/** The step that failed acts on a service. */
const isServiceStep = (step: unknown): boolean => step === "reload" || step === "restart" || step === "daemonReload";

function* causesOf(error: unknown): Generator<McoError> {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof McoError) yield at;
}
