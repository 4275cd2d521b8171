/**
 * Everything that the daemon and the first boot report besides updates (`update-reports.ts`, `step-reports.ts`), as a function for each
 * happening: lines of the machine's book, its Events and all of their texts. Callers give the facts, and pass the result to
 * `report`: happenings of the machine to that of its journal, which makes each once, and others to that of the context.
 */
import type { Node } from "../api/foreign/kubernetes.ts";
import type { BookSections } from "../api/books/report-table.ts";
import type { EventSubject } from "../api/books/reports.ts";
import { hostPaths } from "../api/names.ts";
import type { PinnedSetVersion } from "../core/images/pin-grant.ts";
import { type PinFailure, pinFailureText } from "../core/images/pinned-images.ts";
import type { ObservedDeployment } from "../core/machine/observed-node.ts";
import { countText } from "../core/text/count-text.ts";
import { type Happening, noticed } from "../kube/report.ts";
import type { MachineHappening } from "./node-journal-types.ts";
import { degradedFor, notDegraded } from "./section-forms.ts";

type About = EventSubject | undefined;

// Joining

const inFirstBoot = { chapter: "Firstboot", mark: "end" } as const;
const validated = (config: string) =>
  ({ path: "Validated", reason: "Validated", message: `the machine has ${config}`, data: { config } }) as const;

/** @param from where its configuration was found. */
export const machineAdopted = (config: string, from: string): MachineHappening => ({
  mark: "end",
  reason: "Adopted",
  message: `the machine has ${config}`,
  data: { from },
});

export const annotationsInitialised = (config: string): MachineHappening => ({
  ...inFirstBoot,
  path: "AnnotationsInitialised",
  reason: "Applied",
  message: `the node says that it has ${config}`,
});

export const firstBootRebooted = (boot: string, image: string): MachineHappening => ({
  ...inFirstBoot,
  path: "Reboot",
  reason: "Rebooted",
  message: `boot ${boot} of ${image}`,
});

export const machineRegistered = (): MachineHappening => ({
  ...inFirstBoot,
  path: "Registered",
  reason: "Registered",
  message: "its Node exists",
});

export const daemonUp = (): MachineHappening => ({
  mark: "end",
  reason: "Up",
  message: "the daemon manages the machine",
});

export const firstBootValidated = (config: string): MachineHappening => ({ ...inFirstBoot, ...validated(config) });

export const joinValidated = (config: string): MachineHappening => ({
  chapter: "Join",
  mark: "end",
  ...validated(config),
});

// The first boot: there is no API server yet, so that it makes no Events, and its machine has no name

const ofSelf = { book: "node/self" } as const;
const atFirstBoot = { ...ofSelf, chapter: "Firstboot" } as const;

/** @param bootImage the system that the machine started from, as it calls itself. */
export const firstConfigRead = (config: string, bootImage: string | undefined): Happening => ({
  ...ofSelf,
  mark: "end",
  reason: "Read",
  message: `${config}${bootImage === undefined ? "" : `; the machine started from ${bootImage}`}`,
  ...(bootImage === undefined ? {} : { data: { bootImage } }),
});

export const firstStagingBegun = (image: string): Happening => ({
  ...atFirstBoot,
  path: "OSUpdated",
  mark: "begin",
  reason: "Staging",
  message: image,
});

/** @param booted the system that runs. */
export const firstSystemStaged = (
  { image, packages, kernelArguments }: ObservedDeployment,
  booted: ObservedDeployment,
): Happening => {
  const known = new Set(booted.kernelArguments);
  const added = kernelArguments.filter((word) => !known.has(word)).length;
  const applied = { ...atFirstBoot, mark: "end", reason: "Applied" } as const;
  return [
    { ...atFirstBoot, path: "OSUpdated", mark: "end", reason: "Staged", message: image },
    ...(packages.length === 0 ? [] : [{ ...applied, path: "Extensions", message: packages.join(", ") } as const]),
    ...(added === 0 ? [] : [{ ...applied, path: "Kargs", message: countText(added, "kernel argument") } as const]),
  ];
};

