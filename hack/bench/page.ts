import type { ApiMetrics, ApiServerMetrics } from "./api-server.ts";
import type { BookMetrics } from "./books.ts";
import type { BuildMetrics } from "./builds.ts";
import type { Memory, RollOutMetrics, UpMetrics } from "./cluster.ts";
import type { ControlPlaneMetrics, ControlPlaneRuns } from "./control-plane/roll-out.ts";
import type { DecisionMetrics } from "./decisions.ts";
import type { EstimateMetrics, EstimateRuns } from "./estimates.ts";
import type { JoinMetrics } from "./joins.ts";
import type { LargestMetrics } from "./largest.ts";
import type { MachineMetrics } from "./machines.ts";
import type { SettingsMetrics } from "./settings.ts";
import type { ServerMetrics, ServerLoadMetrics } from "./server.ts";

export interface Environment {
  readonly cpus: number;
  readonly cpuModel: string;
  readonly memoryGiB: number;
  readonly node: string;
  readonly os: string;
  /** YYYY-MM-DD. */
  readonly date: string;
  /** Of one minute, before the section began: what else the machine was doing. */
  readonly loadAverage?: number;
  /** What that was, in the words of who measured. */
  readonly beside?: string;
}

export interface Section<Metrics> {
  readonly environment: Environment;
  readonly metrics: Metrics;
}

/** What `docs/benchmarks.json` holds: only sections that were measured. */
export interface Report {
  readonly apiVersion: "bench.mco/v1";
  readonly up?: Section<UpMetrics>;
  readonly rollOuts?: Section<RollOutMetrics>;
  readonly decisions?: Section<DecisionMetrics>;
  readonly largest?: Section<LargestMetrics>;
  readonly settings?: Section<SettingsMetrics>;
  readonly machines?: Section<MachineMetrics>;
  readonly apiServer?: Section<ApiServerMetrics>;
  readonly books?: Section<BookMetrics>;
  readonly builds?: Section<BuildMetrics | "absent">;
  readonly server?: Section<ServerMetrics>;
  readonly joins?: Section<JoinMetrics>;
  readonly estimates?: Section<EstimateRuns>;
  readonly controlPlane?: Section<ControlPlaneRuns>;
  readonly scale?: Section<ControlPlaneRuns>;
}

const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]) =>
  [
    `| ${head.join(" | ")} |`,
    `| ${head.map((_, column) => (column === 0 ? "---" : "---:")).join(" | ")} |`,
    ...rows.map((row) => `| ${row.join(" | ")} |`),
  ].join("\n");

const measuredOn = ({ cpus, cpuModel, memoryGiB, node, os, date, loadAverage, beside }: Environment) =>
  `Measured ${date} on ${cpus} CPUs (${cpuModel}), ${memoryGiB} GiB, ${os}, Node.js ${node}${loadAverage === undefined ? "" : `, load average before ${loadAverage.toFixed(1)}`}.${beside === undefined ? "" : ` Meanwhile the machine also did: ${beside}.`}`;

const middle = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN;

const thousands = (value: number) => value.toLocaleString("en-US");

/** The daemons of one moment: smallest and largest, and whether what they were allowed is kept. */
function daemonRange(processes: RollOutMetrics["memory"][number]["processes"], of: "resident" | "anonymous"): string {
  const values = processes.filter(({ process }) => process.startsWith("daemon")).map((one) => one[of]);
  return values.length === 0 ? "none" : `${Math.min(...values).toFixed(1)} – ${Math.max(...values).toFixed(1)}`;
}

