import { type Section, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * OS images built on the cluster. `R564-*`, `R568-*` and `R760-*` are what MCO-564, MCO-568 and MCO-760 ask for;
 * `images i.*` the acceptance scenarios of this suite for it; `images e.5` the edge cases of a rebuild.
 */
const scenario = inFile("test/scenario/images.test.ts", "a pool that boots images built on its cluster");
const rollOut = inFile("src/controller/image-roll-out.test.ts", "a pool whose machines boot images");
const full = inFile("src/daemon/images.test.ts", "a machine that is given an image which holds its configuration");
const osOnly = inFile("src/daemon/images.test.ts", "a machine whose image holds only what an image can hold");
const back = inFile("src/daemon/images.test.ts", "a machine that goes back to the stock system");
const unclear = inFile("src/daemon/images.test.ts", "a target that cannot be meant");
const machine = inFile("src/daemon/images.test.ts");
const drift = inFile("src/daemon/images.test.ts", "drift of a machine whose image holds its configuration");
const killedDaemon = inFile(
  "src/daemon/killed-with-images.test.ts",
  "a daemon that is killed before and after each of its effects, on its way to",
);
const between = inFile("src/daemon/converge-images.test.ts", "a machine between images and no images");
const settling = inFile("src/daemon/settle-machine.test.ts", "settling");
const optIn = inFile("src/os-builder/opt-in.test.ts", "opting in");
const optOut = inFile("src/os-builder/opt-in.test.ts", "opting out");
const rebuild = inFile("src/os-builder/rebuild.test.ts", "asking for a rebuild");
const retries = inFile("src/os-builder/rebuild.test.ts", "retries");
const makes = inFile("src/os-builder/strategies.test.ts", "what makes an image");
const failures = inFile("src/os-builder/failures.test.ts", "every way to fail");
const verified = inFile("src/os-builder/failures.test.ts", "before an image counts it is looked at as machines will");
const killedBuilder = inFile("src/os-builder/killed.test.ts", "a builder that is killed");
const intents = inFile("src/core/build/build-intent.test.ts", "whether a pool is opted in");
const content = inFile("src/core/config/image-content.test.ts", "what an image holds of a configuration");
const prune = inFile("src/core/build/build-prune.test.ts", "what is pruned");
const jobs = inFile("src/os-builder/job-backend.test.ts", "builds in Jobs");
const operator = inFile("src/operator/operator.test.ts", "the operator");
const commands = inFile("src/cli/build-commands.test.ts", "mco build");
const pairs = inFile("src/core/config/image-pair.test.ts", "imageTargetOf");

const informational = "it informs, and asks for nothing that a test could show";

export const imageBuilds: readonly Section[] = [
  {
    id: "R564",
    title: "Other components know of images: what MCO-564 asks for",
    rows: [
      ours(
        "R564-1",
        "The BuildController starts and manages builds by itself, from the state of objects.",
        makes("the first image of a pool is published*"),
        killedBuilder("after any write*"),
      ),
      ours(
        "R564-2",
        "Node controller and daemon know of images; rendering does not.",
        rollOut("nothing is given before*"),
        full("boots it, and the daemon writes*"),
      ),
      same(
        "R564-3",
        "The render controller needs no change: its output is the same, byte for byte, with and without opt-in.",
        rollOut("rendering does not know of images*"),
      ),
      same(
        "R564-4",
        "The node controller sets desiredConfig on the machines of the pool.",
        rollOut("nothing is given before*"),
      ),
      ours(
        "R564-5",
        "desiredOSimage is set beside it, always together with desiredImage and the content mode.",
        rollOut("whatever is asked for, a node's image*"),
        scenario("opting in starts the builder*"),
      ),
      same(
        "R564-6",
        "Its value names the image by digest; anything else is refused by the machine.",
        pairs("configuration, image and content mode*"),
        unclear("*"),
      ),
      same(
        "R564-7",
        "desiredConfig is not replaced: both are used together.",
        rollOut("whatever is asked for, a node's image*"),
      ),
      ours(
        "R564-8",
        "The drift monitor goes on as it is; where the image holds the files it may put them right from there.",
        drift("is told, and nothing is written"),
        drift("is settled from the image*"),
      ),
      same("R564-9", "The daemon follows its Node.", full("boots it, and the daemon writes*")),
      ours(
        "R564-10",
        "With an image that holds the configuration, the daemon writes no file and no unit.",
        full("boots it, and the daemon writes*"),
      ),
      same(
        "R564-11",
        "It goes straight to staging the system.",
        full("boots it, and the daemon writes*"),
        full("has nothing to settle*"),
      ),
      same(
        "R564-12",
        "Pull secrets and certificates come first.",
        full("is told of a new rendered configuration*"),
        verified("*"),
      ),
      skip("R564-13", "Done when the modifications are made.", informational),
      skip("R564-14", "Done when each modification has unit tests.", informational),
    ],
  },
  {
    id: "R568",
    title: "Opting in and out: what MCO-568 asks for",
    rows: [
      ours("R568-1", "An administrator opts pools in.", optIn("by *"), scenario("opting in starts the builder*")),
      ours(
        "R568-2",
        "By an object, by a label or annotation, or by the key of a ConfigMap.",
        optIn("by *"),
        intents("*"),
      ),
      same(
        "R568-3",
        "Then the builder starts, in a pod of its own.",
        operator("the builder is a pod of its own*"),
        scenario("opting in starts the builder*"),
      ),
      ours(
        "R568-4",
        "On its start it takes the active configuration of every pool that is opted in, without waiting for a change.",
        optIn("the cluster's default has images*"),
      ),
      ours("R568-5", "It builds an image for all of them.", optIn("the cluster's default has images*")),
      ours(
        "R568-6",
        "Then they are rolled out, control planes after the workers.",
        rollOut("where all pools were opted in at once*"),
        scenario("opting in starts the builder*"),
      ),
      same(
        "R568-7",
        "The daemon applies the image and what is no MachineConfig content, such as certificates.",
        full("is told of a new rendered configuration*"),
      ),
      ours("R568-8", "It writes no units and no files.", full("boots it, and the daemon writes*")),
      ours(
        "R568-9",
        "A value false exists, and wins over everything.",
        optOut("a no ends the run*"),
        pairs("a pool that opted in and has no*"),
      ),
      same(
        "R568-10",
        "On opting out the builder's pod goes.",
        operator("the builder is a pod of its own*"),
        scenario("opting out brings every machine back*"),
      ),
      ours(
        "R568-11",
        "On opting out every machine goes back to the stock OS, and is as one that never had an image.",
        back("is as one that never had an image*"),
        scenario("opting out brings every machine back*"),
      ),
      same(
        "R568-12",
        "From then on MachineConfigs are applied as before.",
        back("is as one that never had an image*"),
        between("*"),
      ),
      skip("R568-13", "Done when the mechanism is selected and implemented.", informational),
      skip("R568-14", "Done when the operator starts the builder.", informational),
      skip("R568-15", "Done when the daemon behaves accordingly.", informational),
    ],
  },
  {
    id: "R760",
    title: "Building again: what MCO-760 asks for",
    rows: [
      ours(
        "R760-1",
        "An administrator asks for a rebuild; changes of what goes into the image build by themselves.",
        rebuild("clears failed builds*"),
        makes("a file of a full image*"),
      ),
      same(
        "R760-2",
        "By an annotation on the pool.",
        rebuild("clears failed builds*"),
        scenario("a push that is refused*"),
      ),
      same(
        "R760-3",
        "Nothing sets the annotation but people: other changes are another key.",
        makes("the renamed push secret*"),
      ),
      same(
        "R760-4",
        "It is recognised on pools that are opted in, whenever it came.",
        rebuild("one that comes while the builder is away*"),
        rebuild("one that was there before*"),
      ),
      same(
        "R760-5",
        "Failed attempts are cleared.",
        rebuild("clears failed builds*"),
        retries("a new configuration counts from nothing"),
      ),
      same(
        "R760-6",
        "Failed builds and what they needed are deleted; what is gone already is no error.",
        rebuild("clears failed builds*"),
        jobs("a run that is taken back goes*"),
      ),
      same("R760-7", "A new build is scheduled.", rebuild("clears failed builds*")),
      same(
        "R760-8",
        "The annotation is removed when the build has ended, whatever came of it.",
        rebuild("clears failed builds*"),
        rebuild("the request goes after a failure too*"),
        scenario("a push that is refused*"),
      ),
      same("R760-9", "Retries are counted on the pool.", retries("a registry that takes no pushes*")),
      ours(
        "R760-10",
        "At most five, or as many as is asked for.",
        retries("a registry that takes no pushes*"),
        retries("the limit is the MachineOSConfig's*"),
      ),
      same("R760-11", "The counter is cleared upon success.", retries("a success at the third attempt*")),
      same("R760-12", "At the limit the pool is degraded.", retries("a registry that takes no pushes*")),
      ours(
        "images e.5",
        "Every edge case of a rebuild: before opting in, again, taken away, another configuration, paused, opted out, shared images.",
        rebuild("*"),
        inFile("src/core/build/build-rebuild.test.ts", "a request to build again")("*"),
      ),
    ],
  },
  {
    id: "Images",
    title: "Images: acceptance",
    rows: [
      ours(
        "R003-1",
        "Custom content is a Containerfile.",
        inFile(
          "src/core/build/build-containerfile.test.ts",
          "the rendered Containerfile",
        )("lays packages of extensions first*"),
        scenario("a Containerfile of the pool's own*"),
      ),
      ours(
        "R003-2",
        "Conditions of pool and operator stay the first place to look, and mean something while a build runs.",
        rollOut("nothing is given before*"),
        rollOut("a configuration waits for its image*"),
        rollOut("a paused pool builds*"),
      ),
      ours(
        "images i.1",
        "Each way of opting in gives images with all of the configuration, by pair, and the daemon writes nothing.",
        optIn("by *"),
        rollOut("nothing is given before*"),
        full("boots it, and the daemon writes*"),
      ),
      ours(
        "images i.2",
        "A no, a label taken away, a MachineOSConfig deleted: every machine is as one that never had an image. A ConfigMap deleted: nothing.",
        optOut("a no ends the run*"),
        optOut("a label that is taken away*"),
        optOut("a deleted ConfigMap*"),
        optOut("a deleted MachineOSConfig*"),
        back("is as one that never had an image*"),
        between("*"),
        inFile("src/daemon/image-trees.test.ts")("*"),
      ),
      ours(
        "images i.3",
        "The cluster's default builds all pools at the start; control planes come after workers.",
        optIn("the cluster's default has images*"),
        rollOut("where all pools were opted in at once*"),
      ),
      ours(
        "images i.4",
        "os-only: files without builds and without reboots; what the reference made is stamped; a label that differs is refused before the drain.",
        makes("an os-only image of a file change*"),
        osOnly("boots it and has its files*"),
        optIn("MachineOSConfigs of the Go operator*"),
        unclear("*"),
      ),
      ours(
        "images i.5",
        "Kernel arguments: no build, one reboot.",
        makes("kernel arguments make no image"),
        full("follows kernel arguments*"),
        scenario("another file is one layer more*"),
      ),
      ours(
        "images i.6",
        "Two pools with equal content: one run. Two architectures: refused by name.",
        makes("two pools with equal content*"),
        makes("a pool with two architectures*"),
      ),
      ours(
        "images i.7",
        "Going back builds nothing; a lost image is built once; a registry that is down has nothing built.",
        makes("after A, B, A*"),
        makes("an image that the registry lost*"),
      ),
      ours("images i.8", "A, B with an extension, C without: C gets A's image.", makes("A, then B with an extension*")),
      ours(
        "images i.9",
        "A rebuild clears what failed; the request is there during the run and gone after it.",
        rebuild("clears failed builds*"),
        rebuild("the request goes after a failure too*"),
      ),
      ours(
        "images i.10",
        "Refused pushes: the counter, the limit, success at the third, permanent classes, the counter taken away.",
        retries("*"),
      ),
      ours("images i.11", "The builder killed at every step: the same end, nothing left.", killedBuilder("*")),
      ours("images i.12", "The build's node lost: again, uncharged.", retries("a node that goes away under a build*")),
      ours(
        "images i.13",
        "MachineOSConfig or pool deleted during a build: nothing is left.",
        optOut("a MachineOSConfig that is deleted during*"),
      ),
      ours(
        "images i.14",
        "Annotations that conflict, a tag: degraded for the right reason, nothing is staged.",
        unclear("*"),
      ),
      ours(
        "images d.4",
        "A machine that cannot become an image boots what it had, without an API server, and refuses configuration and image together.",
        inFile("src/daemon/images.test.ts", "an image that a machine cannot become")("*"),
        back("and fails to settle there*"),
      ),
      ours(
        "images c.11",
        "Races: a new configuration, the same image, builds that somebody deletes, two builders, a drain under a build.",
        makes("a new configuration ends the run*"),
        makes("a new configuration with the same image*"),
        makes("a build that somebody deletes*"),
        inFile("src/os-builder/killed.test.ts")("of two builders*"),
        inFile("src/controller/drain-controller.test.ts")("a pod that builds an OS image is let finish*"),
      ),
      ours(
        "images plan",
        "mco plan and admission know what a change costs where machines boot images.",
        inFile("src/core/preview/plan-cluster.test.ts", "planCluster")("where machines boot images*"),
        inFile("src/core/preview/plan-cluster.test.ts", "planCluster")("opting in and out of images*"),
      ),
      ours(
        "images i.15",
        "A machine that goes first and fails stops the others.",
        rollOut("the first image of a pool goes to one machine*"),
      ),
      ours(
        "images i.16",
        "No digest is deleted that anything names.",
        prune("whatever happened, no digest is deleted*"),
      ),
      ours(
        "images i.17",
        "The layer of a configuration has one digest, however the image is made; equal inputs give an equal image.",
        inFile(
          "src/build-image/build-image.test.ts",
          "images made by buildah",
        )("the layer of a configuration is the same blob*"),
        inFile("src/build-image/build-image.test.ts", "images made by buildah")("the same inputs make the same image*"),
        content("it is the same for configurations*"),
      ),
      ours(
        "images i.18",
        "First image over drifted files, the next one, booting back, opting out; settling killed after each write; at most one more boot.",
        full("has its drifted and stale files*"),
        full("has nothing to settle*"),
        full("goes on to the next image*"),
        full("that boots back finds*"),
        settling("that was killed after any of its writes*"),
        settling("asks for one more boot*"),
      ),
      ours(
        "images i.19",
        "A rebuild with the same digest rolls nothing out.",
        rebuild("an image that comes out the same*"),
      ),
      ours("images i.20", "Every class of failure has its message, event and book.", failures("*")),
      ours(
        "images i.21",
        "Rendering is the same with and without images.",
        rollOut("rendering does not know of images*"),
      ),
      ours(
        "images i.22",
        "Both names of an image are always equal, desired and current.",
        rollOut("whatever is asked for, a node's image*"),
        machine("current images are written and taken away together*"),
      ),
      ours(
        "images i.23",
        "The daemon killed at every step: resumes or goes back; a staged OS is undone by throwing it away.",
        killedDaemon("*"),
        inFile("src/daemon/killed-with-images.test.ts")("a target that is taken back after*"),
      ),
      ours(
        "images i.24",
        "Our registry and docker-registry behave alike.",
        inFile("src/registry/registry-suite.test.ts", "the embedded registry, over TLS and with a password")("*"),
        inFile("src/registry/registry-suite.test.ts", "Debian's registry, over TLS and with a password")("*"),
      ),
      ours(
        "images CLI",
        "mco build: where images stand, asking again, logs, explanations, plans, pruning, going back.",
        commands("*"),
      ),
    ],
  },
];
