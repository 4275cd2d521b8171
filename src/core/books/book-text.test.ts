import { describe, expect, test } from "vitest";
import { bootstrapReports } from "../../../test/support/bootstrap-reports.ts";
import { LineWriter, morning, reportedUpdate } from "../../../test/support/line-writer.ts";
import type { JournalLine } from "../../api/books/journal-line.ts";
import type { MachineStateChapter } from "../../api/books/machine-state-chapter.ts";
import { bookText, booksText, lineText } from "./book-text.ts";
import { foldBook } from "./fold-book.ts";
import { bookNames, readBook, readBooks } from "./read-book.ts";

const now = morning + 1_800_000;
const journal = (name: string, lines: readonly JournalLine[]) => ({
  metadata: { name },
  spec: { lines: [...lines], last: [] },
});
/** What a book says to whoever has nothing but lines. */
const told = (book: string, lines: readonly JournalLine[], at = now) =>
  bookText(readBook({ books: [], chapters: [], journals: [journal("controller", lines)] }, book, at), { now: at });

describe("what the books say, word for word", () => {
  test("a bootstrap [books-book-text-1]", () => {
    const reports = bootstrapReports();
    const lines = (["operator", "controller", "server", "handOver"] as const).flatMap((component, index) => {
      const writer = new LineWriter(component === "handOver" ? "state" : component, "bootstrap", "boot-0");
      reports[component].forEach((line, turn) => writer.at(index * 10 + turn, line));
      return writer.lines;
    });
    const anyHash = (text: string) => text.replaceAll(/(rendered-[a-z]+-)[0-9a-f]{32}/g, "$1…");
    expect(anyHash(told("cluster", lines))).toMatchInlineSnapshot(`
      "Book cluster: one chapter; idle for 29m30s; not kept in a book: read from the journals

      #1 Bootstrap  2026-01-02 10:00:00Z to 10:00:30Z, 30s: Succeeded

         10:00:00           ✓ ManifestsRendered          ManifestsRendered: 3 manifests were made
         10:00:10           ✓ ControllerRendered/master  PoolRendered: pool master has rendered-master-…
         10:00:11           ✓ ControllerRendered/worker  PoolRendered: pool worker has rendered-worker-…
         10:00:20           ✓ ServerUp                   ServerUp: the config server answers on port 22623, access required
         10:00:22           ✓ Served/master              Served: master-0 was given rendered-master-… of the pool master for Ignition 3.5.0: 42000 bytes in 12 ms
         10:00:30           ✓ HandedOver                 HandedOver: the lines of the bootstrap were handed to the cluster
      "
    `);
    expect(anyHash(told("node/master-0", lines))).toMatchInlineSnapshot(`
      "Book node/master-0: one chapter; idle for 29m39s; not kept in a book: read from the journals

      #1 Bootstrap  2026-01-02 10:00:21Z to 10:00:21Z, 0ms: Succeeded

         10:00:21           ✓ Served  Served: the bootstrap gave the machine rendered-master-… of the pool master
      "
    `);
  });

  test("a first boot [books-book-text-2]", () => {
    const firstBoot = new LineWriter("first-boot", "worker-0", "boot-1");
    const daemon = new LineWriter("daemon", "worker-0", "boot-2");
    const here = { book: "node/worker-0", chapter: "Firstboot", run: "rendered-worker-a" } as const;
    firstBoot.at(2, {
      ...here,
      path: "EncapsulatedConfigRead",
      mark: "end",
      reason: "Read",
      message: "rendered-worker-a",
    });
    firstBoot.at(3, {
      ...here,
      path: "OSUpdated",
      mark: "begin",
      reason: "Staging",
      message: "quay.io/example/os@sha256:1",
    });
    firstBoot.at(63, {
      ...here,
      path: "OSUpdated",
      mark: "end",
      reason: "Staged",
      message: "quay.io/example/os@sha256:1",
    });
    firstBoot.at(63, {
      ...here,
      path: "Extensions",
      mark: "skip",
      reason: "NotRequired",
      message: "none are asked for",
    });
    firstBoot.at(63, { ...here, path: "Kargs", mark: "end", reason: "Applied", message: "console=ttyS0" });
    firstBoot.at(64, {
      ...here,
      path: "Reboot",
      mark: "begin",
      reason: "RebootRequested",
      message: "into the new system",
    });
    daemon.at(130, { ...here, path: "Reboot", mark: "end", reason: "Rebooted", message: "boot boot-2" });
    daemon.at(140, { ...here, path: "DaemonUp", mark: "end", reason: "Up", message: "version 1.0.0" });
    daemon.at(141, {
      ...here,
      path: "AnnotationsInitialised",
      mark: "end",
      reason: "Applied",
      message: "currentConfig is rendered-worker-a",
    });
    daemon.at(143, {
      ...here,
      path: "Validated",
      mark: "end",
      reason: "Validated",
      message: "the machine has rendered-worker-a",
    });
    expect(told("node/worker-0", [...firstBoot.lines, ...daemon.lines])).toMatchInlineSnapshot(`
      "Book node/worker-0: one chapter; idle for 27m37s; not kept in a book: read from the journals

      #1 Firstboot rendered-worker-a  2026-01-02 10:00:02Z to 10:02:23Z, 2m21s: Succeeded

         10:00:02           ✓ EncapsulatedConfigRead  Read: rendered-worker-a
         10:00:03    1m00s  ✓ OSUpdated               Staged: quay.io/example/os@sha256:1
         10:01:03           – Extensions              NotRequired: none are asked for
         10:01:03           ✓ Kargs                   Applied: console=ttyS0
         10:01:04    1m06s  ✓ Reboot                  Rebooted: boot boot-2
         10:02:20           ✓ DaemonUp                Up: version 1.0.0
         10:02:21           ✓ AnnotationsInitialised  Applied: currentConfig is rendered-worker-a
         10:02:23           ✓ Validated               Validated: the machine has rendered-worker-a
      "
    `);
  });

  test("an update whose drain was blocked [books-book-text-3]", () => {
    expect(told("node/worker-0", reportedUpdate().lines)).toMatchInlineSnapshot(`
      "Book node/worker-0: one chapter; idle for 27m56s; not kept in a book: read from the journals

      #1 Update  2026-01-02 10:00:00Z to 10:02:04Z, 2m04s: Succeeded
         from rendered-worker-a to rendered-worker-b
         because: MachineConfig 99-worker-ssh changed, by kubectl-client-side-apply
         out of service for 2m00s

         10:00:00       1s  ✓ Requested            TargetSeen: seen
         10:00:01       1s  ✓ Prepared             Planned: 1 file; drain and reboot
         10:00:02       1s  ✓ Executed/Cordoned    Cordoned: worker-0 takes no new pods
         10:00:03    1m00s  ✓ Executed/Drained     Drained: all pods have left
                            10:00:20  PodsBlocked: default/web-1 is held by the budget default/web
         10:01:04       1s  ✓ Executed/Files       Written: 1 file
         10:01:05      56s  ✓ PostAction/Rebooted  Rebooted: boot boot-2
         10:02:02           ✓ Resumed              Resumed: in normal operation
         10:02:02       1s  ✓ Complete/Uncordoned  Uncordoned: back in service
         10:02:04           ✓ Updated              Succeeded: the machine has rendered-worker-b
      "
    `);
  });

  test("an update whose drain is blocked now [books-book-text-4]", () => {
    const at = morning + 30_000;
    expect(
      told(
        "node/worker-0",
        reportedUpdate().lines.filter((line) => line.at <= at),
        at,
      ),
    ).toMatchInlineSnapshot(`
      "Book node/worker-0: one chapter; under way: Update; not kept in a book: read from the journals

      #1 Update  since 2026-01-02 10:00:00Z, 30s so far: under way
         from rendered-worker-a to rendered-worker-b
         because: MachineConfig 99-worker-ssh changed, by kubectl-client-side-apply

         10:00:00       1s  ✓ Requested          TargetSeen: seen
         10:00:01       1s  ✓ Prepared           Planned: 1 file; drain and reboot
         10:00:02       1s  ✓ Executed/Cordoned  Cordoned: worker-0 takes no new pods
         10:00:03      27s  … Executed/Drained   PodsBlocked: default/web-1 is held by the budget default/web (under way)

         What to do: Give the application that is named room: more replicas, a budget that lets one go, or machines that can take its pods.
      "
    `);
  });

  test("a drift [books-book-text-5]", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    const here = { book: "node/worker-0", chapter: "Drift" } as const;
    daemon.at(0, {
      ...here,
      path: "Detected",
      mark: "fail",
      reason: "ConfigDrift",
      message: "/etc/chrony.conf: contents differ from rendered-worker-a",
      next: {
        action: "Put /etc/chrony.conf back, or create /run/machine-config-daemon-force on the machine",
        actor: "administrator",
      },
    });
    const text = told("node/worker-0", daemon.lines, morning + 60_000);
    expect(text).toMatchInlineSnapshot(`
      "Book node/worker-0: one chapter; under way: Drift; not kept in a book: read from the journals

      #1 Drift  since 2026-01-02 10:00:00Z, 1m00s so far: under way

         10:00:00           ✗ Detected  ConfigDrift: /etc/chrony.conf: contents differ from rendered-worker-a

         What to do: Put /etc/chrony.conf back, or create /run/machine-config-daemon-force on the machine
      "
    `);
    daemon.at(500, {
      ...here,
      path: "Ended",
      mark: "end",
      reason: "DriftGone",
      message: "/etc/chrony.conf is as it should be",
    });
    expect(told("node/worker-0", daemon.lines)).toMatchInlineSnapshot(`
      "Book node/worker-0: one chapter; idle for 21m40s; not kept in a book: read from the journals

      #1 Drift  2026-01-02 10:00:00Z to 10:08:20Z, 8m20s: Succeeded

         10:00:00           ✗ Detected  ConfigDrift: /etc/chrony.conf: contents differ from rendered-worker-a
         10:08:20           ✓ Ended     DriftGone: /etc/chrony.conf is as it should be
      "
    `);
  });

  test("an update that a newer target cut short [books-book-text-6]", () => {
    const [daemon, controller] = [
      new LineWriter("daemon", "worker-0"),
      new LineWriter("controller", "machine-config-controller-x", "pod-1"),
    ];
    const here = { book: "node/worker-0", chapter: "Update", run: "rendered-worker-b" } as const;
    controller.at(0, {
      ...here,
      path: "Requested",
      mark: "begin",
      reason: "TargetSet",
      message: "worker-0 gets rendered-worker-b",
      data: { from: "rendered-worker-a", to: "rendered-worker-b", pool: "worker" },
    });
    daemon.at(1, { ...here, path: "Requested", mark: "end", reason: "TargetSeen", message: "seen" });
    daemon.at(2, { ...here, path: "Prepared", mark: "end", reason: "Planned", message: "1 file; drain and reboot" });
    daemon.at(3, {
      ...here,
      path: "Executed/Cordoned",
      mark: "begin",
      reason: "DrainRequested",
      message: "asked for a drain",
    });
    controller.at(4, {
      ...here,
      path: "Executed/Cordoned",
      mark: "end",
      reason: "Cordoned",
      message: "worker-0 takes no new pods",
    });
    controller.at(4, {
      ...here,
      path: "Executed/Drained",
      mark: "begin",
      reason: "Draining",
      message: "3 pods have to leave",
    });
    controller.at(20, {
      ...here,
      run: "rendered-worker-c",
      path: "Requested",
      mark: "begin",
      reason: "TargetSet",
      message: "worker-0 gets rendered-worker-c",
      data: { from: "rendered-worker-a", to: "rendered-worker-c", pool: "worker" },
    });
    expect(told("node/worker-0", [...daemon.lines, ...controller.lines], morning + 25_000)).toMatchInlineSnapshot(`
      "Book node/worker-0: 2 chapters; under way: Update; not kept in a book: read from the journals

      #1 Update  2026-01-02 10:00:00Z to 10:00:20Z, 20s: Superseded
         from rendered-worker-a to rendered-worker-b
         out of service for 16s
         Superseded: The target changed before this one was reached.

         10:00:00       1s  ✓ Requested          TargetSeen: seen
         10:00:02           ✓ Prepared           Planned: 1 file; drain and reboot
         10:00:03       1s  ✓ Executed/Cordoned  Cordoned: worker-0 takes no new pods
         10:00:04      16s  » Executed/Drained   Draining: 3 pods have to leave (its end was not reported)

      #2 Update  since 2026-01-02 10:00:20Z, 5s so far: under way
         from rendered-worker-a to rendered-worker-c

         10:00:20       5s  … Requested  TargetSet: worker-0 gets rendered-worker-c (under way)
      "
    `);
  });

  test("a machine that went back [books-book-text-7]", () => {
    const daemon = new LineWriter("daemon", "worker-0");
    const update = { book: "node/worker-0", chapter: "Update", run: "rendered-worker-b" } as const;
    daemon.at(0, { ...update, path: "Prepared", mark: "begin", reason: "Checking" });
    daemon.at(1, {
      ...update,
      path: "Prepared",
      mark: "end",
      reason: "Planned",
      message: "1 OS image; drain and reboot",
    });
    daemon.at(2, {
      ...update,
      path: "Executed/OS",
      mark: "begin",
      reason: "Staging",
      message: "quay.io/example/os@sha256:2",
    });
    daemon.at(40, {
      ...update,
      path: "Executed/OS",
      mark: "end",
      reason: "Staged",
      message: "quay.io/example/os@sha256:2",
    });
    daemon.at(41, {
      ...update,
      path: "PostAction/Rebooted",
      mark: "begin",
      reason: "RebootRequested",
      message: "into the new system",
    });
    daemon.reboot("boot-2", 120);
    daemon.at(121, {
      book: "node/worker-0",
      chapter: "Rollback",
      path: "Decided",
      mark: "begin",
      reason: "BootFailed",
      message: "the new system did not come up; the boot loader took the one before",
    });
    daemon.at(122, {
      ...update,
      path: "Updated",
      mark: "fail",
      reason: "WentBack",
      message: "from rendered-worker-b to rendered-worker-a",
    });
    daemon.at(123, {
      book: "node/worker-0",
      chapter: "Rollback",
      path: "Done",
      mark: "end",
      reason: "WentBack",
      message: "the machine has rendered-worker-a",
    });
    expect(told("node/worker-0", daemon.lines)).toMatchInlineSnapshot(`
      "Book node/worker-0: 2 chapters; idle for 27m57s; not kept in a book: read from the journals

      #1 Update  2026-01-02 10:00:00Z to 10:02:02Z, 2m02s: RolledBack
         to rendered-worker-b
         WentBack: from rendered-worker-b to rendered-worker-a

         10:00:00       1s  ✓ Prepared             Planned: 1 OS image; drain and reboot
         10:00:02      38s  ✓ Executed/OS          Staged: quay.io/example/os@sha256:2
         10:00:41    1m21s  ✓ PostAction/Rebooted  RebootRequested: into the new system (its end was not reported)
         10:02:02           ✗ Updated              WentBack: from rendered-worker-b to rendered-worker-a

         What to do: Correct or revert the MachineConfig; no other healthy machine is given the same target.

      #2 Rollback  2026-01-02 10:02:01Z to 10:02:03Z, 2s: RolledBack
         WentBack: the machine has rendered-worker-a

         10:02:01       2s  ↩ Decided  BootFailed: the new system did not come up; the boot loader took the one before
         10:02:03           ✓ Done     WentBack: the machine has rendered-worker-a

         What to do: Correct or revert the MachineConfig; no other healthy machine is given the same target.
      "
    `);
  });

  test("one chapter with every line and detail [books-book-text-8]", () => {
    const lines = reportedUpdate().lines;
    const [record] = foldBook("node/worker-0", lines, { now });
    if (record === undefined) expect.fail();
    const read = readBook(
      { books: [], chapters: [{ spec: { ...record, number: 7 } }], journals: [journal("controller", lines)] },
      "node/worker-0",
      now,
    );
    expect(bookText(read, { now, chapter: 7 })).toMatchInlineSnapshot(`
      "#7 Update  2026-01-02 10:00:00Z to 10:02:04Z, 2m04s: Succeeded
         from rendered-worker-a to rendered-worker-b
         because: MachineConfig 99-worker-ssh changed, by kubectl-client-side-apply
         out of service for 2m00s

         10:00:00       1s  ✓ Requested            TargetSeen: seen
                            10:00:00  TargetSet: worker-0 gets rendered-worker-b
                            10:00:01  TargetSeen: seen
                              pool: worker
         10:00:01       1s  ✓ Prepared             Planned: 1 file; drain and reboot
                            10:00:01  Checking: checking
                            10:00:02  Planned: 1 file; drain and reboot
                              files: 1
                              reboot: true
         10:00:02       1s  ✓ Executed/Cordoned    Cordoned: worker-0 takes no new pods
                            10:00:02  DrainRequested: asked for a drain
                            10:00:03  Cordoned: worker-0 takes no new pods
         10:00:03    1m00s  ✓ Executed/Drained     Drained: all pods have left
                            10:00:03  Draining: 3 pods have to leave
                            10:00:20  PodsBlocked: default/web-1 is held by the budget default/web
                            10:01:03  Drained: all pods have left
                              pods: 3
         10:01:04       1s  ✓ Executed/Files       Written: 1 file
                            10:01:04  Writing: 1 file
                            10:01:05  Written: 1 file
                              files: 1
         10:01:05      56s  ✓ PostAction/Rebooted  Rebooted: boot boot-2
                            10:01:05  RebootRequested: /etc/ssh/sshd_config changed
                            10:02:01  Rebooted: boot boot-2
         10:02:02           ✓ Resumed              Resumed: in normal operation
                            10:02:02  Resumed: in normal operation
         10:02:02       1s  ✓ Complete/Uncordoned  Uncordoned: back in service
                            10:02:02  UncordonRequested: asked to be put back
                            10:02:03  Uncordoned: back in service
         10:02:04           ✓ Updated              Succeeded: the machine has rendered-worker-b
                            10:02:04  Succeeded: the machine has rendered-worker-b
      "
    `);
  });

  test("sections of one kind without number are counted, those that failed are named [books-book-text-9]", () => {
    const controller = new LineWriter("controller", "c", "pod-1");
    const here = { book: "pool/worker", chapter: "Rollout", run: "rendered-worker-b" } as const;
    controller.at(0, {
      ...here,
      path: "Begun",
      mark: "begin",
      reason: "TargetChanged",
      message: "to rendered-worker-b",
    });
    for (let index = 0; index < 100; index += 1) {
      controller.at(index, { ...here, path: `Node/worker-${index}`, mark: "begin", reason: "NodeUpdated" });
      controller.at(index + 1, {
        ...here,
        path: `Node/worker-${index}`,
        mark: index === 70 ? "fail" : "end",
        reason: index === 70 ? "NodeFailed" : "NodeUpdated",
      });
    }
    const lines = told("pool/worker", controller.lines).split("\n");
    expect(lines.filter((line) => line.includes("Node/worker-")).map((line) => /Node\/(\S+)/.exec(line)?.[1])).toEqual([
      ...Array.from({ length: 20 }, (_, index) => `worker-${index}`),
      "worker-70",
    ]);
    expect(lines.filter((line) => line.includes(" more")).map((line) => line.trim())).toEqual([
      "and 50 more",
      "and 29 more",
    ]);
  });
});