function goals({ up, rollOuts, controlPlane, scale, books, server }: Report): string {
  const rows: (string | number)[][] = [];
  if (rollOuts !== undefined) {
    const { writeToDesiredConfig: wait, memory } = rollOuts.metrics;
    rows.push([
      "MachineConfig write → first node's new `desiredConfig`",
      "≤ 1 s",
      `${wait.median} ms median, ${wait.max} ms worst of ${wait.count}`,
    ]);
    const daemons = memory.flatMap(({ processes }) =>
      processes.filter(({ process }) => process.startsWith("daemon")).map(({ resident }) => resident),
    );
    rows.push([
      "resident memory of a daemon",
      "≤ 90 MiB, flat",
      `${Math.min(...daemons).toFixed(1)} – ${Math.max(...daemons).toFixed(1)} MiB over all moments`,
    ]);
  }
  if (up !== undefined)
    rows.push([
      `\`mco up\` with ${up.metrics.controlPlane}+${up.metrics.workers} machines to ready`,
      "≤ 15 s",
      `${middle(up.metrics.seconds).toFixed(1)} s median, ${Math.max(...up.metrics.seconds).toFixed(1)} s worst of ${up.metrics.seconds.length}`,
    ]);
  for (const [runs, machines, seconds, memory] of [
    [controlPlane, 1000, 60, 250],
    [scale, 5000, undefined, 700],
  ] as const) {
    const run = runs?.metrics.runs.find((one) => one.machines === machines);
    if (run === undefined) continue;
    if (seconds !== undefined)
      rows.push([
        `roll-out to ${thousands(machines)} machines, a tenth at a time`,
        `≤ ${seconds} s`,
        `${run.rollOutSeconds.toFixed(1)} s`,
      ]);
    rows.push([
      `resident memory of the controller with ${thousands(machines)} machines`,
      `≤ ${memory} MiB`,
      `${run.controllerPeak} MiB at most`,
    ]);
  }
  const first = controlPlane?.metrics.runs[0];
  if (first !== undefined) {
    const { node, machineConfigNode, drain, bytes } = budgetOf(first);
    rows.push(
      [
        "requests that write, per machine and update: MachineConfigNode, Node and its target, drain",
        "≤ 8, 6 + 1, 4",
        `${machineConfigNode}, ${node}, ${drain}`,
      ],
      ["bodies of all requests, per machine and update", "≤ 40 KiB", `${bytes} KiB`],
    );
  }
  if (server !== undefined) {
    const best = (encoding: string) =>
      server.metrics.loads
        .filter((load) => load.encoding === encoding)
        .reduce((most, { answersPerSecond }) => Math.max(most, answersPerSecond), 0);
    const small = server.metrics.loads.some(
      ({ encoding, answerBytes }) => encoding === "gzip" && answerBytes <= 300 * 1024,
    );
    rows.push(
      ["configurations of 1.2 MiB served, as they are", "≥ 250 a second", thousands(best("identity"))],
      ["the same by gzip", small ? "≥ 1,500 a second" : "– (above 300 KiB)", thousands(best("gzip"))],
      [
        "processor time of an answer that is kept ready",
        "≤ 1.5 ms",
        `${Math.max(...server.metrics.loads.map(({ cpuMs }) => cpuMs))} ms at most`,
      ],
    );
  }
  if (books !== undefined) {
    const { nodes, chaptersPerNode, chaptersMiB, writesPerUpdate, idle, readersMs } = books.metrics;
    rows.push(
      [
        `\`mco book\` of a node and \`mco explain\` of its pool, ${nodes} machines with ${chaptersPerNode} chapters each, p95`,
        "< 200 ms",
        `${readersMs.book.p95} ms, ${readersMs.explain.p95} ms`,
      ],
      ["their chapters", "≤ 20 MiB", `${chaptersMiB} MiB`],
      ["writes of a chapter, per machine and update", "≤ 2", writesPerUpdate],
      [
        "writes of the suite's objects in a cluster where nothing happens",
        "< 1 a minute",
        `${idle.writesPerMinute} a minute, ${idle.machines} machines`,
      ],
    );
  }
  return table(["what", "goal", "measured"], rows);
}

