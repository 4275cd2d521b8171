import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { stockOsImage, writeStockOs } from "../../src/standin/cluster/stock-os.ts";
import { type DirectoryMachine, directoryMachine } from "../../src/host/directory/directory-host.ts";
import { applyIgnition } from "../../src/host/ignition/apply-config.ts";
import { fetchConfig } from "../../src/host/ignition/fetch-config.ts";
import { type RunIgnitionOptions, applyWithIgnition, fetchWithIgnition } from "../../src/host/ignition/run-ignition.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import {
  downloadDocument,
  systemClock,
  systemFiles,
  systemProcesses,
  systemRandom,
} from "../../src/ports/node/index.ts";

/** Where `hack/ignition` puts them; each with the newest version of the format that it reads. */
export const ignitions = [
  { name: "Ignition 2.14", path: "/usr/lib/dracut/modules.d/30ignition/ignition", reads: "3.3.0" },
  {
    name: "Ignition 2.24",
    path: join(
      process.env["MCO_IGNITION_BINARIES"] ??
        join(
          process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
          "machine-config-operator",
          `ignition-v2.24.0-linux-${process.arch}`,
        ),
      "ignition",
    ),
    reads: "3.5.0",
  },
] as const;

/** Real Ignition changes the owner of files, which only root may do. */
export const canRun = (path: string): boolean => process.getuid?.() === 0 && existsSync(path);

const never = new AbortController().signal;

export type Outcome =
  | { readonly verdict: "applied"; readonly tree: Readonly<Record<string, string>> }
  | { readonly verdict: "refused"; readonly why: string };

export interface Workshop {
  /** What the real Ignition makes of a configuration, on a machine with a few earlier manual changes. */
  real(program: string, config: object, before?: (machine: DirectoryMachine) => Promise<void>): Promise<Outcome>;
  ours(config: object, before?: (machine: DirectoryMachine) => Promise<void>): Promise<Outcome>;
  close(): void;
}

export async function openWorkshop(): Promise<Workshop> {
  const folder = mkdtempSync(join(tmpdir(), "mco-ignition-"));
  // Ignition writes keys as the user whom they belong to.
  chmodSync(folder, 0o755);
  const stock = await writeStockOs(systemFiles, join(folder, "os"));
  let count = 0;

  async function machineIn(directory: string): Promise<DirectoryMachine> {
    const machine = directoryMachine({
      directory,
      images: { treeOf: () => Promise.resolve(stock), fetch: () => Promise.resolve() },
    });
    await machine.provision({ image: stockOsImage, kernelArguments: [], packages: [], kernelType: "default" });
    return machine;
  }

  async function outcome(
    before: ((machine: DirectoryMachine) => Promise<void>) | undefined,
    work: (machine: DirectoryMachine, directory: string) => Promise<void>,
  ): Promise<Outcome> {
    const directory = join(folder, `m${count++}`);
    await systemFiles.makeDirectory(directory);
    const machine = await machineIn(directory);
    await before?.(machine);
    try {
      await work(machine, directory);
    } catch (error) {
      return { verdict: "refused", why: `${String(error)} ${JSON.stringify((error as { facts?: unknown }).facts)}` };
    }
    const tree = treeOf(directory);
    rmSync(directory, { recursive: true, force: true });
    return { verdict: "applied", tree };
  }

  return {
    real: (path, config, before) =>
      outcome(before, async (machine, directory) => {
        const options: RunIgnitionOptions = {
          program: { path, version: "" },
          folder: `${directory}-work`,
          files: systemFiles,
          processes: systemProcesses,
          log: silentLogger,
          onTrouble: () => undefined,
        };
        await fetchWithIgnition(JSON.stringify(config), options, never);
        await machine.asOneFolder((root) => applyWithIgnition(root, options, never));
      }),
    ours: (config, before) =>
      outcome(before, async (machine) => {
        const fetched = await fetchConfig(
          config,
          {
            download: downloadDocument,
            clock: systemClock,
            random: systemRandom,
            log: silentLogger,
            userAgent: "test",
            onTrouble: () => undefined,
          },
          never,
        );
        await applyIgnition(
          fetched,
          { root: machine.newRoot(), clock: systemClock, bootId: await machine.bootId() },
          never,
        );
      }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The newer Ignition logs only what disables a unit; the older one logs everything. */
export function withoutDisabling(tree: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const preset = "etc/systemd/system-preset/20-ignition.preset";
  const { [preset]: lines = "", ...rest } = tree;
  const kept = lines.split("\n").filter((line) => !line.startsWith("disable "));
  if (
    kept
      .join("")
      .replace(/^file \S+ \S+ /, "")
      .trim() !== ""
  )
    return { ...rest, [preset]: kept.join("\n") };
  const { "etc/systemd/system-preset": _, ...empty } = rest;
  return empty;
}

/** Backup files of shadow-utils, and values that differ on every run. */
const aside = /^etc\/(\.pwd\.lock|passwd-|shadow-|group-|gshadow-|subuid-?|subgid-?)$/;

/** Every path below the machine's root: kind, mode, owner, and content. */
function treeOf(directory: string): Readonly<Record<string, string>> {
  const tree: Record<string, string> = {};
  const inodes = new Map<number, string>();
  const walk = (at: string, path: string) => {
    for (const name of readdirSync(at).toSorted()) {
      const [real, named] = [join(at, name), path === "" ? name : `${path}/${name}`];
      const stat = lstatSync(real);
      const own = `${(stat.mode & 0o7777).toString(8)} ${stat.uid}:${stat.gid}`;
      if (aside.test(named)) continue;
      if (stat.isSymbolicLink()) tree[named] = `link ${readlinkSync(real)}`;
      else if (stat.isDirectory()) {
        tree[named] = `folder ${own}`;
        walk(real, named);
      } else {
        const same = stat.nlink > 1 ? inodes.get(stat.ino) : undefined;
        inodes.set(stat.ino, named);
        tree[named] = same === undefined ? `file ${own} ${shown(named, readFileSync(real))}` : `the same as ${same}`;
      }
    }
  };
  walk(realRoot(directory), "");
  walk(join(directory, "sysroot/var"), "var");
  return tree;
}

const realRoot = (directory: string) => join(directory, readlinkSync(join(directory, "rootfs")));

function shown(path: string, contents: Buffer): string {
  const text = contents.toString("utf8");
  if (path === "etc/.ignition-result.json")
    return text.replaceAll(/"provisioning(BootID|Date)": "[^"]+"/g, '"provisioning$1": "…"');
  // The day of the change.
  if (path === "etc/shadow") return text.replaceAll(/^([^:]*:[^:]*:)\d+:/gm, "$1today:");
  // The older Ignition writes the lines in the order of a hash table.
  if (path.endsWith("20-ignition.preset")) return text.split("\n").toSorted().join("\n");
  return contents.length > 300 || contents.includes(0) ? createHash("sha256").update(contents).digest("hex") : text;
}
