import { stat } from "node:fs/promises";
import { McoError } from "../../api/errors.ts";
import { sameMultiset, withoutMultiset } from "../../core/text/multiset.ts";
import { sameDeployment } from "../../core/machine/deployment.ts";
import type { Random } from "../../ports/random.ts";
import type { Disk } from "../directory/disk.ts";
import { readTextIfThere, removeTree } from "../directory/durable-writes.ts";
import type { ObservedDeployment, HostFiles, HostOs, OsAbilities } from "../host.ts";
import { authFile, imageFailure, imagePulls } from "./pull-image.ts";
import {
  type KnownDeployment,
  type KnownStatus,
  defaultKernel,
  deploymentOf,
  kernelWords,
  otherKernels,
  readStatus,
} from "./read-status.ts";
import { type HostCommands, commandFailure } from "./run-command.ts";

export interface OstreeFacts {
  bootId(): Promise<string>;
  fips(): Promise<boolean | undefined>;
}

/** Facts of both kinds of real machines, from /proc. */
export const machineFacts = (locate: (path: string) => Promise<string>): OstreeFacts => ({
  async bootId() {
    const text = await readTextIfThere(await locate("/proc/sys/kernel/random/boot_id"));
    if (text === undefined)
      throw new McoError("MCO_HOST_COMMAND_FAILED", { problem: "the machine's /proc is not there" });
    return text.trim();
  },
  async fips() {
    const text = await readTextIfThere(await locate("/proc/sys/crypto/fips_enabled"));
    return text === undefined ? undefined : text.trim() === "1";
  },
});

/**
 * Asks systemd for a reboot that outlives us. Where a staged deployment has to be finalised, the reboot waits until
 * that service is up, so that its stop, which does it, is part of the shutdown (ostreedev/ostree
 * src/boot/ostree-finalize-staged.service (main)).
 */
export async function reboot(
  commands: HostCommands,
  random: Random,
  because: string,
  finalises: boolean,
  signal: AbortSignal,
): Promise<void> {
  const unit = `machine-config-daemon-reboot-${random.uuid().slice(0, 8)}`;
  const finalise = finalises
    ? ["--property=Requires=ostree-finalize-staged.service", "--property=After=ostree-finalize-staged.service"]
    : [];
  const description = `machine-config-daemon: ${because.replaceAll(/\p{Cc}+/gu, " ").slice(0, 200)}`;
  await commands.must(
    ["systemd-run", `--unit=${unit}`, `--description=${description}`, ...finalise, "systemctl", "reboot"],
    { kind: "query", signal },
  );
}

export interface RpmOstreeOsOptions {
  readonly commands: HostCommands;
  readonly files: HostFiles;
  readonly facts: OstreeFacts;
  readonly locate: (path: string) => Promise<string>;
  readonly random: Random;
  readonly disk: Disk;
  /** As Node.js says it. */
  readonly architecture: string;
}

const repositoryFile = "/etc/yum.repos.d/coreos-extensions.repo";
const extensionsFolder = "/run/mco-extensions";
/**
 * Where an extensions image has its packages (coreos/coreos-assembler docs; openshift/os extensions/Dockerfile
 * (master)).
 */
const extensionsInImage = "/usr/share/rpm-ostree/extensions";
/**
 * Systems that have extensions and other kernels; on Fedora CoreOS both are ignored (openshift/machine-config-operator
 * pkg/daemon/update.go (main)).
 */
const enterprise = ["rhcos", "scos", "rhel", "centos"];

