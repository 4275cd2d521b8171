import { leastOf } from "../../api/schema/extremes.ts";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { JournalLine } from "../../api/books/journal-line.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import { timestampOf } from "../../api/schema/object.ts";
import type { JournalEntryIn } from "../../api/books/report-table.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** A machine that was given a configuration to join with. */
export interface ServedMachine {
  /** What the server knows it by: its address, or a digest of it. */
  readonly requester: string;
  readonly pool: string;
  readonly config: string;
  /** Milliseconds since the epoch of the first request; others from the same machine are the same boot. */
  readonly servedAt: number;
  /** Ignition on its boot image, as its request said: `2.15`; absent: it did not say. */
  readonly ignition?: string;
}

/** A node as far as it matters for who has joined. */
export interface JoinedNode {
  readonly name: string;
  readonly pool: string;
  readonly createdAt: number;
  readonly addresses: readonly string[];
}

export interface Join extends ServedMachine {
  /** `probable`: no address matches, but a node of the pool joined in that time. */
  readonly is: "joined" | "probable" | "waiting" | "overdue";
  /** The node that it became. */
  readonly node?: string;
}

/** By then a served machine has joined, or it needs attention. */
export const joinOverdueMs = 30 * 60_000;
/** Machines that were served longer ago are ignored. */
const forgottenMs = 7 * 24 * 3_600_000;
/** A machine that asks again after this time boots again. */
const sameBootMs = 2 * joinOverdueMs;

/** What an address is called where addresses are not shown: the first bytes of its SHA-256. */
export const addressDigest = (address: string): string =>
  `sha256:${bytesToHex(sha256(utf8ToBytes(address))).slice(0, 16)}`;

/** Machines that were served, from the lines of the config server: one for each machine and boot, oldest first. */
export function servedMachines(lines: readonly JournalLine[]): readonly ServedMachine[] {
  const served: ServedMachine[] = [];
  const latest = new Map<string, { readonly index: number; at: number }>();
  for (const { chapter, path, reason, at, data } of lines) {
    const requester = data?.["requester"] ?? "";
    if (chapter !== "Server" || reason !== "Served" || requester === "") continue;
    const pool = path.slice(path.indexOf("/") + 1);
    const before = latest.get(`${pool} ${requester}`);
    if (before !== undefined && at - before.at < sameBootMs) {
      before.at = Math.max(before.at, at);
      continue;
    }
    latest.set(`${pool} ${requester}`, { index: served.length, at });
    const ignition = data?.["ignition"] ?? "";
    served.push({
      requester,
      pool,
      config: data?.["config"] ?? "",
      servedAt: at,
      ...(/^\d{1,2}\.\d{1,3}$/.test(ignition) ? { ignition } : {}),
    });
  }
  return served.sort((a, b) => a.servedAt - b.servedAt);
}

/** The addresses that count of a node: a kubelet may report any number. */
const mostAddresses = 64;
const addressesOf = readOncePerObject((node: Node): readonly string[] =>
  (node.status?.addresses ?? []).slice(0, mostAddresses).map(({ address }) => address),
);

export function joinedNode(node: Node, pool: string): JoinedNode {
  return {
    name: node.metadata.name,
    pool,
    createdAt: Date.parse(node.metadata.creationTimestamp ?? ""),
    addresses: addressesOf(node),
  };
}

/** Digests of the addresses of a node, by the list of them: a Node whose object is the same is not digested again. */
const digestsOf = readOncePerObject((addresses: readonly string[]): readonly string[] => addresses.map(addressDigest));

/** Nodes by their addresses, and by the digests of these. */
function nodesByAddress(nodes: readonly JoinedNode[]): ReadonlyMap<string, JoinedNode> {
  const found = new Map<string, JoinedNode>();
  for (const node of nodes)
    for (const requester of [...node.addresses, ...digestsOf(node.addresses)]) found.set(requester, node);
  return found;
}

/**
 * Gives each machine that is asked for, in the order in which they were served, the first node of its pool that came in
 * its time. A node is given once.
 */
