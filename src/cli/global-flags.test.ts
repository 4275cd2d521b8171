import { expect, test } from "vitest";
import { commands } from "./commands.ts";
import { flagsOf, globalFlags, takeGlobalFlags } from "./global-flags.ts";

const status = { kind: "people", flags: [{ flag: "--kubeconfig", value: "FILE", text: "" }] } as const;
const taken = (args: string, command: Parameters<typeof takeGlobalFlags>[1] = status) => {
  const rest = takeGlobalFlags(args.split(" ").filter(Boolean), command);
  return { rest: rest.join(" "), ...globalFlags() };
};

test("flags of every command are taken wherever they stand, and the rest is the command's own [cli-global-flags-1]", () => {
  expect(taken("pool/worker --context here --json")).toEqual({
    rest: "pool/worker --json",
    context: "here",
    impersonate: {},
    color: "auto",
  });
  expect(taken("--as=jane --as-group a --as-group=b x --color never --as-uid 7")).toEqual({
    rest: "x",
    impersonate: { user: "jane", uid: "7", groups: ["a", "b"] },
    color: "never",
  });
  expect(taken("a -- --context here")).toEqual({ rest: "a -- --context here", impersonate: {}, color: "auto" });
  expect(taken("")).toEqual({ rest: "", impersonate: {}, color: "auto" });
});

test("what they lack is a usage error [cli-global-flags-2]", () => {
  for (const [args, says] of [
    ["--context", "--context needs a value"],
    ["--as=", "--as needs a value"],
    ["--as-group=", "--as-group needs a value"],
    ["--color red", '--color must be auto, always, never, not "red"'],
  ] as const)
    expect(() => taken(args), args).toThrow(says);
});

test("a process has none of them, and commands without a kubeconfig speak with no cluster of another name [cli-global-flags-3]", () => {
  const names = (command: Parameters<typeof flagsOf>[0]) => flagsOf(command).map(({ flag }) => flag);
  expect(taken("--context here", { kind: "process" }).rest).toBe("--context here");
  expect(names({ kind: "people" })).toEqual(["--color"]);
  // None is declared twice.
  for (const [name, command] of Object.entries(commands))
    expect(new Set(names(command)).size, name).toBe(names(command).length);
});
