import { defined } from "../api/schema/defined.ts";
import type { Impersonated } from "../kube/kubeconfig.ts";
import { usageError } from "./arguments.ts";
import type { Command } from "./commands.ts";
import type { Flag } from "./flags.ts";

/** Flags that every command with `--kubeconfig` has besides its own. kubectl has the same. */
const clusterFlags: readonly Flag[] = [
  { flag: "--context", value: "NAME", text: "context of the kubeconfig (default: its current one)" },
  {
    flag: "--as",
    value: "USER",
    text: "user to act as; the user of the kubeconfig needs the right to impersonate that user",
  },
  { flag: "--as-group", value: "GROUP", text: "group to act as; may be given several times" },
  { flag: "--as-uid", value: "UID", text: "uid to act as" },
];

const colours = ["auto", "always", "never"] as const;

/** Flags of every command for people. */
const peopleFlags: readonly Flag[] = [
  {
    flag: "--color",
    value: "WHEN",
    takes: colours,
    text: "auto (default: on a terminal, unless NO_COLOR is set or TERM is dumb), always, or never",
  },
];

/** Values of these flags, for the whole process. */
export interface GlobalFlags {
  readonly context?: string;
  /** Parts that are absent are those of the kubeconfig. */
  readonly impersonate: Partial<Impersonated>;
  readonly color: (typeof colours)[number];
}

let given: GlobalFlags = { impersonate: {}, color: "auto" };

/** The values on the command line of this process. */
export const globalFlags = (): GlobalFlags => given;

const ofEvery = ({ kind, flags = [] }: Pick<Command, "kind" | "flags">): readonly Flag[] =>
  kind !== "people" ? [] : [...(flags.some(({ flag }) => flag === "--kubeconfig") ? clusterFlags : []), ...peopleFlags];

/** All flags of a command, its own first. */
export const flagsOf = (command: Pick<Command, "kind" | "flags">): readonly Flag[] => [
  ...(command.flags ?? []).filter(({ isInternal }) => isInternal !== true),
  ...ofEvery(command),
];

/**
 * Reads these flags, which may stand anywhere before `--`, for {@link globalFlags}.
 *
 * @returns the words that are left for the command itself.
 * @throws McoError `MCO_USAGE`
 */
export function takeGlobalFlags(args: readonly string[], command: Pick<Command, "kind" | "flags">): readonly string[] {
  const known = ofEvery(command);
  const rest: string[] = [];
  const values = new Map<string, string[]>();
  for (let i = 0; i < args.length; i += 1) {
    const word = args[i] ?? "";
    if (word === "--") return finish([...rest, ...args.slice(i)], values);
    const flag = known.find((one) => word === one.flag || word.startsWith(`${one.flag}=`));
    if (flag === undefined) {
      rest.push(word);
      continue;
    }
    const isWhole = word !== flag.flag;
    const value = isWhole ? word.slice(flag.flag.length + 1) : args[(i += 1)];
    if (value === undefined || value === "") throw usageError(`${flag.flag} needs a value`);
    values.set(flag.flag, [...(values.get(flag.flag) ?? []), value]);
  }
  return finish(rest, values);
}

function finish(rest: readonly string[], values: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const last = (flag: string) => values.get(flag)?.at(-1);
  const when = last("--color") ?? "auto";
  const color = colours.find((one) => one === when);
  if (color === undefined) throw usageError(`--color must be ${colours.join(", ")}, not "${when}"`);
  given = {
    color,
    ...defined({ context: last("--context") }),
    impersonate: defined({ user: last("--as"), uid: last("--as-uid"), groups: values.get("--as-group") }),
  };
  return rest;
}
