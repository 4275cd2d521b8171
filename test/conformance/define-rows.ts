/** The form of rules in docs/conformance.md. */
export interface Row {
  /** Section and place in it: `3.2 g`. */
  readonly id: string;
  /** What this suite does. */
  readonly does: string;
  /**
   * `reference`: the same. `ours`: different on purpose, with the weakness of the reference that it removes, if any.
   */
  readonly as: "reference" | "ours" | `ours (${Weakness})`;
  /** Ids of tests: the brackets at the end of a title. */
  readonly shown: readonly string[];
  /** Why no test shows it. */
  readonly skipped?: string;
}

/** Weaknesses of the reference that our rules remove. */
export const weaknesses = {
  W2: "The system is staged after its files were written.",
  W3: "A crash or a failed step leaves an incomplete write: only memory records what was begun.",
  W4: "A failing service or a slow uncordon rolls the disk back under services that run with the new contents; actions are repeated, in any order.",
  W5: "An unfinalised system or an edited file leaves the machine Degraded until an administrator helps; unverified state is reported as fact.",
  W6: "Undoing kernel arguments stages another system, with some of them twice.",
  W7: "A retry schedule of seven attempts that makes three.",
  W8: "Every event of the Node counts as a failure, so busy machines wait.",
  W9: "Every update rewrites every file, with a process for each.",
  W10: "Machines with a realtime kernel fetch and unpack all packages for every change.",
  W11: "Fixed waits where a watch would do, and an unnecessary uncordon.",
  W13: "Complete configurations and credentials are world-readable on the machine.",
  W14: "A removed user keeps an empty password; hashes appear on command lines.",
  W15: "A key directory of another owner is removed with its content.",
  W16: "Errors and logs contain file contents, including secrets.",
  W18: "Two loops share state; facts are read once per process.",
  W19: "Parts of a configuration are accepted and never applied, or fail after the drain.",
  W20: "A different order or spelling of the same content reboots machines.",
  W21: "Findings are reported one at a time; planned actions and their reasons are not.",
  W23: "A drain continues after the update was cancelled; machines stay out of service.",
  W24: "The daemon waits forever for a reboot that does not come.",
  W25: "Commands have no time limit, while termination signals are ignored.",
  W27: "Two components disagree about the target image, and the machine reboots in a loop.",
  C13: "A failed cordon is never retried.",
  C14: "The duration of a drain is only in memory, which five workers share and a new leader lacks.",
  C15: "An answered drain counts as done forever, even if the machine is back in service.",
  C16: "Taint writes overwrite concurrent changes.",
  C17: "A node in two custom pools belongs to none, and only a log line reports it.",
  C18: "Counting stops at the first MachineConfigNode without conditions.",
  C19: "Two writers replace the status of MachineConfiguration as a whole, from old copies.",
  C29: "Bootstrap and cluster render with different code, in random order.",
  C20: "A PEM block that is no certificate causes an endless loop.",
  C21: "The last certificate of a registry is never removed from the published union.",
  C25: "Shared objects are modified in place.",
  C27: "User data of unexpected form ends the process that renews its authority.",
  F3: "One loop sleeps for pools, roll-outs and authorities, while every other task waits.",
  F4: "Any failing pool blocks the operator, even one that no upgrade requires.",
  F12: "A process exits because a kind or a feature gate changed.",
  N1: "Any client that reaches a port gets configurations with their secrets, also over plain HTTP; the contained credential never expires.",
  N2: "An answer modifies shared objects, and the next answer repeats the change.",
  N3: "One request replaces the inputs of all answers.",
  N4: "Status codes are wrong and unexplained: 500 for what does not exist or is not ready.",
  N5: "Content that an older version cannot express is dropped, including disk keys.",
  N6: "Every answer is computed again, in a third of a second and 126 MB.",
  N7: "New machines get a configuration that only an earlier count supports.",
  N8: "A duplicate path turns every answer into a 500; a replaced file keeps its old compression and hash.",
  N9: "The kubeconfig and the complete configuration are world-readable on the machine.",
  N10: "The health check does not cover what an answer needs.",
  N11: "No limits of time or number, and no orderly shutdown.",
  N13: "Nothing records which client was served or refused.",
  N14: "An empty cipher list allows any cipher, and TLS 1.0 is accepted.",
  N15: "Every request lists objects from the API server, and a failure silently yields another image.",
  N16: "Odd paths and headers lead to configurations.",
  S1: "Only a log shows what rendering waits for.",
  S3: "Unavailable machines use up the budget, and nothing reports that or why.",
  S4: "A paused pool does not report its pending changes.",
  S5: "Only a log shows what blocks a drain, as pod names.",
  S6: "A degraded pool without a message, a duplicate reason, counts from two sources.",
  S7: "All nodes are reported as updating although one is: no order, no position, no reason for the wait.",
  S16: "Nothing shows what changed in a new rendered configuration, and which member caused it.",
  F1: "Sequential fixed waits before work that a watch has already announced.",
  F7: "A drain is one attempt and a pause, regardless of changes of pods and budgets.",
  F8: "Rendered configurations are never removed.",
  P1: "A machine that a bad configuration broke never gets the fix: it uses the budget that its repair needs.",
  W33: "Failed pulls count as pulled, the time limit ends no pull, pools cancel each other's work, and the sum of all disks counts in place of the free one.",
  W32: "Unmerged policies or an unreadable file are noticed only during an update.",
} as const;
export type Weakness = keyof typeof weaknesses;

export interface Section {
  readonly id: string;
  readonly title: string;
  readonly rows: readonly Row[];
}

/** Tests by the ids at the end of their titles: `[daemon-update-1]`. */
export const tests = (...ids: readonly string[]): readonly string[] => ids;

/** The same as the reference. */
export const same = (id: string, does: string, ...shown: readonly (readonly string[])[]): Row => ({
  id,
  does,
  as: "reference",
  shown: shown.flat(),
});
/** Different on purpose. */
export const ours = (id: string, does: string, ...shown: readonly (readonly string[])[]): Row => ({
  id,
  does,
  as: "ours",
  shown: shown.flat(),
});
/** Different, with the weakness of the reference that it removes. */
export const better = (
  weakness: Weakness,
  id: string,
  does: string,
  ...shown: readonly (readonly string[])[]
): Row => ({
  id,
  does,
  as: `ours (${weakness})`,
  shown: shown.flat(),
});
/** Omitted, with the reason. */
export const skip = (id: string, does: string, reason: string): Row => ({
  id,
  does,
  as: "ours",
  shown: [],
  skipped: reason,
});