function bookText({ environment, metrics }: Section<BookMetrics>): string {
  const {
    nodes,
    chaptersPerNode,
    linesPerUpdate,
    foldsLinesPerSecond,
    readsLinesPerSecond,
    largestChapterKiB,
    chaptersMiB,
    openBooksKiB,
    idle,
    readersMs,
  } = metrics;
  return `## The books

${measuredOn(environment)} ${thousands(nodes)} machines with ${chaptersPerNode} updates each, ${linesPerUpdate} lines an update, as the daemon, the node and the drain controller tell them.
Folding is by processor time, in one thread; its baseline is reading the same lines from JSON. Readers run the commands' own code in one process, connected once, against the embedded
API server in another, over TLS; their baseline is a list of the Nodes. *Idle* counts changed MachineState objects, MachineConfigNodes, pools and the MachineConfiguration of a cluster
of ${idle.machines} machines over ${idle.seconds} s.

${table(
  ["", "measured", "baseline"],
  [
    ["lines folded per second", thousands(foldsLinesPerSecond), thousands(readsLinesPerSecond)],
    ["all chapters", `${chaptersMiB} MiB`, ""],
    ["the largest chapter", `${largestChapterKiB} KiB`, ""],
    ["memory of a book with an update under way", `${openBooksKiB} KiB`, ""],
    [
      "`mco book node/…`, median / p95",
      `${readersMs.book.median} / ${readersMs.book.p95} ms`,
      `${readersMs.baseline.median} / ${readersMs.baseline.p95} ms`,
    ],
    ["`mco explain pool/…`, median / p95", `${readersMs.explain.median} / ${readersMs.explain.p95} ms`, ""],
    ["`mco timeline pool/…`, median / p95", `${readersMs.timeline.median} / ${readersMs.timeline.p95} ms`, ""],
    ["writes while nothing happens", `${idle.writesPerMinute} a minute`, ""],
  ],
)}`;
}

/**
 * Writes per machine, by what the budget calls them: the drain's own writes of Nodes count as drain, all of
 * MachineConfigNodes as theirs; the target is one of the Node's, which the budget counts beside.
 */
function budgetOf({ requests }: ControlPlaneMetrics) {
  const written = requests.filter(({ verb }) => verb === "write");
  const sum = (of: readonly { readonly perMachine: number }[]) =>
    of.reduce((total, { perMachine }) => total + perMachine, 0).toFixed(1);
  return {
    machineConfigNode: sum(written.filter(({ kind }) => kind.startsWith("machineconfignodes"))),
    node: sum(
      written.filter(({ kind, writer }) => kind.startsWith("nodes") && writer !== "mcc-drain" && writer !== "kubelet"),
    ),
    drain: sum(written.filter(({ kind, writer }) => kind.startsWith("nodes") && writer === "mcc-drain")),
    bytes: (
      requests
        .filter(({ writer }) => writer !== "kubelet")
        .reduce((total, { bytesPerMachine }) => total + bytesPerMachine, 0) / 1024
    ).toFixed(1),
  };
}

