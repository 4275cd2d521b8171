import { hostPaths } from "../api/names.ts";
import type { StoryLineIn } from "../api/books/stories.ts";
import { describeProblems, fitToAccounts, judgeTarget } from "../core/machine/judge-target.ts";
import { imageWishOf } from "../core/machine/image-target.ts";
import { planNode } from "../core/machine/plan-node.ts";
import type { Host } from "../host/host.ts";
import type { Ports } from "../ports/index.ts";
import { machineConfigAt, moveAside, originalsOf, servedAnnotations } from "./adopt-machine.ts";
import { documentStore } from "./machine-documents.ts";
import { observeHost } from "./observe-host.ts";
import { type Worksite, contentMismatchOf, performStep } from "./perform-step.ts";
import { readTarget } from "../core/machine/read-config.ts";

/** Between two tries of a first boot that does not get to its end. */
const retryMs = 60_000;

export type FirstBoot =
  /** There is nothing (more) to do: what waits for the first boot may start. */
  | { readonly verdict: "complete" }
  /** The machine goes down, to come up with the system that it should have. */
  | { readonly verdict: "rebooting"; readonly because: string }
  /** Another try would not help now; the daemon tells it once the machine has joined. */
  | { readonly verdict: "givenUp"; readonly reason: string };

/**
 * Does what Ignition could not before the kubelet starts: OS image, kernel arguments, kernel type, packages. Needs no
 * API server. The daemon later finds in the documents what was done, and proves it.
 *
 * @param file where the MachineConfig lies that the machine was started with.
 */
export async function completeFirstBoot(
  options: {
    readonly host: Host;
    readonly file: string;
    /** Called before an image is staged that the machine was given. */ readonly beforeStaging?: () => Promise<void>;
  } & Pick<Ports, "clock" | "log" | "scribe">,
  signal: AbortSignal,
): Promise<FirstBoot> {
  const { host, file, log, scribe, clock } = options;
  const documents = documentStore(host.ledger);
  const tell = (line: StoryLineIn<"node">) => scribe.line({ book: "node/self", ...line });
  const here = { chapter: "Firstboot", level: "boundary" } as const;

  const encapsulated = await machineConfigAt(host, file, signal);
  if (encapsulated === undefined) {
    log.info({ file }, "no MachineConfig of a first boot is there: nothing to do");
    return { verdict: "complete" };
  }
  // The encapsulated one lacks what Ignition did; the one that was served has all.
  const served = await machineConfigAt(host, hostPaths.servedConfig, signal);
  const machineConfig = served?.metadata.name === encapsulated.metadata.name ? served : encapsulated;
  const wish = imageWishOf((await servedAnnotations(host, signal)) ?? {});
  if (wish.verdict === "refused") return giveUp(wish.message);
  const pair = wish.verdict === "image" ? wish.pair : undefined;
  const read = readTarget(machineConfig, pair);
  if (read.verdict === "refused") return giveUp(read.reason);
  tell({ ...here, path: "EncapsulatedConfigRead", mark: "end", reason: "Read", message: machineConfig.metadata.name });

  let known = await documents.load(signal);
  if (known.previous === undefined) {
    const previous = { config: machineConfig, pair, proven: false };
    const originals = await originalsOf(host, read.wanted.config, signal);
    await documents.adopt(previous, originals, signal);
    known = { ...known, previous, originals };
  }
  const seen = await observeHost(
    host,
    known,
    { previous: read.wanted.config, target: read.wanted.config, inService: false, onlyControlPlane: false },
    signal,
  );
  const config = fitToAccounts(read.wanted.config, seen.users);
  const observed = { ...seen, previous: config };
  const problems = judgeTarget(observed, config, {
    sshFolder: undefined,
    freeBytes: await host.files.freeBytes(signal),
  });
  if (problems.length > 0) return giveUp(describeProblems(problems));

  const plan = planNode(observed, config, undefined);
  if (plan.verdict === "bootFails")
    return giveUp(`after ${plan.tried} reboots the machine still boots ${plan.booted.image}`);
  if (plan.verdict === "unsettled" || plan.verdict === "settleFailed")
    return giveUp(`the machine is not what its image should make of it: ${plan.path ?? ""} ${plan.cause}`);
  if (plan.verdict === "inSync") {
    await finish();
    tell({
      ...here,
      path: "Reboot",
      mark: "skip",
      reason: "NotRequired",
      message: "the machine has what it should have",
    });
    return { verdict: "complete" };
  }
  const site: Worksite = {
    host,
    documents,
    clock,
    observed,
    target: { machineConfig, config },
    originals: observed.originals,
    ledger: observed.ledger,
    refreshCredentials: options.beforeStaging,
  };
  for (const step of plan.steps) {
    signal.throwIfAborted();
    if (step.do === "drain") continue;
    log.info({ step: step.do }, "first boot");
    // The marker goes before the machine does: from here on the ledger knows what is left.
    if (step.do === "reboot") await finish();
    if (step.do === "stageOs")
      tell({ ...here, path: "OSUpdated", mark: "begin", reason: "Staging", message: step.deployment.image });
    await performStep(step, site, signal);
    const mismatch = step.do === "prefetch" ? await contentMismatchOf(host, config, step.images, signal) : undefined;
    if (mismatch !== undefined) return giveUp(mismatch);
    if (step.do === "stageOs") {
      const { image, kernelArguments, packages } = step.deployment;
      tell({ ...here, path: "OSUpdated", mark: "end", reason: "Staged", message: image });
      if (packages.length > 0)
        tell({ ...here, path: "Extensions", mark: "end", reason: "Applied", message: packages.join(", ") });
      const added = kernelArguments.filter((word) => !observed.booted.kernelArguments.includes(word)).length;
      if (added > 0)
        tell({ ...here, path: "Kargs", mark: "end", reason: "Applied", message: `${added} kernel arguments` });
    }
    if (step.do === "reboot") {
      tell({ ...here, path: "Reboot", mark: "begin", reason: "RebootRequested", message: step.because });
      await scribe.settle(signal);
      return { verdict: "rebooting", because: step.because };
    }
  }
  await finish();
  return { verdict: "complete" };

  async function finish(): Promise<void> {
    if (file === hostPaths.encapsulated)
      await moveAside(host, hostPaths.encapsulated, hostPaths.encapsulatedDone, signal);
  }

  async function giveUp(reason: string): Promise<FirstBoot> {
    tell({ ...here, path: "Validated", mark: "fail", reason: "Refused", message: reason });
    await finish();
    return { verdict: "givenUp", reason };
  }
}

/**
 * As {@link completeFirstBoot}, again and again until it comes to an end: nobody else could try it on a machine that
 * has not joined.
 */
export async function keepCompletingFirstBoot(
  options: Parameters<typeof completeFirstBoot>[0],
  signal: AbortSignal,
): Promise<FirstBoot> {
  let told = "";
  for (;;) {
    try {
      return await completeFirstBoot(options, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const message = error instanceof Error ? error.message : String(error);
      // The same failure again is one line; whoever waits for the machine sees it in the log.
      if (message !== told)
        options.scribe.line({
          book: "node/self",
          chapter: "Firstboot",
          path: "OSUpdated",
          mark: "fail",
          level: "boundary",
          reason: "StageFailed",
          message,
        });
      told = message;
      options.log.error({ error }, "the first boot is not complete; trying again in a minute");
      await options.clock.sleep(retryMs, signal);
    }
  }
}
