import type { Enablement, HostFiles, HostUnits, UnitState } from "./host.ts";

/**
 * Services of machines that run no systemd of their own: the `directory` and `memory` drivers. Nothing is executed; the
 * model keeps which unit is active and what each service last read, so that a forgotten reload can be seen.
 */
export interface UnitModelState {
  readonly services: Record<string, { active: boolean; read: Record<string, string>; restarts: number; reloads: number }>;
  /** Unit files as the service manager last read them: path → digest. */
  readonly manager: Record<string, string>;
}

export const emptyUnitModel = (): UnitModelState => ({ services: {}, manager: {} });

/** Configuration files that well-known services read, beside their own unit files. A path ending in `/` means all below it that is managed. */
export const configurationOf: Readonly<Record<string, readonly string[]>> = {
  "crio.service": ["/etc/containers/registries.conf", "/etc/containers/policy.json", "/etc/containers/registries.d/", "/etc/crio/"],
  "chronyd.service": ["/etc/chrony.conf", "/etc/chrony.d/"],
  "kubelet.service": ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/credential-providers/"],
  "NetworkManager.service": ["/etc/NetworkManager/"],
  "systemd-sysctl.service": ["/etc/sysctl.d/"],
  "sshd.service": ["/etc/ssh/"],
};

export const unitFolder = "/etc/systemd/system";
export const vendorUnitFolder = "/usr/lib/systemd/system";
const presetFolder = "/usr/lib/systemd/system-preset";

/** What the model needs from a driver, beside its files. */
export interface UnitModelSupport {
  readonly files: Pick<HostFiles, "read" | "write" | "remove">;
  /** All file paths below a folder of the machine, sorted. */
  listTree(folder: string): Promise<readonly string[]>;
  digest(contents: Uint8Array): string;
  load(): Promise<UnitModelState>;
  store(state: UnitModelState): Promise<void>;
}

const text = (contents: Uint8Array) => new TextDecoder().decode(contents);

async function unitText(support: UnitModelSupport, name: string, signal: AbortSignal): Promise<{ text: string; masked: boolean } | undefined> {
  for (const folder of [unitFolder, vendorUnitFolder]) {
    const entry = await support.files.read(`${folder}/${name}`, signal);
    if (entry?.kind === "link") {
      if (entry.target === "/dev/null") return { text: "", masked: true };
      continue;
    }
    if (entry?.kind === "file") return { text: text(entry.contents), masked: false };
  }
  return undefined;
}

/** Links that `systemctl enable` makes for the [Install] section (systemd.unit(5)): WantedBy, RequiredBy, Alias. */
export function installLinks(name: string, unit: string): readonly { path: string; target: string }[] {
  const links: { path: string; target: string }[] = [];
  let inInstall = false;
  for (const raw of unit.split("\n")) {
    const line = raw.trim();
    if (line.startsWith("[")) inInstall = line === "[Install]";
    const match = inInstall ? /^(WantedBy|RequiredBy|Alias)\s*=\s*(.*)$/.exec(line) : null;
    if (match === null) continue;
    const [, key = "", values = ""] = match;
    for (const value of values.split(/\s+/).filter((word) => word !== "")) {
      const target = `${unitFolder}/${name}`;
      if (key === "Alias") links.push({ path: `${unitFolder}/${value}`, target });
      else links.push({ path: `${unitFolder}/${value}.${key === "WantedBy" ? "wants" : "requires"}/${name}`, target });
    }
  }
  return links;
}

export interface UnitModel extends HostUnits {
  /** As at boot: enabled and wanted services are active and have read everything. */
  boot(signal: AbortSignal): Promise<void>;
}