function controlPlaneText(title: string, { environment, metrics: { runs } }: Section<ControlPlaneRuns>): string {
  const [first] = runs;
  const last = runs.at(-1);
  const growth =
    first === undefined || last === undefined || first === last
      ? ""
      : `\n\nFrom ${thousands(first.machines)} to ${thousands(last.machines)} machines the controller grows by ${(((last.controllerPeak - first.controllerPeak) * 1024) / (last.machines - first.machines)).toFixed(0)} KiB a machine, its pods included.`;
  const asked = [...(last?.requests ?? [])].filter(({ perMachine }) => perMachine >= 0.05);
  return `## ${title}

${measuredOn(environment)} One file that no policy names changes for a pool of which a tenth may be out of service at once: each machine is drained and rebooted. Machines are memory
hosts without any work of their own, with the daemon's own code, and reboot in no time; all of them in one process. The API server (its store in memory, over TLS) and the controller (the bundle, as it is installed)
have a process each; everything shares the CPUs. Each machine has ${first?.podsPerMachine ?? 0} pods of daemon sets, which stay where they are. *Roll-out* is from sending the MachineConfig until the
pool says that all machines have it. *Baseline*: as many writes of the same size to the same server by one client, 16 at a time, with nobody else about.

${table(
  ["machines", "roll-out", "baseline", "controller: joined", "most", "CPU s: controller", "API server", "machines"],
  runs.map(({ machines, rollOutSeconds, baselineSeconds, controllerBefore, controllerPeak, cpuSeconds }) => [
    thousands(machines),
    `${rollOutSeconds.toFixed(1)} s`,
    `${baselineSeconds.toFixed(1)} s`,
    `${controllerBefore} MiB`,
    `${controllerPeak} MiB`,
    cpuSeconds.controller.toFixed(1),
    cpuSeconds.apiServer.toFixed(1),
    cpuSeconds.machines.toFixed(1),
  ]),
)}${growth}

What was asked of the API server for each of ${thousands(last?.machines ?? 0)} machines, by whom:

${table(
  ["", "writer", "kind", "requests", "bytes of bodies"],
  asked.map(({ verb, writer, kind, perMachine, bytesPerMachine }) => [
    verb,
    `\`${writer}\``,
    `\`${kind}\``,
    perMachine.toFixed(2),
    thousands(bytesPerMachine),
  ]),
)}`;
}

function rollOutText({ environment, metrics }: Section<RollOutMetrics>): string {
  const daemons = metrics.memory.map(({ when, processes }) => [
    when,
    daemonRange(processes, "resident"),
    daemonRange(processes, "anonymous"),
  ]);
  const last = metrics.memory.at(-1);
  return `## From a write to the machines

${measuredOn(environment)} One cluster of 1+3 machines, everything on this one machine. Each write changes the SSH keys of the
worker pool, and waits until the roll-out is over before the next. The wait is counted in the client: from sending the write until
its watch shows a node with another \`desiredConfig\`. It contains twice the 250 ms for which the render and the node controller each collect changes before they act.

${table(
  ["write", "first node told after"],
  metrics.writeToDesiredConfigMs.map((ms, index) => [index + 1, `${ms} ms`]),
)}

A file that no policy names reached all three workers, one after the other with drain and (simulated) reboot, in ${metrics.rebootRollOutSeconds} s.

## Memory

${measuredOn(environment)} VmRSS and RssAnon of proc(5), in MiB. About 35 MiB of every process is Node.js's own program text, which all processes of
a machine share; RssAnon is what a process has for itself. A daemon is a child of its machine, and starts again with each reboot.

${table(["moment", "daemons, resident", "daemons, own"], daemons)}

Every process at the last moment:

${table(
  ["process", "resident", "own"],
  (last?.processes ?? []).map(({ process, resident, anonymous }) => [
    `\`${process}\``,
    resident.toFixed(1),
    anonymous.toFixed(1),
  ]),
)}`;
}

function estimateText({ environment, metrics: { calm, faults } }: Section<EstimateRuns>): string {
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
  const both = ({ median, p90 }: { readonly median: number; readonly p90: number }) =>
    `${seconds(median)} / ${seconds(p90)}`;
  const rows = ({ all, none, half, most }: EstimateMetrics) =>
    (
      [
        ["all", all],
        ["no machine yet", none],
        ["up to half", half],
        ["more than half", most],
      ] as const
    ).map(([had, { scored, within, before, after, errors, widthMs, stopwatch }]) => [
      had,
      thousands(scored),
      percent(within),
      percent(before),
      percent(after),
      seconds(widthMs),
      both(errors.ms),
      percent(errors.share.median),
      ...(had === "all" || stopwatch === undefined ? ["", ""] : [both(stopwatch.ms), percent(stopwatch.share.median)]),
    ]);
  const columns = [
    "machines that had the target",
    "estimates",
    "ended within",
    "before",
    "after",
    "bounds, median",
    "error, median / 90 %",
    "of what was left",
    "stopwatch's error",
    "of what was left",
  ];
  return `## Likely ends

