import { baseRules } from "./base-rows.ts";
import { controlPlane } from "./control-plane-rows.ts";
import { measured } from "./measure-rows.ts";
import { renderAndDrain } from "./render-and-drain-rows.ts";
import { operatorRules } from "./operator-rows.ts";
import { imageBuilds } from "./image-rows.ts";
import { configServer } from "./server-rows.ts";
import { stateKeeping } from "./state-rows.ts";
import { type Section, better, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * What a machine goes through, rule by rule, in the numbering of the reference's behaviour as it was written down for
 * this suite: start-up (3), first boot (4), steady state (5), differences (6), what follows a change (7), an update
 * (8), the disk (9), the operating system (10). Each rule names the tests that show what this suite does there.
 *
 * Source of what the reference does: openshift/machine-config-operator pkg/daemon (main).
 */
const startUp = inFile("src/daemon/start-up.test.ts");
const update = inFile("src/daemon/update.test.ts");
const anUpdate = inFile("src/daemon/update.test.ts", "an update");
const cannotTake = inFile("src/daemon/update.test.ts", "what a machine cannot take");
const system = inFile("src/daemon/update.test.ts", "the system of a machine");
const disk = inFile("src/daemon/disk.test.ts");
const writesCertificates = inFile("src/daemon/certificates.test.ts");
const looks = inFile("src/daemon/looks.test.ts");
const tables = inFile("test/conformance/tables.test.ts");
const plan = inFile("src/core/machine/plan-node.test.ts", "planNode");
const reconciled = inFile("src/core/config/reconcilable.test.ts", "reconcile");
const policies = inFile("src/core/config/disruption-policy.test.ts");
const firstBoot = inFile("src/daemon/first-boot.test.ts", "a first boot");
const converge = inFile("src/daemon/converge.test.ts", "a daemon on a machine");
const rpmOstree = inFile("src/host/rpm-ostree/rpm-ostree-host.test.ts", "a machine with rpm-ostree");
const readsRpmOstree = inFile("src/host/rpm-ostree/rpm-ostree-host.test.ts", "what rpm-ostree says");
const drivers = inFile("src/host/conformance.test.ts");
const everyDriver = inFile("src/host/conformance.test.ts", "every host driver: memory");
const crashEven = inFile("test/crash/effects-even.test.ts");
const crashOdd = inFile("test/crash/effects-odd.test.ts");
const planted = inFile("test/crash/planted-bugs.test.ts", "a planted bug is found");
const pairs = inFile("test/crash/pairs.test.ts");
const vectors = inFile("test/vectors/vectors.test.ts", "the answers of the reference");
const controllers = inFile("src/controller/controllers.test.ts");
const renders = inFile("src/core/render/render-for-pool.test.ts", "renderForPool");
const rendersPool = inFile("src/core/render/render-pool.test.ts", "renderPool");
const storage = inFile("src/core/config/irreconcilable-changes.test.ts", "irreconcilableChanges");
const retries = inFile("src/registry/retries.test.ts");
const pulls = inFile("src/registry/pull.test.ts");

const firstBootUnits =
  "units of the first boot belong to the templates and images of a CoreOS cluster; this suite brings the command that they run";
const imageMode =
  "images that are built on the cluster are another part of the suite, which does not hand any to machines yet";
const refusedTitle = (what: string) =>
  `${what}: refused by name before anything is touched, and healed by another target`;

const machine: readonly Section[] = [
  {
    id: "3.1",
    title: "Start-up: the first look",
    rows: [
      same(
        "3.1 gone",
        "A machine whose Node is being deleted is left alone.",
        looks("a look > at a machine whose Node goes away touches nothing"),
      ),
      better(
        "W24",
        "3.1 queued",
        "While the machine is going down nothing is begun; one that does not go down within two minutes is asked again, told of and counted.",
        update("a reboot > that does not come is asked for again, told, and counted"),
      ),
      ours(
        "3.1 pool",
        "The pool is not asked for: the target stands on the Node, and other machines' configurations are never read.",
        update(
          "an idle machine > asks the API server next to nothing, reads its own node and its own configurations only, and writes nothing",
        ),
      ),
      same(
        "3.1 rebooted",
        "A reboot that was announced is told as done by the first look of another boot, not by another process in the same one.",
        looks("a look > after a reboot takes back what was said of it, once the machine has really gone down"),
        update("a reboot > is not taken for done by a daemon that starts before the machine has gone down"),
      ),
      skip(
        "3.1 fsync",
        "Machines of the control plane keep ostree's own setting for flushing objects.",
        "it only trades the speed of a pull for etcd's latency, and an administrator can set it in the image",
      ),
      same(
        "3.1 secret",
        "The cluster's merged pull secret is written as soon as the daemon runs, whatever state the machine is in.",
        writesCertificates(
          "what somebody changes on the disk is put right at the next look, mode and owner left as they are",
        ),
      ),
      same(
        "3.1 1",
        "What was left of a first boot that did not end is put aside: from here on the daemon does it.",
        startUp(
          "a machine that joins > with annotations from the config server takes them over, and the file is put aside once it is done",
        ),
      ),
      same(
        "3.1 2",
        "Ignition's own presets are removed, so that later presets are the vendor's.",
        startUp(
          "a machine that joins > with annotations from the config server takes them over, and the file is put aside once it is done",
        ),
      ),
      skip(
        "3.1 3",
        "Names of network interfaces are left as they are.",
        "it needs RHEL's nmstatectl on the way from RHEL 9 to 10; no driver of ours runs there",
      ),
      same(
        "3.1 4",
        "What fails is told as Degraded and tried again, ever more rarely.",
        update("a service that fails > what was paid before it is not paid again"),
      ),
      same(
        "3.1 5",
        "Once the machine is where it should be it is told as resumed, and its files are watched.",
        anUpdate(
          "goes through its conditions in order, each once, in at most eight writes",
          "that reboots writes down what it owes before it changes anything, and closes the ledger last",
        ),
      ),
    ],
  },
  {
    id: "3.2",
    title: "Start-up: what the machine has",
    rows: [
      same(
        "3.2 a",
        "Annotations that are missing come from the file that the machine was served; those of others in it do not.",
        startUp(
          "a machine that joins > with annotations from the config server takes them over, and the file is put aside once it is done",
        ),
      ),
      same(
        "3.2 a, no file",
        "Without that file they come from the machine's disk.",
        startUp("a machine with a history > gets its annotations back when they are lost"),
      ),
      better(
        "W5",
        "3.2 a, nothing",
        "A configuration that nobody can show is told as Degraded; the force file applies the target over what is there.",
        startUp(
          "a machine that another daemon kept > and whose configuration nobody can show says so, and touches nothing until somebody decides",
        ),
      ),
      same(
        "3.2 b, failure",
        "Why the last shutdown could not finalise what was staged is mirrored into an annotation and told.",
        startUp(
          "a boot that is not the one that was asked for > because what was staged was not finalised: it is staged again, and the failure is told",
        ),
      ),
      ours(
        "3.2 b, bootstrap",
        "A machine with a bootstrap configuration that the cluster does not have goes on from the one that it was served to the one that it should have.",
        startUp(
          "a machine that joins > with a bootstrap configuration that the cluster does not have goes on to the one it should have",
        ),
      ),
      better(
        "W16",
        "3.2 b, difference",
        "No file with the difference is written: it would quote contents that may be secret.",
        disk(
          "what a machine says of itself > after it joined: whole configurations are its own to read, and no file with differences of contents is written",
        ),
      ),
      ours(
        "3.2 c",
        "No system is thrown away at the start: the one before may be needed.",
        startUp("a machine that another daemon kept > is taken over by its annotation when the disk says nothing"),
      ),
      better(
        "W27",
        "3.2 d, another system",
        "A machine that joins with another system than it should have gets it undrained, with its arguments and packages.",
        startUp(
          "a machine that joins > whose first boot did not get to the system gets it undrained, and is drained from then on",
        ),
      ),
      same(
        "3.2 d, same",
        "One that has it already only puts the served file aside.",
        startUp(
          "a machine that joins > with annotations from the config server takes them over, and the file is put aside once it is done",
        ),
      ),
      same(
        "3.2 e",
        "The disk is believed before the annotation.",
        startUp("a machine with a history > believes its disk, not annotations that came back from an old backup"),
      ),
      same(
        "3.2 f",
        "The force file skips what would stop an update and applies the target again, also an equal one.",
        anUpdate("that the force file asks for again is applied anew, with a reboot, and the file goes"),
      ),
      same(
        "3.2 g",
        "A machine that differs from what it was proven to have says so, in an event and as Degraded.",
        startUp("a machine with a history > that drifted while it was down says so, and keeps what somebody did"),
      ),
      better(
        "W13",
        "3.2 h",
        "What a machine joined with is written down as its current configuration once it is proven, readable for root only.",
        disk(
          "what a machine says of itself > after it joined: whole configurations are its own to read, and no file with differences of contents is written",
        ),
      ),
      same(
        "3.2 i, packages",
        "Packages that did not arrive keep the machine from Done.",
        system("packages that did not arrive keep the machine from saying that it is done"),
      ),
      better(
        "W11",
        "3.2 i, uncordon",
        "The machine is Done when it is; that it is put back into service is asked for, only where we took it out, and not waited for.",
        anUpdate(
          "with action Drain empties the machine, acts, and puts it back, without a reboot",
          "leaves somebody else's cordon alone",
        ),
      ),
      same(
        "3.2 i, report",
        "Disks that differ for good from the configuration are reported.",
        disk(
          "what a machine says of itself > where its disks differ for good from its configuration, and no more once they do not",
        ),
      ),
      same(
        "3.2 j",
        "A machine that booted with something else than its target says so and is brought to it.",
        startUp(
          "a boot that is not the one that was asked for > because somebody chose another system in the boot menu: it comes back by itself, drained, with all that belongs to it",
        ),
      ),
      better(
        "W5",
        "3.2 not finalised",
        "A system that was not finalised is staged again, three times at most; then the machine goes back, configuration and system together, and says why.",
        startUp(
          "a boot that is not the one that was asked for > because what was staged was not finalised: it is staged again, and the failure is told",
          "a boot that is not the one that was asked for > again and again: after three reboots the machine goes back, config and system together, and says why",
        ),
      ),
      better(
        "W5",
        "3.2 edited",
        "An edited file makes the machine Degraded until it is undone, forced, or another configuration is chosen: that one does not wait.",
        startUp("a machine with a history > that drifted while it was down says so, and keeps what somebody did"),
      ),
      same(
        "3.2 lost",
        "A lost annotation is rebuilt.",
        startUp("a machine with a history > gets its annotations back when they are lost"),
      ),
      same(
        "3.2 restored",
        "After a restored backup of the cluster the machine goes from what its disk has to what it is told.",
        startUp("a machine with a history > believes its disk, not annotations that came back from an old backup"),
      ),
      ours(
        "3.2 no record",
        "A machine without a record of its own is taken over by its annotation, and has a record from then on.",
        startUp("a machine that another daemon kept > is taken over by its annotation when the disk says nothing"),
      ),
      same(
        "3.2 moved",
        "A target that changes during the reboot is gone to at once, without a return into service.",
        startUp(
          "a machine with a history > that was told of another target while it rebooted goes straight on to it, still out of service",
        ),
      ),
      same(
        "3.2 healed",
        "A machine that was Degraded and is well says so.",
        update(
          "an idle machine > that somebody changes says at once what differs, and is well again when it is undone",
        ),
      ),
    ],
  },
  {
    id: "3.3",
    title: "Start-up: whose word counts",
    rows: [
      ours(
        "3.3 current",
        "Current: our own documents, then the reference's file, then the annotation, then what was served.",
        startUp(
          "a machine with a history > believes its disk, not annotations that came back from an old backup",
          "a machine that another daemon kept > is taken over from its disk, with the originals that the other one kept",
          "a machine that another daemon kept > is taken over by its annotation when the disk says nothing",
          "a machine that joins > with annotations from the config server takes them over, and the file is put aside once it is done",
        ),
      ),
      same(
        "3.3 desired",
        "Desired: the annotation alone; without one, or without the configuration that it names, nothing happens.",
        looks("a look > waits for a target that is not chosen, or that nobody has made yet"),
      ),
      ours(
        "3.3 state",
        "The state annotation is written for others; the daemon looks at the machine.",
        looks("a look > at a machine that is well and does not say so makes it say so, and does nothing else"),
      ),
      ours(
        "3.3 newer",
        "Documents of a newer daemon stop an older one before it touches anything.",
        startUp("documents of a newer daemon stop this one before it touches anything"),
      ),
    ],
  },
  {
    id: "4.1",
    title: "First boot: what starts it",
    rows: [
      skip("4.1 pull", "The unit that fetches the operator's image is not ours.", firstBootUnits),
      same(
        "4.1 first boot",
        "The command does nothing without the file of a first boot, and puts the file aside at its end.",
        firstBoot(
          "without a file of a first boot does nothing",
          "that needs nothing but what Ignition did is complete at once, without a reboot",
        ),
      ),
      skip("4.1 target", "Nor is the target behind which units of platforms wait.", firstBootUnits),
      skip(
        "4.1 order",
        "The order of the kubelet behind the first boot is the business of these units.",
        firstBootUnits,
      ),
      ours(
        "4.1 without",
        "A machine whose image has no such units joins as it is, and the daemon does what is missing.",
        startUp(
          "a machine that joins > without anything meets its first configuration through the daemon, folders, links and appended files too",
          "a machine that joins > whose first boot did not get to the system gets it undrained, and is drained from then on",
        ),
      ),
    ],
  },
  {
    id: "4.2",
    title: "First boot: what it does",
    rows: [
      ours(
        "4.2 1",
        "It reads the configuration with which the machine was started, whole where it was served whole.",
        firstBoot("stages image, arguments, packages and kernel in one deployment, and reboots once"),
      ),
      skip(
        "4.2 2",
        "Systems that cannot fetch a system image by themselves are not supported.",
        "it is for rpm-ostree without container images and skopeo before 1.22.2, which no system in support has",
      ),
      ours(
        "4.2 3",
        "What the machine has is observed, not guessed from a made-up older configuration.",
        firstBoot("stages image, arguments, packages and kernel in one deployment, and reboots once"),
      ),
      same(
        "4.2 4",
        "Nothing to do: the file goes, and there is no reboot.",
        firstBoot("that needs nothing but what Ignition did is complete at once, without a reboot"),
      ),
      ours(
        "4.2 5",
        "Everything for the next boot is staged as one deployment; a machine that cannot take it is told by name and joins anyway.",
        firstBoot(
          "stages image, arguments, packages and kernel in one deployment, and reboots once",
          "refuses a kernel in the wrong FIPS mode without touching anything, and lets the machine join to tell it",
        ),
      ),
      ours(
        "4.2 6",
        "The file is put aside before the machine goes down: from then on the ledger knows what is left.",
        firstBoot("that loses its power half-way starts again and ends the same"),
      ),
      same(
        "4.2 7",
        "Then the machine reboots, once.",
        firstBoot("stages image, arguments, packages and kernel in one deployment, and reboots once"),
      ),
      same(
        "4.2 fails",
        "What fails is tried again every minute, for as long as it takes.",
        firstBoot("is tried again for as long as something fails"),
      ),
      ours(
        "4.2 mode",
        "No API server, no drain; the ordinary policies, of which none spares a reboot for a system.",
        converge("that joins does not drain; later a reboot is drained for first"),
      ),
    ],
  },
  {
    id: "5",
    title: "Steady state",
    rows: [
      same(
        "5 1",
        "The same as at the start: nothing for a Node that goes, nothing while the machine goes down.",
        looks("a look > at a machine whose Node goes away touches nothing"),
        update("a reboot > that does not come is asked for again, told, and counted"),
      ),
      better(
        "W23",
        "5 2",
        "While a drain is waited for the target is read again: one that goes back puts the machine into service untouched.",
        anUpdate(
          "whose target moves while it waits for a drain goes to the newer one; back to the old one, it is put back into service untouched",
        ),
      ),
      same(
        "5 3, disk differs",
        "Where the disk and the annotation name different configurations the machine goes from the disk's.",
        startUp("a machine with a history > believes its disk, not annotations that came back from an old backup"),
      ),
      same(
        "5 3, no record",
        "Without a record of its own the annotation's is taken.",
        startUp("a machine that another daemon kept > is taken over by its annotation when the disk says nothing"),
      ),
      same(
        "5 3, equal",
        "Equal and Done: nothing happens, and next to nothing is asked.",
        update(
          "an idle machine > asks the API server next to nothing, reads its own node and its own configurations only, and writes nothing",
        ),
        plan("asks for nothing when the machine has the target"),
      ),
      same(
        "5 3, equal, not Done",
        "Equal and not Done: the machine is looked at, and says Done when it is.",
        looks("a look > at a machine that is well and does not say so makes it say so, and does nothing else"),
      ),
      same(
        "5 4",
        "An update that begins is told at once.",
        anUpdate("goes through its conditions in order, each once, in at most eight writes"),
      ),
      better(
        "W5",
        "5 5",
        "Drift stops a machine that is where it should be; a new target is not kept waiting by it.",
        startUp("a machine with a history > that drifted while it was down says so, and keeps what somebody did"),
        crashOdd("drift is overtaken by a new target"),
      ),
      same(
        "5 6",
        "While it is updated its files are not watched for drift.",
        anUpdate("that reboots writes down what it owes before it changes anything, and closes the ledger last"),
      ),
      same(
        "5 irreconcilable",
        "What a machine cannot take makes it Unreconcilable; another target heals it.",
        cannotTake(refusedTitle("disks")),
      ),
      better(
        "W8",
        "5 errors",
        "Any other failure makes it Degraded; it waits longer and longer, and its own words do not wake it.",
        update("a service that fails > what was paid before it is not paid again"),
        planted("patient: every failure changes the Node, and eve…"),
      ),
    ],
  },
  {
    id: "6.1",
    title: "What counts as a difference",
    rows: [
      same(
        "6.1 os",
        "Another image; the same one again where the force file asks.",
        tables("what counts as different > another image"),
        anUpdate("that the force file asks for again is applied anew, with a reboot, and the file goes"),
      ),
      better(
        "W20",
        "6.1 kernel arguments",
        "Other arguments; not another order of the same, nor another way to list them.",
        tables(
          "what counts as different > other kernel arguments",
          "what counts as different > kernel arguments in another order",
          "what counts as different > no kernel arguments, and an empty list",
        ),
        looks(
          "another spelling of the same > kernel arguments in one entry or in several change nothing",
          "another spelling of the same > kernel arguments in another order change nothing",
        ),
      ),
      same("6.1 fips", "The flag.", tables("what counts as different > FIPS mode")),
      better(
        "W21",
        "6.1 accounts",
        "Keys and passwords, each by itself.",
        tables("what counts as different > a key", "what counts as different > a password"),
      ),
      better(
        "W20",
        "6.1 files",
        "Contents, mode and owner as they will be on the disk; no order, no spelling.",
        tables(
          "what counts as different > a file",
          "what counts as different > files in another order",
          "what counts as different > contents in another spelling",
        ),
        disk(
          "a file is written > only when it differs: another spelling or order of the same is no change, and reboots nobody",
        ),
      ),
      better(
        "W20",
        "6.1 units",
        "Text, drop-ins, mask and enablement; no order.",
        tables("what counts as different > a unit", "what counts as different > units in another order"),
      ),
      same(
        "6.1 kernel type",
        "The type; no name and `default` are the same.",
        tables(
          "what counts as different > another kernel type",
          "what counts as different > the default kernel by name",
        ),
      ),
      better(
        "W20",
        "6.1 extensions",
        "Which ones; no order.",
        tables("what counts as different > extensions", "what counts as different > extensions in another order"),
        looks("another spelling of the same > extensions in another order change nothing"),
      ),
      skip("6.1 image mode", "An image that was built on the cluster counts as the system's image.", imageMode),
      skip("6.1 revert", "Going back from such an image is another system's image.", imageMode),
      same(
        "6.1 changed",
        "Changed paths and units are found as the reference finds them, in a fixed order.",
        vectors("every case of kind diff is answered as the reference does"),
      ),
    ],
  },
  {
    id: "6.2",
    title: "What a running machine can follow",
    rows: [
      better(
        "W21",
        "6.2 order",
        "All findings are told, not only the first, each with its field and what would lift it.",
        reconciled("several things change"),
      ),
      same(
        "6.2 valid",
        "The new configuration must be valid; an older one need not be.",
        reconciled("the new config is invalid", "an old config that later rules refuse does not stand in the way"),
      ),
      same("6.2 groups", "Groups do not change.", reconciled("groups change"), cannotTake(refusedTitle("groups"))),
      same(
        "6.2 users",
        "Nobody but core changes.",
        reconciled("another user comes"),
        cannotTake(refusedTitle("another user than core")),
      ),
      same(
        "6.2 core's keys",
        "Core keeps a key or a password, or goes altogether.",
        reconciled("core loses its keys", "core goes altogether", "core gets a password only", "keys change"),
      ),
      same("6.2 core's fields", "Nothing else of core changes.", reconciled("core gets a shell")),
      same(
        "6.2 Ignition's arguments",
        "Ignition's own kernel arguments do not change.",
        reconciled("Ignition's own kernel arguments change"),
      ),
      same(
        "6.2 disks",
        "Disks, file systems and RAID do not change, unless the administrator allows it by name.",
        reconciled("disks change", "an administrator can allow changes of storage"),
        cannotTake(
          refusedTitle("disks"),
          "a change of disks that the administrator allowed is taken, and the disks stay",
        ),
      ),
      same(
        "6.2 folders",
        "Folders do not change.",
        reconciled("folders change"),
        cannotTake(refusedTitle("a directory that comes later")),
      ),
      same(
        "6.2 links",
        "Links do not come or change; all of them may go.",
        reconciled("links come", "links go"),
        cannotTake(refusedTitle("a link that comes later")),
      ),
      same(
        "6.2 append",
        "Nothing is appended to.",
        reconciled("a file is appended to"),
        cannotTake(refusedTitle("a file that is appended to")),
      ),
      same(
        "6.2 force file",
        "The force file cannot be shipped.",
        reconciled("the force file is written"),
        cannotTake(refusedTitle("the force file")),
      ),
      same(
        "6.2 fips",
        "FIPS mode is not switched.",
        reconciled("FIPS changes"),
        cannotTake(refusedTitle("FIPS mode, switched")),
      ),
      same(
        "6.2 fips, machine",
        "Nor does a machine whose kernel runs in the other mode get it.",
        reconciled("a machine with another FIPS mode is not brought to a config"),
      ),
      better(
        "W19",
        "6.2 accepted silently",
        "LUKS and contents from elsewhere are refused before the drain, where the reference ignores or fails on them after it.",
        reconciled("what the reference would fail on after the drain is refused before it"),
        cannotTake(refusedTitle("LUKS, which the reference ignores"), refusedTitle("contents from elsewhere")),
      ),
      ours(
        "6.2 machine",
        "So is what this one machine cannot have: an owner that it does not know, a kernel, packages, more bytes than are free.",
        cannotTake(
          refusedTitle("an owner that it does not have"),
          refusedTitle("a kernel that it cannot have"),
          refusedTitle("extensions, where packages cannot be la…"),
          refusedTitle("more bytes than are free"),
        ),
      ),
      same(
        "6.2 outcome",
        "Told by condition, event and state; nothing was touched, and another target heals it.",
        cannotTake(refusedTitle("disks")),
      ),
      same(
        "6.2 render",
        "The same rules stop a configuration before it is given to any machine.",
        renders("*"),
        controllers(
          "base configurations and rendering > what running machines could not follow degrades the pool with the member's name, until the administrator allows it",
        ),
      ),
      same(
        "6.2 report",
        "Where disks differ for good from the configuration, the MachineConfigNode says it, without what opens encrypted disks.",
        storage("*"),
        disk(
          "what a machine says of itself > where its disks differ for good from its configuration, and no more once they do not",
        ),
      ),
    ],
  },
  {
    id: "7.1",
    title: "What follows a change: the decision",
    rows: [
      better(
        "W32",
        "7.1 waits",
        "Policies that somebody has just written are waited for; after two minutes it is told, and it goes on by itself once they are merged.",
        anUpdate("does not begin before the operator has merged the policies that somebody has just written"),
      ),
      same(
        "7.1 force",
        "The force file: a reboot, and the file goes.",
        anUpdate("that the force file asks for again is applied anew, with a reboot, and the file goes"),
      ),
      same(
        "7.1 system",
        "Image, arguments, FIPS, kernel, packages: a reboot.",
        tables(
          "without a word of the user > the system",
          "without a word of the user > kernel arguments",
          "without a word of the user > FIPS mode",
          "without a word of the user > the kernel type",
          "without a word of the user > extensions",
        ),
      ),
      same(
        "7.1 nothing",
        "No file, unit or account changed: nothing.",
        tables("without a word of the user > nothing that changed asks for nothing"),
      ),
      same(
        "7.1 otherwise",
        "Everything else is asked of the policies.",
        policies("consequencesOf > users replace defaults in their place and add others"),
      ),
    ],
  },
  {
    id: "7.2",
    title: "What follows a change: the policies",
    rows: [
      same(
        "7.2 1",
        "The longest policy above a file counts; `/` counts for nothing, and a slash at the end leaves out the folder itself. Without one: a reboot.",
        policies("filePolicyFor > *", "consequencesOf > a file that no policy names reboots"),
      ),
      same(
        "7.2 2",
        "A unit's policy is the one of its name; without one, a reboot. A plain file below a unit's folder counts as a file.",
        tables(
          "without a word of the user > any other unit",
          "a drop-in that is a plain file > counts as the file that it is, not as its unit",
        ),
      ),
      same(
        "7.2 3",
        "Keys and passwords have one policy together.",
        tables("without a word of the user > SSH keys", "without a word of the user > a password"),
      ),
      better(
        "W21",
        "7.2 4",
        "A reboot covers everything; what it covers is still explained.",
        policies(
          "consequencesOf > a reboot covers everything",
          "consequencesOf > what a reboot covers is still explained",
        ),
      ),
      same(
        "7.2 5",
        "Doing nothing says nothing beside something.",
        policies("consequencesOf > nothing is said beside something"),
      ),
      better(
        "W4",
        "7.2 6",
        "Each action once, in a fixed order: daemon-reload, reloads, restarts; a restart spares the reload.",
        policies(
          "consequencesOf > each action happens once, the daemon is…",
          "consequencesOf > a restart makes a reload of the same un…",
          "consequencesOf > the result does not depend on the order of changes",
        ),
        anUpdate("of files that ask for the same restart:…"),
      ),
    ],
  },
  {
    id: "7.3",
    title: "What follows a change: without a word of the user",
    rows: [
      same(
        "7.3 pull secret",
        "The kubelet's pull secret: nothing.",
        tables("without a word of the user > the kubelet's pull secret"),
      ),
      same(
        "7.3 key",
        "The key of image signatures: crio reloads.",
        tables("without a word of the user > the key of image signatures"),
      ),
      same(
        "7.3 policy",
        "The signature policy: crio reloads.",
        tables("without a word of the user > the signature policy"),
      ),
      same(
        "7.3 registries",
        "registries.conf: crio reloads, after a drain where pods could get other images.",
        policies("consequencesOf > registries.conf drains only when pods could get other images"),
        crashEven("a registry is taken away, which drains …"),
        crashOdd("registries.conf changes so that crio on…"),
      ),
      same(
        "7.3 stores",
        "Signature stores of registries: crio reloads.",
        tables("without a word of the user > signature stores of registries"),
      ),
      same("7.3 crio", "crio's policies: crio reloads.", tables("without a word of the user > crio's policies")),
      same("7.3 network", "Network states: nothing.", tables("without a word of the user > network states")),
      same(
        "7.3 authorities",
        "The user's certificate authorities: they are taken over, and crio restarts.",
        tables("without a word of the user > the user's certificate authorities"),
      ),
      same(
        "7.3 credential providers",
        "Credential providers: the kubelet restarts.",
        tables("without a word of the user > credential providers"),
      ),
      same(
        "7.3 drop-in",
        "Their drop-in of the kubelet: the kubelet restarts with it.",
        tables("without a word of the user > their drop-in of the kubelet"),
      ),
      same(
        "7.3 local registry",
        "The local registry's files: it restarts.",
        tables(
          "without a word of the user > the local registry's folder",
          "without a word of the user > the local registry's loader",
        ),
      ),
      same(
        "7.3 its authority",
        "The local registry's authority: it is taken over.",
        tables("without a word of the user > the local registry's authority"),
      ),
      same(
        "7.3 its unit",
        "The local registry's unit: it restarts with it.",
        tables("without a word of the user > the local registry's unit"),
      ),
      same("7.3 keys", "SSH keys: nothing.", tables("without a word of the user > SSH keys")),
      same(
        "7.3 merged",
        "A user's entry takes the place of the default of the same path or name; others follow.",
        policies("consequencesOf > users replace defaults in their place and add others"),
      ),
      same(
        "7.3 limits",
        "Fifty entries, ten actions; Reboot and None stand alone; units have a suffix; Special is not for users.",
        tables("what users may not write as a policy > *"),
      ),
      same(
        "7.3 kubelet's authority",
        "The kubelet's authority has no policy: a MachineConfig that changes it reboots.",
        tables("without a word of the user > the kubelet's authority"),
      ),
    ],
  },
  {
    id: "7.4",
    title: "What follows a change: drain and execution",
    rows: [
      same(
        "7.4 drain",
        "A drain comes before a reboot, before the action Drain, and before an unsafe registries.conf; else none.",
        plan("a file that no policy names: drain firs…"),
        anUpdate("with action Drain empties the machine, acts, and puts it back, without a reboot"),
        crashEven("a registry is taken away, which drains …"),
        crashOdd("registries.conf changes so that crio on…"),
      ),
      same(
        "7.4 search",
        "Safe: the search list only grows at its end.",
        policies(
          "registriesDrain > longer search",
          "registriesDrain > other search",
          "registriesDrain > shorter search",
        ),
      ),
      same("7.4 removed", "Safe: no registry goes.", policies("registriesDrain > a registry goes")),
      same(
        "7.4 known",
        "Safe: what is said of a known registry stays; mirrors only come, for digests, or become for digests.",
        policies(
          "registriesDrain > a registry is blocked",
          "registriesDrain > a mirror goes",
          "registriesDrain > a mirror for digests comes",
          "registriesDrain > a mirror for tags comes",
          "registriesDrain > a mirror becomes one for digests",
          "registriesDrain > a mirror becomes one for all",
        ),
      ),
      same(
        "7.4 added",
        "Safe: a new registry is for digests only.",
        policies(
          "registriesDrain > a registry comes",
          "registriesDrain > a registry for digests comes",
          "registriesDrain > a registry with mirrors for digests comes",
        ),
      ),
      better(
        "W32",
        "7.4 unreadable",
        "No file counts as empty, compressed contents are read, and a file that cannot be read drains; the update goes on.",
        policies("registriesDrain > nothing", "registriesDrain > text that is not understood"),
        looks("registries.conf that comes compressed is read like any other"),
      ),
      same(
        "7.4 Reboot",
        "Reboot: announced on the Node and by condition, in an event, and asked for.",
        anUpdate(
          "that reboots writes down what it owes before it changes anything, and closes the ledger last",
          "goes through its conditions in order, each once, in at most eight writes",
        ),
      ),
      same(
        "7.4 None",
        "None: an event says that no reboot was needed.",
        anUpdate("of a file without consequences: written…"),
      ),
      same(
        "7.4 Restart",
        "Restart: the service is started anew; certificate authorities by program where their unit is missing.",
        anUpdate("of a file with a daemon-reload and a re…"),
        rpmOstree("takes new certificate authorities over by program where it has no unit for that"),
      ),
      same(
        "7.4 Reload",
        "Reload and daemon-reload: with an event.",
        anUpdate("of a file with a reload: the service re…", "of a file with a daemon-reload and a re…"),
      ),
      better(
        "W4",
        "7.4 failure",
        "An action that fails is told and tried again by itself; the disk stays as it is, and what was done before it is not done again.",
        update(
          "a service that fails > its reload is no success because systemctl says so; what is on the disk stays, and it is tried again until it works",
          "a service that fails > what was paid before it is not paid again",
        ),
      ),
      same(
        "7.4 finish",
        "Without a reboot the machine is Done at once; a target that moved meanwhile is gone to next.",
        anUpdate("of a file without consequences: written…"),
        crashOdd("another target comes while the first is…"),
      ),
    ],
  },
  {
    id: "7.5",
    title: "What follows a change: the rules before policies",
    rows: [
      ours(
        "7.5 rules",
        "They decide nothing here. For comparison with the reference they are known, order or not.",
        tables("the rules before policies, which this suite only compares with > *"),
        vectors("every case of kind diff is answered as the reference does"),
      ),
      ours(
        "7.5 first boot",
        "First boot and joining go by the ordinary policies: what they would spare needs no reboot there either.",
        firstBoot("that needs nothing but what Ignition did is complete at once, without a reboot"),
        converge("that joins does not drain; later a reboot is drained for first"),
      ),
    ],
  },
  {
    id: "8",
    title: "The steps of the reference's update, and what became of them",
    rows: [
      same(
        "8 1",
        "A machine without a configuration goes from nothing.",
        plan("a machine without an earlier configuration reboots undrained"),
      ),
      skip("8 2", "Going back from an image that was built on the cluster prepares nothing.", imageMode),
      same(
        "8 3",
        "The state is Working while it works, and stays what it was while it only tries again.",
        startUp(
          "a boot that is not the one that was asked for > because somebody chose another system in the boot menu: it comes back by itself, drained, with all that belongs to it",
        ),
        update("a service that fails > what was paid before it is not paid again"),
      ),
      better(
        "W25",
        "8 4",
        "No signal is held off: a daemon may end, or be killed, at any moment, and the next one goes on; commands that do not end are ended.",
        crashEven("*"),
        crashOdd("*"),
        inFile(
          "src/host/rpm-ostree/rpm-ostree-host.test.ts",
          "commands of a machine",
        )("that do not end are ended, and say that trying again can help"),
      ),
      ours(
        "8 5",
        "The pool is not asked for; conditions say how it ended.",
        anUpdate("goes through its conditions in order, each once, in at most eight writes"),
      ),
      ours(
        "8 6",
        "A configuration that cannot be read is refused by name, and nothing is touched.",
        reconciled("the new config is invalid"),
        cannotTake(refusedTitle("contents from elsewhere")),
      ),
      same(
        "8 7",
        "What an administrator has allowed is read before the judgement.",
        cannotTake("a change of disks that the administrator allowed is taken, and the disks stay"),
      ),
      same(
        "8 8",
        "The judgement comes before anything is touched.",
        cannotTake(refusedTitle("disks"), "keys in a folder that belongs to somebody else"),
      ),
      better(
        "W21",
        "8 9",
        "What will be done, and why, is told before it is done.",
        anUpdate("of a file without consequences: written…"),
        plan("every consequence names its cause"),
      ),
      same(
        "8 10",
        "Whether to drain follows from the plan; the only machine of a control plane is not drained.",
        plan("the only control-plane machine reboots undrained"),
        crashOdd("the only control-plane machine reboots …"),
      ),
      same(
        "8 11",
        "The condition says prepared, with the version that is gone to.",
        anUpdate("goes through its conditions in order, each once, in at most eight writes"),
      ),
      better(
        "W23",
        "8 12",
        "The drain; a machine that is not updated after all is put back into service.",
        anUpdate(
          "whose target moves while it waits for a drain goes to the newer one; back to the old one, it is put back into service untouched",
        ),
        planted("drainFirst: the daemon believes that a drain is don…", "cordon: the uncordon is never asked for"),
      ),
      same(
        "8 13",
        "Conditions say what is being written and staged.",
        anUpdate("goes through its conditions in order, each once, in at most eight writes"),
      ),
      better(
        "W3",
        "8 14",
        "Files and units come after the ledger is open and the system is staged; half-written is not lost but gone on with.",
        planted("ledgerFirst: a file is written before the ledger is …"),
        pairs("two or three faults in one life, wherever they fall, leave the machine on its target"),
      ),
      ours(
        "8 15",
        "The kubeconfig is made unreadable for others at the first look; that it is absent stops nobody.",
        startUp(
          "a machine that another daemon kept > is taken over from its disk, with the originals that the other one kept",
        ),
      ),
      same(
        "8 16",
        "Then the keys.",
        plan("SSH keys: no disruption"),
        disk("the account core > gets the keys of all listed entries in one file of its own, without a reboot"),
      ),
      same("8 17", "Then the password.", disk("the account core > gets a password and is locked again, not left open")),
      better(
        "W2",
        "8 18",
        "The system was staged before them: it has no effect until the boot, so nothing has to be undone.",
        plan("kernel arguments: staged before anythin…"),
      ),
      skip(
        "8 19",
        "A legacy tuning file is not read.",
        "kernel arguments of a MachineConfig have replaced it; no release in support writes it",
      ),
      better(
        "W5",
        "8 20",
        "The current configuration is written when it is proven, never before; there is no file of a current image while no image is built on the cluster.",
        anUpdate("that reboots writes down what it owes before it changes anything, and closes the ledger last"),
        looks("a look > leaves the documents that going back needs, whole and without the API server"),
      ),
      same(
        "8 21",
        "Conditions say what is done.",
        anUpdate("goes through its conditions in order, each once, in at most eight writes"),
      ),
      same(
        "8 22",
        "Then the actions, or the reboot.",
        anUpdate(
          "of a file with a daemon-reload and a re…",
          "that reboots writes down what it owes before it changes anything, and closes the ledger last",
        ),
      ),
      better(
        "W6",
        "8 undo",
        "There is no undo beside going back: the same planner with the previous configuration as target; the system's undo is to throw away what is staged.",
        converge("gets a configuration and loses it again: the disk is what it was, byte for byte"),
        system("what is staged and superseded before the reboot is thrown away"),
        crashEven("the OS image, kernel arguments, account…"),
      ),
      better(
        "W4",
        "8 late failure",
        "A failing service or a slow return into service rolls nothing back.",
        update(
          "a service that fails > its reload is no success because systemctl says so; what is on the disk stays, and it is tried again until it works",
        ),
      ),
      ours(
        "8 left behind",
        "Degraded with a reason, or Done without one; what failed is tried again from where it stopped.",
        update("a service that fails > what was paid before it is not paid again"),
        looks("a look > at a machine that is well and does not say so makes it say so, and does nothing else"),
      ),
    ],
  },
  {
    id: "8.1",
    title: "Our order of an update",
    rows: [
      ours(
        "8.1 1",
        "Images are fetched first: a failure costs no pod its place.",
        system(
          "an image is fetched before the drain; one that cannot be had costs no pod its place, and is tried again",
        ),
        plan("an OS image"),
      ),
      ours(
        "8.1 2",
        "Everything is decoded and judged before the drain: accounts, space, abilities, signatures.",
        cannotTake(
          refusedTitle("more bytes than are free"),
          refusedTitle("an owner that it does not have"),
          refusedTitle("contents from elsewhere"),
        ),
        rpmOstree("tells MCO_IMAGE_REFUSED when a pull ends with: Source image rejected: A signature was …"),
      ),
      ours(
        "8.1 3",
        "The drain, if the plan disrupts; the target is read again while it is waited for.",
        anUpdate(
          "whose target moves while it waits for a drain goes to the newer one; back to the old one, it is put back into service untouched",
        ),
      ),
      ours(
        "8.1 4",
        "The ledger: what is owed, what was there before, the target whole, the boot.",
        anUpdate("that reboots writes down what it owes before it changes anything, and closes the ledger last"),
        planted(
          "ledgerFirst: a file is written before the ledger is …",
          "debts: debts live in memory only: a new daemon…",
        ),
      ),
      ours(
        "8.1 5",
        "The next system, as one staged deployment.",
        system(
          "extensions bring their packages and a kernel type its kernel, in one reboot; both go again with their configuration",
        ),
        everyDriver(
          "staging changes nothing until an orderly boot, which merges /etc three ways",
          "a power cut finalises nothing: the staged deployment is gone and /etc is as it was",
        ),
      ),
      ours(
        "8.1 6",
        "Files, then units, only where they differ, in one pass over the disk.",
        anUpdate("of two hundred files is one pass over the disk; two hundred that stay cost nothing"),
        drivers(
          "the disk of a directory machine > 200 files are one flush pass: every file once, every folder once, then nothing at all when they are the same",
        ),
      ),
      ours(
        "8.1 7",
        "Then accounts.",
        crashEven("a machine joins with files, units, keys…"),
        crashOdd("keys and a password change without a re…"),
      ),
      ours(
        "8.1 8",
        "The reboot pays every debt; else each action once, crossed out as it is paid.",
        plan("debts of an interrupted update are paid, also when the disk is right already"),
        planted(
          "debts: a reload is forgotten",
          "debts: a service is restarted twice",
          "debts: a daemon-reload is forgotten",
        ),
      ),
      skip("8.1 9", "What the image carries needs no settling at boot.", imageMode),
      ours(
        "8.1 10, boot",
        "Proof: the machine boots what it should, with its packages, and its services have not failed; a system that does not boot is gone back from.",
        startUp(
          "a boot that is not the one that was asked for > again and again: after three reboots the machine goes back, config and system together, and says why",
        ),
        system("packages that did not arrive keep the machine from saying that it is done"),
        update(
          "a service that fails > its reload is no success because systemctl says so; what is on the disk stays, and it is tried again until it works",
        ),
      ),
      skip(
        "8.1 10, window",
        "No window is held open in which probes of the user could still turn an update back.",
        "probes are not part of the API yet; until then the node's readiness holds the rest of the pool back, not this machine",
      ),
      ours(
        "8.1 10, refused",
        "What was gone back from is not tried again until somebody lifts it or chooses another target.",
        startUp(
          "a boot that is not the one that was asked for > another target lifts a refusal by itself",
          "a boot that is not the one that was asked for > on a machine that has nothing to go back to ends in a sentence, not in a loop of reboots",
        ),
      ),
      ours(
        "8.1 11",
        "The current configuration is written and the ledger closed last.",
        anUpdate("that reboots writes down what it owes before it changes anything, and closes the ledger last"),
        planted("whole: the ledger is closed before the reboot", "claims: the target is claimed when the update b…"),
      ),
      ours(
        "8.1 secrets",
        "Pull secrets and certificates are written whenever they change, by a loop of their own, and are no step of an update.",
        writesCertificates(
          "a machine has the cluster's authorities soon after they change, each file is written when it differs and at no other time",
        ),
      ),
      ours(
        "8.1 after",
        "Done, and the return into service if we took it out.",
        anUpdate("leaves somebody else's cordon alone"),
        planted("cordon: the daemon lifts whatever cordon there …"),
      ),
    ],
  },
  {
    id: "9.1",
    title: "The disk: order",
    rows: [
      better(
        "W9",
        "9.1 order",
        "Links of a unit that changes go before its text and come after it; only what differs is written.",
        plan("a unit that changes its text: old links…"),
        anUpdate("of two hundred files is one pass over the disk; two hundred that stay cost nothing"),
      ),
      same(
        "9.1 leaked links",
        "No link of a unit outlives it.",
        disk("a unit > that goes leaves no file and no link"),
        everyDriver("disabling takes the folder of links away that enabling made"),
      ),
    ],
  },
  {
    id: "9.2",
    title: "The disk: one file",
    rows: [
      same(
        "9.2 1",
        "The kubelet's authority, the cloud's and the merged pull secret are left out of updates.",
        writesCertificates(
          "no plan writes, compares or takes away what is the writer's: a configuration is as old there as it is itself",
        ),
      ),
      same(
        "9.2 2",
        "A file that appends is refused, except to a machine that starts with it.",
        cannotTake(refusedTitle("a file that is appended to")),
        startUp(
          "a machine that joins > without anything meets its first configuration through the daemon, folders, links and appended files too",
        ),
      ),
      same(
        "9.2 3",
        "No source is an empty file; data URLs are read, plain or base64, compressed or not; nothing else.",
        disk(
          "a file is written > without contents: empty",
          "a file is written > plain",
          "a file is written > base64",
          "a file is written > compressed",
        ),
        cannotTake(refusedTitle("contents from elsewhere")),
      ),
      same(
        "9.2 4",
        "The mode that is given, or 0644; folders that are missing on the way are made 0755.",
        disk(
          "a file is written > plain",
          "a file is written > in the place of a link, and folders on its way are root's and 0755; the link comes back",
        ),
        everyDriver(
          "many are written at once, the last one of a path counts, and folders on the way have the owner that is asked for",
        ),
      ),
      better(
        "W19",
        "9.2 5",
        "The owner by number, else by name, else root; a name that the machine does not know is refused before the drain.",
        disk("a file is written > owned by number", "a file is written > owned by name"),
        cannotTake(refusedTitle("an owner that it does not have")),
      ),
      same(
        "9.2 6",
        "What was there before is remembered first.",
        converge("restores a file that somebody had before it was managed"),
        planted("whole: the previous configuration is not repla…"),
      ),
      better(
        "W3",
        "9.2 7",
        "Each file is replaced whole and durably, its folder too; a link in its place is replaced, not followed.",
        disk(
          "a file is written > in the place of a link, and folders on its way are root's and 0755; the link comes back",
        ),
        drivers(
          "the disk of a directory machine > a process killed at any call leaves each path old or new, and nothing of its own for the next one, as root",
          "a directory machine > a link planted inside never leads out of it",
        ),
      ),
    ],
  },
  {
    id: "9.3",
    title: "The disk: what was there before",
    rows: [
      better(
        "W9",
        "9.3 where",
        "It is kept with the ledger, outside of /etc, and costs no process for a file.",
        converge("restores a file that somebody had before it was managed"),
        drivers("a directory machine > keeps its ledger, and its own files, for root only"),
        rpmOstree("that nothing changes costs no process to look at, and 200 of its files neither process nor write"),
      ),
      same(
        "9.3 stamp",
        "Where the reference stamped that nothing was there, nothing was.",
        startUp(
          "a machine that another daemon kept > is taken over from its disk, with the originals that the other one kept",
        ),
      ),
      same(
        "9.3 copy",
        "Where the reference kept a copy, that was there.",
        startUp(
          "a machine that another daemon kept > is taken over from its disk, with the originals that the other one kept",
        ),
      ),
      same(
        "9.3 none, vendor's",
        "Without either, what the image ships was there.",
        startUp(
          "a machine that joins > with annotations from the config server takes them over, and the file is put aside once it is done",
        ),
        everyDriver("what the image ships in /etc is there, and known as the vendor's after a change"),
      ),
      same(
        "9.3 none, nobody's",
        "Or nothing.",
        disk(
          "a file is written > and taken away with its configuration: what the image ships comes back, what nobody had goes",
        ),
      ),
    ],
  },
  {
    id: "9.4",
    title: "The disk: what goes",
    rows: [
      same(
        "9.4 1",
        "What nobody had before is removed.",
        disk(
          "a file is written > and taken away with its configuration: what the image ships comes back, what nobody had goes",
        ),
      ),
      same(
        "9.4 2",
        "What somebody had before comes back, as it was.",
        converge(
          "restores a file that somebody had before it was managed",
          "gets a configuration and loses it again: the disk is what it was, byte for byte",
        ),
      ),
      same(
        "9.4 3",
        "What the new configuration has as a drop-in stays.",
        disk("a file is written > that the new configuration has as a drop-in stays, whoever named it before"),
      ),
      same(
        "9.4 4",
        "That it is gone already is no failure.",
        everyDriver("an absent path reads as undefined, and removing it is no error"),
      ),
      ours(
        "9.4 kept",
        "No path is left out: certificates that a MachineConfig brought go with it.",
        disk(
          "a file is written > and taken away with its configuration: what the image ships comes back, what nobody had goes",
        ),
        crashOdd("everything comes and goes again, and no…"),
      ),
      same(
        "9.4 drop-ins",
        "Drop-ins that go are treated like files; a folder that this empties and that we made goes too.",
        disk("a unit > gets drop-ins, loses an emptied one, and its folder goes with the last"),
      ),
      ours(
        "9.4 units",
        "A unit that goes has the enablement that it had before, and no link; a unit of the image is enabled again if it was.",
        disk(
          "a unit > that goes leaves no file and no link",
          "a unit > of the image is disabled, and enabled again as it was when nobody speaks of it",
        ),
      ),
      ours(
        "9.4 text only",
        "A unit that loses only its text loses its file.",
        disk("a unit > whose text goes while it stays named is…"),
      ),
    ],
  },
  {
    id: "9.5",
    title: "The disk: units",
    rows: [
      same(
        "9.5 mask",
        "Masked: a link to /dev/null, whatever text it has.",
        disk("a unit > that is masked is a link to /dev/null, …"),
      ),
      same(
        "9.5 text",
        "With text: a file; old links go before the text changes.",
        disk("a unit > with text is a file, enabled as it says", "a unit > with other text is enabled by the links…"),
        plan("a unit that changes its text: old links…"),
      ),
      same(
        "9.5 unmask",
        "Not masked, no text: nothing in its place.",
        disk("a unit > whose mask is lifted has nothing in its…"),
        crashOdd("a mask is lifted"),
      ),
      same(
        "9.5 neither",
        "Neither: left as it is, but for its enablement.",
        disk("a unit > of the image is disabled, and enabled again as it was when nobody speaks of it"),
      ),
      same(
        "9.5 drop-ins",
        "Drop-ins are files; an emptied one is removed.",
        disk("a unit > gets drop-ins, loses an emptied one, and its folder goes with the last"),
      ),
      same(
        "9.5 enablement",
        "Enabled and disabled as it says; one that nobody has is passed over.",
        disk(
          "a unit > with text is a file, enabled as it says",
          "a unit > with text is a file, disabled as it says",
          "a unit > that nobody has is not enabled, and sto…",
        ),
      ),
      same(
        "9.5 presets",
        "Without a word of it, the vendor's presets decide.",
        plan("a unit whose enablement nobody decides …"),
        everyDriver("presets decide what nobody else does: the first line that speaks of a unit"),
      ),
      ours(
        "9.5 one by one",
        "Units are enabled one by one: one that nobody has stops no other.",
        disk("a unit > that nobody has is not enabled, and stops no other"),
        everyDriver(
          "a unit that is absent or masked is neither enabled nor started, and disabling one that is gone is no error",
        ),
      ),
    ],
  },
  {
    id: "9.6",
    title: "The disk: SSH keys",
    rows: [
      same(
        "9.6 keys",
        "All listed keys go into one file of core, one a line, 0600, in folders of core that are 0700.",
        disk("the account core > gets the keys of all listed entries in one file of its own, without a reboot"),
      ),
      same(
        "9.6 gone",
        "They go with their configuration.",
        disk("the account core > loses its keys with the last entry"),
      ),
      same(
        "9.6 no core",
        "A machine without core is passed over.",
        disk("the account core > that a machine does not have is nobody's loss"),
      ),
      better(
        "W15",
        "9.6 other's folder",
        "A folder of somebody else is refused and stays.",
        cannotTake("keys in a folder that belongs to somebody else"),
      ),
    ],
  },
  {
    id: "9.7",
    title: "The disk: passwords",
    rows: [
      better(
        "W14",
        "9.7 set",
        "A hash that differs is set, and no command line shows it.",
        disk("the account core > gets a password and is locked again, not left open"),
        rpmOstree("gets passwords by the standard input of its own program, and no word of them anywhere else"),
      ),
      better(
        "W14",
        "9.7 gone",
        "A password that goes leaves the account locked, as it was before; never an empty password.",
        disk("the account core > gets a password and is locked again, not left open"),
        drivers(
          "a directory machine > setting a password and taking it away leaves the shadow database byte for byte as it was",
        ),
      ),
    ],
  },
  {
    id: "10.1",
    title: "The system: when",
    rows: [
      better(
        "W10",
        "10.1 when",
        "Only when the machine does not boot what it should; a realtime kernel alone is no reason.",
        looks("a realtime kernel is no reason to fetch or stage anything"),
        rpmOstree("that nothing changes costs no process to look at, and 200 of its files neither process nor write"),
      ),
      same(
        "10.1 events",
        "Events say what is staged, that it is, and that it booted; written before the machine goes down.",
        anUpdate("that reboots writes down what it owes before it changes anything, and closes the ledger last"),
        startUp(
          "a boot that is not the one that was asked for > because what was staged was not finalised: it is staged again, and the failure is told",
        ),
      ),
    ],
  },
  {
    id: "10.2",
    title: "The system: order",
    rows: [
      same(
        "10.2 1",
        "A system that is booted already, or staged already, is not staged again.",
        plan("the same deployment is not staged twice"),
      ),
      better(
        "W10",
        "10.2 2",
        "Packages are fetched only where some will be installed, and nothing of them is left behind.",
        looks("an update without packages fetches the system and no packages"),
        rpmOstree(
          "gets image, packages, kernel and arguments as one staged deployment, and leaves no repository behind",
        ),
      ),
      same(
        "10.2 3",
        "What was staged by halves is thrown away first.",
        rpmOstree(
          "begins anew where a process died with half of it staged",
          "throws away what is half staged when `rpm-ostree rebase` fails, and does it the next time",
        ),
      ),
      same(
        "10.2 4",
        "A kernel that was swapped is swapped back before another image comes.",
        rpmOstree(
          "goes from a realtime kernel with packages back to the image's own kernel",
          "goes from a realtime kernel with packages to another image with the same kernel",
        ),
      ),
      same(
        "10.2 5",
        "Then the image.",
        rpmOstree(
          "gets image, packages, kernel and arguments as one staged deployment, and leaves no repository behind",
        ),
      ),
      same(
        "10.2 6",
        "Then kernel arguments.",
        rpmOstree("goes from a realtime kernel with packages to other arguments alone"),
      ),
      skip("10.2 7", "An image that was built on the cluster brings kernel and packages itself.", imageMode),
      same(
        "10.2 8",
        "Then the kernel.",
        rpmOstree("goes from a realtime kernel with packages to another image with the same kernel"),
      ),
      same(
        "10.2 9",
        "Then extensions.",
        rpmOstree("goes from a realtime kernel with packages to other packages alone"),
      ),
      same(
        "10.2 error",
        "A failure throws away what is staged, and is counted until the next success.",
        rpmOstree("throws away what is half staged when `podman cp` fails, and does it the next time"),
        system(
          "an image is fetched before the drain; one that cannot be had costs no pod its place, and is tried again",
        ),
      ),
    ],
  },
  {
    id: "10.3",
    title: "The system: the image",
    rows: [
      skip(
        "10.3 1",
        "The boot loader is left to the image.",
        "it needs firmware with Secure Boot and bootupctl of real hardware; the image's own unit refreshes it at boot",
      ),
      skip(
        "10.3 2",
        "Systems that cannot fetch a system image by themselves are not supported.",
        "it is for rpm-ostree without container images, which no system in support has",
      ),
      ours(
        "10.3 3",
        "The image is fetched into ostree's own repository before the drain, under the machine's own signature policy; no policy is replaced, not even for a moment.",
        rpmOstree(
          "fetches an operating system into ostree's repository and packages into podman's storage",
          "asks ostree for *",
        ),
      ),
      better(
        "W7",
        "10.3 4",
        "A fetch that fails is tried again by a schedule of its own, and goes on where it stopped; what cannot help is not tried again.",
        retries("*"),
        pulls(
          "faults > a connection that is cut: the pull gets on, and no byte is fetched twice",
          "faults > a registry that stays away is asked six times, with growing waits",
          "faults > a refusal is asked for once",
        ),
        rpmOstree(
          "tells MCO_IMAGE_UNREACHABLE when a pull ends with: pinging container registry: dial tcp: i…",
          "tells MCO_IMAGE_ABSENT when a pull ends with: reading manifest in x: manifest unknown",
        ),
        system(
          "an image is fetched before the drain; one that cannot be had costs no pod its place, and is tried again",
        ),
      ),
      ours(
        "10.3 digest",
        "Every image is held against its digest, and against the machine's signature policy, before it is staged.",
        pulls(
          "faults > a manifest of another digest is never looked at",
          "faults > wrong bytes a second time are the end of it, and nothing of them is kept",
          "policy > *",
        ),
      ),
      same(
        "10.3 booted",
        "Which image is booted is read from rpm-ostree, with its digest, in all spellings that it has had.",
        readsRpmOstree("of an image: *"),
      ),
      better(
        "W18",
        "10.3 read once",
        "It is read again whenever deployments may have changed, not once for a process.",
        rpmOstree("is looked at again when somebody else changed its deployments"),
      ),
    ],
  },
  {
    id: "10.4",
    title: "The system: kernel arguments",
    rows: [
      same(
        "10.4 split",
        "Entries are split as the kernel splits them.",
        inFile("src/core/machine/plan-node.test.ts", "splitKernelArguments")("*"),
        readsRpmOstree("of arguments is split as the kernel does, without what ostree adds"),
      ),
      same(
        "10.4 own",
        "Only our own arguments go; those of others, and those that the machine was born with, stay.",
        looks(
          "kernel arguments > of a configuration go with it, one by one; those of others stay",
          "kernel arguments > of a configuration leave what the machine was born with",
        ),
        plan("arguments that somebody else added stay on the command line"),
      ),
      better(
        "W6",
        "10.4 exact",
        "What differs is added and deleted, each occurrence once; there is no undo that could add it twice.",
        rpmOstree("throws away what is half staged when `rpm-ostree kargs --append` fails, and does it the next time"),
        looks("kernel arguments > of a configuration go with it, one by one; those of others stay"),
      ),
      same(
        "10.4 drift",
        "A machine that boots without an argument is brought back.",
        startUp(
          "a boot that is not the one that was asked for > because somebody chose another system in the boot menu: it comes back by itself, drained, with all that belongs to it",
        ),
      ),
    ],
  },
  {
    id: "10.5",
    title: "The system: kernel type and extensions",
    rows: [
      same(
        "10.5 default",
        "The default kernel's packages make room for another, and come back.",
        rpmOstree("goes from a realtime kernel with packages back to what it was born with"),
      ),
      same(
        "10.5 realtime",
        "The realtime kernel, with extensions, in one reboot; both go again.",
        system(
          "extensions bring their packages and a kernel type its kernel, in one reboot; both go again with their configuration",
        ),
      ),
      same(
        "10.5 64k",
        "A kernel that a machine's processor cannot have is refused before the drain.",
        cannotTake(refusedTitle("a kernel that it cannot have")),
      ),
      same(
        "10.5 two-node-ha",
        "two-node-ha: its packages.",
        tables("an extension > two-node-ha brings its packages, and is there when they all are"),
      ),
      same(
        "10.5 ipsec",
        "ipsec: its packages; the one that only later systems have may be missing.",
        tables(
          "an extension > ipsec brings its packages, and is there when they all are",
          "an extension > ipsec is there without the package that only later systems have",
        ),
      ),
      same(
        "10.5 usbguard",
        "usbguard: its package.",
        tables("an extension > usbguard brings its packages, and is there when they all are"),
      ),
      same(
        "10.5 kerberos",
        "kerberos: its packages.",
        tables("an extension > kerberos brings its packages, and is there when they all are"),
      ),
      same(
        "10.5 kernel-devel",
        "kernel-devel: its packages; refused beside another kernel when it is rendered.",
        tables("an extension > kernel-devel brings its packages, and is there when they all are"),
        rendersPool("kernel-devel with another kernel is refused"),
      ),
      same(
        "10.5 sandboxed",
        "sandboxed-containers: its package.",
        tables("an extension > sandboxed-containers brings its packages, and is there when they all are"),
      ),
      same(
        "10.5 sysstat",
        "sysstat: its package.",
        tables("an extension > sysstat brings its packages, and is there when they all are"),
      ),
      ours(
        "10.5 older",
        "An extension of an older release only (wasm) is refused by name, before the drain.",
        looks("an extension that does not exist is refused by name"),
      ),
      same(
        "10.5 unchanged",
        "Equal extensions and an equal image need no operation.",
        looks("another spelling of the same > extensions in another order change nothing"),
      ),
      same(
        "10.5 sets",
        "What is installed is what is missing; what goes is what no extension asks for any more; packages of others stay.",
        plan("extensions and a kernel: packages of the extensions image beside those that somebody layered by hand"),
      ),
      better(
        "W19",
        "10.5 Fedora",
        "A system without extensions refuses them, and other kernels, before the drain.",
        rpmOstree("without extensions, as on Fedora CoreOS, refuses packages and kernels before it touches anything"),
        cannotTake(refusedTitle("extensions, where packages cannot be la…")),
      ),
      same(
        "10.5 staged",
        "That something was staged is not believed before it was looked at.",
        rpmOstree("does not believe that something was staged before it has looked"),
      ),
      same(
        "10.5 installed",
        "After the boot all packages are there, or the machine is not Done.",
        system("packages that did not arrive keep the machine from saying that it is done"),
      ),
    ],
  },
  {
    id: "10.6",
    title: "The system: images that are built on the cluster",
    rows: [
      skip("10.6 images", "Which image a machine boots is the configuration's.", imageMode),
      skip("10.6 files", "Files, units and accounts are written whatever the image is.", imageMode),
      skip("10.6 check", "The booted system is held against the configuration's image.", imageMode),
      skip("10.6 revert", "Going back from such an image is a change of the image.", imageMode),
    ],
  },
  {
    id: "10.7",
    title: "The system: the rest",
    rows: [
      skip(
        "10.7",
        "A legacy tuning file is not read.",
        "kernel arguments of a MachineConfig have replaced it; no release in support writes it",
      ),
      same(
        "10.8 other hosts",
        "A machine that ostree did not boot gets files, units and accounts; its system is somebody else's.",
        rpmOstree(
          "that ostree did not boot has files, units and accounts, and an operating system that is somebody else's",
        ),
        system("of a machine that somebody else keeps stays as it is, and files and units follow"),
        plan("a machine whose system somebody else keeps gets files and units, and its image is left alone"),
      ),
      same(
        "10.9",
        "Packages that somebody layered by hand stay through updates, and are counted.",
        looks("packages that somebody layered by hand stay through an update of the system, and are counted"),
      ),
    ],
  },
];

/** Every rule: those of a machine, and those of the control plane. */
export const sections: readonly Section[] = [
  ...machine,
  ...baseRules,
  ...renderAndDrain,
  ...controlPlane,
  ...operatorRules,
  ...measured,
  ...stateKeeping,
  ...imageBuilds,
  ...configServer,
];
