import type { JournalLine } from "../api/books/journal-line.ts";
import { fieldManagers } from "../api/names.ts";
import { type LineNumber, journalLineIn, journalOfNode, ringLimits } from "../core/books/journal.ts";
import type { Host } from "../host/host.ts";
import { type JournalWriter, createJournalWriter, nodeSending } from "../kube/journal-writer.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { type BufferedJournal, createBufferedJournal } from "../kube/buffered-journal.ts";
import type { Ports } from "../ports/index.ts";

/** Writer name before the node's name is known. */
const firstBootWriter = { component: "first-boot", instance: "self" } as const;
/** The book that such a writer writes to: the daemon's, once there is one. */
const ownBook = "node/self";
/** Lines of earlier boots that never reached the API server are not urgent. */
const pastPatienceMs = 10_000;

type Given = Pick<Ports, "clock" | "random" | "log"> & { readonly host: Host; readonly version?: string };

/**
 * The journal lines on the machine, older boots first, each once; a line that a power cut truncated is dropped. Given a
 * name, lines of the first boot become lines of the node of that name.
 */
export async function linesOnDisk(
  host: Host,
  nodeName: string | undefined,
  signal: AbortSignal,
): Promise<readonly JournalLine[]> {
  const boots = (await host.books.read(signal)).map(({ lines }) => {
    const read = new Map<string, JournalLine>();
    for (const text of lines) {
      const line = journalLineIn(text);
      if (line !== undefined) read.set(`${line.writer.component} ${line.boot} ${line.seq} ${line.sub ?? 0}`, line);
    }
    return [...read.values()];
  });
  return boots
    .sort((a, b) => (a[0]?.at ?? 0) - (b[0]?.at ?? 0))
    .flat()
    .map((line) =>
      nodeName === undefined || line.book !== ownBook
        ? line
        : { ...line, book: `node/${nodeName}`, writer: { ...line.writer, instance: nodeName, node: nodeName } },
    );
}

/** The boots that journal lines are from, each with the time of its first line in milliseconds since the epoch. */
export function bootsIn(lines: readonly JournalLine[]): ReadonlyMap<string, number> {
  const began = new Map<string, number>();
  for (const { boot, at } of lines) began.set(boot, Math.min(at, began.get(boot) ?? at));
  return began;
}

/** The number of a writer's last line in a boot. */
function lastNumber(lines: readonly JournalLine[], component: string, boot: string): LineNumber {
  let last: LineNumber = { seq: 0 };
  for (const { writer, boot: of, seq, sub } of lines) {
    if (writer.component !== component || of !== boot) continue;
    if (seq > last.seq || (seq === last.seq && (sub ?? 0) > (last.sub ?? 0)))
      last = { seq, ...(sub === undefined ? {} : { sub }) };
  }
  return last;
}

/** If the disk cannot be read, the daemon keeps its journal in memory, under a boot ID of its own. */
async function onMachine(
  { host, random, log }: Given,
  nodeName: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly boot: string; readonly past: readonly JournalLine[] }> {
  try {
    const [{ bootId: boot }, past] = await Promise.all([host.os.status(signal), linesOnDisk(host, nodeName, signal)]);
    return { boot, past };
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn({ error }, "the story lines of this machine cannot be read; a new file is begun");
    return { boot: random.uuid(), past: [] };
  }
}

export interface OpenNodeJournal {
  readonly journal: BufferedJournal;
  /** Earlier reports about this node, as far as its disk holds them. */
  readonly past: readonly JournalLine[];
}

/** The journal of a daemon: it continues after the last line of this boot, and sends what earlier daemons could not. */
export async function openNodeJournal(
  options: Given & { readonly nodeName: string; readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<OpenNodeJournal> {
  const { host, nodeName, version, kube, clock, random, log } = options;
  const { boot, past } = await onMachine(options, nodeName, signal);
  const book = `node/${nodeName}`;
  const own = past.filter((line) => line.book === book);
  const journal: JournalWriter = createJournalWriter({
    kube,
    clock,
    random,
    log,
    name: journalOfNode(nodeName),
    owner: fieldManagers.daemon,
    rules: nodeSending,
  });
  journal.offer(own.filter(({ level }) => level === "boundary").slice(-ringLimits.lines), pastPatienceMs);
  const writer = {
    component: "daemon",
    instance: nodeName,
    node: nodeName,
    ...(version === undefined ? {} : { version }),
  };
  return {
    journal: createBufferedJournal({
      clock,
      log,
      writer,
      boot,
      after: lastNumber(past, writer.component, boot),
      store: host.books,
      sender: journal,
    }),
    past: own,
  };
}

/**
 * The journal of a first boot: there is no API server and no name yet, so its lines wait on the disk for the daemon.
 */
export async function firstBootJournal(options: Given, signal: AbortSignal): Promise<BufferedJournal> {
  const { host, version, clock, log } = options;
  const { boot, past } = await onMachine(options, undefined, signal);
  return createBufferedJournal({
    clock,
    log,
    writer: { ...firstBootWriter, ...(version === undefined ? {} : { version }) },
    boot,
    after: lastNumber(past, firstBootWriter.component, boot),
    store: host.books,
  });
}
