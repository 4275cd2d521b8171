import { hostPaths } from "../api/names.ts";
import type { NodeConfig } from "../core/config/node-config.ts";
import type { PassContext } from "./pass-context.ts";
import { watchedPaths } from "./perform-step.ts";
import { watchBegun, watchEnded } from "./reports.ts";

type Watching = Pick<PassContext, "host" | "memory" | "wake" | "node" | "context">;

/** Requests another pass when a file of this configuration, or the force file, changes. */
export function watchForDrift(config: NodeConfig, { host, memory, wake, node, context }: Watching): void {
  if (memory.watched?.of === config) return;
  if (memory.watched === undefined) context.report(watchBegun(node, config.name));
  memory.watched?.stop();
  memory.watched = { of: config, stop: host.files.watch([...watchedPaths(config), hostPaths.force], wake) };
}

/** The daemon itself is about to change watched files. */
export function stopWatching({ memory, node, context }: Watching, target: string): void {
  if (memory.watched === undefined) return;
  memory.watched.stop();
  memory.watched = undefined;
  context.report(watchEnded(node, target));
}
