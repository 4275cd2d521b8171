import { pushAll } from "../api/schema/push-all.ts";
import { McoError } from "../api/errors.ts";
import { hostPaths } from "../api/names.ts";
import {
  type Enabling,
  type InstallLink,
  type Installing,
  type UnitFile,
  enablingOf,
  installingOf,
  namesOfLink,
  unitFileOf,
  unitFolder,
  vendorUnitFolder,
} from "../core/config/install-links.ts";
import { readUnitName, templateOf } from "../core/config/unit-name.ts";
import type { Enablement, HostFiles, HostUnits, UnitState } from "./host.ts";
import { LinksByUnit, makeLinks, readUnitLinks } from "./unit-links.ts";
import { type UnitPresets, isPresetEnabled, readPresets } from "./unit-presets.ts";

/**
 * Services of machines that run no systemd of their own: the `directory` and `memory` drivers. Nothing is executed; the
 * model keeps which unit is active and what each service last read, so that a forgotten reload can be seen.
 */
export interface UnitModelState {
  readonly services: Record<
    string,
    { active: boolean; failed?: boolean; read: Record<string, string>; restarts: number; reloads: number }
  >;
  /** Unit files as the service manager last read them: path → digest. */
  readonly manager: Record<string, string>;
}

export const emptyUnitModel = (): UnitModelState => ({ services: {}, manager: {} });

/**
 * Configuration files that well-known services read, beside their own unit files. A path ending in `/` means all below
 * it that is managed.
 */
export const configurationOf: Readonly<Record<string, readonly string[]>> = {
  "crio.service": [
    "/etc/containers/registries.conf",
    "/etc/containers/policy.json",
    "/etc/containers/registries.d/",
    "/etc/crio/",
  ],
  "chronyd.service": ["/etc/chrony.conf", "/etc/chrony.d/"],
  "kubelet.service": ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/credential-providers/"],
  "NetworkManager.service": ["/etc/NetworkManager/"],
  "systemd-sysctl.service": ["/etc/sysctl.d/"],
  "sshd.service": ["/etc/ssh/"],
};

/**
 * What it does, `update-ca-trust` does where there is no such unit: openshift/machine-config-operator
 * pkg/daemon/update.go (main).
 */
const caTrust = "coreos-update-ca-trust.service";

/** The machine's own presets count before the vendor's of the same name (systemd.preset(5)). */
const presetFolders = ["/etc/systemd/system-preset", "/usr/lib/systemd/system-preset"] as const;

/** What the model needs from a driver, besides its files. */
export interface UnitModelSupport {
  readonly files: Pick<HostFiles, "read" | "write" | "remove">;
  /** All file paths below a folder of the machine, sorted. */
  listTree(folder: string): Promise<readonly string[]>;
  digest(contents: Uint8Array): string;
  load(): Promise<UnitModelState>;
  store(state: UnitModelState): Promise<void>;
  /** Units that fail to start and to reload, for trying what happens then. */
  broken(): Promise<readonly string[]>;
  /** Runs the one unit that is carried out on such machines, {@link hostPaths.settleUnit}; rejects when it fails. */
  readonly applyImageContent?: (() => Promise<void>) | undefined;
}

/** Services that a boot starts before that unit. */
const earlyServices: ReadonlySet<string> = new Set([
  "systemd-sysctl.service",
  "systemd-modules-load.service",
  "systemd-udevd.service",
]);

const text = (contents: Uint8Array) => new TextDecoder().decode(contents);

/** The machine's own file of this name, or the OS's, with the drop-ins of a unit that has it. */
async function unitFile(
  support: UnitModelSupport,
  name: string,
  unit: string,
  signal: AbortSignal,
): Promise<UnitFile | "masked" | undefined> {
  for (const folder of [unitFolder, vendorUnitFolder]) {
    const path = `${folder}/${name}`;
    const entry = await support.files.read(path, signal);
    if (entry?.kind === "link" && entry.target === "/dev/null") return "masked";
    if (entry?.kind !== "file") continue;
    const dropins = new Map<string, ReadonlyMap<string, string>>();
    for (const each of new Set([`${templateOf(unit)}.d`, `${unit}.d`]))
      dropins.set(each, await dropinsBelow(support, each, signal));
    return unitFileOf({ path, text: text(entry.contents) }, unit, (each) => dropins.get(each) ?? new Map());
  }
  return undefined;
}

