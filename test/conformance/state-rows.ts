import { type Section, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * The state controller, MachineConfigNodes and the books. `R690-*` are what MCO-690 asks for, `i.*` the acceptance
 * scenarios of this suite for it; those of them that are about MachineConfigNodes and pools alone stand with the
 * measures.
 */
const processes = (...groups: readonly string[]) => inFile("src/state/state-process.test.ts", ...groups);
const scenario = inFile("test/scenario/books.test.ts", "a cluster that keeps books");
const story = (...groups: readonly string[]) => inFile("src/daemon/story.test.ts", ...groups);
const controllers = inFile("src/controller/stories.test.ts", "what controllers tell of a roll-out");
const fold = (...groups: readonly string[]) => inFile("src/core/books/fold-book.test.ts", ...groups);
const keeper = (...groups: readonly string[]) => inFile("src/core/books/book-keeper.test.ts", ...groups);
const golden = inFile("src/core/books/book-text.test.ts", "what the books say, word for word");
const reader = inFile("src/core/books/book-text.test.ts", "what a reader finds");
const scribe = (...groups: readonly string[]) => inFile("src/kube/story-scribe.test.ts", ...groups);
const journal = (...groups: readonly string[]) => inFile("src/core/books/journal.test.ts", ...groups);
const seen = (...groups: readonly string[]) => inFile("src/core/pool/seen-lines.test.ts", ...groups);
const health = (...groups: readonly string[]) => inFile("src/core/operator/health.test.ts", ...groups);
const retention = inFile("src/core/books/book-retention.test.ts", "retention");
const commands = (...groups: readonly string[]) => inFile("src/cli/book-commands.test.ts", ...groups);
const explains = (...groups: readonly string[]) => inFile("src/core/preview/explain.test.ts", ...groups);
const phases = inFile("src/core/books/update-conditions.test.ts", "withPhases");
const reasons = inFile("src/api/books/stories.test.ts", "the closed list of reasons");
const operator = inFile("src/operator/operator.test.ts", "the operator");
const meters = (...groups: readonly string[]) => inFile("src/core/metrics/section-meter.test.ts", ...groups);
const budget = inFile("test/simulation/write-budget.test.ts", "an update with drain and reboot");
const guards = inFile("test/guards/yes-no-helpers.test.ts");
const imports = inFile("test/guards/imports.test.ts");
const pools = inFile("src/core/pool/pool-status.test.ts", "poolStatus");
const seeds = [
  ...inFile("test/simulation/seeds-even.test.ts")(
    "whatever happens in which order, no invariant is broken (even seeds)",
  ),
  ...inFile("test/simulation/seeds-odd.test.ts")("whatever happens in which order, no invariant is broken (odd seeds)"),
];

const informational = "it informs, and asks for nothing that a test could show";

export const stateKeeping: readonly Section[] = [
  {
    id: "R690",
    title: "The state controller: what MCO-690 asks for",
    rows: [
      ours(
        "R690-1",
        "Status reporting is a compartment of its own: a process with four parts, of which each runs, fails and is switched by itself.",
        processes("a child")("*"),
      ),
      skip("R690-2", "An untethered reporter is a valuable asset.", informational),
      ours(
        "R690-3",
        "There is one way to tell a story and one to tell the present state: the books are folded from journals, and nothing wraps the code that works.",
        guards("*"),
        fold("an update that was told")("*"),
      ),
      skip(
        "R690-4",
        "It could be a binary of its own, or be fed by controller and daemon.",
        "both: it is a process, and what it keeps is told by those who do it",
      ),
      ours(
        "R690-5",
        "MachineConfigNodes tell where each node is, with all conditions, their parents and children.",
        budget("walks through the conditions in order, and back to rest"),
        phases("*"),
      ),
      ours(
        "R690-6",
        "A parent makes, starts, watches and restarts its children by one configuration, and has an on switch.",
        processes("a child")("*"),
        processes("the switch")("*"),
        inFile("src/core/operator/state-settings.test.ts")("*"),
      ),
      skip("R690-7", "A part of the controller would be more discreet and see less.", "rejected there, and here"),
      ours(
        "R690-8",
        "It needs no controller: what happened before there was one, and what happens while there is none, is in the books.",
        processes("what happened before the cluster")("*"),
        processes("the books of nodes")("tell of an update that nobody tells of*"),
      ),
      ours(
        "R690-9",
        "Everything that was told is in the books, exactly once, whatever happens to those who tell and to the one who keeps them.",
        processes("the books of nodes")("*"),
        keeper()(
          "whenever the keeper ends and another goes on, no line is lost or told twice, and closed chapters stay as they are",
        ),
        seen("an update that nobody tells of")("*"),
      ),
      ours(
        "R690-10",
        "It can be switched off and on while the cluster lives, or never started; what was told meanwhile is there when it comes.",
        processes("the switch")("*"),
        operator("the state process follows its switch, and its absence degrades nothing"),
        scenario("with the state process switched off *"),
      ),
      ours(
        "R690-11",
        "Books have a chapter for each stage of life, each with its sections, and every chapter has a rule of how it ends.",
        fold()(
          "every chapter of the tables has a rule of how it ends, which names sections that it has",
          "whatever is told folds into chapters that their kind accepts",
        ),
        reasons("*"),
      ),
      ours(
        "R690-12",
        "What happened at the bootstrap and at a first boot is told where it happens, before there is a network.",
        story("other chapters of a machine")(
          "a machine that Ignition set up tells of its first boot and of its joining, with the times of the first boot",
        ),
        processes("what happened before the cluster")("*"),
        inFile("src/cli/bootstrap.test.ts", "what a bootstrap tells")("*"),
        inFile("src/daemon/first-boot.test.ts", "a first boot")(
          "stages image, arguments, packages and*",
          "is tried again for as long as somethi*",
        ),
      ),
      ours(
        "R690-13",
        "A bootstrap and a first boot are read afterwards as chapters.",
        golden("a bootstrap", "a first boot"),
        processes("what happened before the cluster")("is in the book of the cluster and of *"),
      ),
      skip("R690-14", "Verbosity and appearance are not limited.", informational),
      ours(
        "R690-15",
        "No component asks a condition of a pool: typed answers with reasons took the place of all such questions.",
        guards("*"),
      ),
      ours(
        "R690-16",
        "UpgradeProgression: where every machine is in its update, in MachineConfigNodes.",
        budget("walks through the conditions in order, and back to rest"),
        phases("*"),
      ),
      ours(
        "R690-17",
        "OperatorHealth: whether every task of the operator works, with the task that does not.",
        health("the health of the suite's parts")("*"),
        operator("tells the book of the cluster which of its tasks fails, and when it works again, once each"),
      ),
      ours(
        "R690-18",
        "MCC-Health: whether the controller leads, looks and renders, with what does not.",
        health("the health of the suite's parts")("*"),
      ),
      ours(
        "R690-19",
        "MCD-Health: whether every daemon is there and of this version, with the nodes where none is.",
        health("the health of the suite's parts")("*"),
      ),
      ours(
        "R690-20",
        "Bootstrap progression: the bootstrap hands its story over, which is imported once; a condition says whether.",
        processes("what happened before the cluster")("*"),
        health("BootstrapComplete")("*"),
      ),
      ours(
        "R690-21",
        "Metrics are figures of those who do the work; the books feed none.",
        meters("how long steps take")("*"),
        meters("how long machines take no pods")("*"),
        processes("figures")("*"),
      ),
      ours(
        "R690-22",
        "All five reports are there.",
        health("the health of the suite's parts")("*"),
        scenario("has the state process as a pod, *"),
      ),
      same("R690-23", "Only upgrade health lives in MachineConfigNodes.", phases("*")),
      ours(
        "R690-24",
        "Other health lives in the conditions of MachineConfiguration cluster, item by item.",
        processes("health")("*"),
        scenario("has the state process as a pod, *"),
      ),
      same(
        "R690-25",
        "The MVP of pull request 3970, MachineConfigNodes that walk through an update, is there with its conditions, parents and children.",
        budget("walks through the conditions in order, and back to rest"),
        phases("a parent follows from its children"),
      ),
      ours(
        "R690-26",
        "Questions with many answers have typed answers, with reason, evidence and freshness.",
        explains()("an answer says how current it is"),
        explains("what a pool says of itself")("*"),
      ),
      ours("R690-27", "No helper answers yes or no about pools, and none may be written.", guards("*")),
      ours(
        "R690-28",
        "Decisions rest on what is kept of members, from one fold; annotations and MachineConfigNodes that disagree are told.",
        explains("what a node says of itself")(
          "annotations and MachineConfigNode that disagree are told after a minute",
        ),
        pools(
          "a machine that says in its MachineConfigNode that it is degraded is shown once, whatever its annotations say",
        ),
      ),
      ours(
        "R690-29",
        "Where a node belongs follows from its labels; a move between pools is a chapter, and a node that several pools claim is named.",
        seen("what an onlooker says of a node")("that its pool is another"),
        explains("what a node says of itself")("in two pools it belongs to none, which both pools and the node say"),
      ),
      skip("R690-30", "It resolves cards.", informational),
    ],
  },
  {
    id: "books",
    title: "The state controller and the books: acceptance",
    rows: [
      ours(
        "i.1 chapter",
        "The chapter of an update has every section, each with both ends, together no longer than the whole; it is written twice.",
        story("the story of an update")(
          "with a reboot has every section with its times, and what was planned, written and staged",
        ),
        processes("the books of nodes")("hold an update as one chapter, written*"),
        fold("an update that was told")("*"),
      ),
      ours(
        "i.2 story",
        "An update without reboot says what was done in its place.",
        story("the story of an update")("without a reboot says what was done in its place: nothing, or which service"),
      ),
      ours(
        "i.3",
        "An API server that is away during an update costs no boundary line; all come in one write, with their own times.",
        scribe("a scribe on a machine")("waits while the API server is away,*"),
        story()("an API server that is away while the system is staged *"),
      ),
      ours(
        "i.4",
        "A daemon that is killed or loses power anywhere loses no boundary line and brings none twice; what it was in the middle of was interrupted.",
        story("the story of an update")(
          "goes on after the daemon was killed at any effect: what it was in the middle of was interrupted, nothing is told twice, and it ends well",
        ),
        story("a power cut")("*"),
        inFile("test/crash/story.test.ts")("*"),
        inFile("test/crash/planted-bugs.test.ts", "a planted bug is found")("books: *"),
      ),
      ours(
        "i.5",
        "A new target in the middle of an update ends its chapter as superseded, begins another, and leaves nothing True of the first.",
        story("the story of an update")(
          "is superseded by that of a newer target, which begins with nothing of the old one",
        ),
        phases("a newer target is said where an older one was under way, and leaves nothing True of it"),
      ),
      ours(
        "i.9",
        "A daemon writes no MachineConfigNode and no journal but its own; lines about others in its journal are left out and counted.",
        operator("a daemon writes about its own machine and about no other, and nothing but annotations of its node"),
        processes("the books of nodes")("take from a node's journal only what *"),
        journal()("a node's journal tells of that node only"),
      ),
      ours(
        "i.10",
        "Without the state process everything goes on, and books are read from journals; switched on, it keeps what the rings hold, and a ring that overflowed is a gap with its count.",
        scenario("with the state process switched off *"),
        processes("the switch")("*"),
        processes("what was missed")("*"),
        commands("with nothing but journals")("*"),
      ),
      ours(
        "i.11",
        "The bootstrap's story is imported once, and a journal of it that is missing or unreadable is a reason, not a crash.",
        processes("what happened before the cluster")("*"),
        health("BootstrapComplete")("*"),
      ),
      ours(
        "i.12",
        "A machine that was served and has not joined after half an hour is overdue: in the book of its pool, as an event, in mco explain, and as a figure.",
        inFile("src/state/joins.test.ts")("*"),
        inFile("src/core/books/judge-joins.test.ts")("*"),
        explains("a pool is explained, with its cause and what comes next, whether anybody keeps books or not")(
          "a machine that was served and has not joined is named, with what to do",
        ),
      ),
      ours(
        "i.13",
        "Retention keeps number and age, open chapters and the newest failure; a closed chapter cannot be changed; ten thousand lines are one object.",
        retention("*"),
        scenario("a chapter that is closed cannot be ch*"),
        fold()("a chapter of 10,000 lines is short enough for one object, and keeps sections, ends and failures"),
        processes("what is written")("says the counters of a book upwards *"),
      ),
      ours(
        "i.14",
        "An idle cluster writes less than one object a minute for its books, an update two.",
        processes("what is written")("*"),
        keeper("one update")("is written when it opens and when it closes, and says the same as a fold of everything"),
      ),
      ours(
        "i.15",
        "Figures are of the processes that do the work, and the same whether the state process runs or not.",
        inFile("src/state/metrics-beside.test.ts")(
          "every figure of the controller is the same whether somebody keeps books or not",
        ),
        meters("how long steps take")("*"),
        imports("imports point down the layers, and components do not know each other"),
      ),
      ours(
        "i.16",
        "Nothing that looks like a secret is in a journal, a book or a log.",
        inFile("src/core/books/redacted-books.test.ts")("*"),
        inFile("src/core/text/redact.test.ts", "redaction")("*"),
        scribe("a scribe on a machine")("says nothing that looks like a secret*"),
        inFile("src/ports/node/json-logger.test.ts")("nothing that looks like a secret is in a log, *"),
      ),
      ours(
        "i.17",
        "Pool conditions are read in core alone, and no process imports the state process.",
        guards("*"),
        imports("imports point down the layers, and components do not know each other"),
      ),
      ours(
        "i.18",
        "A pool is explained in every state that it can be in, with cause and next action, with chapters and without.",
        explains("a pool is explained, with its cause and what comes next, whether anybody keeps books or not")("*"),
        explains("with chapters")("*"),
      ),
      ours(
        "i.19",
        "A clock that jumps makes no duration negative and no order wrong, and is told of.",
        fold("clocks")("*"),
      ),
      ours(
        "i.20",
        "A child that crashes again and again takes no other with it, and is named.",
        processes("a child")("*"),
      ),
      ours(
        "golden",
        "A bootstrap, a first boot, an update with a blocked drain, a drift, a superseded update and a machine that went back read as they should, word for word.",
        golden("*"),
      ),
      ours(
        "readers",
        "What is kept and what journals hold beyond it are one story, whoever reads it.",
        reader("*"),
        commands("with books kept")("*"),
      ),
      ours(
        "past",
        "Estimates rest on the finished updates of the pool, with their spread, and are not made without them; what changed is named, with who and when.",
        inFile("src/core/books/past.test.ts", "what updates before took")("*"),
        inFile("src/core/books/past.test.ts", "when a machine is likely to be done")("*"),
        inFile("src/core/books/past.test.ts", "when a roll-out is likely to be done")("*"),
        inFile("src/core/books/past.test.ts", "who changed what")("*"),
      ),
      ours(
        "chart",
        "A timeline shows where the time went, for three machines and for five hundred, with trouble always seen.",
        inFile("src/core/books/timeline.test.ts", "the chart of a pool")("*"),
        inFile("src/core/books/timeline.test.ts", "the chart of one book")("*"),
      ),
      ours(
        "told",
        "Controllers tell each thing once: targets with their cause, drains, roll-outs, pauses, refusals to render, machines that fail.",
        controllers("*"),
      ),
      ours(
        "ring",
        "A journal holds the newest 200 boundary lines in at most 128 KiB; what is sent is what is new.",
        journal("the ring of a journal")("*"),
        scribe("a scribe in a pod")("*"),
      ),
      ours(
        "scenario",
        "In a whole cluster a roll-out with a blocked drain, a drift, a killed and a switched-off state process can be read afterwards.",
        scenario("*"),
      ),
      ours(
        "sim story",
        "Whatever happens in whatever order, no settled line is lost or there twice, and every machine's update ends as a chapter.",
        seeds,
      ),
    ],
  },
];
