import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Random } from "../../ports/random.ts";
import type { Admission } from "../admission/admission.ts";
import type { Catalog, Served } from "../schema/catalog.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { Representation } from "../http/representation.ts";
import type { ResourceTarget } from "../http/request-target.ts";
import type { UserInfo } from "../schema/contract.ts";
import type { StoreKey } from "../storage/store.ts";
import type { WatchStream } from "../http/watch-stream.ts";

/** What the parts of the server share. One per server. */
export interface Engine {
  readonly live: LiveObjects;
  readonly catalog: Catalog;
  readonly admission: Admission;
  readonly show: Representation;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Open watches and what they watch (`deployments.apps`): they end with the server, or when their kind goes. */
  readonly watches: Map<WatchStream, string>;
  readonly watchBacklog?: number;
}

/** One request on its way through the server. */
export interface Exchange {
  readonly user: UserInfo;
  readonly signal: AbortSignal;
  /** Texts for `Warning` headers, in order. */
  readonly warnings: string[];
}

export function keyOf(served: Served, target: Pick<ResourceTarget, "namespace" | "name">): StoreKey {
  return {
    resource: served.stored,
    namespace: served.definition.namespaced ? target.namespace : "",
    name: target.name,
  };
}

/** Seconds precision, as Kubernetes writes times. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d{3}Z$/, "Z");
}

const suffixLetters = "bcdfghjklmnpqrstvwxz2456789";

/** Five letters that make no words: `k8s.io/apimachinery pkg/util/rand (master)`. */
export function nameSuffix(random: Random): string {
  let suffix = "";
  for (let length = 0; length < 5; length++)
    suffix += suffixLetters[Math.floor(random.next() * suffixLetters.length)] ?? "";
  return suffix;
}
