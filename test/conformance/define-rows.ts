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
  W2: "The system is staged after files were rewritten for it.",
  W3: "A crash, or a step that fails, leaves files half-written: what was begun is known to memory only.",
  W4: "A service that fails, or a slow return into service, rolls the disk back under services that run with the new contents; actions come repeated and in any order.",
  W5: "A system that was not finalised, or an edited file, leaves the machine Degraded until somebody comes; what is not proven is claimed.",
  W6: "Undoing kernel arguments stages another system, with some of them twice.",
  W7: "A schedule of seven tries that gives three.",
  W8: "Every event of the Node counts as a failure, so that busy machines wait.",
  W9: "Every file is written again with every update, with a process for each.",
  W10: "Machines with a realtime kernel fetch and unpack all packages for any change.",
  W11: "Fixed waits for what a watch would have told, and a return into service that nobody needs.",
  W13: "Whole configurations and credentials that everybody on the machine may read.",
  W14: "A user that goes is left with an empty password; hashes stand on command lines.",
  W15: "A folder of keys that belongs to somebody else is removed with all that is in it.",
  W16: "Contents of files, secrets among them, in errors and logs.",
  W18: "State that two loops share; facts that are read once for a process.",
  W19: "Parts of a configuration are accepted and never applied, or fail after the drain.",
  W20: "Another order or spelling of the same reboots machines.",
  W21: "One finding at a time; what will be done, and why, is not told.",
  W23: "A drain goes on though nobody wants the update any more; machines are left out of service.",
  W24: "A reboot that does not come is waited for without end.",
  W25: "Commands without a limit of time, while signals to end are ignored.",
  W27: "Two ideas of the target's image, and a loop of reboots between them.",
  C13: "A cordon that fails is never tried again.",
  C14: "How long a drain has taken is known to memory only, which five workers share and a new leader has not.",
  C15: "A drain that was answered once counts as done for ever, though the machine is in service again.",
  C16: "Taints are written over what others wrote in between.",
  C17: "A node in two custom pools belongs to none, which one line of a log says.",
  C18: "Counting stops at the first MachineConfigNode without conditions.",
  C29: "Bootstrap and cluster render by different code, and in an order of chance.",
  C20: "A block of PEM that is no certificate is read for ever.",
  C21: "The last certificate of a registry is never taken out of the union that is published.",
  C25: "Objects that others read as well are changed in place.",
  F3: "One loop sleeps for pools, roll-outs and authorities that settle, and every other task waits.",
  F4: "Any pool in trouble holds the operator, also one that no upgrade needs.",
  F12: "A process ends because a kind or a gate changed.",
  N1: "Configurations, with the secrets in them, are given to anybody who reaches a port, over plain HTTP too; the credential in them never ends.",
  N2: "Objects that others read as well are changed by answering, and the next answer has it twice.",
  N3: "What answers are made of is replaced for all by one request.",
  N4: "A number without a word, and the wrong one: 500 for what is not there or not ready.",
  N5: "What an older version cannot say is dropped, keys of disks among it.",
  N6: "Every answer is made anew, in a third of a second and 126 MB.",
  N7: "New machines get a configuration that only the previous one has proven.",
  N8: "A path that the configuration has already makes every answer a 500; what is replaced keeps its old compression and hash.",
  N9: "The kubeconfig and the whole configuration can be read by everybody on the machine.",
  N10: "Health that says nothing of what is needed to answer.",
  N11: "No limits of time or number, and no orderly end.",
  N13: "Nothing tells who was served, and who was not.",
  N14: "An empty list of ciphers falls back to any, and TLS 1.0 is spoken.",
  N15: "The API server is asked for lists with every request, and a failure silently gives another image.",
  N16: "Odd paths and headers lead to configurations.",
  S1: "Rendering waits for something, and only a log says for what.",
  S3: "Machines that are away use the budget up, and nobody is told that or why.",
  S4: "A paused pool with changes that wait says nothing of them.",
  S5: "What holds a drain stands in a log, as names of pods.",
  S6: "A degraded pool without a message, a reason told twice, counts from two sources.",
  S7: "All nodes are said to update although one is: no order, no position, no reason for the wait.",
  S16: "What is different in a new rendered configuration, and who brought it, stands nowhere.",
  F1: "Fixed waits before work that a watch has told of already, one after the other.",
  F7: "A drain is one try and a pause, whatever pods and budgets do meanwhile.",
  F8: "Rendered configurations are never removed.",
  P1: "A machine that a bad configuration took down is never given the fix: it counts against the budget that its own repair needs.",
  W32: "Policies that are not merged, or a file that cannot be read, are noticed in the middle of an update.",
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
