import { own } from "../api/schema/own.ts";

/** Names of the reference's programs, and the process of this suite that replaces each. */
const programs: Readonly<Record<string, string>> = {
  "machine-config-operator": "operator",
  "machine-config-controller": "controller",
  "machine-config-daemon": "daemon",
  "machine-config-server": "server",
  "machine-os-builder": "os-builder",
  "machine-state-controller": "state",
};

/** Names of the reference's programs that this program answers to, with the process that each is. */
export const programNames = Object.entries(programs);

const baseOf = (program: string): string =>
  program
    .split("/")
    .at(-1)
    ?.replace(/\.(ts|mjs)$/, "") ?? "";

/** Whether kubectl, or oc, runs this program as `kubectl mco`. */
export const isKubectlPlugin = (program: string): boolean => /^(?:kubectl|oc)-mco$/.test(baseOf(program));

/**
 * The words of the command: the program's own name counts as the first one where it is a process's, as a link or as a
 * container's command.
 */
export function verbOf(program: string, args: readonly string[]): readonly string[] {
  const called = own(programs, baseOf(program));
  const words = called === undefined ? args : [called, ...args];
  const [first = "", ...rest] = words;
  const process = own(programs, first);
  return process === undefined ? words : [process, ...rest];
}