describe("what a reader finds", () => {
  const lines = reportedUpdate().lines;
  const closed = foldBook("node/worker-0", lines, { now })[0] ?? expect.fail();
  const object = (spec: object) => ({ spec }) as never;
  const book = (spec: object) =>
    ({ spec: { book: "node/worker-0", lastNumber: 4, prunedThrough: 3, through: closed.through, ...spec } }) as never;

  test("notes of a server's life neither go on nor come late [books-book-text-16]", () => {
    const server = new LineWriter("server", "server-1", "pod-1");
    const operator = new LineWriter("operator", "operator-1", "pod-2");
    const here = { book: "cluster", chapter: "Server" } as const;
    server.at(0, { ...here, run: "server-1", path: "Start", mark: "begin", reason: "Started", message: "version 1" });
    server.at(1, {
      ...here,
      run: "server-1",
      path: "Served/worker",
      mark: "note",
      reason: "Served",
      message: "192.0.2.1 was given rendered-worker-a",
    });
    operator.at(2, { ...here, path: "Certificate", mark: "note", reason: "CertificateRotated", message: "another" });
    const lines = [...server.lines, ...operator.lines];
    expect(told("cluster", lines, morning + 30_000)).toMatchInlineSnapshot(`
      "Book cluster: one chapter; under way: Server; not kept in a book: read from the journals

      #1 Server server-1  since 2026-01-02 10:00:00Z, 30s so far: under way

         10:00:00      30s  … Start          Started: version 1 (under way)
         10:00:01           · Served/worker  Served: 192.0.2.1 was given rendered-worker-a
         10:00:02           · Certificate    CertificateRotated: another
      "
    `);
    server.at(9, { ...here, run: "server-1", path: "Start", mark: "end", reason: "Stopped", message: "it ended" });
    expect(told("cluster", [...server.lines, ...operator.lines])).toMatchInlineSnapshot(`
      "Book cluster: one chapter; idle for 29m51s; not kept in a book: read from the journals

      #1 Server server-1  2026-01-02 10:00:00Z to 10:00:09Z, 9s: Succeeded

         10:00:00       9s  ✓ Start          Stopped: it ended
         10:00:01           · Served/worker  Served: 192.0.2.1 was given rendered-worker-a
         10:00:02           · Certificate    CertificateRotated: another
      "
    `);
  });

  test("of a chapter that is kept nothing is read a second time from the journals [books-book-text-10]", () => {
    const read = readBook(
      { books: [], chapters: [object({ ...closed, number: 4 })], journals: [journal("controller", lines)] },
      "node/worker-0",
      now,
    );
    expect(read.chapters.map(({ number, kept }) => [number, kept])).toEqual([[4, true]]);
  });

  test("lines of pruned chapters create no new chapters [books-book-text-11]", () => {
    const read = readBook(
      { books: [book({})], chapters: [], journals: [journal("controller", lines)] },
      "node/worker-0",
      now,
    );
    expect(read.chapters).toEqual([]);
    expect(bookText(read, { now })).toBe("Book node/worker-0: no chapter yet; chapters 1 to 3 are no longer kept\n");
  });

  test("an open chapter continues with newer journal lines, also if the book's index is ahead [books-book-text-12]", () => {
    const begun =
      foldBook(
        "node/worker-0",
        lines.filter(({ at }) => at < morning + 2000),
        { now: morning + 2000 },
      )[0] ?? expect.fail();
    const read = readBook(
      { books: [book({})], chapters: [object({ ...begun, number: 4 })], journals: [journal("controller", lines)] },
      "node/worker-0",
      now,
    );
    expect(read.chapters).toHaveLength(1);
    expect(read.chapters[0]).toEqual({ ...closed, number: 4, kept: true });
  });

  test("what is beyond the book has the numbers that follow [books-book-text-13]", () => {
    const next = reportedUpdate({
      run: "rendered-worker-c",
      startSeconds: 600,
      daemon: new LineWriter("daemon", "worker-0", "boot-9"),
      controller: new LineWriter("controller", "other", "pod-2"),
    });
    const read = readBook(
      {
        books: [book({})],
        chapters: [object({ ...closed, number: 4 })],
        journals: [journal("controller", [...lines, ...next.lines])],
      },
      "node/worker-0",
      now,
    );
    expect(read.chapters.map(({ number, run, kept }) => [number, run, kept])).toEqual([
      [4, "rendered-worker-b", true],
      [5, "rendered-worker-c", false],
    ]);
    expect(bookText(read, { now })).toContain("from the journals: not in the book yet");
  });

  test("what is stored of a later boot comes behind the journal's lines of an earlier one [books-book-text-18]", () => {
    const daemon = new LineWriter("daemon", "worker-0", "boot-1");
    const controller = new LineWriter("controller", "c", "pod-1");
    const to = (run: string) => ({ book: "node/worker-0", chapter: "Update", run }) as const;
    controller.at(1, { ...to("b"), path: "Requested", mark: "begin", reason: "TargetSet" });
    daemon.at(2, { ...to("b"), path: "Requested", mark: "end", reason: "TargetSeen" });
    daemon.at(3, { ...to("b"), path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" });
    daemon.reboot("boot-2", 4);
    controller.at(5, { ...to("c"), path: "Requested", mark: "begin", reason: "TargetSet" });
    daemon.at(6, { ...to("c"), path: "Requested", mark: "end", reason: "TargetSeen" });
    const all = [...controller.lines, ...daemon.lines];
    const open = (run: string, of: readonly JournalLine[], number: number) => {
      const record = foldBook("node/worker-0", of, { now: morning + 6000 }).find((each) => each.run === run);
      return object({ ...(record ?? expect.fail()), state: "Open", endedAt: undefined, outcome: undefined, number });
    };
    const chapters = [open("b", controller.lines.slice(0, 1), 1), open("c", all, 2)];
    const read = readBook({ books: [], chapters, journals: [journal("controller", all)] }, "node/worker-0", now);
    expect(read.chapters.map(({ run, outcome, skew }) => [run, outcome, skew])).toEqual([
      ["b", "Succeeded", undefined],
      ["c", undefined, undefined],
    ]);
  });

  test("of a chapter that goes on, what was stored of its failure and its clocks is not said of its end [books-book-text-19]", () => {
    const daemon = new LineWriter("daemon", "worker-0", "boot-1");
    const to = { book: "node/worker-0", chapter: "Update", run: "b" } as const;
    daemon.at(1, { ...to, path: "Requested", mark: "end", reason: "TargetSeen" });
    daemon.at(2, { ...to, path: "Executed/Files", mark: "fail", reason: "WriteFailed" });
    const [failing] = foldBook("node/worker-0", daemon.lines, { now: morning + 3000 });
    const stored = object({ ...(failing ?? expect.fail()), number: 1, next: "correct it", skew: true, missed: 2 });
    daemon.at(4, { ...to, path: "Executed/Files", mark: "end", reason: "Written" });
    daemon.at(5, { ...to, path: "Updated", mark: "end", reason: "Succeeded", outcome: "Succeeded" });
    const journals = [journal("node-worker-0", daemon.lines)];
    const [chapter] = readBook({ books: [], chapters: [stored], journals }, "node/worker-0", now).chapters;
    expect(chapter).toMatchObject({ number: 1, outcome: "Succeeded", missed: 2, kept: true });
    expect([chapter?.next, chapter?.skew]).toEqual([undefined, undefined]);
  });

  test("lines about another node in a node's journal count for neither node, and the first one's book reports it [books-book-text-14]", () => {
    const storedBooks = { books: [], chapters: [], journals: [journal("node-worker-1", lines)] };
    expect(readBook(storedBooks, "node/worker-0", now).chapters).toEqual([]);
    expect(bookText(readBook(storedBooks, "node/worker-1", now), { now })).toContain(
      `${lines.length} lines of its journal about something else do not count`,
    );
  });

  test("reading many books at once gives each what reading it alone gives [books-book-text-15]", () => {
    const other = {
      ...journal(
        "node-worker-1",
        lines.map((line) => ({
          ...line,
          book: "node/worker-1",
          writer: { component: "daemon", instance: "worker-1" },
        })),
      ),
    };
    const storedBooks = {
      books: [book({})],
      chapters: [object({ ...closed, number: 4 })],
      journals: [journal("controller", lines), other],
    };
    const names = bookNames(storedBooks);
    expect(names).toEqual(["node/worker-0", "node/worker-1"]);
    for (const [name, read] of readBooks(storedBooks, names, now))
      expect(read).toEqual(readBook(storedBooks, name, now));
  });
});

test("a single line shows time, place, event, and the remedy of a failure", () => {
  const daemon = new LineWriter("daemon", "worker-0");
  const line = daemon.at(0, {
    book: "node/worker-0",
    chapter: "Update",
    run: "b",
    path: "Executed/ImagePulled",
    mark: "fail",
    reason: "PullFailed",
    message: "registry.example.com does not answer",
    next: { action: "Look at the registry.", actor: "administrator" },
  });
  expect(lineText(line)).toBe(
    "2026-01-02 10:00:00Z  node/worker-0  Update Executed/ImagePulled FAILED  PullFailed: registry.example.com does not answer What to do: Look at the registry.",
  );
});

test("the list of books says how each is, and that there are none", () => {
  expect(booksText([])).toContain("There is no book yet");
  expect(
    booksText([
      { book: "cluster", health: "Idle", chapters: 3, kept: true },
      { book: "node/worker-0", health: "Drift", chapters: 1, kept: false },
    ]),
  ).toBe("cluster        3 chapters, Idle\nnode/worker-0  1 chapter, Drift, only in journals\n");
});

test("a chapter that was withdrawn says so [books-book-text-17]", () => {
  const message = "Lines that came later show that this is no chapter of its own: what was in it is in the others.";
  const spec: MachineStateChapter["spec"] = {
    book: "node/worker-0",
    chapter: "Update",
    run: "rendered-worker-a",
    number: 6,
    startedAt: "2026-01-02T10:00:00Z",
    endedAt: "2026-01-02T10:00:23Z",
    state: "Closed",
    outcome: "NotRequired",
    message,
    confidence: "Observed",
    sections: [],
    entries: [],
    dropped: 0,
    through: [],
  };
  const book = readBook({ books: [], chapters: [{ spec }], journals: [] }, "node/worker-0", now);
  expect(bookText(book, { now })).toContain(`: NotRequired\n   ${message}\n`);
});
