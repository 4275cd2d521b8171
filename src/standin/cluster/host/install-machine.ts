import { McoError } from "../../../api/errors.ts";
import type { ObservedDeployment } from "../../../host/host.ts";
import { applyIgnition } from "../../../host/ignition/apply-config.ts";
import { fetchConfig } from "../../../host/ignition/fetch-config.ts";
import type { NewRoot } from "../../../host/ignition/new-root.ts";
import {
  type IgnitionProgram,
  type KernelArgumentRequests,
  type RunIgnitionOptions,
  applyWithIgnition,
  fetchWithIgnition,
  hasFetched,
  kernelArgumentsByIgnition,
  renderedByIgnition,
} from "../../../host/ignition/run-ignition.ts";
import { type IgnitionConfig, parseIgnition, sentenceOf } from "../../../ignition/index.ts";
import type { Downloader } from "../../../ports/download.ts";
import type { Files } from "../../../ports/files.ts";
import type { Ports } from "../../../ports/index.ts";
import type { Processes } from "../../../ports/process.ts";
import { backedOff } from "../../../ports/random.ts";
import type { ReportState } from "./run-host.ts";

/** The machine as far as its installation goes. */
export interface InstallableMachine {
  provision(deployment: ObservedDeployment): Promise<void>;
  bootId(): Promise<string>;
  wipe(): Promise<void>;
  newRoot(): NewRoot;
  asOneFolder(work: (folder: string) => Promise<void>): Promise<void>;
  presetNew(): Promise<void>;
}

export interface InstallOptions extends Ports {
  /** The machine's folder; `pointer.ign` in it is all that the machine knows of the cluster. */
  readonly directory: string;
  readonly machine: InstallableMachine;
  readonly os: ObservedDeployment;
  readonly files: Files;
  readonly processes: Processes;
  readonly download: Downloader;
  /** The real Ignition, where it is installed and may be used. */
  readonly ignition: IgnitionProgram | undefined;
  /** Puts a pointer with a valid token into the machine's folder. */
  readonly newPointer: (signal: AbortSignal) => Promise<void>;
  readonly version: string;
}

/** The record of an installation: that it is done, and who did it. */
interface InstallRecord {
  readonly v: 1;
  readonly installedBy: string;
  readonly at: string;
}

export const pointerPath = (directory: string): string => `${directory}/pointer.ign`;
/** A token is valid for one machine and one answer; whether an earlier process used it is unknown. */
const triedPath = (directory: string): string => `${directory}/pointer-tried`;
const recordPath = (directory: string): string => `${directory}/installed.json`;

/** Whether a machine has its first configuration on its disk, and who put it there. */
export async function installedBy(files: Pick<Files, "readText">, directory: string): Promise<string | undefined> {
  const text = await files.readText(recordPath(directory));
  return text === undefined ? undefined : (JSON.parse(text) as InstallRecord).installedBy;
}

/** Reinstalls the machine at its next start. */
export const forgetInstallation = (files: Files, directory: string): Promise<void> =>
  files.remove(recordPath(directory));

const workFolder = (directory: string) => `${directory}/ignition`;
const ownCache = (directory: string) => `${workFolder(directory)}/configuration.json`;
/** A machine that cannot get its configuration tries for ever, as one without a console would. */
const retry = { firstMs: 1_000, lastMs: 30_000, spread: 0.2 };

/**
 * Prepares an empty machine before its first boot, as an initramfs does: fetches its configuration, lays down its
 * initial system, and applies the configuration. If it is killed, the next run continues: fetched content stays, and a
 * half-made root is made again. It fails permanently only if the configuration cannot be applied.
 */
export async function installMachine(options: InstallOptions, report: ReportState, signal: AbortSignal): Promise<void> {
  const { files, directory, machine, log } = options;
  if ((await installedBy(files, directory)) !== undefined) return;
  await files.makeDirectory(workFolder(directory), { mode: 0o700 });
  const hasFetchedAll =
    (await files.stat(ownCache(directory))) !== undefined ||
    (await hasFetched({ folder: workFolder(directory), files }));
  let needsPointer =
    !hasFetchedAll &&
    ((await files.stat(triedPath(directory))) !== undefined ||
      (await files.stat(pointerPath(directory))) === undefined);
  for (let failures = 1; ; failures += 1) {
    try {
      if (needsPointer) {
        await options.newPointer(signal);
        needsPointer = false;
      }
      const by = await install(options, report, signal);
      await machine.presetNew();
      await files.write(
        recordPath(directory),
        JSON.stringify({
          v: 1,
          installedBy: by,
          at: new Date(options.clock.now()).toISOString(),
        } satisfies InstallRecord),
      );
      // It only holds a used token, and secrets that are on the machine now.
      for (const path of [pointerPath(directory), triedPath(directory)]) await files.remove(path);
      await files.remove(workFolder(directory));
      log.info({ by }, "installed");
      return;
    } catch (error) {
      if (signal.aborted || !(error instanceof McoError)) throw error;
      const { reason = error.message } = error.facts as { readonly reason?: string };
      report("waiting", reason);
      log.warn({ error, reason }, "not installed, trying again");
      await options.clock.sleep(backedOff(options.random, failures, retry), signal);
    }
  }
}

