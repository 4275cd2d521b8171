import { McoError } from "../../api/errors.ts";
import type { Enablement, HostFiles, HostUnits, UnitState } from "../host.ts";
import { makeLinks, readUnitLinks } from "../unit-links.ts";
import { type InstallLink, unitFolder } from "../../core/config/install-links.ts";
import { readUnitName } from "../../core/config/unit-name.ts";
import { type CommandOptions, type HostCommands, commandFailure } from "./run-command.ts";

/** Properties of units (org.freedesktop.systemd1(5)); a unit that is no service has no result of a reload. */
const properties = ["Id", "LoadState", "ActiveState", "UnitFileState", "Result", "ReloadResult"] as const;
type Properties = Readonly<Partial<Record<(typeof properties)[number], string>>>;

/** The service that takes new certificate authorities over, and what does the same where there is none. */
const trustUnit = "coreos-update-ca-trust.service";

/** Units by systemctl's command line. */
export function systemdUnits({
  commands,
  files,
  listTree,
}: {
  readonly commands: HostCommands;
  readonly files: Pick<HostFiles, "read" | "write" | "remove">;
  /** All paths of files and links below a folder of the machine. */
  readonly listTree: (folder: string) => Promise<readonly string[]>;
}): HostUnits {
  const options = (signal: AbortSignal): CommandOptions => ({ kind: "unit", signal });

  /**
   * One process for all units. Blocks come in the order of the names, an empty line between them (systemctl(1), show).
   */
  async function show(names: readonly string[], signal: AbortSignal): Promise<readonly Properties[]> {
    if (names.length === 0) return [];
    const text = await commands.must(["systemctl", "show", `--property=${properties.join(",")}`, "--", ...names], {
      kind: "query",
      signal,
    });
    const blocks = text.trim().split(/\n\s*\n/);
    if (blocks.length !== names.length)
      throw new McoError("MCO_HOST_COMMAND_FAILED", {
        command: "systemctl show",
        problem: `it reported ${blocks.length} units and was asked for ${names.length}`,
      });
    return blocks.map((block) =>
      Object.fromEntries(
        block.split("\n").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
      ),
    );
  }

  async function isMasked(name: string, signal: AbortSignal): Promise<boolean> {
    const entry = await files.read(`${unitFolder}/${name}`, signal);
    return entry?.kind === "link" && entry.target === "/dev/null";
  }

  /** A template never runs: systemd has no properties of it, but knows its file. */
  async function stateOfTemplate(name: string, signal: AbortSignal): Promise<readonly [string, UnitState]> {
    const { stdout } = await commands.run(["systemctl", "is-enabled", "--", name], { kind: "query", signal });
    const word = stdout.trim();
    const isKnown = word !== "" && word !== "not-found";
    return [name, { enablement: isKnown ? enablementOf({ UnitFileState: word }) : "absent", activity: "inactive" }];
  }

  async function stateOf(all: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, UnitState>> {
    const isTemplate = (name: string) => readUnitName(name)?.kind === "template";
    const names = all.filter((name) => !isTemplate(name));
    const templates: (readonly [string, UnitState])[] = [];
    for (const name of all.filter(isTemplate)) templates.push(await stateOfTemplate(name, signal));
    const shown = await show(names, signal);
    // A mask is a link that we made ourselves: systemd may not have looked since.
    const states = await Promise.all(
      names.map(
        async (name, index) =>
          [
            name,
            {
              enablement: (await isMasked(name, signal)) ? "masked" : enablementOf(shown[index] ?? {}),
              activity: activityOf(shown[index] ?? {}),
            },
          ] as const,
      ),
    );
    return new Map([...states, ...templates]);
  }

  /** Links that mask instances of templates. */
  async function maskedInstances(signal: AbortSignal): Promise<readonly string[]> {
    const found: string[] = [];
    for (const path of await listTree(unitFolder)) {
      const name = path.slice(unitFolder.length + 1);
      if (readUnitName(name)?.kind === "instance" && (await isMasked(name, signal))) found.push(path);
    }
    return found;
  }

  /**
   * Runs `systemctl <verb> <name>`, where a unit that is not there leaves nothing to do. With the links of a template
   * systemctl (v252) removes those that mask instances of it; they are made again.
   */
  async function unlessAbsent(verb: "disable" | "preset", name: string, signal: AbortSignal): Promise<void> {
    const words = ["systemctl", verb, "--", name];
    const masks = await maskedInstances(signal);
    const result = await commands.run(words, options(signal));
    const gone: InstallLink[] = [];
    for (const path of masks)
      if ((await files.read(path, signal)) === undefined) gone.push({ path, target: "/dev/null" });
    await makeLinks(files, gone, signal);
    if (result.code === 0) return;
    const is = (await stateOf([name], signal)).get(name)?.enablement;
    if (is !== "absent" && is !== "masked") throw commandFailure(words, result);
  }

  /** A completed job is not enough: the unit's own state must show success. */
  async function checked(verb: "reload" | "restart", name: string, signal: AbortSignal): Promise<void> {
    await commands.must(["systemctl", verb, "--", name], options(signal));
    const [after = {}] = await show([name], signal);
    if (activityOf(after) === "failed")
      throw new McoError("MCO_HOST_COMMAND_FAILED", {
        command: `systemctl ${verb} ${name}`,
        problem: "the unit has failed",
        activeState: after.ActiveState,
        result: after.Result,
        reloadResult: after.ReloadResult,
        retryable: false,
      });
  }

  return {
    state: stateOf,
    links: (signal) => readUnitLinks(files, listTree, signal),
    async relink({ remove, make }, signal) {
      for (const path of remove) await files.remove(path, signal);
      await makeLinks(files, make, signal);
      // systemd keeps the state of a unit's file until it reads it again.
      await commands.must(["systemctl", "daemon-reload"], options(signal));
    },
    async enable(name, signal) {
      await commands.must(["systemctl", "enable", "--", name], options(signal));
    },
    disable: (name, signal) => unlessAbsent("disable", name, signal),
    preset: (name, signal) => unlessAbsent("preset", name, signal),
    async daemonReload(signal) {
      await commands.must(["systemctl", "daemon-reload"], options(signal));
    },
    // systemd.special(7), default.target: what a boot starts is wanted by it; jobs of what runs already are none.
    startEnabled: async (signal) =>
      void (await commands.must(["systemctl", "start", "--no-block", "--", "default.target"], options(signal))),
    reload: (name, signal) => checked("reload", name, signal),
    async restart(name, signal) {
      if (name === trustUnit && (await stateOf([name], signal)).get(name)?.enablement === "absent")
        await commands.must(["update-ca-trust"], options(signal));
      else await checked("restart", name, signal);
    },
  };
}

/** systemctl(1), is-enabled, has a table of these words. */
function enablementOf({ LoadState, UnitFileState = "" }: Properties): Enablement {
  if (LoadState === "masked" || UnitFileState.startsWith("masked")) return "masked";
  if (LoadState === "not-found") return "absent";
  if (UnitFileState === "enabled" || UnitFileState === "enabled-runtime" || UnitFileState === "alias") return "enabled";
  return UnitFileState === "disabled" ? "disabled" : "static";
}

function activityOf({ ActiveState, ReloadResult = "" }: Properties): UnitState["activity"] {
  if (ActiveState === "failed" || (ReloadResult !== "" && ReloadResult !== "success")) return "failed";
  return ActiveState === "active" || ActiveState === "reloading" || ActiveState === "activating"
    ? "active"
    : "inactive";
}
