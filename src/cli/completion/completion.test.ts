import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { commands } from "../commands.ts";
import { flagsOf } from "../global-flags.ts";
import { shellScripts } from "./shell-scripts.ts";
import { wantedWords } from "./wanted-words.ts";

const typed = commandLine("mco-completion-");
const bin = join(import.meta.dirname, "../../../bin");
const has = (shell: string) => spawnSync(shell, ["-c", "true"]).status === 0;

/** What is offered for a line; the last word is the one that is typed. */
const offered = (line: string) => {
  const { candidates, kind, before } = wantedWords(line.split(" "), commands);
  const words = candidates.map(({ word }) => `${before}${word}`);
  return kind === undefined ? words : [`${before}<${kind}>`];
};

test.for([
  { line: "render ", is: ["<pool>"] },
  { line: "render worker ", is: ["<pool>"] },
  { line: "build ", is: ["status", "start", "retry", "logs", "explain", "plan", "prune", "rollback"] },
  { line: "build logs ", is: ["<build>"] },
  { line: "build logs worker --step ", is: ["build", "push"] },
  { line: "build prune ", is: [] },
  { line: "explain ", is: ["pool/", "node/", "mc/"] },
  { line: "explain pool/w", is: ["<subject>"] },
  { line: "book c", is: ["cluster", "pool/", "node/", "build/"] },
  { line: "plan -f ", is: ["<file>"] },
  { line: "plan -f a.yaml --from=", is: ["--from=<folder>"] },
  { line: "up --api-server=", is: ["--api-server=embedded", "--api-server=kubernetes"] },
  { line: "up --workers ", is: [] },
  { line: "blame --unit ", is: ["<unit>"] },
  { line: "blame -- --", is: ["<path>"] },
  { line: "version --json --", is: ["--color", "--help"] },
  { line: "status --color ", is: ["auto", "always", "never"] },
  { line: "nothing ", is: [] },
  { line: "constructor ", is: [] },
])("mco $line offers $is [cli-completion-1]", ({ line, is }) => {
  expect(offered(line)).toEqual(is);
});

test("every command is offered, and every flag that a command has [cli-completion-2]", () => {
  expect(offered("")).toEqual(Object.keys(commands));
  for (const [name, command] of Object.entries(commands))
    expect(offered(`${name} -`)).toEqual([...flagsOf(command).map(({ flag }) => flag), "--help"]);
});

test("verbs that are offered are those of the usage, and the other way round [cli-completion-3]", () => {
  for (const [name, { verbs = {}, usage, takes = [] }] of Object.entries(commands)) {
    const used = usage.flatMap(
      (form) => /^\[?([a-z][a-z-]*(?:\|[a-z-]+)*)(?=[\s\]]|$)/.exec(form)?.[1]?.split("|") ?? [],
    );
    if (Object.keys(verbs).length > 0)
      expect([name, ...used.filter((word) => word !== "candidates")]).toEqual([name, ...Object.keys(verbs)]);
    expect([name, takes.length > 0 && Object.keys(verbs).length > 0]).toEqual([name, false]);
  }
});

test("nobody waits for a cluster that is not there, and nothing is said of it [cli-completion-4]", async () => {
  const nowhere = join(typed.folder, "missing");
  expect(await typed.mco("completion", "candidates", "--", "render", "--kubeconfig", nowhere, "")).toEqual({
    code: 0,
    out: "",
    err: "",
  });
});

describe("in the shell itself", () => {
  const environment = {
    ...process.env,
    PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
    HOME: "/nonexistent",
    TERM: "dumb",
  };
  const run = (shell: string, script: string) =>
    spawnSync(shell, shell === "zsh" ? ["-f", "-c", script] : ["-c", script], {
      encoding: "utf8",
      env: environment,
      timeout: 100_000,
    });

  test("bash completes commands, verbs, flags and values [cli-completion-5]", () => {
    const lines = ["mco expl", "mco build ro", "mco plan --off", "mco up --api-server=k", "mco explain p"];
    const script = `${shellScripts.bash}
compopt() { :; }
for COMP_LINE in ${lines.map((line) => `"${line}"`).join(" ")}; do
  COMP_POINT=\${#COMP_LINE}; COMPREPLY=(); _mco; echo "\${COMPREPLY[*]}"
done`;
    expect(run("bash", script)).toMatchObject({
      stderr: "",
      stdout: "explain\nrollback\n--offline\nkubernetes\npool/\n",
    });
  });

  test.skipIf(!has("fish"))("fish completes with what each is [cli-completion-6]", () => {
    const { stdout } = run("fish", `${shellScripts.fish}\ncomplete -C "mco validat"; complete -C "mco explain p"`);
    expect(stdout).toBe(`validate\t${commands["validate"]?.summary.slice(0, 69).trimEnd()}…\npool/\n`);
  });

  test.skipIf(!has("zsh"))("zsh completes at its prompt [cli-completion-7]", () => {
    const { stdout } = run(
      "zsh",
      `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1="> "; autoload -U compinit; compinit -u -D; source <(mco completion zsh); echo rea""dy'
zpty -r -m shell said '*ready*'
zpty -w -n shell $'mco valida\\t'
zpty -r -m shell said '*mco validate *' && echo completed
zpty -d shell`,
    );
    expect(stdout).toBe("completed\n");
  });
});