/** @returns who did it. */
async function install(options: InstallOptions, report: ReportState, signal: AbortSignal): Promise<string> {
  const { files, directory, machine, os, log } = options;
  const folder = workFolder(directory);
  const onTrouble = (reason: string) => report("fetching", reason);
  const program =
    options.ignition === undefined ||
    (await files.stat(ownCache(directory))) !== undefined ||
    !(await everybodyMayEnter(files, directory))
      ? undefined
      : options.ignition;
  if (program !== undefined) {
    const run: RunIgnitionOptions = { program, folder, files, processes: options.processes, log, onTrouble };
    if (await fetchedByReal(run)) {
      const by = `Ignition ${program.version}`;
      try {
        const requests = await kernelArgumentsByIgnition(run, signal);
        report("installing", `with ${by}`);
        await machine.wipe();
        await machine.provision(withKernelArguments(os, requests));
        await machine.asOneFolder((root) => applyWithIgnition(root, run, signal));
        return by;
      } catch (error) {
        if (signal.aborted) throw error;
        // Ignition may lack something in its environment that our applier does not need; our applier also refuses what
        // is impossible.
        log.warn({ error }, `${by} could not install the machine: trying ours`);
        const rendered = parseIgnition(await renderedByIgnition(run));
        if (rendered.verdict === "invalid")
          throw new McoError("MCO_IGNITION_REFUSED", { reason: sentenceOf(rendered.problems) }, { cause: error });
        return await applyOwn(rendered.config);
      }
    }
    log.info(
      { version: program.version },
      "the server has no version of the configuration that this Ignition reads: fetching with ours",
    );
  }
  return applyOwn(await fetchOwn());

  async function fetchedByReal(run: RunIgnitionOptions): Promise<boolean> {
    if (await hasFetched(run)) return true;
    report("fetching", "");
    try {
      await fetchWithIgnition(await pointerText(), run, signal);
      return true;
    } catch (error) {
      if (error instanceof McoError && error.facts["unreadable"] === true) return false;
      throw error;
    }
  }

  async function fetchOwn(): Promise<IgnitionConfig> {
    const kept = await files.readText(ownCache(directory));
    if (kept !== undefined) return JSON.parse(kept) as IgnitionConfig;
    report("fetching", "");
    const config = await fetchConfig(
      JSON.parse(await pointerText()),
      { ...options, userAgent: `mco/${options.version}`, onTrouble },
      signal,
    );
    await files.write(ownCache(directory), JSON.stringify(config), { mode: 0o600 });
    return config;
  }

  async function pointerText(): Promise<string> {
    const text = await files.readText(pointerPath(directory));
    if (text === undefined)
      throw new McoError("MCO_IGNITION_FETCH_FAILED", { reason: "the machine has no pointer to its configuration" });
    await files.write(triedPath(directory), "");
    return text;
  }

  async function applyOwn(config: IgnitionConfig): Promise<string> {
    report("installing", "");
    await machine.wipe();
    await machine.provision(
      withKernelArguments(os, {
        shouldExist: config.kernelArguments?.shouldExist ?? [],
        shouldNotExist: config.kernelArguments?.shouldNotExist ?? [],
      }),
    );
    await applyIgnition(
      config,
      { root: machine.newRoot(), clock: options.clock, bootId: await machine.bootId() },
      signal,
    );
    return `mco ${options.version}`;
  }
}

/** An argument of a configuration may be several words. */
function withKernelArguments(
  os: ObservedDeployment,
  { shouldExist, shouldNotExist }: KernelArgumentRequests,
): ObservedDeployment {
  const words = (list: readonly string[]) =>
    list.flatMap((argument) => argument.split(/\s+/)).filter((word) => word !== "");
  const unwanted = new Set(words(shouldNotExist));
  const kept = os.kernelArguments.filter((word) => !unwanted.has(word));
  return { ...os, kernelArguments: [...kept, ...words(shouldExist).filter((word) => !kept.includes(word))] };
}

/** Ignition writes keys as the users whose keys they are: they must be able to get to the machine's folder. */
async function everybodyMayEnter(files: Files, directory: string): Promise<boolean> {
  const parts = directory.split("/").filter((part) => part !== "");
  for (let depth = 1; depth <= parts.length; depth += 1)
    if ((((await files.stat(`/${parts.slice(0, depth).join("/")}`))?.mode ?? 0) & 0o001) === 0) return false;
  return true;
}
