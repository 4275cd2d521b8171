import { MachineConfigNode, MachineConfigPool, MachineOSBuild, MachineOSConfig, kubernetes } from "../../api/index.ts";
import { annotations, fieldManagers } from "../../api/names.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { keyDifferences } from "../../core/build/build-key.ts";
import { prunePlan } from "../../core/build/build-prune.ts";
import { rebuildSerial } from "../../core/build/build-rebuild.ts";
import { readFailure } from "../../core/build/build-retry.ts";
import { type BuildRowObjects, buildOfPool, buildRows, buildTable, optInAmong } from "../../core/build/build-rows.ts";
import { durationText } from "../../core/books/fold-book.ts";
import { imagesNamed, namedImage, newest } from "../../core/config/image-pair.ts";
import { machineOSConfigOf } from "../../core/config/opt-in.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { isNotFound } from "../../kube/kube-error.ts";
import { systemClock } from "../../ports/node/index.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { buildConfigOf } from "../cluster-objects.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { linesOfBuild, podOfBuild } from "../build-log.ts";
import { type Io, processIo } from "../io.ts";
import { readStoredBooks } from "../read-stored-books.ts";
import { showBook } from "./book.ts";
import { readComponents } from "../../core/config/key-components.ts";
import { hasEnded, stateOfBuild } from "../../core/config/build-phase.ts";

const verbs = ["status", "start", "retry", "logs", "explain", "plan", "prune", "rollback"] as const;
type Verb = (typeof verbs)[number];

export interface BuildOptions {
  readonly json: boolean;
  readonly wait: boolean;
  readonly follow: boolean;
  readonly dryRun: boolean;
  readonly step: string | undefined;
  readonly tail: number | undefined;
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.build, { positionals: true });
  const [word = "status", name, ...more] = positionals;
  const verb = verbs.find((one) => one === word);
  if (verb === undefined) throw usageError(`unknown verb "${word}"; use ${verbs.join(", ")}`);
  if (more.length > 0) throw usageError("name one pool or build only");
  if (name === undefined && verb !== "status" && verb !== "prune")
    throw usageError(`${verb} needs the name of ${verb === "logs" ? "a pool or a MachineOSBuild" : "a pool"}`);
  const options: BuildOptions = {
    json: values.json,
    wait: values.wait,
    follow: values.follow,
    dryRun: values["dry-run"],
    step: values.step,
    tail: values.tail === undefined ? undefined : countOf(values.tail, "--tail", 1, 1_000_000),
  };
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory: values.dir, component: "build" });
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort(new Error(signal)));
  try {
    return await buildCommand(kube, processIo(), verb, name, options, stopping.signal);
  } finally {
    close();
  }
}

/** @returns the exit code. */
export async function buildCommand(
  kube: KubeClient,
  io: Io,
  verb: Verb,
  name: string | undefined,
  options: BuildOptions,
  signal: AbortSignal,
): Promise<number> {
  const objects = await read(kube);
  if (verb === "status") return status(objects, io, name, options);
  if (verb === "prune") return prune(kube, objects, io, options);
  if (verb === "logs") return logs(kube, objects, io, name ?? "", options, signal);
  const pool = objects.pools.find(({ metadata }) => metadata.name === name);
  if (pool === undefined)
    return missing(
      io,
      `there is no pool "${name}"; there are ${objects.pools
        .map(({ metadata }) => metadata.name)
        .sort()
        .join(", ")}`,
    );
  switch (verb) {
    case "start":
    case "retry":
      return ask(kube, objects, pool, io, verb, options, signal);
    case "rollback":
      return rollback(kube, objects, pool, io);
    case "explain":
    case "plan": {
      const { explainBuildOf, planOfPool } = await import("../explain-build.ts");
      return verb === "explain"
        ? explainBuildOf(kube, objects, pool, io, options)
        : planOfPool(kube, objects, pool, io, options);
    }
  }
}

