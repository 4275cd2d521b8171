import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createWriteStream, mkdtempSync, readFileSync, statfsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { planNode } from "../../src/core/machine/plan-node.ts";
import { imageTrees } from "../../src/cli/image-trees.ts";
import { stockOsImage, writeStockOs } from "../../src/standin/cluster/stock-os.ts";
import { documentStore } from "../../src/daemon/machine-documents.ts";
import { observeHost } from "../../src/daemon/observe-host.ts";
import { performStep } from "../../src/daemon/perform-step.ts";
import { type Wanted, readConfig } from "../../src/core/machine/read-config.ts";
import { directoryHost, directoryMachine } from "../../src/host/directory/directory-host.ts";
import { type Disk, systemDisk } from "../../src/host/directory/disk.ts";
import { writeDurably } from "../../src/host/directory/durable-writes.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { systemClock, systemFiles } from "../../src/ports/node/index.ts";
import { tarOf } from "../../test/support/registry/tar-builder.ts";
import { startTestRegistry } from "../../test/support/registry/test-registry.ts";
import { TestCluster, machineConfig } from "../../test/support/test-cluster.ts";
import { type Memory, memoryOf } from "./cluster.ts";
import { type Summary, ratePerSecond, summary } from "./statistics.ts";

export interface MachineMetrics {
  readonly files: number;
  readonly bytesPerFile: number;
  readonly units: number;
  /** Of the disk that machines and baseline lie on. */
  readonly fileSystem: string;
  readonly update: UpdateMetrics;
  readonly updateBaseline: UpdateMetrics;
  readonly look: LookMetrics;
  readonly lookBaseline: LookMetrics;
  readonly plansPerSecond: number;
  readonly plansPerSecondAllChanged: number;
  readonly plansPerSecondBaseline: number;
  readonly pull: PullMetrics;
  readonly pullBaseline: { readonly seconds: readonly number[] };
  /** Daemons of one cluster, the second one's machine with the files. */
  readonly idle: { readonly seconds: number; readonly without: Memory; readonly with: Memory };
}

export interface UpdateMetrics {
  readonly seconds: readonly number[];
  readonly flushes: number;
}

export interface LookMetrics {
  readonly ms: Summary;
  /** Processor time of one look. */
  readonly cpuMs: number;
  readonly forks: number;
  /** Calls that change the disk. */
  readonly changes: number;
  readonly writtenBytes: number;
}

export interface PullMetrics {
  readonly mebibytes: number;
  readonly seconds: readonly number[];
  /** Most memory that the process had, MiB, and what one had that pulled an image of 1 KiB. */
  readonly peak: number;
  readonly peakOfSmall: number;
}

const fileCount = 200;
const bytesPerFile = 2048;
const unitCount = 50;
const { signal } = new AbortController();
const policies = mergePolicies({ files: [{ path: "/etc/bench", actions: [{ type: "None" }] }] });

/** `bytesPerFile` of text that is another one in each version. */
const textOf = (index: number, version: number) =>
  `setting_${index} = ${version}\n`.repeat(bytesPerFile).slice(0, bytesPerFile);
const pathOf = (index: number) => `/etc/bench/${index % 10}/${index}.conf`;

function configOf(version: number, { units }: { readonly units: number }): MachineConfig {
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: `rendered-worker-${version}` },
    spec: {
      config: {
        ignition: { version: "3.5.0" },
        storage: {
          files: Array.from({ length: fileCount }, (_, index) => ({
            path: pathOf(index),
            mode: 0o644,
            contents: { source: encodeDataUrl(textOf(index, version)) },
          })),
        },
        systemd: {
          units: Array.from({ length: units }, (_, index) => ({
            name: `bench-${index}.service`,
            enabled: true,
            contents: `[Service]\nExecStart=/usr/bin/true ${version}\n\n[Install]\nWantedBy=multi-user.target\n`,
          })),
        },
      },
    },
  };
}

function wantedOf(machineConfig: MachineConfig): Wanted {
  const read = readConfig(machineConfig);
  if (read.verdict === "refused") throw new Error(read.reason);
  return read.wanted;
}

