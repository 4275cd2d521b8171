import { type Section, better, ours, same, tests } from "./define-rows.ts";

/**
 * Pinned image sets, numbered as in this suite's descriptions of the control plane (C12) and of the machines (19). Source
 * of what the reference does: openshift/machine-config-operator pkg/controller/pinnedimageset, pkg/daemon/pinned_image_set.go
 * (main); openshift/api machineconfiguration/v1/types_pinnedimageset.go (master).
 */
export const pinnedImages: readonly Section[] = [
  {
    id: "C12.1",
    title: "Pinned images: pools",
    rows: [
      same(
        "C12.1 kind",
        "A set is one to 500 images by digest, each once; anything else is refused, with the field.",
        tests("pinned-sets-5", "scenario-pins-1"),
      ),
      same(
        "C12.1 selector",
        "A pool has the sets that its machineConfigSelector selects; a set that moves by its label leaves one pool and comes to another.",
        tests("pinned-sets-1", "pinned-sets-2", "pinned-images-1"),
      ),
      ours(
        "C12.1 write",
        "The names are written sorted, and only when they change.",
        tests("pinned-images-1", "pinned-images-2"),
      ),
      ours(
        "C12.1 no pool",
        "A set without a pool says so in an Event and to mco explain, not only in a log.",
        tests("pinned-images-3", "scenario-pins-2"),
      ),
      ours(
        "C12.1 too many",
        "A pool that selects more than 100 sets keeps those that it has, and its condition says what to do.",
        tests("pinned-sets-3"),
      ),
      ours(
        "C12.1 condition",
        "The pool counts the machines that have the sets, and names object, field and code of a failure.",
        tests("pinned-images-6", "scenario-pins-3"),
      ),
      ours(
        "C12.1 plan",
        "mco plan says the bytes that each machine would fetch, which disk is too small, and which sizes are not known.",
        tests("size-pinned-images-1", "size-pinned-images-2", "read-image-sizes-1", "offline-commands-pins-1"),
      ),
    ],
  },
  {
    id: "C12.2",
    title: "Pinned images: turns",
    rows: [
      ours(
        "C12.2 slots",
        "A few machines of the whole cluster fetch at the same time; pools take turns.",
        tests("pin-slots-4", "pin-slots-9", "pinned-images-4"),
      ),
      ours(
        "C12.2 dead machines",
        "A machine that dies with a slot keeps nobody waiting: 5,000 machines get their images though every tenth dies.",
        tests("pin-slots-5", "pin-slots-10"),
      ),
      ours("C12.2 restart", "A controller that starts goes on where the last one ended.", tests("pinned-images-5")),
      ours(
        "C12.2 failures",
        "Failed machines come last and wait longer each time; another content is tried at once.",
        tests("pin-slots-8", "pinned-images-6", "pinned-images-7"),
      ),
      ours("C12.2 updates", "A machine that is being updated is given nothing.", tests("pin-slots-7", "pin-slots-15")),
    ],
  },
  {
    id: "19",
    title: "Pinned images: machines",
    rows: [
      same(
        "19 list",
        "When a set's images are all there, they are in CRI-O's list, sorted, and CRI-O has read it.",
        tests("daemon-pins-1", "scenario-pins-2"),
      ),
      better(
        "W33",
        "19 failures",
        "A failed image is named with set, field and code, and tried again; what is there is pinned.",
        tests("daemon-pins-2", "daemon-pins-9"),
      ),
      better(
        "W33",
        "19 space",
        "Before anything is fetched, the missing layers, each once, are compared with the free disk; the failure names both numbers.",
        tests("daemon-pins-3"),
      ),
      better(
        "W33",
        "19 time",
        "The end of a turn, or an update that begins, ends a pull; the next turn goes on from there.",
        tests("daemon-pins-4", "daemon-pins-5"),
      ),
      same("19 retries", "An image is tried a few times in a row, with growing delays.", tests("daemon-pins-6")),
      ours(
        "19 generations",
        "A set that is created again under its name is reported from its first generation on.",
        tests("daemon-pins-10"),
      ),
      ours(
        "19 unpin",
        "A set that leaves leaves the list at once, without a registry; no image is removed.",
        tests("daemon-pins-8", "scenario-pins-5"),
      ),
      ours(
        "19 sweep",
        "A list that was changed on the disk is written again, and an image that is gone is fetched again.",
        tests("daemon-pins-11"),
      ),
      ours(
        "19 crash",
        "A daemon killed at any of its effects goes on: no image is fetched twice, and CRI-O has read the list.",
        tests("daemon-pins-12"),
      ),
      ours("19 disruption", "Nothing of it drains or reboots a machine.", tests("scenario-pins-4")),
    ],
  },
];