async function read(kube: KubeClient): Promise<BuildRowObjects> {
  const [pools, buildConfig, configs, builds] = await Promise.all([
    kube.list(MachineConfigPool).then(({ items }) => items),
    buildConfigOf(kube),
    ...([MachineOSConfig, MachineOSBuild] as const).map((resource) =>
      kube.list(resource as typeof MachineOSConfig).then(
        ({ items }) => items,
        (error: unknown) => {
          // Kinds that are not installed: nothing is built there.
          if (isNotFound(error)) return [];
          throw error;
        },
      ),
    ),
  ] as const);
  return { pools, buildConfig, configs: configs ?? [], builds: (builds ?? []) as unknown as readonly MachineOSBuild[] };
}

function missing(io: Io, what: string): number {
  io.err(`mco build: ${what}\n`);
  return exitCodes.failed;
}

const ageOf = (since: string) => durationText(Math.max(0, systemClock.now() - Date.parse(since)));

function status(objects: BuildRowObjects, io: Io, pool: string | undefined, { json }: BuildOptions): number {
  const rows = buildRows(objects).filter((row) => pool === undefined || row.pool === pool);
  if (pool !== undefined && rows.length === 0)
    return missing(
      io,
      `pool "${pool}" ${objects.pools.some(({ metadata }) => metadata.name === pool) ? "boots no images that are built on the cluster" : "does not exist"}`,
    );
  io.out(
    json ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Builds", builds: rows })}\n` : buildTable(rows, ageOf),
  );
  return exitCodes.ok;
}

/**
 * Asks for a build again: by a request on the pool, or, where the limit of retries ended it, by beginning to count
 * again.
 */