export const firstRebootRequested = (because: string): Happening => ({
  ...atFirstBoot,
  path: "Reboot",
  mark: "begin",
  reason: "RebootRequested",
  message: because,
});

export const firstRebootSkipped = (): Happening => ({
  ...atFirstBoot,
  path: "Reboot",
  mark: "skip",
  reason: "NotRequired",
  message: "the machine has its desired configuration",
});

export const firstBootFailed = (problem: string): Happening => ({
  ...atFirstBoot,
  path: "OSUpdated",
  mark: "fail",
  reason: "StageFailed",
  message: problem,
});

export const firstBootGivenUp = (why: string): Happening => ({
  ...ofSelf,
  mark: "fail",
  reason: "Refused",
  message: why,
});

// The machine's state

export const machineDegraded = (
  reason: BookSections["node"]["Degraded"]["Failed"][number],
  message: string,
  about: About,
): MachineHappening =>
  ({
    about,
    // Some of the reasons are in other sections, too: the section is given for all of them.
    chapter: "Degraded",
    path: "Failed",
    mark: "fail",
    reason,
    message,
    phases: [degradedFor(reason === "Irreconcilable" ? "Unreconcilable" : reason, message)],
  }) as MachineHappening;

export const machineRecovered = (config: string): MachineHappening => ({
  mark: "end",
  reason: "Recovered",
  message: `the machine has ${config}`,
  phases: [notDegraded],
});

/** The daemon restores what drifted. */
export const driftFound = (message: string): MachineHappening => ({
  about: undefined,
  mark: "begin",
  reason: "ConfigDrift",
  message,
});

/** An administrator decides what becomes of it. */
export const driftLeft = (message: string, about: About): MachineHappening => ({
  ...driftFound(message),
  about,
  phases: [degradedFor("ConfigDrift", message)],
});

export const driftGone = (config: string): MachineHappening => ({
  mark: "end",
  reason: "DriftGone",
  message: `the files of ${config} are as they were applied`,
});

export const driftForced = (config: string): MachineHappening => ({
  mark: "end",
  reason: "DriftForced",
  message: `the configuration ${config} is applied over the existing content: ${hostPaths.force} requests it`,
});

/** The drift is older than this boot. */
export const diskNotAsApplied = (node: Node, message: string): Happening =>
  noticed(node, "OnDiskStateValidationFailed", message);

export const watchBegun = (node: Node, config: string): Happening =>
  noticed(node, "ConfigDriftMonitorStarted", `Watching the files of ${config}`);

/** The update changes the watched files. */
export const watchEnded = (node: Node, target: string): Happening =>
  noticed(node, "ConfigDriftMonitorStopped", `${node.metadata.name} is being updated to ${target}`);

// Certificates and pinned images

/** @param written and removed: paths. */
export const certificatesWritten = (
  node: string,
  written: readonly string[],
  removed: readonly string[],
): Happening => ({
  book: `node/${node}`,
  mark: "end",
  reason: "CertificatesWritten",
  message: `${countText(written.length, "certificate file")} written, ${removed.length} removed`,
  data: { written: written.join(" "), ...(removed.length === 0 ? {} : { removed: removed.join(" ") }) },
});

export const certificatesFailed = (node: string, problem: string): Happening => ({
  book: `node/${node}`,
  mark: "fail",
  reason: "CertificatesFailed",
  message: problem,
});

const inPinnedImages = (node: string, sets: readonly PinnedSetVersion[]) =>
  ({
    book: `node/${node}`,
    data: { sets: sets.map(({ name, generation }) => `${name}@${generation}`).join(" ") },
  }) as const;

export const imagesPinned = (node: string, sets: readonly PinnedSetVersion[]): Happening => ({
  ...inPinnedImages(node, sets),
  mark: "end",
  reason: "ImagesPinned",
  message: "all pinned images are on the machine",
});

export const imagesNotPinned = (
  node: string,
  sets: readonly PinnedSetVersion[],
  failures: readonly PinFailure[],
): Happening => ({
  ...inPinnedImages(node, sets),
  mark: "fail",
  reason: "PrefetchFailed",
  message: pinFailureText(failures),
});