/** Operating systems by rpm-ostree's command line. */
export function rpmOstreeOs({
  commands,
  files,
  facts,
  locate,
  random,
  disk,
  architecture,
}: RpmOstreeOsOptions): HostOs {
  const pulls = imagePulls({ commands, files, architecture });
  let cached:
    | {
        readonly key: string;
        readonly known: KnownStatus;
        readonly booted: ObservedDeployment;
        readonly staged: ObservedDeployment | undefined;
        readonly rollback: ObservedDeployment | undefined;
      }
    | undefined;
  let abilities: OsAbilities | undefined;
  let failure: { readonly bootId: string; readonly reason: string | undefined } | undefined;

  /**
   * Changes whenever a deployment is added or removed: the folder's time shows it, and others rely on it too
   * (coreos/zincati src/rpm_ostree/cli_status.rs (main)).
   */
  async function stateKey(): Promise<string> {
    const times = await Promise.all(
      ["/ostree/deploy", "/run/ostree/staged-deployment"].map(async (path) =>
        stat(await locate(path), { bigint: true }).then(
          ({ mtimeNs, ino }) => `${mtimeNs}.${ino}`,
          () => "absent",
        ),
      ),
    );
    return [await facts.bootId(), ...times].join(" ");
  }

  async function argumentsOf(index: number, signal: AbortSignal): Promise<readonly string[]> {
    return kernelWords(
      await commands.must(["rpm-ostree", "kargs", `--deploy-index=${index}`], { kind: "query", signal }),
    );
  }

  /** An unchanged machine costs no process. */
  async function look(signal: AbortSignal): Promise<NonNullable<typeof cached>> {
    const key = await stateKey();
    if (cached?.key === key) return cached;
    const known = readStatus(await commands.must(["rpm-ostree", "status", "--json"], { kind: "query", signal }));
    const whole = async (deployment: KnownDeployment) =>
      deploymentOf(deployment, await argumentsOf(deployment.index, signal));
    const booted = await whole(known.booted);
    const staged = known.staged === undefined ? undefined : await whole(known.staged);
    const rollback = known.rollback === undefined ? undefined : await whole(known.rollback);
    return (cached = { key, known, booted, staged, rollback });
  }

  async function can(signal: AbortSignal): Promise<OsAbilities> {
    if (abilities !== undefined) return abilities;
    const entry = await files.read("/usr/lib/os-release", signal);
    const id =
      entry?.kind === "file" ? /^ID="?([\w.-]+)"?$/m.exec(new TextDecoder().decode(entry.contents))?.[1] : undefined;
    const isEnterprise = enterprise.includes(id ?? "");
    return (abilities = {
      images: true,
      kernelArguments: true,
      packages: isEnterprise,
      kernelTypes: isEnterprise
        ? ["default", "realtime", ...(architecture === "arm64" ? (["64k-pages"] as const) : [])]
        : ["default"],
    });
  }

  /**
   * One transaction after the other: rpm-ostree refuses two at once. The next pass observes the changed deployments.
   */
  async function transaction(words: readonly string[], signal: AbortSignal): Promise<void> {
    cached = undefined;
    await commands.must(["rpm-ostree", ...words], { kind: "transaction", signal });
  }

  const cleanUp = (signal: AbortSignal) => transaction(["cleanup", "--pending"], signal);

  /**
   * Packages of an extensions image as a repository of the machine, for as long as `work` takes. Only that folder is
   * unpacked.
   */
  async function withPackages<T>(image: string | undefined, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await removeRepository(signal);
    if (image === undefined) return work();
    const container = `machine-config-daemon-${random.uuid().slice(0, 8)}`;
    const folder = `${extensionsFolder}/${container}`;
    try {
      await pulls.linkAuthFile(signal);
      const environment = await pulls.proxy(signal);
      // The name comes from a MachineConfig: podman would also take options, and files of the machine.
      await pulls.imageReference(image, signal);
      const settings = ["--net=none", `--name=${container}`, `--authfile=${authFile}`];
      const pull = ["podman", "create", ...settings, "--", image, "true"];
      const created = await commands.run(pull, { kind: "pull", environment, signal });
      if (created.code !== 0) throw imageFailure(image, pull, created);
      await files.makeFolder(folder, { mode: 0o755, uid: 0, gid: 0 }, signal);
      await commands.must(["podman", "cp", `${container}:${extensionsInImage}/.`, folder], {
        kind: "transaction",
        signal,
      });
      // What podman copies has a label of containers; rpm-ostreed may not read that (openshift/machine-config-operator
      // pkg/daemon/update.go (main)).
      if ((await files.read("/sys/fs/selinux/enforce", signal)) !== undefined)
        await commands.must(["chcon", "--recursive", "--type=var_run_t", folder], { kind: "transaction", signal });
      const text = `[coreos-extensions]\nname=Extensions of the operating system\nenabled=1\nmetadata_expire=1m\nbaseurl=file://${folder}\ngpgcheck=0\nskip_if_unavailable=False\n`;
      await files.write(
        [
          {
            path: repositoryFile,
            entry: { kind: "file", contents: new TextEncoder().encode(text), mode: 0o644, uid: 0, gid: 0 },
          },
        ],
        signal,
      );
      return await work();
    } finally {
      // Also after an abort: what it left would be found by every later transaction.
      const ending = new AbortController().signal;
      await commands.run(["podman", "rm", "--force", "--ignore", container], { kind: "query", signal: ending });
      await removeRepository(ending);
    }
  }

  async function removeRepository(signal: AbortSignal): Promise<void> {
    await files.remove(repositoryFile, signal);
    await removeTree(disk, await locate(extensionsFolder));
  }

  /** Brings what is staged to `target`, from a machine where nothing is. */
  async function stageFromBooted(target: ObservedDeployment, known: KnownStatus, signal: AbortSignal): Promise<void> {
    const { booted } = known;
    const movesImage = target.image !== booted.image;
    const movesKernel = target.kernelType !== booted.kernelType || (movesImage && booted.kernelType !== "default");
    // Another kernel belongs to the image that it was put into.
    if (movesKernel && booted.kernelType !== "default")
      await transaction(
        ["override", "reset", ...booted.removedPackages, ...booted.kernelPackages.map((name) => `--uninstall=${name}`)],
        signal,
      );
    const install = target.packages.filter((name) => !booted.packages.includes(name));
    const uninstall = booted.packages.filter((name) => !target.packages.includes(name));
    if (movesImage) {
      await pulls.linkAuthFile(signal);
      const words = [
        "rebase",
        "--experimental",
        ...install.map((name) => `--install=${name}`),
        ...uninstall.map((name) => `--uninstall=${name}`),
        await pulls.imageReference(target.image, signal),
      ];
      cached = undefined;
      const result = await commands.run(["rpm-ostree", ...words], { kind: "transaction", signal });
      if (result.code !== 0)
        throw /transaction in progress/i.test(result.stderr) || install.length > 0
          ? commandFailure(["rpm-ostree", ...words], result)
          : imageFailure(target.image, ["rpm-ostree", ...words], result);
    } else {
      // Not `update`, which would also take a newer image where the machine follows a tag.
      if (install.length > 0) await transaction(["install", "--idempotent", "--allow-inactive", ...install], signal);
      if (uninstall.length > 0) await transaction(["uninstall", ...uninstall], signal);
    }
    if (movesKernel && target.kernelType !== "default")
      await transaction(
        ["override", "remove", ...defaultKernel, ...otherKernels[target.kernelType].map((name) => `--install=${name}`)],
        signal,
      );
    // By exact difference: `--append-if-missing` would lose an argument that is wanted twice.
    const now = kernelWords(await commands.must(["rpm-ostree", "kargs"], { kind: "query", signal }));
    const remove = withoutMultiset(now, target.kernelArguments);
    const add = withoutMultiset(target.kernelArguments, now);
    if (remove.length + add.length > 0)
      await transaction(
        ["kargs", ...remove.map((word) => `--delete=${word}`), ...add.map((word) => `--append=${word}`)],
        signal,
      );
  }

  return {
    async status(signal) {
      const { booted, staged, rollback } = await look(signal);
      return {
        bootId: await facts.bootId(),
        booted,
        staged,
        rollback,
        fips: await facts.fips(),
        can: await can(signal),
      };
    },
    prefetch: (image, signal) => pulls.fetch(image, signal),
    labels: (image, signal) => pulls.labels(image, signal),
    async stage(target, packagesFrom, signal) {
      const before = await look(signal);
      if (before.staged !== undefined && sameDeployment(before.staged, target)) return;
      const beyond = await can(signal);
      if (
        (!beyond.packages && !sameMultiset(target.packages, before.booted.packages)) ||
        !beyond.kernelTypes.includes(target.kernelType)
      )
        throw new McoError("MCO_HOST_COMMAND_FAILED", {
          problem: "this machine cannot have these packages or this kernel",
          retryable: false,
        });
      if (before.staged !== undefined) await cleanUp(signal);
      try {
        await withPackages(packagesFrom, () => stageFromBooted(target, before.known, signal), signal);
        const { booted, staged } = await look(signal);
        if (!sameDeployment(staged ?? booted, target))
          throw new McoError("MCO_HOST_COMMAND_FAILED", {
            problem: "rpm-ostree staged something else than it was asked for",
            wanted: target,
            staged,
            retryable: true,
          });
      } catch (error) {
        // Undoing only discards the staged deployment; its output does not matter beside the reason for it.
        await cleanUp(new AbortController().signal).catch(() => undefined);
        throw error;
      }
    },
    async discardStaged(signal) {
      if ((await look(signal)).staged !== undefined) await cleanUp(signal);
      await removeRepository(signal);
    },
    async bootPrevious(signal) {
      const { known } = await look(signal);
      if (known.rollback === undefined)
        throw new McoError("MCO_HOST_COMMAND_FAILED", {
          problem: "there is no deployment to go back to",
          retryable: false,
        });
      if (known.staged !== undefined) await cleanUp(signal);
      // Said twice it would go forward again.
      if (known.rollback.index > known.booted.index) await transaction(["rollback"], signal);
    },
    async installed(packages, signal) {
      if (packages.length === 0) return [];
      const words = ["rpm", "-q", "--queryformat=%{NAME}\\n", ...packages];
      const result = await commands.run(words, { kind: "query", signal });
      const lines = new Set(result.stdout.split("\n"));
      const missing = packages.filter((name) => lines.has(`package ${name} is not installed`));
      // It ends with the number of those that it does not know (rpm(8)); any other failure says nothing about packages.
      if (result.code !== missing.length) throw commandFailure(words, result);
      return packages.filter((name) => !missing.includes(name));
    },
    async finaliseFailure(signal) {
      const bootId = await facts.bootId();
      if (failure?.bootId !== bootId) {
        // No journal of the boot before is no news of a failure.
        const { stdout } = await commands.run(
          [
            "journalctl",
            "--boot=-1",
            "--unit=ostree-finalize-staged.service",
            "--output=cat",
            "--no-pager",
            "--lines=200",
          ],
          { kind: "query", signal },
        );
        failure = { bootId, reason: stdout.split("\n").find((line) => line.startsWith("error:")) };
      }
      return failure.reason;
    },
    reboot: (because, signal) => reboot(commands, random, because, true, signal),
  };
}

/** A machine whose operating system is managed elsewhere: it has files and units, and can be rebooted. */
export function foreignOs({
  commands,
  facts,
  random,
}: Pick<RpmOstreeOsOptions, "commands" | "facts" | "random">): HostOs {
  const refuse = async (): Promise<never> => {
    throw new McoError("MCO_HOST_COMMAND_FAILED", {
      problem: "this machine's operating system is not kept by ostree",
      retryable: false,
    });
  };
  return {
    async status() {
      return {
        bootId: await facts.bootId(),
        booted: { image: "", kernelArguments: [], packages: [], kernelType: "default" },
        staged: undefined,
        rollback: undefined,
        fips: await facts.fips(),
        can: { images: false, kernelArguments: false, packages: false, kernelTypes: ["default"] },
      };
    },
    prefetch: refuse,
    labels: refuse,
    stage: refuse,
    bootPrevious: refuse,
    discardStaged: async () => undefined,
    installed: async () => [],
    finaliseFailure: async () => undefined,
    reboot: (because, signal) => reboot(commands, random, because, false, signal),
  };
}