${measuredOn(environment)} What \`mco explain pool\` says of the end of a roll-out, against when it ended, in ${calm.seeds} simulated clusters of
1+3 machines, 30 minutes of people's changes in each: every estimate that was given while a roll-out went on, from the first
known update of the pool on. *Within* are ends between the bounds, which are those that one of ten updates stayed below and one of ten
exceeded, wider where few are known. *Error* is the distance of the likely end from the end. The baseline is a stopwatch: the time so
far, divided by the machines that have the target, for each that is left; it says nothing before the first has it. People who
pause the pool or cordon machines meanwhile are foreseen by neither.

Nothing fails; ${thousands(calm.overtaken)} more estimates were overtaken by a newer target:

${table(columns, rows(calm))}

Processes die, machines lose power, messages are lost; ${thousands(faults.overtaken)} more were overtaken:

${table(columns, rows(faults))}`;
}

function upText({ environment, metrics }: Section<UpMetrics>): string {
  return `## \`mco up\`

${measuredOn(environment)} ${metrics.controlPlane} control-plane machine and ${metrics.workers} workers, an empty folder each time, packages installed. As \`mco up\` counts: from its own
start until every machine is in service on what its pool wants, which includes writing the bundle and generating certificates.

${table(
  ["run", "ready after"],
  metrics.seconds.map((seconds, index) => [index + 1, `${seconds.toFixed(1)} s`]),
)}`;
}

function decisionText({ environment, metrics }: Section<DecisionMetrics>): string {
  const factor = (ours: number, baseline: number) => `${(ours / baseline).toFixed(1)}×`;
  return `## Decisions

${measuredOn(environment)} One thread, over the ${metrics.renderCases} render cases of \`test/vectors\` that render (${metrics.membersPerRender} members each on average) and its ${metrics.diffCases} pairs
of configs. Ours works as the controller does: objects live in a watch cache and one of them is new each time. The baseline is the
same code without anything known from before: every object is read from its JSON text for every answer.

${table(
  ["", "ours", "baseline", "factor"],
  [
    [
      "renders per second of processor time",
      thousands(metrics.rendersPerSecond),
      thousands(metrics.rendersPerSecondBaseline),
      factor(metrics.rendersPerSecond, metrics.rendersPerSecondBaseline),
    ],
    [
      `renders per second of a pool with ${metrics.manyMembers} members`,
      thousands(metrics.rerendersPerSecond),
      thousands(metrics.rerendersPerSecondBaseline),
      factor(metrics.rerendersPerSecond, metrics.rerendersPerSecondBaseline),
    ],
    [
      "comparisons per second of processor time",
      thousands(metrics.diffsPerSecond),
      thousands(metrics.diffsPerSecondBaseline),
      factor(metrics.diffsPerSecond, metrics.diffsPerSecondBaseline),
    ],
  ],
)}`;
}

function largestText({ environment, metrics }: Section<LargestMetrics>): string {
  return `## The largest configs

${measuredOn(environment)} One MachineConfig near the 1.5 MiB that etcd takes, validated, merged, rendered twice and planned in a fresh process; *peak* is the most
memory that the process ever had, Node.js included.

${table(
  ["config", "bytes", "outcome", "time", "peak"],
  metrics.rows.map(({ config, bytes, outcome, milliseconds, peak }) => [
    config,
    thousands(bytes),
    outcome,
    `${thousands(milliseconds)} ms`,
    `${peak} MiB`,
  ]),
)}`;
}

function settingsText({ environment, metrics }: Section<SettingsMetrics>): string {
  return `## Objects with settings

${measuredOn(environment)} Each row in a fresh process, fifty times: processor time of all its threads. *Peak* is the most memory that the process ever had, Node.js included. The largest objects are validated at admission once for each write.

${table(
  ["what", "median", "worst", "peak"],
  metrics.rows.map(({ what, milliseconds: { median, max }, peak }) => [
    what,
    `${median.toFixed(2)} ms`,
    `${max.toFixed(2)} ms`,
    `${peak} MiB`,
  ]),
)}`;
}