function youngNodes(nodes: readonly JoinedNode[]): (machine: ServedMachine) => JoinedNode | undefined {
  const byPool = Map.groupBy(
    nodes.toSorted((a, b) => a.createdAt - b.createdAt),
    ({ pool }) => pool,
  );
  /** Pool → how many of its nodes are given, or came before the machine that was asked for last. */
  const passed = new Map<string, number>();
  return ({ pool, servedAt }) => {
    const young = byPool.get(pool) ?? [];
    let at = passed.get(pool) ?? 0;
    // Times of objects are whole seconds.
    while ((young[at]?.createdAt ?? Infinity) + 999 < servedAt) at += 1;
    const node = young[at];
    const isInTime = node !== undefined && node.createdAt - servedAt < joinOverdueMs;
    passed.set(pool, isInTime ? at + 1 : at);
    return isInTime ? node : undefined;
  };
}

/**
 * What became of machines that were served: which node each is, by its address, or else by the pool and the time; and
 * which of them should have joined by now.
 *
 * @param served the oldest first.
 * @param now milliseconds since the epoch.
 */
export function judgeJoins(
  served: readonly ServedMachine[],
  nodes: readonly JoinedNode[],
  now: number,
): readonly Join[] {
  const byAddress = nodesByAddress(nodes);
  const taken = new Set(served.flatMap(({ requester }) => byAddress.get(requester)?.name ?? []));
  const youngOf = youngNodes(nodes.filter(({ name, createdAt }) => !taken.has(name) && Number.isFinite(createdAt)));
  return served
    .filter(({ servedAt }) => now - servedAt < forgottenMs)
    .map((machine): Join => {
      const known = byAddress.get(machine.requester);
      if (known !== undefined) return { ...machine, is: "joined", node: known.name };
      const node = youngOf(machine);
      if (node !== undefined) return { ...machine, is: "probable", node: node.name };
      return { ...machine, is: now - machine.servedAt < joinOverdueMs ? "waiting" : "overdue" };
    });
}

/**
 * The overdue joins that were not reported yet, and what is to be remembered of those that were: as long as the journal has
 * them.
 *
 * @param reported runs of lines (`overdueLine`).
 */
export function unreportedJoins(
  reported: ReadonlySet<string>,
  joins: readonly Join[],
): { readonly unreported: readonly Join[]; readonly reported: ReadonlySet<string> } {
  const isReported = (join: Join) => reported.has(runOf(join));
  return {
    unreported: joins.filter((join) => join.is === "overdue" && !isReported(join)),
    reported: new Set(joins.filter((join) => join.is === "overdue" || isReported(join)).map(runOf)),
  };
}

const runOf = ({ requester, servedAt }: ServedMachine): string => `${requester} ${timestampOf(servedAt)}`;

/** When a machine that waits is overdue, in milliseconds from now; `undefined`: none waits. */
export function nextOverdueMs(joins: readonly Join[], now: number): number | undefined {
  const waiting = joins.flatMap(({ is, servedAt }) => (is === "waiting" ? [servedAt + joinOverdueMs - now] : []));
  return waiting.length === 0 ? undefined : Math.max(0, leastOf(waiting));
}

/** In a sentence, for people. */
export const overdueText = ({ requester, config, servedAt }: ServedMachine): string =>
  `the machine ${requester} was given ${config === "" ? "its configuration" : config} at ${timestampOf(servedAt)} and has not joined since`;

/** Its line in the book of its pool: the same at every pass. */
export function overdueLine(join: ServedMachine): { readonly line: JournalEntryIn<"pool">; readonly at: number } {
  const { requester, config, servedAt, pool } = join;
  return {
    at: servedAt + joinOverdueMs,
    line: {
      chapter: "Join",
      run: runOf(join),
      path: "Overdue",
      mark: "fail",
      level: "boundary",
      reason: "JoinOverdue",
      message: overdueText(join),
      data: { requester, config, pool },
    },
  };
}
