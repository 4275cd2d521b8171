import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import type { Context } from "../kube/controller.ts";

export interface OperatorOptions {
  readonly version: string;
  /** Pullspec of the suite, for the components. */
  readonly image: string;
  /** The same with buildah; `image` when absent. */
  readonly builderImage?: string;
  /** The API server's authorities change in several steps; machines get them when nothing has changed for this long. */
  readonly authoritiesWaitMs?: number;
  /** Where the operator reaches the API server. */
  readonly apiServer: string;
  /** `host` or `host:port` that machines which join reach the config server by, where the cluster does not say. */
  readonly configServerAddress?: string;
  /** Unique for each start of the process; identifies the process in its journal lines. */
  readonly identity?: string;
  /** Called with what the settings ask for, whenever the operator reads them. */
  readonly setLogLevel?: (level: LogLevel) => void;
}

export type LogLevel = "info" | "debug";

/** `spec.operatorLogLevel` has four steps, and logs have two. */
export const logLevelOf = (settings: MachineConfiguration | undefined): LogLevel =>
  ["Debug", "Trace", "TraceAll"].includes((settings?.spec.operatorLogLevel as string | undefined) ?? "")
    ? "debug"
    : "info";

/** The settings of the cluster, as the cache has them. */
export const settingsIn = ({ caches }: Pick<Context, "caches">): MachineConfiguration | undefined =>
  caches.of(MachineConfiguration).get(objects.machineConfiguration);

/** How long the authorities of the API server must have stayed the same before machines get them. */
export const authoritiesWaitMsOf = ({ authoritiesWaitMs = 60_000 }: OperatorOptions): number => authoritiesWaitMs;

/** Whether a component was applied by an operator of this version. */
export const isOfVersion = ({ metadata }: KubeObject, version: string): boolean =>
  metadata.annotations?.[annotations.releaseImageVersion] === version;
