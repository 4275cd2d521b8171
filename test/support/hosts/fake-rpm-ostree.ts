import { createHash, randomUUID } from "node:crypto";
import * as fs from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Processes, RunResult } from "../../../src/ports/process.ts";
import { accountLine, withPasswordField } from "../../../src/host/accounts.ts";
import { systemDisk } from "../../../src/host/directory/disk.ts";
import { readTextIfThere, statIfThere } from "../../../src/host/directory/durable-writes.ts";
import { realOwners } from "../../../src/host/directory/ownership.ts";
import { heldBelow } from "../../../src/host/directory/held-disk.ts";
import { entryAt, rootFiles } from "../../../src/host/directory/root-files.ts";
import { entriesBelow, filesBelow, resolveInRoot } from "../../../src/host/directory/root-folder.ts";
import { mergeEtc } from "../../../src/host/etc-merge.ts";
import type { HostEntry, Link, HostMachine, PlainFile } from "../../../src/host/host.ts";
import { sameEntry } from "../../../src/host/same-entry.ts";
import { type UnitModelState, emptyUnitModel, unitModel } from "../../../src/host/unit-model.ts";
import { defaultKernel, kernelWords } from "../../../src/host/rpm-ostree/read-status.ts";

/**
 * A test double of a real machine's programs on a folder. It does what their documents say and refuses what they do not
 * mention; each rule names its source. Calls of a driver that break the rules are kept in `violations`.
 */
export interface FakeSystem extends HostMachine {
  readonly processes: Processes;
  /** Undocumented commands, and options that the command does not have. */
  readonly violations: readonly string[];
  /** Every command that was run, without chroot. */
  readonly ran: readonly (readonly string[])[];
  readonly reboots: string[];
  seenBy(service: string): Readonly<Record<string, string>>;
  countsOf(service: string): { readonly restarts: number; readonly reloads: number };
  failToFinalise(reason: string): Promise<void>;
  breakUnits(names: readonly string[]): Promise<void>;
  /** Faults: the next command that begins with this text ends as given, whatever it would have done. */
  failNext(beginning: string, result: { readonly code: number; readonly stderr: string }): void;
  /** Units that report a failed reload although `systemctl reload` went well. */
  readonly quietlyBroken: Set<string>;
  /** Acts like a person at the machine, between our commands. */
  readonly os: { booted: FakeDeployment; staged: FakeDeployment | undefined; rollback: FakeDeployment | undefined };
  /** The state outside the folder, so that a copy of the folder can be a system of its own. */
  state(): FakeState;
}

export interface FakeState {
  readonly booted: FakeDeployment;
  readonly rollback: FakeDeployment | undefined;
  readonly units: UnitModelState;
}

export interface FakeDeployment {
  readonly reference: string;
  readonly kernelArguments: readonly string[];
  readonly packages: readonly string[];
  readonly removals: readonly string[];
}

export interface FakeSystemOptions {
  readonly root: string;
  readonly images: Readonly<
    Record<
      string,
      {
        readonly etc: Readonly<Record<string, string | PlainFile | Link>>;
        readonly usr: Readonly<Record<string, string | PlainFile | Link>>;
        readonly labels?: Readonly<Record<string, string>>;
      }
    >
  >;
  readonly image: string;
  /** Packages in the repository of an extensions image. */
  readonly extensions: readonly string[];
  /** With it, `root` holds a copy of another fake system's folder. */
  readonly like?: FakeState;
  /** What the unit that applies the image's content does when it is started. */
  readonly applyImageContent?: () => Promise<void>;
}

/** The day on which passwords of fake systems change, in days since 1970 (shadow(5)). */
export const passwordDay = 20_000;

class Ended extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
const fail = (message: string, code = 1): never => {
  throw new Ended(code, message);
};

interface Parsed {
  readonly flags: ReadonlySet<string>;
  readonly values: (name: string) => readonly string[];
  readonly rest: readonly string[];
}