/** The disk, with every call counted. */
function countingDisk() {
  const counts = { all: 0, sync: 0 };
  const counted =
    <Args extends readonly unknown[]>(verb: keyof Disk, call: (...args: Args) => Promise<void>) =>
    (...args: Args): Promise<void> => {
      counts.all += 1;
      if (verb === "sync") counts.sync += 1;
      return call(...args);
    };
  const disk: Disk = {
    create: counted("create", systemDisk.create),
    append: counted("append", systemDisk.append),
    symlink: counted("symlink", systemDisk.symlink),
    mkdir: counted("mkdir", systemDisk.mkdir),
    give: counted("give", systemDisk.give),
    chmod: counted("chmod", systemDisk.chmod),
    chown: counted("chown", systemDisk.chown),
    sync: counted("sync", systemDisk.sync),
    rename: counted("rename", systemDisk.rename),
    unlink: counted("unlink", systemDisk.unlink),
    rmdir: counted("rmdir", systemDisk.rmdir),
  };
  return { disk, counts };
}

/** A machine of its own in a folder, and what its daemon does on it without the API server. */
async function machineIn(folder: string) {
  const { disk, counts } = countingDisk();
  await writeStockOs(systemFiles, join(folder, "os"));
  const directory = join(folder, "hosts", "bench");
  await mkdir(directory, { recursive: true });
  const options = { directory, images: imageTrees(join(folder, "os")), requestReboot: async () => undefined, disk };
  const machine = directoryMachine(options);
  await machine.provision({ image: stockOsImage, kernelArguments: [], packages: [], kernelType: "default" });
  await machine.boot({ orderly: true });
  const host = directoryHost(options);
  const documents = documentStore(host.ledger);

  async function observe(target: Wanted) {
    const known = await documents.load(signal);
    const previous = known.previous === undefined ? undefined : wantedOf(known.previous.config).config;
    return observeHost(
      host,
      known,
      { previous, target: target.config, inService: false, onlyControlPlane: false },
      signal,
    );
  }

  /** Looks, and does what is to be done. */
  async function bringTo(target: Wanted): Promise<void> {
    const observed = await observe(target);
    const plan = planNode(observed, target.config, policies);
    if (plan.verdict !== "change") throw new Error(`nothing to do: ${plan.verdict}`);
    const site = {
      host,
      documents,
      clock: systemClock,
      observed,
      target,
      originals: observed.originals,
      ledger: observed.ledger,
    };
    for (const step of plan.steps)
      if (step.do !== "drain" && step.do !== "reboot") await performStep(step, site, signal);
  }

  return { host, documents, machine, counts, observe, bringTo };
}

const secondsOf = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return Math.round(performance.now() - began) / 1000;
};

/**
 * One file after the other as most programs write one durably: a temporary file, flushed, renamed, its folder flushed.
 */
async function writeOneByOne(folder: string, version: number): Promise<void> {
  for (let index = 0; index < fileCount; index += 1)
    await writeDurably(systemDisk, join(folder, pathOf(index)), textOf(index, version), 0o644);
}

async function measureUpdates(
  folder: string,
  runs: number,
): Promise<Pick<MachineMetrics, "update" | "updateBaseline">> {
  const { counts, bringTo } = await machineIn(join(folder, "update"));
  const plain = join(folder, "plain");
  for (let index = 0; index < 10; index += 1) await mkdir(join(plain, pathOf(index), ".."), { recursive: true });
  await bringTo(wantedOf(configOf(0, { units: 0 })));
  await writeOneByOne(plain, 0);
  const ours: number[] = [];
  const baseline: number[] = [];
  let flushes = 0;
  // One beside the other, so that what else the disk does is in both.
  for (let run = 1; run <= runs; run += 1) {
    const target = wantedOf(configOf(run, { units: 0 }));
    const before = counts.sync;
    ours.push(await secondsOf(() => bringTo(target)));
    flushes = counts.sync - before;
    baseline.push(await secondsOf(() => writeOneByOne(plain, run)));
  }
  return { update: { seconds: ours, flushes }, updateBaseline: { seconds: baseline, flushes: 2 * fileCount } };
}

/** Bytes that this process had written to disks, or will have. Source: proc(5), `/proc/pid/io`. */
const writtenBytes = () => Number(/^write_bytes: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);

async function looks(count: number, changes: () => number, look: () => Promise<void>): Promise<LookMetrics> {
  for (let warm = 0; warm < 10; warm += 1) await look();
  let forks = 0;
  const onFork = () => {
    forks += 1;
  };
  subscribe("child_process", onFork);
  const before = { changes: changes(), written: writtenBytes(), cpu: process.cpuUsage() };
  const ms: number[] = [];
  for (let turn = 0; turn < count; turn += 1) {
    const began = performance.now();
    await look();
    ms.push(performance.now() - began);
  }
  const { user, system } = process.cpuUsage(before.cpu);
  unsubscribe("child_process", onFork);
  return {
    ms: summary(ms),
    cpuMs: Math.round((user + system) / count / 10) / 100,
    forks,
    changes: changes() - before.changes,
    writtenBytes: writtenBytes() - before.written,
  };
}