function machineText({ environment, metrics }: Section<MachineMetrics>): string {
  const { files, bytesPerFile, units, update, updateBaseline, look, lookBaseline, pull, pullBaseline, idle } = metrics;
  const seconds = (values: readonly number[]) => `${middle(values).toFixed(2)} / ${Math.max(...values).toFixed(2)} s`;
  const memory = ({ resident, anonymous }: Memory) => `${resident.toFixed(1)} MiB (${anonymous.toFixed(1)} own)`;
  return `## One machine

${measuredOn(environment)} A machine in a folder (the \`directory\` driver) on ${metrics.fileSystem}, ${files} files of ${thousands(bytesPerFile)} bytes in 10 folders, all in one process with
nothing between the daemon's own code and the disk: what it asks of the API server is not in it. Updates and pulls took turns with their baselines; the others ran before them.

- *Update*: all files change: observed, planned, the ledger written, everything flushed, the ledger closed; no drain and no reboot. Baseline: the same files one after the other, each
  with a flush of itself and of its folder, and no ledger: ${((middle(updateBaseline.seconds) * 1000) / updateBaseline.flushes).toFixed(1)} ms per flush, all in all, on this disk; the longer a flush takes, the more it saves to need fewer.
- *Look*: the machine is read and planned, and nothing is to be done. Baseline: the same files read and hashed one after the other, nothing else.
- *Plans*: ${files} files and ${units} units, in one thread. Baseline: the target is read from its JSON text for every plan.
- *Pull*: an image of ${pull.mebibytes} MiB (about half of that compressed) from a registry on loopback, verified, unpacked and flushed, in a process of its own.
  Baseline: download to a file, \`tar -xzf\`, \`sync -f\`, nothing verified. *Peak* is the most memory that the process ever had, Node.js included.
- *Rest*: VmRSS and RssAnon of two daemons of one cluster, ${idle.seconds} s after the roll-out.

${table(
  ["", "ours", "baseline"],
  [
    [
      `update of ${files} files, median / worst of ${update.seconds.length}`,
      seconds(update.seconds),
      seconds(updateBaseline.seconds),
    ],
    ["flushes (fsync) of it", update.flushes, updateBaseline.flushes],
    [
      `look at an unchanged machine, median / 95 % of ${look.ms.count}`,
      `${look.ms.median} / ${look.ms.p95} ms`,
      `${lookBaseline.ms.median} / ${lookBaseline.ms.p95} ms`,
    ],
    ["processor time of a look", `${look.cpuMs} ms`, `${lookBaseline.cpuMs} ms`],
    ["processes that all looks started", look.forks, lookBaseline.forks],
    [
      "changes of the disk by all looks, and bytes written",
      `${look.changes}, ${look.writtenBytes}`,
      `${lookBaseline.changes}, ${lookBaseline.writtenBytes}`,
    ],
    ["plans per second of processor time, nothing changed", thousands(metrics.plansPerSecond), "–"],
    [
      "plans per second of processor time, everything changed",
      thousands(metrics.plansPerSecondAllChanged),
      thousands(metrics.plansPerSecondBaseline),
    ],
    [
      `pull of ${pull.mebibytes} MiB, median / worst of ${pull.seconds.length}`,
      seconds(pull.seconds),
      seconds(pullBaseline.seconds),
    ],
    ["peak of it, and of a pull of 1 KiB", `${pull.peak} MiB`, `${pull.peakOfSmall} MiB`],
    [`daemon at rest, with these files, and without`, memory(idle.with), memory(idle.without)],
  ],
)}`;
}

