import { own } from "../api/schema/own.ts";
import { widest, wrapped } from "./wrap-text.ts";

interface Topic {
  readonly summary: string;
  /** Paragraphs; one that begins with blanks is a line as it is. */
  readonly text: readonly string[];
}

/** Subjects of no single command, by the word behind `mco help`. */
export const topics: Readonly<Record<string, Topic>> = {
  connecting: {
    summary: "Which cluster a command asks",
    text: [
      "A command takes the first of these that is there:",
      "  1. the kubeconfig that --kubeconfig names, or the cluster in the folder that --dir names",
      "  2. the kubeconfigs in $KUBECONFIG, merged as kubectl does",
      "  3. in a pod, its service account",
      "  4. the cluster in .mco of the current folder, if an mco up of yours made it",
      "  5. ~/.kube/config",
      "As kubectl mco and oc mco, the program takes ~/.kube/config before .mco, as kubectl does.",
      "--context, --as, --as-group and --as-uid are those of kubectl. The kubeconfig of a cluster's folder runs no credential plug-in, reads no other file and calls no other machine.",
      "mco validate and mco help ask no cluster; mco render, diff and blame ask none with -f, mco plan none with --offline or --from.",
    ],
  },
  output: {
    summary: "Text, JSON, colors and exit codes",
    text: [
      "Results go to standard output, warnings and errors to standard error. With --json a result is one JSON object with apiVersion and kind; a field keeps its meaning within a version.",
      "Colors appear on a terminal, unless NO_COLOR is set or TERM is dumb; --color always or never overrides that. Texts fit the width of the terminal, at most 120 columns.",
      "Exit codes: 0 fine, 1 failed, 64 the command line is not understood, 141 the reader of the output ended first. Commands that compare end with 2 if something differs or would change.",
    ],
  },
  codes: {
    summary: "What a code or reason means, and what to do",
    text: [
      "Each failure has a code that never changes its meaning, such as MCO_KUBECONFIG_INVALID. Chapters of books, conditions and alerts have reasons, such as DaemonSilent.",
      "  mco help MCO_KUBECONFIG_INVALID",
      "  mco help DaemonSilent",
      "docs/errors.md lists all of them.",
    ],
  },
};

/** The text of a topic; `undefined`: there is none of that name. @param columns of the terminal; never wider than 120. */
export function topicHelp(name: string, columns = widest): string | undefined {
  const topic = own(topics, name);
  if (topic === undefined) return undefined;
  const paragraph = (text: string): string =>
    text.startsWith(" ") ? `\n${text}` : `\n\n${wrapped(text, 0, Math.min(columns, widest))}`;
  return `${topic.summary}.${topic.text.map(paragraph).join("")}\n`;
}
