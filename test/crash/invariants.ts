import type { Node } from "../../src/api/foreign/kubernetes.ts";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { annotations, hostPaths, nodeStates } from "../../src/api/names.ts";
import { packagesOf } from "../../src/core/machine/deployment.ts";
import type { JournalLine } from "../../src/api/books/journal-line.ts";
import { foldBook } from "../../src/core/books/fold-book.ts";
import { journalOfNode, ringLimits } from "../../src/core/books/journal.ts";
import { linesOnDisk } from "../../src/daemon/machine-books.ts";
import { type NodeConfig, type WantedEntry, emptyNodeConfig } from "../../src/core/config/node-config.ts";
import { enablingOf, unitFolder, vendorUnitFolder } from "../../src/core/config/install-links.ts";
import { canary, images, nodeConfig } from "./contents.ts";
import { needsDrain, owesDrain } from "./needs-drain.ts";
import { readingsOf } from "./subjects.ts";
import type { CrashHarness, Scenario } from "./crash-harness.ts";
import type { Ledger } from "../../src/core/machine/observed-node.ts";

/** What holds no matter what kills the daemon, and when. */
export const invariants = {
  whole: "with no ledger open, the machine holds exactly the configuration that it was last proven to have",
  named:
    "with a ledger open, it names a target that the machine was given, and nothing has changed but what the old one and its targets name",
  ledgerFirst: "nothing of a configuration is touched before the ledger is open",
  drainFirst: "a ledger that owes a drain or a reboot is opened only once the node is drained for its target",
  reboots: "a reboot is owed, announced and drained for, and happens once for each settled change",
  debts: "a service has read what is on the disk, and was not disturbed more than once more for each crash",
  claims: "currentConfig never names what the disk does not hold",
  cordon: "a cordon of somebody else stays, and ours goes",
  own: "a daemon writes to its own node's objects only",
  secrets: "no content, key or hash is in a request, a log or a journal",
  converges: "once nothing goes wrong any more, the machine is on the newest target and says so",
  patient: "what fails is tried again with growing pauses",
  quiet: "a settled machine is left alone",
  books:
    "a line that is on the disk is in the journal, once and in its order, no number is given twice, and the last update has its end",
  residue: "what comes and goes again leaves the disk byte for byte as it was",
} as const;

export type Invariant = keyof typeof invariants;

export interface Violation {
  readonly invariant: Invariant;
  readonly what: string;
}

/** The daemon's own files, which no configuration names. */
const isOwn = (path: string) =>
  path.startsWith("/etc/machine-config-daemon/") ||
  path.startsWith(`${hostPaths.stateFolder}/`) ||
  path.startsWith("/run/");
const isEnablementLink = (path: string) => path.startsWith(`${unitFolder}/`) && /\.(wants|requires)\/[^/]+$/.test(path);
const annotation = (node: Node, key: string) => node.metadata.annotations?.[key] ?? "";

/** What a keeper needs to know about the past of a machine. */
export interface Past {
  /** The machine before its first configuration, and after people changed it. */
  readonly tree: ReadonlyMap<string, string>;
  readonly kernelArguments: readonly string[];
  /** Managed paths that a person has changed since the daemon was last in sync. */
  readonly handMade: ReadonlySet<string>;
  /** Targets of ledgers since none was open. */
  readonly inFlight: ReadonlySet<string>;
}

interface Documents {
  readonly ledger: Ledger | undefined;
  readonly previous: MachineConfig | undefined;
}

/** What a keeper sees of its machine, and of what happens to it. */
export interface Watched extends Pick<
  CrashHarness,
  | "subject"
  | "node"
  | "nodeName"
  | "configs"
  | "everDesired"
  | "policies"
  | "effects"
  | "never"
  | "history"
  | "reboots"
  | "handReboots"
> {
  readonly scenario: Partial<Scenario>;
  phase(type: string): string | undefined;
}

/** Watches one machine from outside, at every effect, and records every breach. */
export class Keeper {
  readonly violations: Violation[] = [];
  /** How often each invariant was checked: one that is never checked proves nothing. */
  readonly checks: Partial<Record<Invariant, number>> = {};
  readonly #harness: Watched;
  #base: ReadonlyMap<string, string> = new Map();
  #baseArguments: readonly string[] = [];
  readonly #handMade = new Set<string>();
  readonly #inFlight = new Set<string>();

