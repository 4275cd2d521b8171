import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import { sha256Hex } from "./build-key.ts";
import type { BuildPhase } from "../config/build-phase.ts";

/**
 * A rebuild under way, as the annotation rebuild-active of the MachineOSConfig has it: `<serial>:<hash of the
 * request>`.
 */
export interface ActiveRebuild {
  readonly serial: number;
  readonly token: string;
}

export type RebuildStep =
  | { readonly do: "nothing" }
  /** A new request: both values go onto the MachineOSConfig in one patch. `request`: its text. */
  | {
      readonly do: "begin";
      readonly serial: number;
      readonly active: string;
      readonly request: string;
      /** The first build, which is still running, satisfies the request. */ readonly keepsRun: boolean;
    }
  /** The rebuild has ended: remove the requests and the mark of the active one. */
  | { readonly do: "finish"; readonly succeeded: boolean };

export interface RebuildFacts {
  readonly pool: Pick<MachineConfigPool, "metadata">;
  readonly config: Pick<MachineOSConfig, "metadata" | "status">;
  /** The state of the desired image's build; `undefined`: there is none. */
  readonly build: BuildPhase | undefined;
  /** An end that is followed by an automatic attempt does not count. */
  readonly goesOn: boolean;
}

const hashOf = (token: string) => sha256Hex(token).slice(0, 16);

/** The rebuild request; `undefined`: none. An empty text is a request. */
export function rebuildRequest({
  pool,
  config,
}: {
  readonly pool: RebuildFacts["pool"];
  readonly config: Pick<MachineOSConfig, "metadata"> | undefined;
}): string | undefined {
  return (
    pool.metadata.annotations?.[annotations.rebuildImage] ??
    pool.metadata.labels?.[annotations.rebuildImage] ??
    config?.metadata.annotations?.[annotations.rebuild]
  );
}

/** The number of requested rebuilds; part of the key. */
export function rebuildSerial(config: Pick<MachineOSConfig, "metadata">): number {
  const text = config.metadata.annotations?.[annotations.rebuildSerial];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

export function activeRebuild(config: Pick<MachineOSConfig, "metadata">): ActiveRebuild | undefined {
  const [, serial, token] =
    /^(\d{1,9}):([0-9a-f]*)$/.exec(config.metadata.annotations?.[annotations.rebuildActive] ?? "") ?? [];
  return serial === undefined || token === undefined ? undefined : { serial: Number(serial), token };
}

/** Decides what to do about rebuild requests. */
export function rebuildStep(facts: RebuildFacts): RebuildStep {
  const request = rebuildRequest(facts);
  const active = activeRebuild(facts.config);
  if (request !== undefined && active?.token !== hashOf(request)) {
    const isFirst = facts.config.status?.currentImagePullSpec === undefined;
    const runs = facts.build === "Initial" || facts.build === "Prepared" || facts.build === "Building";
    const keepsRun = isFirst && runs && active === undefined;
    const serial = rebuildSerial(facts.config) + (keepsRun ? 0 : 1);
    return { do: "begin", serial, active: `${serial}:${hashOf(request)}`, request, keepsRun };
  }
  if (active === undefined || facts.goesOn) return { do: "nothing" };
  if (facts.build === "Succeeded" || facts.build === "Failed" || facts.build === "Interrupted")
    return { do: "finish", succeeded: facts.build === "Succeeded" };
  return { do: "nothing" };
}
