import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { maxRetriesOf } from "../core/build/build-settings.ts";
import { decideRun } from "../core/build/decide-run.ts";
import type { RunView } from "../core/build/run-decision.ts";
import { backendOf, runningBeside } from "./build-runs.ts";
import { buildSettingsIn, poolOfBuild } from "./cluster-facts.ts";
import { type DriveContext, type DrivenRun, type NextPassMs, type RunActs, performRun } from "./perform-run.ts";

/**
 * Advances an unfinished build by one step: starts its run, or reports the state of the run. It decides until a decision
 * ends the pass: parts that a decision reads, and a failure that it notes, lead to another decision.
 */
export async function driveBuild(build: MachineOSBuild, drive: DriveContext): Promise<NextPassMs> {
  const { backends, context } = drive;
  const acts: RunActs = { ...drive, backend: backendOf(build, backends) };
  let pass: DrivenRun = { build, running: runningBeside(build, context.caches.of(MachineOSBuild).list(), backends) };
  for (;;) {
    const decision = decideRun(viewOf(pass, acts));
    context.log.debug({ build: build.metadata.name, decision: decision.do, because: decision.because }, "decided");
    const performed = await performRun(decision, pass, acts);
    if ("next" in performed) return performed.next;
    pass = performed;
  }
}

/** What decides about a build: what the pass has found out, and what the caches show around it. */
function viewOf(pass: DrivenRun, { backend, context: { caches, clock } }: RunActs): RunView {
  const { build } = pass;
  const config = caches.of(MachineOSConfig).get(build.spec.machineOSConfig.name);
  return {
    ...pass,
    now: clock.now(),
    atOnce: backend?.capabilities().atOnce,
    builds: caches.of(MachineOSBuild).list(),
    pool: caches.of(MachineConfigPool).get(poolOfBuild(build)),
    isOwned: config !== undefined,
    maxRetries: maxRetriesOf(config, buildSettingsIn(caches)),
    rendered: caches.of(MachineConfig).get(build.spec.machineConfig.name),
  };
}