async function ask(
  kube: KubeClient,
  objects: BuildRowObjects,
  pool: MachineConfigPool,
  io: Io,
  verb: "start" | "retry",
  { wait, json }: BuildOptions,
  signal: AbortSignal,
): Promise<number> {
  const { name } = pool.metadata;
  if (optInAmong(objects, pool).opted !== "in")
    return missing(io, `pool "${name}" has not opted in to images: docs/os-images.md says how`);
  const last = buildOfPool(objects, pool);
  const { phase, reason } = last === undefined ? { phase: "Initial", reason: "" } : stateOfBuild(last);
  if (verb === "retry" && phase !== "Failed")
    return missing(
      io,
      `nothing failed that could be tried again: ${last === undefined ? "no build was begun" : `${last.metadata.name} is ${phase}`}; mco build start ${name} builds again`,
    );
  const countsAnew =
    verb === "retry" &&
    reason === "RetryLimitReached" &&
    pool.metadata.annotations?.[annotations.buildRetries] !== undefined;
  const request = timestampOf(systemClock.now());
  const changes = countsAnew ? { [annotations.buildRetries]: null } : { [annotations.rebuildImage]: request };
  await kube.patch(
    MachineConfigPool,
    { name },
    { type: "merge", body: { metadata: { annotations: changes } } },
    { owner: "mco-cli", signal },
  );
  if (!wait) {
    io.out(
      json
        ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "BuildRequest", pool: name, request: countsAnew ? "retry" : request })}\n`
        : `${countsAnew ? "the retry count is reset" : "a rebuild was asked for"}: mco build status ${name}\n`,
    );
    return exitCodes.ok;
  }
  return follow(kube, pool, last?.metadata.name, io, json, signal);
}

const lookEveryMs = 500;

/** Prints each phase of the starting build until it ends. */
async function follow(
  kube: KubeClient,
  { metadata: { name } }: MachineConfigPool,
  before: string | undefined,
  io: Io,
  json: boolean,
  signal: AbortSignal,
): Promise<number> {
  let printed = "";
  for (;;) {
    const objects = await read(kube);
    const pool = objects.pools.find(({ metadata }) => metadata.name === name);
    if (pool === undefined) return missing(io, `pool "${name}" is gone`);
    const build = newest(
      objects.builds.filter(
        ({ spec }) => spec.machineOSConfig.name === machineOSConfigOf(name, objects.configs)?.metadata.name,
      ),
    );
    if (build !== undefined && build.metadata.name !== before) {
      const state = stateOfBuild(build);
      const text = `${build.metadata.name} ${state.phase}${state.reason === "" ? "" : ` (${state.reason})`}`;
      if (text !== printed)
        io.out(
          json
            ? `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "BuildTurn", build: build.metadata.name, ...state })}\n`
            : `${text}${state.message === "" ? "" : `: ${state.message}`}\n`,
        );
      printed = text;
      // A build that ended to make room for another is not the end.
      if (hasEnded(state) && state.phase !== "Interrupted")
        return state.phase === "Succeeded" ? exitCodes.ok : exitCodes.failed;
    }
    await systemClock.sleep(lookEveryMs, signal);
  }
}

/** The pod's log while there is a pod; else the steps from the books, with the last lines of failed steps. */
async function logs(
  kube: KubeClient,
  objects: BuildRowObjects,
  io: Io,
  name: string,
  options: BuildOptions,
  signal: AbortSignal,
): Promise<number> {
  const pool = objects.pools.find(({ metadata }) => metadata.name === name);
  const build =
    objects.builds.find(({ metadata }) => metadata.name === name) ??
    (pool === undefined ? undefined : buildOfPool(objects, pool));
  if (build === undefined)
    return missing(
      io,
      pool === undefined
        ? `there is neither a MachineOSBuild nor a pool "${name}"`
        : `no build of pool "${name}" was begun`,
    );
  const pod = await podOfBuild(kube, build.metadata.name, signal);
  if (pod !== undefined) {
    // Of one step, the last lines are not those of the whole log.
    const wanted = { follow: options.follow, tail: options.step === undefined ? options.tail : undefined };
    try {
      await printLog(linesOfBuild(kube, pod, wanted, signal), io, options);
      return exitCodes.ok;
    } catch (error) {
      if (signal.aborted) return exitCodes.ok;
      if (!isNotFound(error)) throw error;
    }
  }
  const failure = readFailure(build.metadata.annotations?.[annotations.buildFailure]);
  const source = build.metadata.annotations?.[annotations.reusedFrom];
  if (source !== undefined) io.err(`${build.metadata.name} takes the image of ${source}\n`);
  else if (!options.json)
    io.err(
      `${build.metadata.name} has no pod${hasEnded(stateOfBuild(build)) ? " any more" : ""}: what its book tells\n`,
    );
  if (failure !== undefined && !options.json)
    io.out(`${failure.step}: ${failure.cause}\n${failure.excerpt}\n${failure.nextAction}\n\n`);
  return showBook((book) => readStoredBooks(kube, book), io, `build/${build.metadata.name}`, {
    json: options.json,
    follows: true,
  });
}

const marker = /^::mco step=(\S+) state=(start|end)(?: rc=(-?\d+))?/;

/** Prints a log; its marks of steps as headings, or only the lines of one step. */
async function printLog(lines: AsyncIterable<string>, io: Io, { step, json }: BuildOptions): Promise<void> {
  let at = "";
  for await (const line of lines) {
    const [, name, state, code] = marker.exec(line) ?? [];
    if (name !== undefined) at = state === "start" ? name : "";
    if (step !== undefined && (name ?? at) !== step && !(name ?? at).startsWith(`${step}:`)) continue;
    if (json)
      io.out(
        `${JSON.stringify(name === undefined ? { step: at, text: line } : { step: name, state, ...(code === undefined ? {} : { exitCode: Number(code) }) })}\n`,
      );
    else if (name === undefined) io.out(`${line}\n`);
    else
      io.out(
        state === "start"
          ? `--- ${name}\n`
          : `--- ${name} ${code === undefined || code === "0" ? "done" : `failed with ${code}`}\n`,
      );
  }
}

/**
 * Reports kept images and why, and marks unused ones: the os-builder deletes them some time later, if they are
 * still unused.
 */
async function prune(
  kube: KubeClient,
  objects: BuildRowObjects,
  io: Io,
  { dryRun, json }: BuildOptions,
): Promise<number> {
  const [nodes, machineConfigNodes] = await Promise.all([kube.list(kubernetes.Node), kube.list(MachineConfigNode)]);
  const used = [
    ...nodes.items.flatMap(({ metadata }) => [
      ...imagesNamed(namedImage(metadata.annotations ?? {}, "desired")),
      ...imagesNamed(namedImage(metadata.annotations ?? {}, "current")),
    ]),
    ...machineConfigNodes.items.flatMap(({ spec, status: is }) => [
      spec.configImage?.desiredImage ?? "",
      is?.configImage?.currentImage ?? "",
      is?.configImage?.desiredImage ?? "",
    ]),
  ];
  const machineOSConfigs = new Map(
    objects.configs.map(
      ({ metadata, status: is }) =>
        [metadata.name, { current: is?.machineOSBuild?.name, image: is?.currentImagePullSpec }] as const,
    ),
  );
  const plan = prunePlan({ builds: objects.builds, machineOSConfigs, used, now: systemClock.now() });
  if (!dryRun)
    for (const { build, after } of plan.mark)
      await kube.patch(
        MachineOSBuild,
        { name: build },
        { type: "merge", body: { metadata: { annotations: { [annotations.pruneAfter]: after } } } },
        { owner: fieldManagers.osBuilder },
      );
  const kept = [...plan.kept].map(([build, why]) => ({ build, why }));
  const removed = plan.remove.map(({ build, image }) => ({
    build: build.metadata.name,
    ...(image === undefined ? {} : { image }),
  }));
  if (json)
    io.out(
      `${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Prune", dryRun, kept, marked: plan.mark, removable: removed })}\n`,
    );
  else {
    for (const { build, why } of kept) io.out(`kept     ${build} (${why})\n`);
    for (const { build, after } of plan.mark)
      io.out(`${dryRun ? "would go" : "goes    "} ${build}, not before ${after}\n`);
    for (const { build, image } of removed) io.out(`due      ${build}${image === undefined ? "" : ` and ${image}`}\n`);
    if (objects.builds.length === 0) io.out("there is no build\n");
  }
  return exitCodes.ok;
}