async function measureLooks(folder: string, count: number): Promise<Pick<MachineMetrics, "look" | "lookBaseline">> {
  const { counts, bringTo, documents, host } = await machineIn(join(folder, "look"));
  const target = wantedOf(configOf(0, { units: 0 }));
  await bringTo(target);
  // As the daemon does: what it wrote itself it has in mind, and the machine is read again.
  const known = await documents.load(signal);
  const look = await looks(
    count,
    () => counts.all,
    async () => {
      const observed = await observeHost(
        host,
        known,
        { previous: target.config, target: target.config, inService: true, onlyControlPlane: false },
        signal,
      );
      if (planNode({ ...observed, previous: target.config }, target.config, policies).verdict !== "inSync")
        throw new Error("the machine is not in sync");
    },
  );
  const root = join(folder, "look/hosts/bench/rootfs");
  const lookBaseline = await looks(
    count,
    () => 0,
    async () => {
      for (let index = 0; index < fileCount; index += 1)
        createHash("sha256")
          .update(await readFile(join(root, pathOf(index))))
          .digest("hex");
    },
  );
  return { look, lookBaseline };
}

async function measurePlans(
  folder: string,
  seconds: number,
): Promise<Pick<MachineMetrics, "plansPerSecond" | "plansPerSecondAllChanged" | "plansPerSecondBaseline">> {
  const { observe, bringTo } = await machineIn(join(folder, "plan"));
  const now = wantedOf(configOf(0, { units: unitCount }));
  const next = wantedOf(configOf(1, { units: unitCount }));
  await bringTo(now);
  const same = await observe(now);
  const other = await observe(next);
  const text = JSON.stringify(next.machineConfig);
  const plan = (observed: typeof same, { config }: Wanted) => planNode(observed, config, policies).verdict;
  if (plan(same, now) !== "inSync" || plan(other, next) !== "change")
    throw new Error("the plans are others than was meant");
  return {
    plansPerSecond: ratePerSecond(() => (plan(same, now) === "inSync" ? 1 : 0), seconds),
    plansPerSecondAllChanged: ratePerSecond(() => (plan(other, next) === "change" ? 1 : 0), seconds),
    plansPerSecondBaseline: ratePerSecond(
      () => (plan(other, wantedOf(JSON.parse(text) as MachineConfig)) === "change" ? 1 : 0),
      seconds,
    ),
  };
}

const run = promisify(execFile);

async function measurePulls(
  folder: string,
  mebibytes: number,
  runs: number,
): Promise<Pick<MachineMetrics, "pull" | "pullBaseline">> {
  const registry = await startTestRegistry();
  try {
    const contents = Array.from({ length: mebibytes }, (_, index) => ({
      path: `usr/lib/bench/${index}`,
      contents: randomBytes(2 ** 19).toString("hex"),
    }));
    const plain = tarOf(...contents);
    // As image builders do: compressed, to about half of it.
    const bytes = gzipSync(plain, { level: 1 });
    const large = `${registry.host}/os/large@${registry.addImage("os/large", [{ bytes, plain }])}`;
    const small = `${registry.host}/os/small@${registry.addImage("os/small", [{ bytes: tarOf({ path: "usr/lib/small", contents: "x".repeat(1024) }) }])}`;
    const pull = async (into: string, image: string) =>
      JSON.parse(
        (
          await run(process.execPath, [
            "--disable-warning=ExperimentalWarning",
            join(import.meta.dirname, "pull-one.ts"),
            into,
            image,
          ])
        ).stdout,
      ) as { readonly seconds: number; readonly peak: number };
    const blob = [...registry.blobs].find(([, one]) => one === bytes)?.[0] ?? "";
    const ours: number[] = [];
    const baseline: number[] = [];
    const peaks: number[] = [];
    for (let turn = 0; turn < runs; turn += 1) {
      const { seconds, peak } = await pull(join(folder, `pull-${turn}`), large);
      ours.push(seconds);
      peaks.push(peak);
      const beside = join(folder, `plain-pull-${turn}`);
      baseline.push(
        await secondsOf(() => downloadAndUnpack(`http://${registry.host}/v2/os/large/blobs/${blob}`, beside)),
      );
      for (const done of [join(folder, `pull-${turn}`), beside]) await rm(done, { recursive: true });
    }
    const peakOfSmall = (await pull(join(folder, "pull-small"), small)).peak;
    return {
      pull: { mebibytes, seconds: ours, peak: Math.max(...peaks), peakOfSmall },
      pullBaseline: { seconds: baseline },
    };
  } finally {
    await registry.close();
  }
}