function apiText({ environment, metrics }: Section<ApiServerMetrics>): string {
  const { kubernetes } = metrics;
  const columns: readonly (ApiMetrics | undefined)[] = [
    metrics.inProcess,
    metrics.overTls,
    kubernetes === "absent" ? undefined : kubernetes.metrics,
    metrics.echoOverTls,
  ];
  const row = (what: string, cell: (one: ApiMetrics) => string) => [
    what,
    ...columns.map((one) => (one === undefined ? "not built" : cell(one))),
  ];
  const memory = (moment: "idle" | "loaded") => (one: ApiMetrics) =>
    one.memory === undefined
      ? "–"
      : Object.values(one.memory[moment])
          .map((mib) => `${mib}`)
          .join(" + ") + " MiB";
  const beside =
    kubernetes === "absent"
      ? "Kubernetes: its programs were not built (`hack/kubernetes build`)."
      : `Kubernetes: etcd and kube-apiserver ${kubernetes.version} as \`mco up --api-server kubernetes\` starts them (audit log of metadata included), controller manager and scheduler held meanwhile; its memory is ${Object.keys(kubernetes.metrics.memory?.loaded ?? {}).join(" + ")}. Neither store waits for the disk.`;
  return `## API server

${measuredOn(environment)} In process: memory store, no socket, client in the same process. Embedded: its own process, SQLite file, over TLS with a client
certificate, ${metrics.concurrency} requests at a time; client and server share the CPUs. ${beside}
Echo: \`node:https\` that returns what it gets (its list is a fixed body of the same size, its watch copies the write), with the same client: what TLS and HTTP alone cost here.
Columns were measured one after the other: what else the machine did meanwhile is in them, and with a load average above 1 they are to be compared with care.

${table(
  ["", "in process", "embedded", "Kubernetes", "echo"],
  [
    row(`creates per second (${thousands(metrics.creates)} config maps of 1 KB)`, ({ createsPerSecond }) =>
      thousands(createsPerSecond),
    ),
    row("one create, median / 95 %", ({ createMs }) => `${createMs.median} / ${createMs.p95} ms`),
    row("updates per second (each of them replaced)", ({ updatesPerSecond }) => thousands(updatesPerSecond)),
    row("one update, median / 95 %", ({ updateMs }) => `${updateMs.median} / ${updateMs.p95} ms`),
    row(
      `list of ${thousands(metrics.nodes)} nodes, median / worst of ${metrics.lists}`,
      ({ listMs }) => `${listMs.median} / ${listMs.max} ms`,
    ),
    row("size of that list", ({ listBytes }) => `${(listBytes / 1e6).toFixed(1)} MB`),
    row(
      `one write to ${thousands(metrics.watchers)} watchers, last event, median / 95 %`,
      ({ fanOutMs }) => `${fanOutMs.median} / ${fanOutMs.p95} ms`,
    ),
    row(`events per second in a burst of ${metrics.watchedWrites} writes`, ({ eventsPerSecond }) =>
      thousands(eventsPerSecond),
    ),
    row("memory before the first request", memory("idle")),
    row("memory with all of this stored and watched", memory("loaded")),
  ],
)}`;
}

function buildText(
  environment: Environment & { readonly loadAverage?: number },
  { coldSeconds, rebuildSeconds, fileSeconds, rebuildHasEqualDigest, runs }: BuildMetrics,
): string {
  const share = Math.round((fileSeconds.median / coldSeconds) * 100);
  return `## OS images

${measuredOn(environment)} One machine, embedded API server and registry, a pool that is paused; a Containerfile that copies one file of 100 KB onto the stock OS (a few KB).
From the object of a build to its image, found in the registry. The cold build is the baseline: what a changed file costs where every image is built from the beginning.

${table(
  ["", "", "goal"],
  [
    ["cold build, by buildah in a Job", `${coldSeconds} s`, "–"],
    ["rebuild (no cache of steps, base image there)", `${rebuildSeconds} s`, "–"],
    [
      `one file changed, median / worst of ${fileSeconds.count}`,
      `${fileSeconds.median} / ${fileSeconds.max} s (${share} % of the cold build)`,
      "20 %",
    ],
    ["a rebuild has the same digest", rebuildHasEqualDigest ? "yes" : "no", "yes"],
    ["runs for kernel arguments", runs.kernelArguments, "0"],
    ["runs for going back", runs.goingBack, "0"],
    ["runs for a second pool with equal content", runs.secondPoolOfEqualContent, "0"],
  ],
)}`;
}

