import { MachineConfigPool, kubernetes } from "../../api/index.ts";
import { bookKindOf } from "../../api/books/report-table.ts";
import { bookNames, readBook, readBooks } from "../../core/books/read-book.ts";
import { type Timeline, drawTimeline, timelineOf, timelineOfBook } from "../../core/books/timeline.ts";
import { poolOfNode } from "../../core/pool/pool-of-node.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { systemClock } from "../../ports/node/index.ts";
import { durationOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Io, processIo } from "../io.ts";
import { readStoredBooks } from "../read-stored-books.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.timeline, { positionals: true });
  const [subject, ...more] = positionals;
  if (subject === undefined || more.length > 0 || bookKindOf(subject) === undefined)
    throw usageError(
      `${subject === undefined || more.length > 0 ? "say what to draw" : `"${subject}" has no timeline`}: write pool/NAME, node/NAME, build/NAME or cluster`,
    );
  const sinceMs = values.since === undefined ? undefined : durationOf(values.since, "--since");
  const { kube, close } = await connect({
    kubeconfig: values.kubeconfig,
    directory: values.dir,
    component: "timeline",
  });
  try {
    return await showTimeline(kube, processIo(), subject, {
      json: values.json,
      ...(sinceMs === undefined ? {} : { sinceMs }),
    });
  } finally {
    close();
  }
}

/** Page size when the output is no terminal. */
const page = { columns: 120, rows: 48 };

/** Prints the chart of a pool, a node, a build or the cluster. @returns the exit code. */
export async function showTimeline(
  kube: KubeClient,
  io: Io,
  subject: string,
  {
    json = false,
    sinceMs,
    now = systemClock.now(),
  }: { readonly json?: boolean; readonly sinceMs?: number; readonly now?: number },
): Promise<number> {
  const timeline = await timelineFor(kube, subject, { now, ...(sinceMs === undefined ? {} : { sinceMs }) });
  if ("missing" in timeline) {
    io.err(
      `mco timeline: there is no ${subject}${timeline.missing.length === 0 ? "" : `; there are ${timeline.missing.slice(0, 20).join(", ")}`}\n`,
    );
    return exitCodes.failed;
  }
  const { columns, rows } = io.screen ?? page;
  const { colours = false } = io;
  if (json) io.out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Timeline", ...timeline })}\n`);
  else io.out(`${drawTimeline(timeline, { now, width: columns, rows: Math.max(10, rows - 8), colours }).join("\n")}\n`);
  return exitCodes.ok;
}

async function timelineFor(
  kube: KubeClient,
  subject: string,
  options: { readonly now: number; readonly sinceMs?: number },
): Promise<Timeline | { readonly missing: readonly string[] }> {
  if (bookKindOf(subject) !== "pool") {
    const storedBooks = await readStoredBooks(kube, subject);
    const { chapters } = readBook(storedBooks, subject, options.now);
    if (chapters.length > 0 || storedBooks.books.length > 0) return timelineOfBook(subject, chapters, options);
    return {
      missing: bookNames(await readStoredBooks(kube)).filter((book) => bookKindOf(book) === bookKindOf(subject)),
    };
  }
  const [pools, nodes, storedBooks] = await Promise.all([
    kube.list(MachineConfigPool),
    kube.list(kubernetes.Node),
    readStoredBooks(kube),
  ]);
  const name = subject.slice("pool/".length);
  if (!pools.items.some(({ metadata }) => metadata.name === name))
    return { missing: pools.items.map(({ metadata }) => `pool/${metadata.name}`).sort() };
  const members = nodes.items
    .filter((node) => {
      const membership = poolOfNode(node, pools.items);
      return membership.verdict === "member" && membership.pool === name;
    })
    .map(({ metadata }) => metadata.name)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const books = readBooks(storedBooks, [...members.map((member) => `node/${member}`), subject], options.now);
  return timelineOf(
    subject,
    new Map([
      ["(pool)", books.get(subject)?.chapters ?? []],
      ...members.map((member) => [member, books.get(`node/${member}`)?.chapters ?? []] as const),
    ]),
    options,
  );
}
