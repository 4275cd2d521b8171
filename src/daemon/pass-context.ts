import type { Node } from "../api/foreign/kubernetes.ts";
import type { Host } from "../host/host.ts";
import type { Context } from "../kube/controller.ts";
import type { ConfigReader } from "./delivered-configs.ts";
import type { DaemonFacts } from "./daemon-facts.ts";
import type { DaemonMemory } from "./daemon-memory.ts";
import type { DocumentStore } from "./machine-documents.ts";
import type { NodeReporter } from "./node-reporter.ts";
import type { NodeJournal } from "./node-journal-types.ts";

/** What one pass reads, acts and reports with. */
export interface PassContext {
  readonly host: Host;
  readonly nodeName: string;
  readonly configs: ConfigReader;
  readonly documents: DocumentStore;
  readonly memory: DaemonMemory;
  readonly facts: DaemonFacts;
  readonly rebootPatienceSeconds: number;
  /** Updates credentials and certificates of the machine at once. */
  readonly refreshCredentials: () => Promise<void>;
  /** Asks for another pass. */
  readonly wake: () => void;
  /** The own Node, as the watch showed it when the pass began. */
  readonly node: Node;
  readonly reporter: NodeReporter;
  readonly journal: NodeJournal;
  readonly context: Context;
}