function joinsText({
  environment,
  metrics: { machines, seconds, fetchedSeconds, registeredSeconds, askedAgain, uses },
}: Section<JoinMetrics>): string {
  return `## Machines that boot at once

${measuredOn(environment)} A cluster of one control-plane machine (embedded API server; operator, controller and config server as they are installed), and ${thousands(machines)} simulated machines in
one more process on the same CPUs, all started in the same moment with one token: each fetches its configuration over TLS, makes a key, asks for its certificate with the account in what it
fetched, looks until it has it, and registers its Node with it. They are all in when the pool counts them. ${thousands(askedAgain)} were told to come again for their configuration, and did;
the token counted ${thousands(uses)} uses.

${table(
  ["", "median", "p95", "last"],
  [
    ["configuration fetched, s", fetchedSeconds.median, fetchedSeconds.p95, seconds.fetched],
    ["node registered, s", registeredSeconds.median, registeredSeconds.p95, seconds.registered],
    ["all certificates, s", "", "", seconds.certified],
    ["all in the pool, s", "", "", seconds.inPool],
  ],
)}
`;
}

function serverText({
  environment,
  metrics: { configBytes, seconds, loads, baseline },
}: Section<ServerMetrics>): string {
  const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(2)} MiB`;
  const row = (what: string, { answerBytes, answersPerSecond, ms, cpuMs, resident }: ServerLoadMetrics) => [
    what,
    mebibytes(answerBytes),
    thousands(answersPerSecond),
    `${ms.median} / ${ms.p99} ms`,
    `${cpuMs} ms`,
    `${resident} MiB`,
  ];
  return `## The config server

${measuredOn(environment)} One rendered configuration of ${mebibytes(configBytes)} (250 files, 60 units), Ignition 3.5, over TLS 1.3 on loopback; the server in one process, all clients in
another, on the same CPUs. Each client asks again over its connection as soon as it has its answer, for ${seconds} s; nobody is asked for a credential. Baseline: the same server, in the
same run, that makes every answer when it is asked for. Memory is of the server's process, at the end of each load; it is not started again in between.

${table(["", "answer", "answers / s", "median / 99 %", "CPU of one answer", "memory"], [row("baseline: made for each request, identity, 1 client", baseline), ...loads.map((load) => row(`${load.encoding}, ${thousands(load.clients)} ${load.clients === 1 ? "client" : "clients"}`, load))])}`;
}

/** The page, from what was measured and nothing else. */
export function page(report: Report): string {
  const parts = [
    "# Benchmarks\n\nWritten by `make bench` from what it measured; the raw figures are in [benchmarks.json](benchmarks.json). No test asserts a figure.",
    report.up === undefined &&
    report.rollOuts === undefined &&
    report.controlPlane === undefined &&
    report.books === undefined &&
    report.server === undefined
      ? undefined
      : goals(report),
    report.rollOuts === undefined ? undefined : rollOutText(report.rollOuts),
    report.up === undefined ? undefined : upText(report.up),
    report.decisions === undefined ? undefined : decisionText(report.decisions),
    report.largest === undefined ? undefined : largestText(report.largest),
    report.settings === undefined ? undefined : settingsText(report.settings),
    report.machines === undefined ? undefined : machineText(report.machines),
    report.apiServer === undefined ? undefined : apiText(report.apiServer),
    report.books === undefined ? undefined : bookText(report.books),
    report.builds === undefined || report.builds.metrics === "absent"
      ? undefined
      : buildText(report.builds.environment, report.builds.metrics),
    report.server === undefined ? undefined : serverText(report.server),
    report.joins === undefined ? undefined : joinsText(report.joins),
    report.estimates === undefined ? undefined : estimateText(report.estimates),
    report.controlPlane === undefined
      ? undefined
      : controlPlaneText("A roll-out to many machines", report.controlPlane),
    report.scale === undefined ? undefined : controlPlaneText("The same at scale", report.scale),
  ];
  return `${parts.filter((part) => part !== undefined).join("\n\n")}\n`;
}