export function unitModel(support: UnitModelSupport): UnitModel {
  const { files } = support;

  async function enablement(name: string, signal: AbortSignal): Promise<Enablement> {
    const unit = await unitText(support, name, signal);
    if (unit === undefined) return "absent";
    if (unit.masked) return "masked";
    const links = installLinks(name, unit.text);
    if (links.length === 0) return "static";
    for (const { path } of links) if ((await files.read(path, signal))?.kind === "link") return "enabled";
    return "disabled";
  }

  /** Path → digest of what the service would read now. */
  async function readings(name: string): Promise<Record<string, string>> {
    const signal = new AbortController().signal;
    const paths: string[] = [`${unitFolder}/${name}`, ...(await support.listTree(`${unitFolder}/${name}.d`))];
    for (const path of configurationOf[name] ?? []) paths.push(...(path.endsWith("/") ? await support.listTree(path.slice(0, -1)) : [path]));
    const result: Record<string, string> = {};
    for (const path of paths) {
      const entry = await files.read(path, signal);
      if (entry?.kind === "file") result[path] = support.digest(entry.contents);
    }
    return result;
  }

  const isUnitFile = (path: string) => path.startsWith(`${unitFolder}/`);

  async function change(work: (state: UnitModelState) => Promise<void>): Promise<void> {
    const state = await support.load();
    await work(state);
    await support.store(state);
  }

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

  async function start(state: UnitModelState, name: string): Promise<void> {
    const service = (state.services[name] ??= { active: false, read: {}, restarts: 0, reloads: 0 });
    service.active = true;
    const now = await readings(name);
    // A unit file counts as the manager last read it: that is what a forgotten daemon-reload looks like.
    for (const path of Object.keys(now)) {
      if (!isUnitFile(path)) continue;
      const known = state.manager[path];
      if (known === undefined) delete now[path];
      else now[path] = known;
    }
    replace(service.read, now);
  }

  return {
    async state(names, signal) {
      const model = await support.load();
      const result = new Map<string, UnitState>();
      for (const name of names) result.set(name, { enablement: await enablement(name, signal), active: model.services[name]?.active === true });
      return result;
    },
    async enable(name, signal) {
      const unit = await unitText(support, name, signal);
      if (unit === undefined || unit.masked) return;
      for (const { path, target } of installLinks(name, unit.text)) await files.write(path, { kind: "link", target }, {}, signal);
    },
    async disable(name, signal) {
      for (const path of await support.listTree(unitFolder)) {
        const parts = path.slice(unitFolder.length + 1).split("/");
        const isWants = parts.length === 2 && parts[1] === name && /\.(wants|requires)$/.test(parts[0] ?? "");
        const entry = isWants || parts.length === 1 ? await files.read(path, signal) : undefined;
        if (entry?.kind === "link" && entry.target === `${unitFolder}/${name}`) await files.remove(path, signal);
      }
    },
    async preset(name, signal) {
      let wanted: boolean | undefined;
      for (const path of await support.listTree(presetFolder)) {
        const entry = await files.read(path, signal);
        if (entry?.kind !== "file") continue;
        for (const line of text(entry.contents).split("\n")) {
          const [verb, pattern] = line.trim().split(/\s+/);
          if (pattern === undefined || wanted !== undefined) continue;
          if (pattern === name || pattern === "*") wanted = verb === "enable";
        }
      }
      await ((wanted ?? true) ? this.enable(name, signal) : this.disable(name, signal));
    },
    daemonReload: () =>
      change(async (state) => {
        replace(state.manager, await managerReadings());
      }),
    reload: (name) =>
      change(async (state) => {
        const service = (state.services[name] ??= { active: true, read: {}, restarts: 0, reloads: 0 });
        service.reloads += 1;
        const now = await readings(name);
        const units = Object.fromEntries(Object.entries(service.read).filter(([path]) => isUnitFile(path)));
        replace(service.read, { ...Object.fromEntries(Object.entries(now).filter(([path]) => !isUnitFile(path))), ...units });
      }),
    restart: (name) =>
      change(async (state) => {
        await start(state, name);
        const service = state.services[name];
        if (service !== undefined) service.restarts += 1;
      }),
    boot: (signal) =>
      change(async (state) => {
        replace(state.manager, await managerReadings());
        const names = new Set([...Object.keys(state.services), ...Object.keys(configurationOf)]);
        for (const path of await support.listTree(unitFolder)) {
          const name = path.slice(unitFolder.length + 1).split("/").at(-1) ?? "";
          if (name.endsWith(".service")) names.add(name);
        }
        for (const name of [...names].sort()) {
          const { [name]: known } = state.services;
          const is = await enablement(name, signal);
          if (is === "masked" || is === "disabled") {
            if (known !== undefined) {
              known.active = false;
              replace(known.read, {});
            }
          } else if (is === "enabled" || configurationOf[name] !== undefined) await start(state, name);
        }
      }),
  };
}