export async function fakeSystem({
  root,
  images,
  image,
  extensions,
  like,
  applyImageContent,
}: FakeSystemOptions): Promise<FakeSystem> {
  const at = (path: string) => join(root, path);
  const locate = (path: string) => resolveInRoot(root, path);
  const write = async (path: string, text: string, mode = 0o644) => {
    await fs.mkdir(dirname(at(path)), { recursive: true });
    await fs.writeFile(at(path), text, { mode });
  };

  const violations: string[] = [];
  const ran: (readonly string[])[] = [];
  const reboots: string[] = [];
  const faults: { beginning: string; result: { code: number; stderr: string } }[] = [];
  const quietlyBroken = new Set<string>();
  const quietlyFailed = new Set<string>();
  const containers = new Map<string, string>();
  /** Images in podman's storage. */
  const stored = new Set<string>();
  const transientUnits = new Set<string>();
  let broken: readonly string[] = [];
  let units: UnitModelState = structuredClone(like?.units) ?? emptyUnitModel();
  let nextFinaliseFailure: string | undefined;
  let previousJournal: readonly string[] | undefined;
  let isBusy = false;
  const os: FakeSystem["os"] = {
    booted: like?.booted ?? {
      reference: `ostree-unverified-registry:${image}`,
      kernelArguments: ["ostree=/ostree/boot.1/fake/0"],
      packages: [],
      removals: [],
    },
    staged: undefined,
    rollback: like?.rollback,
  };
  /** The next boot uses the deployment that was booted before. */
  let goesBack = false;
  const rollbackEtc = "ostree/rollback-etc";
  /** Numbered, in display order. */
  const deployments = (): readonly {
    readonly deployment: FakeDeployment;
    readonly is: { booted: boolean; staged: boolean };
  }[] => {
    const booted = { deployment: os.booted, is: { booted: true, staged: false } };
    const rollback =
      os.rollback === undefined ? [] : [{ deployment: os.rollback, is: { booted: false, staged: false } }];
    return [
      ...(os.staged === undefined ? [] : [{ deployment: os.staged, is: { booted: false, staged: true } }]),
      ...(goesBack ? [...rollback, booted] : [booted, ...rollback]),
    ];
  };
  const pullspec = (reference: string) =>
    reference.replace(/^ostree-image-signed:docker:\/\/|^ostree-unverified-registry:/, "");

  async function layDownUsr(name: string): Promise<void> {
    const { etc, usr } = images[name] ?? fail(`no image ${name}`);
    await fs.rm(at("usr"), { recursive: true, force: true });
    await fs.mkdir(at("usr"), { recursive: true });
    await fs.symlink("../var/usrlocal", at("usr/local"));
    for (const [path, file] of [
      ...Object.entries(etc).map(([path, each]) => [`/usr${path}`, each] as const),
      ...Object.entries(usr),
    ]) {
      if (typeof file === "string") await write(path, file, path.endsWith("/shadow") ? 0o600 : 0o644);
      else if (file.kind === "link") {
        await fs.mkdir(dirname(at(path)), { recursive: true });
        await fs.symlink(file.target, at(path));
      } else {
        await write(path, new TextDecoder().decode(file.contents));
        await fs.chown(at(path), file.uid, file.gid);
        await fs.chmod(at(path), file.mode);
      }
    }
  }

  if (like === undefined) {
    await layDownUsr(image);
    await fs.cp(at("usr/etc"), at("etc"), { recursive: true });
    await write("/ostree/deploy/stateroot", "");
    await write("/var/lib/kubelet/config.json", '{"auths":{}}', 0o600);
    for (const folder of [
      "run/ostree",
      "proc/sys/kernel/random",
      "proc/sys/crypto",
      "etc/yum.repos.d",
      "var/home/core",
      "var/roothome",
      "var/opt",
      "var/srv",
      "var/mnt",
      "var/usrlocal",
    ])
      await fs.mkdir(at(folder), { recursive: true });
    await fs.chown(at("var/home/core"), 1000, 1000);
    // ostree(1), "adapting existing systems": homes are state, not system.
    await fs.symlink("var/home", at("home"));
    await fs.symlink("var/roothome", at("root"));
    for (const name of ["opt", "srv", "mnt"]) await fs.symlink(`var/${name}`, at(name));
    await write("/proc/sys/crypto/fips_enabled", "0\n");
  }
  await startBoot();

  async function startBoot(): Promise<void> {
    await fs.rm(at("run"), { recursive: true, force: true });
    await fs.mkdir(at("run/ostree"), { recursive: true });
    await write("/run/ostree-booted", "");
    await write("/proc/sys/kernel/random/boot_id", `${randomUUID()}\n`);
    transientUnits.clear();
    containers.clear();
  }

  const files = rootFiles({
    hold: heldBelow(root),
    locate,
    disk: systemDisk,
    owners: realOwners(systemDisk),
    recordPath: async () => join(root, "..", "fake-made.json"),
  });
  const model = unitModel({
    files,
    listTree: async (folder) => (await filesBelow(await locate(folder))).map((path) => `${folder}/${path}`),
    digest: (contents) => createHash("sha256").update(contents).digest("hex"),
    load: async () => structuredClone(units),
    store: async (state) => {
      units = state;
    },
    broken: async () => broken,
    applyImageContent,
  });
  const signal = new AbortController().signal;

  /** Parses a command line; an option that is in neither list is one that the program does not have. */
  function parse(
    command: string,
    words: readonly string[],
    flags: readonly string[],
    values: readonly string[],
  ): Parsed {
    const seen = new Set<string>();
    const given = new Map<string, string[]>();
    const rest: string[] = [];
    for (let index = 0; index < words.length; index += 1) {
      const word = words[index] ?? "";
      if (word === "--") {
        rest.push(...words.slice(index + 1));
        break;
      }
      if (!word.startsWith("-")) {
        rest.push(word);
        continue;
      }
      const equals = word.indexOf("=");
      const name = equals < 0 ? word : word.slice(0, equals);
      if (equals < 0 && flags.includes(name)) seen.add(name);
      else if (equals >= 0 && values.includes(name))
        given.set(name, [...(given.get(name) ?? []), word.slice(equals + 1)]);
      else if (equals < 0 && values.includes(name) && !name.startsWith("--"))
        given.set(name, [...(given.get(name) ?? []), words[(index += 1)] ?? ""]);
      else {
        violations.push(`${command} has no option ${word}`);
        fail(`error: Unknown option ${word}`);
      }
    }
    return { flags: seen, values: (name) => given.get(name) ?? [], rest };
  }

  function unknown(words: readonly string[]): never {
    violations.push(`nothing documents: ${words.join(" ")}`);
    return fail(`unknown command ${words.join(" ")}`, 127);
  }

  /**
   * What the next transaction starts from: the pending deployment, if there is one (rpm-ostree(1), kargs: "the default
   * deployment").
   */
  const origin = () => os.staged ?? os.booted;

  async function stage(next: FakeDeployment): Promise<void> {
    os.staged = next;
    // ostreedev/ostree src/libostree/ostree-sysroot-deploy.c: a staged deployment is recorded in /run, which a power
    // cut empties.
    await write("/run/ostree/staged-deployment", JSON.stringify(next));
    await touchDeployments();
  }
  const touchDeployments = async () => {
    await write(`/ostree/deploy/${randomUUID()}`, "");
  };

  /**
   * Packages that are layered come from enabled repositories, at every transaction that makes a new tree
   * (rpm-ostree(1), install and rebase).
   */
  async function resolvePackages(packages: readonly string[]): Promise<void> {
    if (packages.length === 0) return;
    const repository = await readTextIfThere(at("etc/yum.repos.d/coreos-extensions.repo"));
    const folder = /^baseurl=file:\/\/(.*)$/m.exec(repository ?? "")?.[1];
    const available = folder === undefined ? [] : ((await fs.readdir(at(folder)).catch(() => [])) as readonly string[]);
    const missing = packages.filter((name) => !available.includes(`${name}.rpm`));
    if (missing.length > 0) fail(`error: Packages not found: ${missing.join(", ")}`);
  }

  function added(packages: readonly string[], names: readonly string[], isIdempotent: boolean): readonly string[] {
    for (const name of names)
      if (packages.includes(name) && !isIdempotent) fail(`error: Package/capability '${name}' is already requested`);
    return [...new Set([...packages, ...names])].sort();
  }
  function without(packages: readonly string[], names: readonly string[]): readonly string[] {
    for (const name of names)
      if (!packages.includes(name)) fail(`error: Package/capability '${name}' is not currently requested`);
    return packages.filter((name) => !names.includes(name));
  }

  async function fetchable(reference: string): Promise<string> {
    const scheme =
      /^(ostree-image-signed:docker:\/\/|ostree-unverified-registry:)(.+)$/.exec(reference) ??
      fail(`error: Invalid refspec ${reference}`);
    const policy = JSON.parse(
      (await readTextIfThere(at("etc/containers/policy.json"))) ??
        fail("error: open /etc/containers/policy.json: no such file or directory"),
    ) as { readonly default: readonly { readonly type: string }[] };
    // docs.rs ostree-ext SignatureSource: a default that accepts anything is rejected by the signed scheme.
    if (
      scheme[1]?.startsWith("ostree-image-signed") === true &&
      policy.default.some(({ type }) => type === "insecureAcceptAnything")
    )
      fail("error: containers-policy.json specifies a default of `insecureAcceptAnything`; refusing usage");
    if (images[scheme[2] ?? ""] === undefined) fail(`error: reading manifest in ${scheme[2]}: manifest unknown`);
    return scheme[2] ?? "";
  }

  async function rpmOstree(words: readonly string[]): Promise<string> {
    const [verb = "", ...args] = words;
    const packageOptions = ["--install", "--uninstall"];
    switch (verb) {
      case "status": {
        if (!parse("rpm-ostree status", args, ["--json", "--booted", "--verbose"], ["--jsonpath"]).flags.has("--json"))
          return "State: idle\n";
        const shown = (deployment: FakeDeployment, is: { booted: boolean; staged: boolean }) => ({
          ...is,
          "container-image-reference": deployment.reference,
          "container-image-reference-digest": /@(sha256:\w+)$/.exec(deployment.reference)?.[1],
          "requested-packages": deployment.packages,
          "requested-base-removals": deployment.removals,
        });
        return JSON.stringify({
          deployments: deployments().map(({ deployment, is }) => shown(deployment, is)),
          transaction: null,
        });
      }
      case "kargs": {
        const { values, flags } = parse(
          "rpm-ostree kargs",
          args,
          ["--editor", "--import-proc-cmdline", "--unchanged-exit-77", "--reboot"],
          ["--os", "--deploy-index", "--append", "--append-if-missing", "--delete", "--delete-if-present", "--replace"],
        );
        const changes = ["--append", "--append-if-missing", "--delete", "--delete-if-present", "--replace"].some(
          (name) => values(name).length > 0,
        );
        // coreos/rpm-ostree src/app/rpmostree-builtin-kargs.cxx (main): the checks, and what is shown without a change.
        if (values("--delete").length > 0 && values("--replace").length > 0)
          fail("error: Cannot specify both --delete and --replace");
        if (flags.has("--import-proc-cmdline") && values("--deploy-index").length > 0)
          fail("error: Cannot specify both --import-from-proc-cmdline and --deploy-index");
        const list = deployments().map(({ deployment }) => deployment);
        const index = values("--deploy-index")[0];
        const base =
          (index === undefined ? list[0] : list[Number(index)]) ??
          fail(`error: Out of range deployment index ${index}, expected < ${list.length}`);
        if (!changes) return `${base.kernelArguments.join(" ")}\n`;
        return transact(async () => {
          let next = [...base.kernelArguments];
          for (const word of values("--delete")) {
            if (!next.includes(word)) fail(`error: No karg '${word}' found`);
            next.splice(next.indexOf(word), 1);
          }
          for (const word of values("--delete-if-present")) next = next.filter((other) => other !== word);
          next.push(...values("--append")); // Twice is twice: "useful with e.g. console= that can be used multiple times".
          for (const word of values("--append-if-missing")) if (!next.includes(word)) next.push(word);
          if (values("--replace").length > 0) unknown(["rpm-ostree", ...words]);
          await stage({ ...base, kernelArguments: next });
        });
      }
      case "rebase": {
        const { rest, values } = parse(
          "rpm-ostree rebase",
          args,
          [
            "--experimental",
            "--cache-only",
            "--download-only",
            "--disallow-downgrade",
            "--bypass-driver",
            "--skip-purge",
            "--reboot",
          ],
          ["--os", "--branch", "--remote", "--custom-origin-url", "--custom-origin-description", ...packageOptions],
        );
        if (rest.length !== 1) fail("error: Must specify refspec, or -b branch or -r remote");
        return transact(async () => {
          const base = origin();
          const [reference = ""] = rest;
          await fetchable(reference);
          if (reference === base.reference) fail("error: Old and new refs are equal");
          const packages = added(without(base.packages, values("--uninstall")), values("--install"), false);
          await resolvePackages(packages);
          await stage({ ...base, reference, packages });
        });
      }
      case "install": {
        const { rest, flags } = parse(
          "rpm-ostree install",
          args,
          [
            "--idempotent",
            "--allow-inactive",
            "--cache-only",
            "--download-only",
            "--dry-run",
            "--apply-live",
            "--reboot",
          ],
          ["--uninstall"],
        );
        if (rest.length === 0) fail("error: At least one PACKAGE must be specified");
        return transact(async () => {
          const packages = added(origin().packages, rest, flags.has("--idempotent"));
          await resolvePackages(packages);
          await stage({ ...origin(), packages });
        });
      }
      case "uninstall": {
        const { rest } = parse("rpm-ostree uninstall", args, ["--dry-run", "--reboot"], ["--install"]);
        if (rest.length === 0) fail("error: At least one PACKAGE must be specified");
        return transact(async () => {
          const packages = without(origin().packages, rest);
          // The remaining ones are fetched again (rpm-ostree(1), uninstall).
          await resolvePackages(packages);
          await stage({ ...origin(), packages });
        });
      }
      case "override": {
        const [subcommand = "", ...more] = args;
        const { rest, values } = parse(
          `rpm-ostree override ${subcommand}`,
          more,
          ["--cache-only", "--reboot", ...(subcommand === "reset" ? ["--all"] : [])],
          packageOptions,
        );
        if (subcommand !== "remove" && subcommand !== "reset") unknown(["rpm-ostree", ...words]);
        if (rest.length === 0) fail("error: At least one PACKAGE must be specified");
        return transact(async () => {
          const base = origin();
          const packages = added(without(base.packages, values("--uninstall")), values("--install"), false);
          for (const name of rest) {
            if (subcommand === "remove" && !(defaultKernel as readonly string[]).includes(name))
              fail(`error: Package "${name}" not found`);
            if (subcommand === "remove" && base.removals.includes(name))
              fail(`error: Override already exists for package '${name}'`);
            if (subcommand === "reset" && !base.removals.includes(name))
              fail(`error: No overrides for package '${name}'`);
          }
          await resolvePackages(packages);
          await stage({
            ...base,
            packages,
            removals:
              subcommand === "remove"
                ? [...base.removals, ...rest]
                : base.removals.filter((name) => !rest.includes(name)),
          });
        });
      }
      case "rollback":
        // rpm-ostree(1), rollback: the order of the first two changes, and nothing else.
        parse("rpm-ostree rollback", args, ["--reboot"], []);
        return transact(async () => {
          if (os.rollback === undefined) fail("error: No rollback deployment found");
          goesBack = !goesBack;
          await touchDeployments();
        });
      case "cleanup": {
        const { flags } = parse(
          "rpm-ostree cleanup",
          args,
          ["--pending", "-p", "--rollback", "-r", "--base", "-b", "--repomd", "-m"],
          ["--os"],
        );
        if (flags.size === 0) fail("error: At least one cleanup option must be specified");
        return transact(async () => {
          if (!flags.has("--pending") && !flags.has("-p")) return;
          os.staged = undefined;
          await fs.rm(at("run/ostree/staged-deployment"), { force: true });
          await touchDeployments();
        });
      }
      default:
        return unknown(["rpm-ostree", ...words]);
    }
  }

  /** One at a time (coreos/rpm-ostree docs/architecture-daemon.md): a second one is refused, not queued. */
  async function transact(work: () => Promise<void>): Promise<string> {
    if (isBusy)
      fail("error: Transaction in progress: (null)\n You can cancel the current transaction with `rpm-ostree cancel`");
    isBusy = true;
    try {
      await new Promise((resolve) => setImmediate(resolve));
      await work();
      return "";
    } finally {
      isBusy = false;
    }
  }

  async function needsAuthFile(path: string | undefined): Promise<void> {
    const text = path === undefined ? undefined : await readTextIfThere(await resolveInRoot(root, path, {}, true));
    // containers-auth.json(5): a file that is named must be there.
    if (text === undefined)
      fail(`Error: credential file is not accessible: faccessat ${path}: no such file or directory`, 125);
    JSON.parse(text ?? "");
  }

  const isExtensions = (name: string) => name.includes("extensions");

  async function podman(words: readonly string[]): Promise<string> {
    const [verb = "", ...args] = words;
    switch (verb) {
      case "pull": {
        const { rest, values } = parse(
          "podman pull",
          args,
          ["--quiet", "--all-tags"],
          ["--authfile", "--cert-dir", "--platform"],
        );
        await needsAuthFile(values("--authfile")[0]);
        if (images[rest[0] ?? ""] === undefined)
          fail(`Error: initializing source docker://${rest[0]}: reading manifest: manifest unknown`, 125);
        stored.add(rest[0] ?? "");
        return "id\n";
      }
      case "image": {
        // podman-image-exists(1): 0 is yes, 1 is no.
        if (args[0] !== "exists") return unknown(["podman", ...words]);
        const [name = ""] = parse("podman image exists", args.slice(1), [], []).rest;
        if (!stored.has(name)) fail("", 1);
        return "";
      }
      case "create": {
        const { rest, values } = parse(
          "podman create",
          args,
          ["--rm"],
          ["--net", "--network", "--name", "--authfile", "--annotation"],
        );
        await needsAuthFile(values("--authfile")[0]);
        const [source = ""] = rest;
        const name = values("--name")[0] ?? randomUUID();
        if (images[source] === undefined) fail(`Error: reading manifest: manifest unknown`, 125);
        if (containers.has(name))
          fail(`Error: creating container storage: the container name "${name}" is already in use`, 125);
        containers.set(name, source);
        return "id\n";
      }
      case "cp": {
        const { rest } = parse("podman cp", args, ["--archive", "-a"], []);
        const [container = "", path = ""] = (rest[0] ?? "").split(":");
        if (!containers.has(container))
          fail(`Error: "${container}" is not a running container: no such container`, 125);
        if (path !== "/usr/share/rpm-ostree/extensions/.")
          fail(`Error: "${path}" could not be found on container ${container}: no such file or directory`, 125);
        // podman-cp(1): the destination of a folder's contents must be there.
        if ((await statIfThere(at(rest[1] ?? "")))?.isDirectory() !== true)
          fail(`Error: "${rest[1]}" could not be found on the host`, 125);
        for (const name of extensions) await write(`${rest[1]}/${name}.rpm`, "");
        return "";
      }
      case "rm":
        for (const name of parse("podman rm", args, ["--force", "--ignore"], ["--time"]).rest) containers.delete(name);
        return "";
      default:
        return unknown(["podman", ...words]);
    }
  }

  async function systemctl(words: readonly string[]): Promise<string> {
    const [verb = "", ...args] = words;
    const { rest, values } = parse(
      `systemctl ${verb}`,
      args,
      verb === "show" ? ["--all", "--value"] : ["--now", "--no-block", "--quiet"],
      verb === "show" ? ["--property"] : [],
    );
    const [name = ""] = rest;
    const is = async (unit: string) => (await model.state([unit], signal)).get(unit) ?? fail(`no state of ${unit}`);
    switch (verb) {
      case "is-enabled": {
        const { enablement } = await is(name);
        // systemctl(1): a unit that is not enabled is a failure, too; one without a file has no word.
        if (enablement === "absent") fail(`Failed to get unit file state for ${name}: No such file or directory`);
        if (enablement === "enabled" || enablement === "static") return `${enablement}\n`;
        throw Object.assign(new Ended(1, ""), { stdout: `${enablement}\n` });
      }
      case "show": {
        // systemd/systemd src/core/manager.c (v252): a template cannot be loaded.
        const template = rest.find((unit) => unit.includes("@."));
        if (template !== undefined)
          fail(`Failed to get properties: Unit name ${template} is missing the instance name.`);
        const blocks = await Promise.all(
          rest.map(async (unit) => {
            const { enablement, activity } = await is(unit);
            // org.freedesktop.systemd1(5): a unit without a file is not-found, and has no state of a file.
            const all: Readonly<Record<string, string>> = {
              Id: unit,
              LoadState: enablement === "absent" ? "not-found" : enablement === "masked" ? "masked" : "loaded",
              ActiveState: activity === "failed" && units.services[unit]?.active === true ? "active" : activity,
              UnitFileState: enablement === "absent" ? "" : enablement,
              Result: activity === "failed" && units.services[unit]?.active !== true ? "exit-code" : "success",
              ReloadResult:
                quietlyFailed.has(unit) || (activity === "failed" && units.services[unit]?.active === true)
                  ? "exit-code"
                  : "success",
            };
            return (values("--property")[0] ?? "")
              .split(",")
              .map((property) => `${property}=${all[property] ?? ""}`)
              .join("\n");
          }),
        );
        return `${blocks.join("\n\n")}\n`;
      }
      case "start":
        // systemctl(1): --no-block does not wait.
        if (name !== "default.target") unknown(["systemctl", ...words]);
        await model.startEnabled(signal);
        return "";
      case "daemon-reload":
        await model.daemonReload(signal);
        return "";
      case "enable":
      case "disable":
      case "preset": {
        if (rest.length === 0) fail("Too few arguments.");
        const { enablement } = await is(name);
        // systemctl(1), exit status; src/shared/install.c (systemd/systemd, main): neither a unit that has no file nor
        // a masked one.
        if (enablement === "absent") fail(`Failed to ${verb} unit: Unit file ${name} does not exist.`);
        if (enablement === "masked" && verb !== "disable")
          fail(`Failed to ${verb} unit: Unit file /etc/systemd/system/${name} is masked.`);
        await model[verb](name, signal);
        return "";
      }
      case "reload":
      case "restart": {
        const { enablement, activity } = await is(name);
        if (enablement === "absent") fail(`Failed to ${verb} ${name}: Unit ${name} not found.`, 5);
        if (enablement === "masked") fail(`Failed to ${verb} ${name}: Unit ${name} is masked.`);
        if (verb === "reload" && activity === "inactive") fail(`${name} is not active, cannot reload.`);
        await model[verb](name, signal).catch(() =>
          fail(`Job for ${name} failed because the control process exited with error code.`),
        );
        if (verb === "restart") quietlyFailed.delete(name);
        if (verb === "reload" && quietlyBroken.has(name)) quietlyFailed.add(name);
        return "";
      }
      default:
        return unknown(["systemctl", ...words]);
    }
  }

  async function program(words: readonly string[], input: string): Promise<string> {
    const [name = "", ...args] = words;
    switch (name) {
      case "rpm-ostree":
        return rpmOstree(args);
      case "podman":
        return podman(args);
      case "systemctl":
        return systemctl(args);
      case "ostree": {
        // bootc-dev/bootc ostree-ext/src/cli.rs (main): the repository and the reference, by place.
        if (args.slice(0, 3).join(" ") !== "container image pull") unknown(words);
        const { rest } = parse(
          "ostree container image pull",
          args.slice(3),
          ["--quiet", "--auth-anonymous", "--insecure-skip-tls-verification"],
          ["--authfile", "--cert-dir", "--check"],
        );
        if (rest.length !== 2 || rest[0] !== "/ostree/repo")
          fail("error: the following required arguments were not provided: <REPO> <IMGREF>", 2);
        if (isExtensions(await fetchable(rest[1] ?? ""))) fail("error: Missing ostree.final-diffid label");
        return "";
      }
      case "skopeo": {
        const { rest, values, flags } = parse(
          "skopeo inspect",
          args.slice(1),
          ["--config", "--raw", "--no-tags"],
          ["--authfile", "--format", "--cert-dir"],
        );
        if (args[0] !== "inspect" || rest.length !== 1 || (!flags.has("--config") && !flags.has("--no-tags")))
          unknown(words);
        await needsAuthFile(values("--authfile")[0]);
        const source = rest[0]?.replace(/^docker:\/\//, "") ?? "";
        if (images[source] === undefined)
          fail(`time="now" level=fatal msg="Error parsing image name: reading manifest: manifest unknown"`);
        // containers/skopeo cmd/skopeo/inspect/output.go (main)
        if (!flags.has("--config"))
          return JSON.stringify({ Name: source, LayersData: [{ MIMEType: "x", Digest: "sha256:aa", Size: 1234 }] });
        return JSON.stringify({
          architecture: "amd64",
          config: { Labels: isExtensions(source) ? {} : { "ostree.bootable": "true", ...images[source]?.labels } },
        });
      }
      case "rpm": {
        const { rest, flags } = parse("rpm", args, ["-q", "-a"], ["--queryformat", "--qf"]);
        if (!flags.has("-q")) unknown(words);
        // rpm(8): the exit status is the number of packages that are not there.
        const has = [...os.booted.packages, ...defaultKernel.filter((each) => !os.booted.removals.includes(each))];
        const missing = rest.filter((each) => !has.includes(each));
        const text = rest
          .map((each) => (missing.includes(each) ? `package ${each} is not installed` : each))
          .join("\n");
        if (missing.length > 0) throw Object.assign(new Ended(missing.length, ""), { stdout: `${text}\n` });
        return `${text}\n`;
      }
      case "journalctl": {
        parse("journalctl", args, ["--no-pager"], ["--boot", "--unit", "--output", "--lines"]);
        return `${(previousJournal ?? fail("Specifying boot ID or boot offset has no effect, no persistent journal was found.")).join("\n")}\n`;
      }
      case "systemd-run": {
        const separator = args.findIndex((word) => !word.startsWith("-"));
        const { values } = parse(
          "systemd-run",
          args.slice(0, separator),
          ["--no-block", "--quiet"],
          ["--unit", "--description", "--property"],
        );
        const unit = values("--unit")[0] ?? "";
        if (transientUnits.has(unit))
          fail(
            `Failed to start transient service unit: Unit ${unit}.service was already loaded or has a fragment file.`,
          );
        transientUnits.add(unit);
        if (args.slice(separator).join(" ") !== "systemctl reboot") unknown(words);
        if (/[\n\r]/.test(values("--description")[0] ?? "")) fail("Failed to set unit properties: Invalid argument");
        reboots.push(values("--description")[0] ?? "");
        return "";
      }
      case "chpasswd": {
        // chpasswd(8): user_name:password on each line. Debian 12's was observed to take any field, and to record the
        // day.
        const { flags } = parse("chpasswd", args, ["--encrypted", "-e"], []);
        if (flags.size === 0) unknown(words);
        for (const line of input.split("\n").filter((each) => each !== "")) {
          const user = line.slice(0, line.indexOf(":"));
          const field = line.slice(line.indexOf(":") + 1);
          if (accountLine((await readTextIfThere(at("etc/passwd"))) ?? "", user) === undefined)
            fail(`chpasswd: (line 1, user ${user}) password not changed`);
          const shadow = withPasswordField((await readTextIfThere(at("etc/shadow"))) ?? "", user, field);
          await fs.writeFile(
            at("etc/shadow"),
            shadow.replace(new RegExp(`^(${user}:[^:]*):[^:]*`, "m"), (_, kept: string) => `${kept}:${passwordDay}`),
          );
        }
        return "";
      }
      case "update-ca-trust":
      case "chcon":
        return "";
      default:
        return unknown(words);
    }
  }

  async function answer(words: readonly string[], input: string): Promise<RunResult> {
    ran.push(words);
    const line = words.join(" ");
    const fault = faults.findIndex(({ beginning }) => line.startsWith(beginning));
    if (fault >= 0)
      return { signal: undefined, stdout: "", ...(faults.splice(fault, 1)[0]?.result ?? { code: 1, stderr: "" }) };
    try {
      return { code: 0, signal: undefined, stdout: await program(words, input), stderr: "" };
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      return {
        code: error.code,
        signal: undefined,
        stdout: "stdout" in error ? String(error.stdout) : "",
        stderr: error.message,
      };
    }
  }

  const treeEntries = async (folder: string) => {
    const entries = new Map<string, HostEntry>();
    for (const { path } of await entriesBelow(folder)) {
      const entry = await entryAt(join(folder, path), realOwners(systemDisk));
      if (entry !== undefined) entries.set(path, entry);
    }
    return entries;
  };

  /** What the finalisation of ostree does to /etc (ostree-admin-deploy(1)). */
  async function finalise(next: FakeDeployment): Promise<void> {
    const [oldDefaults, current] = [await treeEntries(at("usr/etc")), await treeEntries(at("etc"))];
    await layDownUsr(pullspec(next.reference));
    const merged = mergeEtc({ oldDefaults, current, newDefaults: await treeEntries(at("usr/etc")) }, sameEntry);
    await fs.rm(at(rollbackEtc), { recursive: true, force: true });
    await fs.rename(at("etc"), at(rollbackEtc));
    await fs.mkdir(at("etc"));
    for (const [path, entry] of [...merged].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const target = at(`etc/${path}`);
      await fs.mkdir(dirname(target), { recursive: true });
      if (entry.kind === "link") await fs.symlink(entry.target, target);
      else {
        if (entry.kind === "folder") await fs.mkdir(target, { recursive: true });
        else await fs.writeFile(target, entry.contents);
        await fs.chown(target, entry.uid, entry.gid);
        await fs.chmod(target, entry.mode);
      }
    }
    os.rollback = os.booted;
    os.booted = next;
  }

  /** Each deployment has its own /etc, which is not merged on the way back. */
  async function goBack(): Promise<void> {
    if (os.rollback === undefined) return;
    [os.booted, os.rollback] = [os.rollback, os.booted];
    await layDownUsr(pullspec(os.booted.reference));
    await fs.rename(at("etc"), at("ostree/next-etc"));
    await fs.rename(at(rollbackEtc), at("etc"));
    await fs.rename(at("ostree/next-etc"), at(rollbackEtc));
  }

  return {
    violations,
    ran,
    reboots,
    quietlyBroken,
    os,
    processes: {
      spawn: () => unknown(["(spawn)"]),
      async run(command, args, { input = "", env = {} }) {
        if (command !== "chroot" || args[0] !== root) return unknown([command, ...args]);
        if (env["RPMOSTREE_CLIENT_ID"] === undefined) violations.push("a command without the name of its client");
        return answer(args.slice(1), input);
      },
    },
    state: () => structuredClone({ booted: os.booted, rollback: os.rollback, units }),
    failNext: (beginning, result) => faults.push({ beginning, result }),
    seenBy: (service) => units.services[service]?.read ?? {},
    countsOf: (service) => ({
      restarts: units.services[service]?.restarts ?? 0,
      reloads: units.services[service]?.reloads ?? 0,
    }),
    async failToFinalise(reason) {
      nextFinaliseFailure = reason;
    },
    async breakUnits(names) {
      broken = names;
    },
    async boot({ orderly }) {
      const { staged } = os;
      os.staged = undefined;
      previousJournal = ["Starting OSTree Finalize Staged Deployment..."];
      if (goesBack) await goBack();
      else if (staged !== undefined && orderly) {
        if (nextFinaliseFailure === undefined)
          await finalise({
            ...staged,
            kernelArguments: ["ostree=/ostree/boot.0/fake/0", ...kernelWords(staged.kernelArguments.join(" "))],
          });
        else previousJournal = [...previousJournal, nextFinaliseFailure];
        nextFinaliseFailure = undefined;
      }
      goesBack = false;
      await touchDeployments();
      await startBoot();
      await model.boot(signal);
      return { bootId: ((await readTextIfThere(at("proc/sys/kernel/random/boot_id"))) ?? "").trim() };
    },
  };
}