  constructor(harness: Watched) {
    this.#harness = harness;
  }

  /** @param past of a machine that already had a configuration. */
  async begin(past: Past | undefined): Promise<void> {
    this.#base = past?.tree ?? (await this.#harness.subject.tree());
    this.#baseArguments =
      past?.kernelArguments ?? (await this.#harness.subject.host.os.status(this.#harness.never)).booted.kernelArguments;
    for (const path of past?.handMade ?? []) this.#handMade.add(path);
    for (const target of past?.inFlight ?? []) this.#inFlight.add(target);
  }

  get past(): Past {
    return {
      tree: this.#base,
      kernelArguments: this.#baseArguments,
      handMade: new Set(this.#handMade),
      inFlight: new Set(this.#inFlight),
    };
  }

  violated(invariant: Invariant, what: string): void {
    this.violations.push({ invariant, what: `${what} (after ${this.#harness.effects.slice(-3).join(", ")})` });
  }

  #checked(invariant: Invariant): void {
    this.checks[invariant] = (this.checks[invariant] ?? 0) + 1;
  }

  /** A person changes the machine: an unmanaged path belongs to the machine from now on. */
  async handMade(path: string): Promise<void> {
    const managed = (await this.#documents()).previous;
    if (nodeConfig(managed).entries.has(path)) this.#handMade.add(path);
    else {
      const now = (await this.#harness.subject.tree()).get(path);
      const base = new Map(this.#base);
      if (now === undefined) base.delete(path);
      else base.set(path, now);
      this.#base = base;
    }
  }

  async #documents(): Promise<Documents> {
    const { ledger } = this.#harness.subject.host;
    const read = async <T>(name: string) => {
      const text = await ledger.read(name, this.#harness.never);
      return text === undefined ? undefined : (JSON.parse(text) as T);
    };
    return {
      ledger: await read<Ledger>("ledger.json"),
      previous: previousIn(await ledger.read("previous.json", this.#harness.never)),
    };
  }

  /** Before an effect of the daemon on its machine. */
  async before(effect: string, args: readonly unknown[]): Promise<void> {
    const verb = effect.split(" ", 1)[0] ?? "";
    const [first] = args;
    if (verb === "ledger.write" && first === "ledger.json") return this.#opening(JSON.parse(String(args[1])) as Ledger);
    if (
      verb.startsWith("ledger.") ||
      verb.startsWith("books.") ||
      verb === "os.discardStaged" ||
      verb === "os.prefetch"
    )
      return;
    const paths =
      verb === "files.write"
        ? (first as readonly { path: string }[]).map(({ path }) => path)
        : verb.startsWith("files.")
          ? [String(first)]
          : [];
    if (paths.length > 0 && paths.every(isOwn)) return;
    this.#checked("ledgerFirst");
    const { ledger, previous } = await this.#documents();
    if (ledger === undefined) this.violated("ledgerFirst", `${effect} without a ledger`);
    if (verb === "os.reboot") await this.#rebooting(ledger, previous);
  }

  async #opening(ledger: Ledger): Promise<void> {
    this.#checked("drainFirst");
    const { ledger: open, previous } = await this.#documents();
    const { node, scenario } = this.#harness;
    const inService = previous !== undefined && scenario.onlyControlPlane !== true;
    if (!inService) return;
    const target = this.#harness.configs.get(ledger.target);
    const asks =
      open === undefined &&
      target !== undefined &&
      needsDrain(nodeConfig(previous), nodeConfig(target), this.#harness.policies);
    if (!owesDrain(ledger) && !asks) return;
    if (!isDrainedFor(node, ledger.target))
      this.violated(
        "drainFirst",
        `the ledger for ${ledger.target} opens with ${JSON.stringify(ledger.owes)} while ${drainOf(node)}`,
      );
  }

  async #rebooting(ledger: Ledger | undefined, previous: MachineConfig | undefined): Promise<void> {
    this.#checked("reboots");
    const { node, scenario, subject, never } = this.#harness;
    const { bootId } = await subject.host.os.status(never);
    if (ledger?.owes.some(({ kind }) => kind === "reboot") !== true || ledger.bootId !== bootId)
      this.violated("reboots", `it reboots and no ledger of this boot owes it: ${JSON.stringify(ledger)}`);
    if (
      annotation(node, annotations.postConfigAction) !== "Rebooting" ||
      annotation(node, annotations.state) === nodeStates.done
    )
      this.violated("reboots", "it reboots and has not said so");
    if (
      previous !== undefined &&
      scenario.onlyControlPlane !== true &&
      ledger !== undefined &&
      !isDrainedFor(node, ledger.target)
    )
      this.violated("reboots", `it reboots to ${ledger.target} while ${drainOf(node)}`);
  }

  /** After a change of the machine, no matter who made it. */
  async after(): Promise<void> {
    const tree = await this.#harness.subject.tree();
    const { ledger, previous } = await this.#documents();
    if (ledger === undefined) {
      if (this.#inFlight.size > 0) this.#handMade.clear();
      this.#inFlight.clear();
      this.#checked("whole");
      const difference = await this.#differenceFrom(tree, nodeConfig(previous));
      if (difference !== undefined)
        this.violated(
          "whole",
          `no ledger is open, the machine has ${previous?.metadata.name ?? "joined"}, and ${difference}`,
        );
      await this.#checkReadings(tree);
      return;
    }
    this.#checked("named");
    this.#inFlight.add(ledger.target);
    if (!this.#harness.everDesired.has(ledger.target))
      this.violated("named", `the ledger names ${ledger.target}, which the machine was never given`);
    const allowed = [
      emptyNodeConfig,
      nodeConfig(previous),
      ...[...this.#inFlight].map((name) => nodeConfig(this.#harness.configs.get(name))),
    ];
    for (const path of new Set([...tree.keys(), ...this.#base.keys()])) {
      // A daemon that was killed in the middle of a pass leaves temporary files; once the ledger is closed, none may
      // remain.
      if (/\/\.mco-[0-9a-f]{16}$/.test(path)) continue;
      if (
        isOwn(path) ||
        path.endsWith("/") ||
        isEnablementLink(path) ||
        path.startsWith("shadow:") ||
        path === "/etc/shadow" ||
        this.#handMade.has(path)
      )
        continue;
      const has = tree.get(path);
      const shipped = Object.values(images).map(({ etc }) => (path in etc ? `644 0:0 ${etc[path]}` : undefined));
      if ([this.#base.get(path), ...shipped].includes(has)) continue;
      if (!allowed.some((config) => matchesWanted(has, config.entries.get(path))))
        this.violated(
          "named",
          `${path} is ${has ?? "absent"}, which neither ${previous?.metadata.name ?? "nothing"} nor ${[...this.#inFlight].join(" nor ")} says`,
        );
    }
  }

  /** 5: every service has read the files that are on the disk, whenever nothing is owed. */
  async #checkReadings(tree: ReadonlyMap<string, string>): Promise<void> {
    for (const service of this.#harness.scenario.services ?? []) {
      this.#checked("debts");
      const { read } = await this.#harness.subject.service(service);
      const there = readingsOf(tree, service);
      for (const path of new Set([...Object.keys(read), ...Object.keys(there)])) {
        if (!this.#handMade.has(path) && read[path] !== there[path])
          this.violated(
            "debts",
            `nothing is owed, and ${service} has read ${read[path] === undefined ? "no" : "another"} ${path}`,
          );
      }
    }
  }

  /** What the machine lacks of a configuration, or has beside it; `undefined` when it matches wholly. */
  async #differenceFrom(tree: ReadonlyMap<string, string>, config: NodeConfig): Promise<string | undefined> {
    const { subject, never } = this.#harness;
    const { booted } = await subject.host.os.status(never);
    const base = this.#baseOn(booted.image);
    for (const path of new Set([...tree.keys(), ...base.keys(), ...config.entries.keys()])) {
      if (
        isOwn(path) ||
        path.endsWith("/") ||
        isEnablementLink(path) ||
        path.startsWith("shadow:") ||
        path === "/etc/shadow" ||
        this.#handMade.has(path)
      )
        continue;
      const [has, wanted] = [tree.get(path), config.entries.get(path)];
      if (wanted === undefined ? has !== base.get(path) : !matchesWanted(has, wanted))
        return `${path} is ${has ?? "absent"}`;
    }
    const links = this.#linksOf(tree, config);
    for (const path of new Set([...tree.keys(), ...links]))
      if (isEnablementLink(path) && tree.has(path) !== links.has(path))
        return `${path} is ${tree.has(path) ? "there" : "absent"}`;
    for (const user of ["core", "root"]) {
      const has = await subject.host.users.passwordHash(user, never);
      if (has !== config.passwords.get(user)) return `the password of ${user} is another`;
    }
    if (config.osImage !== "" && booted.image !== config.osImage) return `the OS is ${booted.image}`;
    if (booted.kernelType !== config.kernelType) return `the kernel is of type ${booted.kernelType}`;
    const packages = packagesOf(config.extensions);
    if ([...booted.packages].sort().join(" ") !== [...packages].sort().join(" "))
      return `the packages are ${booted.packages.join(" ")}`;
    const args = [...this.#baseArguments, ...config.kernelArguments].sort().join(" ");
    if ([...booted.kernelArguments].sort().join(" ") !== args)
      return `the kernel was started with ${booted.kernelArguments.join(" ")}`;
    return undefined;
  }

  /** The machine's own files under another OS: unchanged defaults are those of the other OS. */
  #baseOn(image: string): ReadonlyMap<string, string> {
    const base = new Map(this.#base);
    for (const { etc } of Object.values(images))
      for (const [path, text] of Object.entries(etc)) if (base.get(path) === `644 0:0 ${text}`) base.delete(path);
    for (const [name, { etc }] of Object.entries(images))
      if (name === image)
        for (const [path, text] of Object.entries(etc)) if (!base.has(path)) base.set(path, `644 0:0 ${text}`);
    return base;
  }

  #linksOf(tree: ReadonlyMap<string, string>, config: NodeConfig): ReadonlySet<string> {
    const links = new Set([...this.#base.keys()].filter(isEnablementLink));
    const textOf = (name: string) => {
      const own = tree.get(`${unitFolder}/${name}`);
      if (own?.startsWith("→") === true) return undefined;
      return own?.replace(/^\S+ \S+ /, "") ?? Object.values(images)[0]?.usr[`${vendorUnitFolder}/${name}`];
    };
    for (const [name, { enabled }] of config.enablement) {
      for (const link of links) if (link.endsWith(`/${name}`)) links.delete(link);
      const text = textOf(name);
      // No preset of these images disables anything: units that a configuration leaves to presets are enabled.
      if (enabled !== false && text !== undefined)
        for (const { path } of enablingOf(name, () => ({ path: name, texts: [text] })).own) links.add(path);
    }
    return links;
  }

  /** What a daemon sends to the API server. */
  async sending(method: string, target: string, body: string): Promise<void> {
    this.#checked("own");
    const name = this.#harness.nodeName;
    const path = target.replace(/\?.*/, "");
    const mine =
      path === `/api/v1/nodes/${name}` ||
      path.startsWith(`/apis/machineconfiguration.openshift.io/v1/machineconfignodes/${name}`) ||
      path === `/apis/machineconfiguration.openshift.io/v1alpha1/machinestatejournals/${journalOfNode(name)}` ||
      /^\/api\/v1\/namespaces\/[^/]+\/events/.test(path);
    if (!mine) this.violated("own", `${method} ${path}`);
    this.#checkSecret(`${method} ${path}`, body);
    if (!path.startsWith("/api/v1/nodes/")) return;
    const { metadata, ...rest } = JSON.parse(body) as { metadata?: { annotations?: Record<string, string | null> } };
    if (Object.keys(rest).length > 0)
      this.violated("cordon", `the daemon writes ${Object.keys(rest).join(", ")} of its Node`);
    const claimed = metadata?.annotations?.[annotations.currentConfig];
    if (typeof claimed !== "string") return;
    this.#checked("claims");
    const { ledger, previous } = await this.#documents();
    const config = this.#harness.configs.get(claimed);
    const difference =
      config === undefined
        ? "there is no such configuration"
        : await this.#differenceFrom(await this.#harness.subject.tree(), nodeConfig(config));
    if (ledger !== undefined || previous?.metadata.name !== claimed || difference !== undefined)
      this.violated(
        "claims",
        `it claims ${claimed}: ${difference ?? (ledger === undefined ? `its documents name ${previous?.metadata.name ?? "none"}` : "its ledger is open")}`,
      );
  }

  #checkSecret(where: string, text: string): void {
    this.#checked("secrets");
    if (
      text.includes(canary) ||
      text.includes(encodeURIComponent(canary)) ||
      encodings.some((encoded) => text.includes(encoded))
    )
      this.violated(
        "secrets",
        `${where} tells a secret: ${text.slice(Math.max(0, text.indexOf(canary) - 60), text.indexOf(canary) + 40)}`,
      );
  }

  /** What daemons wrote for users and for developers. */
  said(where: string, lines: readonly unknown[]): void {
    for (const line of lines)
      this.#checkSecret(
        where,
        JSON.stringify(line, (_key, value: unknown) =>
          value instanceof Error
            ? Object.fromEntries(
                ["message", ...Object.keys(value), "cause"].map((key) => [key, Reflect.get(value, key) as unknown]),
              )
            : value,
        ) ?? "",
      );
  }

  /** The machine's journal on its disk, and the part of it that reached the API server. */
  async books(journal: readonly JournalLine[], settled: boolean, now: number): Promise<void> {
    this.#checked("books");
    const { nodeName, subject, never } = this.#harness;
    const book = `node/${nodeName}`;
    const all = await linesOnDisk(subject.host, nodeName, never);
    this.said("a journal line", [...all, ...journal]);
    const disk = all.filter((line) => line.level === "boundary" && line.book === book);
    const name = ({ writer, boot, seq }: JournalLine) => `${writer.component} ${boot.slice(0, 8)} ${seq}`;
    const [onDisk, inJournal] = [disk.map(name), journal.map(name)];
    if (new Set(inJournal).size < inJournal.length)
      this.violated("books", `the journal has a line twice: ${inJournal.join(", ")}`);
    // The ring drops old lines, and so does a daemon that reads the disk back: the lines that both can have must be
    // equal.
    const boots = new Set([...all.map(({ boot }) => boot), (await subject.host.os.status(never)).bootId]);
    const comparable = journal.filter(({ boot }) => boots.has(boot)).map(name);
    const expected = journal.length < ringLimits.lines ? onDisk : onDisk.slice(-comparable.length);
    if (expected.join() !== comparable.join())
      this.violated("books", `the disk holds ${expected.join(", ")}, the journal ${comparable.join(", ")}`);
    for (const [index, line] of journal.entries()) {
      const said = disk.find((other) => name(other) === name(line));
      if (said !== undefined && (said.path !== line.path || said.mark !== line.mark))
        this.violated(
          "books",
          `${name(line)} is ${said.path} ${said.mark} on the disk and ${line.path} ${line.mark} in the journal`,
        );
      const before = journal[index - 1];
      if (
        before !== undefined &&
        before.boot === line.boot &&
        before.writer.component === line.writer.component &&
        line.seq !== before.seq + 1
      )
        this.violated("books", `${name(line)} follows ${name(before)}`);
    }
    const last = settled ? foldBook(book, journal, { now }).findLast(({ chapter }) => chapter === "Update") : undefined;
    // A target that was withdrawn before any effect is superseded by what the machine has.
    const isWell =
      last?.outcome === "Succeeded" ||
      (last?.outcome === "Superseded" && last.run !== annotation(this.#harness.node, annotations.currentConfig));
    if (last !== undefined && (last.state !== "Closed" || !isWell))
      this.violated(
        "books",
        `the last update, to ${last.run}, is ${last.state} and ${last.outcome}: ${journal.map(({ path, mark, reason }) => `${path} ${mark} ${reason}`).join(", ")}`,
      );
  }

  /** The end of a run: everything is at rest, or was not in time. */
  async end(
    settled: boolean,
    expected:
      | {
          readonly reboots: number;
          readonly disturbances: Readonly<Record<string, number>>;
          readonly faults: number;
          readonly cuts: number;
        }
      | undefined,
  ): Promise<void> {
    const { node, scenario, subject } = this.#harness;
    for (const invariant of ["converges", "quiet", "patient"] as const) this.#checked(invariant);
    const { ledger } = await this.#documents();
    const has = (key: string) => annotation(node, key);
    const history = `${this.#harness.history}, ledger ${ledger?.target ?? "closed"}`;
    if (!settled) this.violated("converges", `it does not settle: ${history}`);
    else if (has(annotations.reason) !== "" || (this.#harness.phase("Updated") ?? "True") !== "True")
      this.violated("converges", `it settled, and says ${history}, Updated ${this.#harness.phase("Updated")}`);
    await this.after();
    this.#checked("cordon");
    const cordoned = node.spec?.unschedulable === true;
    if (settled && cordoned !== (scenario.cordonedByPerson === true))
      this.violated("cordon", cordoned ? "it is still cordoned" : "somebody's cordon is gone");
    if (expected !== undefined) {
      const reboots = this.#harness.reboots - expected.reboots;
      // Debts that a manual reboot pays in a run without faults may be left to a reboot of the daemon in a run with
      // them.
      if (reboots > expected.cuts + this.#harness.handReboots)
        this.violated("reboots", `${reboots} more reboots than without faults, with ${expected.cuts} power cuts`);
      for (const [service, before] of Object.entries(expected.disturbances)) {
        const { restarts, reloads } = await subject.service(service);
        if (restarts + reloads > before + expected.faults)
          this.violated(
            "debts",
            `${service} was disturbed ${restarts + reloads} times, ${before} without faults, with ${expected.faults} faults`,
          );
      }
    }
    if (scenario.leavesNothing === true && settled) {
      this.#checked("residue");
      const tree = await subject.tree();
      for (const path of new Set([...tree.keys(), ...this.#base.keys()])) {
        if (
          !isOwn(path) &&
          path !== "/etc/machine-config-daemon/" &&
          path !== `${hostPaths.stateFolder}/` &&
          tree.get(path) !== this.#base.get(path)
        )
          this.violated(
            "residue",
            `${path} is ${tree.get(path) ?? "absent"}, and was ${this.#base.get(path) ?? "absent"}`,
          );
      }
    }
  }
}

let lastRead: { readonly text: string; readonly config: MachineConfig } | undefined;
/** The configuration of a previous.json; the same object for the same text, so that it is decoded once. */
function previousIn(text: string | undefined): MachineConfig | undefined {
  if (text === undefined) return undefined;
  if (lastRead?.text !== text) lastRead = { text, config: (JSON.parse(text) as { config: MachineConfig }).config };
  return lastRead.config;
}

const encodings = [canary, `# ${canary}`, `${canary}-`].map((text) => btoa(text).replace(/=*$/, "").slice(0, -1));

const isDrainedFor = (node: Node, target: string) =>
  annotation(node, annotations.desiredDrain) === `drain-${target}` &&
  annotation(node, annotations.lastAppliedDrain) === `drain-${target}` &&
  node.spec?.unschedulable === true;
const drainOf = (node: Node) =>
  `its drain is ${annotation(node, annotations.desiredDrain)}, done ${annotation(node, annotations.lastAppliedDrain)}, ${node.spec?.unschedulable === true ? "cordoned" : "in service"}`;

const ids: Readonly<Record<string, number>> = { root: 0, core: 1000 };
const idOf = (owner: { readonly id?: number; readonly name?: string }) => owner.id ?? ids[owner.name ?? "root"] ?? 0;

/** An absent path matches only absent content. */
function matchesWanted(has: string | undefined, wanted: WantedEntry | undefined): boolean {
  switch (wanted?.kind) {
    case undefined:
      return has === undefined;
    case "absent":
      return (
        has === undefined || (wanted.origin.kind === "unit" && wanted.origin.part === "mask" && has !== "→ /dev/null")
      );
    case "link":
      return has === `→ ${wanted.target}`;
    case "file":
      return (
        has ===
        `${wanted.mode.toString(8)} ${idOf(wanted.user)}:${idOf(wanted.group)} ${new TextDecoder().decode(wanted.contents)}`
      );
  }
}