/**
 * Goes back to the image that was rolled out before the last rebuild: the same inputs, one rebuild less, need no new
 * build.
 */
async function rollback(kube: KubeClient, objects: BuildRowObjects, pool: MachineConfigPool, io: Io): Promise<number> {
  const config = machineOSConfigOf(pool.metadata.name, objects.configs);
  if (config === undefined)
    return missing(io, `pool "${pool.metadata.name}" boots no images that are built on the cluster`);
  const published = objects.builds.find(({ metadata }) => metadata.name === config.status?.machineOSBuild?.name);
  const components = readComponents(published?.metadata.annotations?.[annotations.keyInputs]);
  const earlier = newest(
    objects.builds.filter(
      (build) =>
        build !== published &&
        build.spec.machineOSConfig.name === config.metadata.name &&
        stateOfBuild(build).phase === "Succeeded" &&
        build.status?.digestedImagePushSpec !== config.status?.currentImagePullSpec,
    ),
  );
  const was = readComponents(earlier?.metadata.annotations?.[annotations.keyInputs]);
  if (earlier === undefined || was === undefined || components === undefined)
    return missing(io, "there is no earlier image to go back to: mco build status");
  const others = keyDifferences(components, was).filter(({ component }) => component !== "serial");
  if (others.length > 0)
    return missing(
      io,
      `${earlier.metadata.name} was made from something else: ${others.map(({ says }) => says).join(", ")}; put that back as it was, and its image is taken without a build`,
    );
  const serial = was["serial"];
  if (typeof serial !== "number" || serial === rebuildSerial(config))
    return missing(
      io,
      "the last image did not come from a rebuild: put its inputs back as they were, and the earlier image is taken without a build",
    );
  await kube.patch(
    MachineOSConfig,
    { name: config.metadata.name },
    {
      type: "merge",
      body: {
        metadata: {
          annotations: {
            [annotations.rebuildSerial]: String(serial),
            [annotations.rebuildActive]: null,
            [annotations.rebuild]: null,
          },
        },
      },
    },
    { owner: "mco-cli" },
  );
  io.out(
    `${pool.metadata.name} goes back to the image of ${earlier.metadata.name}: mco build status ${pool.metadata.name}\n`,
  );
  return exitCodes.ok;
}
