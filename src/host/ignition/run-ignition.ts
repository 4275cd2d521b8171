import { McoError } from "../../api/errors.ts";
import { ignitionVersion } from "../../ignition/index.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Processes } from "../../ports/process.ts";

/** Ignition itself, as it is installed. */
export interface IgnitionProgram {
  readonly path: string;
  /** `2.24.0` */
  readonly version: string;
}

export interface RunIgnitionOptions {
  readonly program: IgnitionProgram;
  /** Holds what Ignition keeps from one stage to the next. */
  readonly folder: string;
  readonly files: Files;
  readonly processes: Processes;
  readonly log: Logger;
  /** Reports why something could not be fetched, each time. */
  readonly onTrouble: (reason: string) => void;
}

/** What a stage asked for that is not the root's own affair. */
export interface KernelArgumentRequests {
  readonly shouldExist: readonly string[];
  readonly shouldNotExist: readonly string[];
}

/** Where programs are that Ignition calls (useradd, systemctl); ours come first. */
const systemPath = "/usr/sbin:/usr/bin:/sbin:/bin";

/** In the way of what a machine in a folder does not have: labels, and a boot loader. */
const helpers: Readonly<Record<string, string>> = {
  setfiles: "#!/bin/sh\ncat >/dev/null\n",
  "ignition-kargs-helper": '#!/bin/sh\nprintf "%s\\n" "$@" > "$MCO_KERNEL_ARGUMENTS"\n',
  "is-live-image": "#!/bin/sh\nexit 1\n",
};

/** The version of an installed Ignition; `undefined` where there is none. */
export async function findIgnition(
  candidates: readonly string[],
  { files, processes }: Pick<RunIgnitionOptions, "files" | "processes">,
  signal: AbortSignal,
): Promise<IgnitionProgram | undefined> {
  for (const path of candidates) {
    if ((await files.stat(path)) === undefined) continue;
    const { code, stdout } = await processes.run(path, ["--version"], { env: { PATH: systemPath }, signal });
    const version = /(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
    if (code === 0 && version !== undefined) return { path, version };
  }
  return undefined;
}

/** Whether a first boot is fetched already: what comes of it needs no server any more. */
export const hasFetched = async ({ folder, files }: Pick<RunIgnitionOptions, "folder" | "files">): Promise<boolean> =>
  (await files.stat(`${folder}/fetched`)) !== undefined;

/**
 * Fetches the configuration of a pointer with the real Ignition, and keeps it in the folder.
 *
 * @throws McoError `MCO_IGNITION_FETCH_FAILED`; `facts.unreadable`: the server has it in no version that this program
 * reads.
 */
export async function fetchWithIgnition(
  pointer: string,
  options: RunIgnitionOptions,
  signal: AbortSignal,
): Promise<void> {
  const { files, folder } = options;
  await files.makeDirectory(`${folder}/bin`, { mode: 0o700 });
  for (const [name, text] of Object.entries(helpers)) await files.write(`${folder}/bin/${name}`, text, { mode: 0o755 });
  await files.write(`${folder}/pointer.ign`, pointer, { mode: 0o600 });
  for (const stage of ["fetch-offline", "fetch"]) await run(stage, folder, options, signal);
  await files.write(`${folder}/fetched`, "");
}

/** The configuration's kernel arguments. */
export async function kernelArgumentsByIgnition(
  options: RunIgnitionOptions,
  signal: AbortSignal,
): Promise<KernelArgumentRequests> {
  const { files, folder } = options;
  await files.remove(`${folder}/kernel-arguments`);
  await run("kargs", folder, options, signal);
  const words = ((await files.readText(`${folder}/kernel-arguments`)) ?? "").split("\n");
  const after = (flag: string) => words.flatMap((word, at) => (words[at - 1] === flag ? [word] : []));
  return { shouldExist: after("--should-exist"), shouldNotExist: after("--should-not-exist") };
}

/** Applies the fetched configuration to a root. Once: an interrupted run has to start again on a fresh root. */
export async function applyWithIgnition(root: string, options: RunIgnitionOptions, signal: AbortSignal): Promise<void> {
  const { files } = options;
  const policies = `${root}/etc/selinux`;
  const isLabelled = (await files.stat(policies)) !== undefined;
  // A build that labels files wants to know the policy, though nothing is labelled here.
  if (!isLabelled) await files.write(`${policies}/config`, "SELINUX=disabled\nSELINUXTYPE=targeted\n");
  await run("files", root, options, signal);
  if (!isLabelled) await files.remove(policies);
}

/**
 * What was fetched, for another applier where this one could not make a root of it; `undefined` where that is not to be
 * read.
 */
export async function renderedByIgnition({
  files,
  folder,
}: Pick<RunIgnitionOptions, "files" | "folder">): Promise<unknown> {
  const text = await files.readText(`${folder}/ignition.json`);
  if (text === undefined) return undefined;
  const { ignition, ...config } = JSON.parse(text) as { readonly ignition?: object };
  // It is kept in the version that the program is working on, which has all that the last one had.
  return { ...config, ignition: { ...ignition, version: ignitionVersion, config: {} } };
}

async function run(
  stage: string,
  root: string,
  { program, folder, files, processes, log, onTrouble }: RunIgnitionOptions,
  signal: AbortSignal,
): Promise<void> {
  const words = [
    "--platform=file",
    `--root=${root}`,
    `--config-cache=${folder}/ignition.json`,
    `--state-file=${folder}/state`,
    `--neednet=${folder}/neednet`,
    "--log-to-stdout",
    `--stage=${stage}`,
  ];
  const env = {
    PATH: `${folder}/bin:${systemPath}`,
    IGNITION_CONFIG_FILE: `${folder}/pointer.ign`,
    MCO_KERNEL_ARGUMENTS: `${folder}/kernel-arguments`,
  };
  let rest = "";
  let last = "";
  let trouble = "";
  let written = Promise.resolve();
  const child = processes.spawn(program.path, words, {
    env,
    group: true,
    onOutput(text) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines.filter((one) => one.trim() !== "")) {
        if (/CRITICAL|Ignition failed/.test(line) || last === "") last = line.trim();
        // Headers are never printed; contents only as the names of files.
        const [, reason = ""] = /(?:GET (?:result|error): )(?!OK)(.*)$/.exec(line) ?? [];
        if (reason !== "") {
          trouble = reason;
          onTrouble(reason);
        }
      }
      written = written.then(() => files.append(`${folder}/ignition.log`, text, { mode: 0o600 }));
    },
  });
  const stop = () => child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  const { code } = await child.exited;
  signal.removeEventListener("abort", stop);
  await written;
  signal.throwIfAborted();
  log.info({ stage, version: program.version, code }, "Ignition stage");
  if (code === 0) return;
  const facts = { stage, version: program.version, log: `${folder}/ignition.log` };
  if (stage.startsWith("fetch"))
    throw new McoError("MCO_IGNITION_FETCH_FAILED", {
      ...facts,
      reason: trouble === "" ? last : trouble,
      unreadable: trouble === "Bad Request",
    });
  throw new McoError("MCO_IGNITION_REFUSED", { ...facts, reason: last });
}
