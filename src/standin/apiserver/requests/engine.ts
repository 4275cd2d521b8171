import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { Random } from "../../../ports/random.ts";
import type { Admission } from "../admission/admission.ts";
import type { Catalog } from "../schema/kinds/catalog.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { Representation } from "../http/representation.ts";
import type { ResourceTarget } from "../http/request-target.ts";
import type { StoreKey } from "../storage/store.ts";
import type { LongSelectors } from "../http/long-selectors.ts";
import type { UnreadLines, WatchStream } from "../http/watch-stream.ts";
import type { Served } from "../schema/contract.ts";

/** What the parts of the server share. One per server. */
export interface Engine {
  readonly live: LiveObjects;
  readonly catalog: Catalog;
  readonly admission: Admission;
  readonly show: Representation;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Open watches and what they watch (`deployments.apps`): they end with the server, or when their kind is removed. */
  readonly watches: Map<WatchStream, string>;
  readonly watchBacklog?: number;
  /** What their readers have left. */
  readonly unread: UnreadLines;
  /** What their selectors take. */
  readonly selectors: LongSelectors;
}

export function keyInStore(served: Served, target: Pick<ResourceTarget, "namespace" | "name">): StoreKey {
  return {
    resource: served.stored,
    namespace: served.definition.namespaced ? target.namespace : "",
    name: target.name,
  };
}