/** What it takes at least: download to a file, `tar`, and everything on the disk. Nothing is verified. */
async function downloadAndUnpack(url: string, into: string): Promise<void> {
  await mkdir(join(into, "tree"), { recursive: true });
  const archive = join(into, "layer.tar.gz");
  await new Promise<void>((resolve, reject) => {
    get(url, (response) => {
      pipeline(response, createWriteStream(archive)).then(resolve, reject);
    }).once("error", reject);
  });
  await run("tar", ["-xzf", archive, "-C", join(into, "tree")]);
  await run("sync", ["-f", into]);
}

async function measureIdle(seconds: number): Promise<Pick<MachineMetrics, "idle">> {
  const cluster = await TestCluster.start({ controlPlane: 1, workers: 1 });
  try {
    const before = await cluster.target("worker");
    await cluster.kube.create(
      MachineConfig,
      machineConfig(
        "99-worker-bench",
        Object.fromEntries(Array.from({ length: fileCount }, (_, index) => [pathOf(index), textOf(index, 0)])),
      ) as never,
    );
    await cluster.untilRolledOut("worker", before, 300);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const processes = memoryOf(cluster.directory);
    const of = (name: string) =>
      processes.find(({ process }) => process === name) ?? {
        process: name,
        resident: Number.NaN,
        anonymous: Number.NaN,
      };
    return { idle: { seconds, without: of("daemon master-0"), with: of("daemon worker-0") } };
  } finally {
    await cluster.stop();
  }
}

/** Names of file system types. Source: statfs(2). */
const fileSystems: Readonly<Record<number, string>> = {
  0xef53: "ext4",
  0x01021994: "tmpfs",
  0x58465342: "xfs",
  0x9123683e: "btrfs",
  0x794c7630: "overlay",
};

/** One machine in a folder: an update, a look, a plan, a pull, and a daemon at rest. */
export async function measureMachines(
  {
    runs,
    looks: lookCount,
    seconds,
    mebibytes,
    idleSeconds,
  }: {
    readonly runs: number;
    readonly looks: number;
    readonly seconds: number;
    readonly mebibytes: number;
    readonly idleSeconds: number;
  },
  tell: (line: string) => void,
): Promise<MachineMetrics> {
  const folder = mkdtempSync(join(tmpdir(), "mco-bench-"));
  try {
    const updates = await measureUpdates(folder, runs);
    tell(
      `updates: ${updates.update.seconds.join(", ")} s with ${updates.update.flushes} flushes; one by one ${updates.updateBaseline.seconds.join(", ")} s`,
    );
    const looked = await measureLooks(folder, lookCount);
    tell(
      `a look: ${looked.look.ms.median} ms, ${looked.look.cpuMs} ms of processor time; ${looked.look.forks} forks, ${looked.look.changes} changes, ${looked.look.writtenBytes} bytes written`,
    );
    const plans = await measurePlans(folder, seconds);
    tell(`plans: ${plans.plansPerSecond}/s, all changed ${plans.plansPerSecondAllChanged}/s`);
    const pulls = await measurePulls(folder, mebibytes, runs);
    tell(
      `pulls: ${pulls.pull.seconds.join(", ")} s, peak ${pulls.pull.peak} MiB beside ${pulls.pull.peakOfSmall} MiB; baseline ${pulls.pullBaseline.seconds.join(", ")} s`,
    );
    const idle = await measureIdle(idleSeconds);
    tell(`idle daemons: ${idle.idle.without.resident} MiB, with the files ${idle.idle.with.resident} MiB`);
    const { type } = statfsSync(folder);
    return {
      files: fileCount,
      bytesPerFile,
      units: unitCount,
      fileSystem: fileSystems[type] ?? `type ${type.toString(16)}`,
      ...updates,
      ...looked,
      ...plans,
      ...pulls,
      ...idle,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