/** The machine's own drop-ins hide the OS's of the same name. */
async function dropinsBelow(
  support: UnitModelSupport,
  name: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const folder of [vendorUnitFolder, unitFolder])
    for (const path of await support.listTree(`${folder}/${name}`)) {
      const entry = await support.files.read(path, signal);
      if (entry?.kind === "file") texts.set(path.slice(path.lastIndexOf("/") + 1), text(entry.contents));
    }
  return texts;
}

/** Whether a link is one of a folder of dependencies, for this unit. */
const isWantedBy = ({ path }: InstallLink, name: string): boolean =>
  path.endsWith(`/${name}`) && /\.(wants|requires)\/[^/]+$/.test(path);

export interface UnitModel extends HostUnits {
  /** As at the first boot of a machine: every unit that the OS ships gets what its presets say. */
  presetAll(signal: AbortSignal): Promise<void>;
  /** Each of these units gets what presets say of it. Presets and links are read once for all of them. */
  presetEach(names: readonly string[], signal: AbortSignal): Promise<void>;
  /** As at boot: enabled and wanted services are active and have read everything. */
  boot(signal: AbortSignal): Promise<void>;
}

/** What is found, by the name of the file and of the unit that has it. */
type FoundUnits = Map<string, UnitFile | "masked" | undefined>;

