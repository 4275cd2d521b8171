import { expect } from "vitest";
import { type NodePlan, planNode } from "../../src/core/machine/plan-node.ts";
import { documentStore } from "../../src/daemon/machine-documents.ts";
import { observeHost } from "../../src/daemon/observe-host.ts";
import { type StepContext, performStep } from "../../src/daemon/perform-step.ts";
import { type Wanted, readTarget } from "../../src/core/machine/read-config.ts";
import type { Host, HostMachine } from "../../src/host/host.ts";
import { systemClock } from "../../src/ports/node/index.ts";

const { signal } = new AbortController();

/** One life of a daemon: it observes and acts until the machine is in sync, or is killed after `survives` steps. */
export async function live(
  { host, machine }: { readonly host: Host; readonly machine: HostMachine },
  wanted: Wanted,
  survives: number,
): Promise<NodePlan | undefined> {
  const documents = documentStore(host.ledger);
  let left = survives;
  for (let round = 0; round < 8; round += 1) {
    const known = await documents.load(signal);
    const before = known.previous === undefined ? undefined : readTarget(known.previous.config, known.previous.pair);
    const { booted } = await host.os.status(signal);
    const localPayload = (await documents.payload(booted.image, signal)) !== undefined;
    const observed = await observeHost(
      host,
      known,
      {
        previous: before?.verdict === "read" ? before.wanted.config : undefined,
        target: wanted.config,
        inService: true,
        onlyControlPlane: false,
        localPayload,
      },
      signal,
    );
    const plan = planNode(observed, wanted.config, undefined);
    if (plan.verdict !== "change") return plan;
    if (wanted.config.imageContent === "full")
      for (const step of plan.steps)
        expect([
          "writeEntries",
          "restoreEntries",
          "relinkUnits",
          "enableUnit",
          "disableUnit",
          "presetUnit",
          "setPassword",
          "makeFolder",
        ]).not.toContain(step.do);
    const site: StepContext = {
      host,
      documents,
      clock: systemClock,
      observed,
      target: wanted,
      originals: observed.originals,
      ledger: observed.ledger,
    };
    for (const step of plan.steps) {
      if (left === 0) return undefined;
      left -= 1;
      if (step.do !== "drain") await performStep(step, site, signal);
      if (step.do === "reboot") {
        await machine.boot({ orderly: true });
        break;
      }
      if (step.do === "settle") break;
    }
  }
  throw new Error("no end");
}