export function unitModel(support: UnitModelSupport): UnitModel {
  const { files } = support;

  const unitLinks = (signal: AbortSignal) => readUnitLinks(files, support.listTree, signal);

  /** What enabling a unit makes by itself; the files that it needs come to those that are found. */
  async function installing(name: string, found: FoundUnits, signal: AbortSignal): Promise<Installing> {
    for (;;) {
      const missing = new Map<string, readonly [string, string]>();
      const result = installingOf(name, (file, unit) => {
        const key = `${file} ${unit}`;
        if (!found.has(key)) missing.set(key, [file, unit]);
        return found.get(key);
      });
      if (missing.size === 0) return result;
      for (const [key, [file, unit]] of missing) found.set(key, await unitFile(support, file, unit, signal));
    }
  }

  /** What enabling a unit makes, and the units that it names: what each needs is found once. */
  async function enabling(name: string, signal: AbortSignal): Promise<Enabling> {
    const found: FoundUnits = new Map();
    const units = new Set([name]);
    for (const unit of units) for (const other of (await installing(unit, found, signal)).also) units.add(other);
    return enablingOf(name, (file, unit) => found.get(`${file} ${unit}`));
  }

  async function fileOf(name: string, signal: AbortSignal): Promise<UnitFile | "masked" | undefined> {
    const template = templateOf(name);
    const file = await unitFile(support, name, name, signal);
    return file ?? (template === name ? undefined : unitFile(support, template, name, signal));
  }

  async function enablement(name: string, signal: AbortSignal, known?: readonly InstallLink[]): Promise<Enablement> {
    const unit = await fileOf(name, signal);
    if (unit === undefined) return "absent";
    if (unit === "masked") return "masked";
    const { links: own } = await installing(name, new Map(), signal);
    const links = known ?? (await unitLinks(signal));
    const isTemplate = readUnitName(name)?.kind === "template";
    const ownPaths = new Set(own.map(({ path }) => path));
    // A template is enabled by the link of its default instance: others are units of their own.
    if (links.some((link) => ownPaths.has(link.path) || (!isTemplate && isWantedBy(link, name)))) return "enabled";
    if (own.length === 0) return "static";
    // An image enables what it ships where only it can write.
    for (const { path } of own)
      if ((await files.read(path.replace(unitFolder, vendorUnitFolder), signal))?.kind === "link") return "enabled";
    return "disabled";
  }

  /** What the preset files say; they count in the order of their names. */
  async function presets(signal: AbortSignal): Promise<UnitPresets> {
    const paths = new Map<string, string>();
    for (const folder of presetFolders)
      for (const path of await support.listTree(folder))
        if (path.endsWith(".preset") && !paths.has(path.slice(folder.length)))
          paths.set(path.slice(folder.length), path);
    const contents: string[] = [];
    for (const [, path] of [...paths].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const entry = await files.read(path, signal);
      if (entry?.kind === "file") contents.push(text(entry.contents));
    }
    return readPresets(contents);
  }

  /** Path → digest of what the service would read now. */
  async function readings(name: string): Promise<Record<string, string>> {
    const signal = new AbortController().signal;
    const paths: string[] = [`${unitFolder}/${name}`, ...(await support.listTree(`${unitFolder}/${name}.d`))];
    for (const path of configurationOf[name] ?? [])
      pushAll(paths, path.endsWith("/") ? await support.listTree(path.slice(0, -1)) : [path]);
    const result: Record<string, string> = {};
    for (const path of paths) {
      const entry = await files.read(path, signal);
      if (entry?.kind === "file") result[path] = support.digest(entry.contents);
    }
    return result;
  }

  const isUnitFile = (path: string) => path.startsWith(`${unitFolder}/`);

  async function managerReadings(): Promise<Record<string, string>> {
    const signal = new AbortController().signal;
    const result: Record<string, string> = {};
    for (const path of await support.listTree(unitFolder)) {
      const entry = await files.read(path, signal);
      if (entry?.kind === "file") result[path] = support.digest(entry.contents);
    }
    return result;
  }

  function replace(target: Record<string, string>, source: Record<string, string>): void {
    for (const key of Object.keys(target)) delete target[key];
    Object.assign(target, source);
  }

  /** @returns why it did not start. */
  async function start(state: UnitModelState, name: string): Promise<string | undefined> {
    const service = (state.services[name] ??= { active: false, read: {}, restarts: 0, reloads: 0 });
    const broken = (await support.broken()).includes(name);
    service.active = !broken;
    service.failed = broken;
    if (broken) {
      replace(service.read, {});
      return "the service ended with an error";
    }
    const now = await readings(name);
    // A unit file counts as the manager last read it: that is what a forgotten daemon-reload looks like.
    for (const path of Object.keys(now)) {
      if (!isUnitFile(path)) continue;
      const known = state.manager[path];
      if (known === undefined) delete now[path];
      else now[path] = known;
    }
    replace(service.read, now);
    return undefined;
  }

  /** The result of starting the settling unit. @returns why it failed. */
  async function runContentUnit(): Promise<string | undefined> {
    const failure = await support.applyImageContent?.().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    const state = await support.load();
    const service = (state.services[hostPaths.settleUnit] ??= { active: false, read: {}, restarts: 0, reloads: 0 });
    service.active = failure === undefined;
    service.failed = failure !== undefined;
    await support.store(state);
    return failure;
  }

  const activityOf = (service: UnitModelState["services"][string] | undefined): UnitState["activity"] =>
    service?.failed === true ? "failed" : service?.active === true ? "active" : "inactive";
  const refusal = (verb: string, unit: string, problem: string) =>
    new McoError("MCO_HOST_COMMAND_FAILED", { command: `systemctl ${verb} ${unit}`, problem });

  /** Why a unit cannot be enabled or started; systemctl(1) refuses both. */
  const unusable = (is: Enablement): string | undefined =>
    is === "absent" ? "there is no such unit" : is === "masked" ? "the unit is masked" : undefined;

  return {
    async state(names, signal) {
      const model = await support.load();
      const links = await unitLinks(signal);
      const result = new Map<string, UnitState>();
      for (const name of names)
        result.set(name, {
          enablement: await enablement(name, signal, links),
          activity: activityOf(model.services[name]),
        });
      return result;
    },
    links: unitLinks,
    async relink({ remove, make }, signal) {
      for (const path of remove) await files.remove(path, signal);
      await makeLinks(files, make, signal);
    },
    async enable(name, signal) {
      const { links, problems } = await enabling(name, signal);
      await makeLinks(files, links, signal);
      if (problems.length > 0) throw refusal("enable", name, problems.join("; "));
    },
    async disable(name, signal) {
      const unit = await fileOf(name, signal);
      if (unit === "masked") return;
      // Without a file, what is named like it goes.
      const gone = new Set([name, ...(unit === undefined ? [] : (await enabling(name, signal)).units)]);
      for (const link of await unitLinks(signal))
        if ([...namesOfLink(link)].some((each) => gone.has(each))) await files.remove(link.path, signal);
    },
    preset(name, signal) {
      return this.presetEach([name], signal);
    },
    async presetEach(names, signal) {
      const said = await presets(signal);
      let present: LinksByUnit | undefined;
      for (const name of names) {
        const unit = await fileOf(name, signal);
        if (unit === undefined || unit === "masked") continue;
        const { links, units } = await enabling(name, signal);
        if (isPresetEnabled(said, name)) {
          await makeLinks(files, links, signal);
          for (const link of links) present?.put(link);
        } else {
          present ??= new LinksByUnit(await unitLinks(signal));
          for (const { path } of present.take([name, ...units])) await files.remove(path, signal);
        }
      }
    },
    async presetAll(signal) {
      const names = (await support.listTree(vendorUnitFolder)).map((path) => path.slice(vendorUnitFolder.length + 1));
      await this.presetEach(
        names.filter((name) => !name.includes("/")),
        signal,
      );
    },
    async daemonReload() {
      const state = await support.load();
      replace(state.manager, await managerReadings());
      await support.store(state);
    },
    async reload(name) {
      const state = await support.load();
      const service = state.services[name];
      if (service?.active !== true) throw refusal("reload", name, "the unit is not active");
      service.reloads += 1;
      service.failed = (await support.broken()).includes(name);
      if (!service.failed) {
        const now = await readings(name);
        const units = Object.fromEntries(Object.entries(service.read).filter(([path]) => isUnitFile(path)));
        replace(service.read, {
          ...Object.fromEntries(Object.entries(now).filter(([path]) => !isUnitFile(path))),
          ...units,
        });
      }
      await support.store(state);
      if (service.failed) throw refusal("reload", name, "the service says that it could not");
    },
    async restart(name, signal) {
      const is = await enablement(name, signal);
      const state = await support.load();
      if (is === "absent" && name === caTrust) {
        const service = (state.services[name] ??= { active: false, read: {}, restarts: 0, reloads: 0 });
        service.restarts += 1;
        return support.store(state);
      }
      const problem = unusable(is);
      if (problem !== undefined) throw refusal("restart", name, problem);
      if (name === hostPaths.settleUnit && support.applyImageContent !== undefined) {
        const ended = await runContentUnit();
        if (ended !== undefined) throw refusal("restart", name, ended);
        return;
      }
      const failure = await start(state, name);
      const service = state.services[name];
      if (service !== undefined) service.restarts += 1;
      await support.store(state);
      if (failure !== undefined) throw refusal("restart", name, failure);
    },
    async startEnabled() {
      // A boot of this model starts them when settling is over.
    },
    async boot(signal) {
      let state = await support.load();
      replace(state.manager, await managerReadings());
      const names = new Set([...Object.keys(state.services), ...Object.keys(configurationOf)]);
      for (const path of await support.listTree(unitFolder)) {
        const name =
          path
            .slice(unitFolder.length + 1)
            .split("/")
            .at(-1) ?? "";
        if (name.endsWith(".service")) names.add(name);
      }
      if (support.applyImageContent !== undefined && (await enablement(hostPaths.settleUnit, signal)) === "enabled") {
        for (const [name, service] of Object.entries(state.services))
          Object.assign(service, { active: false, failed: false, ...(earlyServices.has(name) ? {} : { read: {} }) });
        for (const name of earlyServices)
          if (["enabled", "static"].includes(await enablement(name, signal))) await start(state, name);
        await support.store(state);
        await runContentUnit();
        state = await support.load();
        replace(state.manager, await managerReadings());
        for (const name of [...earlyServices, hostPaths.settleUnit]) names.delete(name);
      }
      const links = await unitLinks(signal);
      for (const name of [...names].sort()) {
        const is = await enablement(name, signal, links);
        if (is === "enabled" || (is === "static" && configurationOf[name] !== undefined)) await start(state, name);
        else {
          const { [name]: known } = state.services;
          if (known === undefined) continue;
          known.active = false;
          known.failed = false;
          replace(known.read, {});
        }
      }
      await support.store(state);
    },
  };
}
