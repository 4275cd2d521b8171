import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program that `hack/NAME/build` makes; `undefined`: this machine cannot build it. */
export function builtProgram(name: string): string | undefined {
  const build = join(import.meta.dirname, "../../hack", name, "build");
  try {
    return execFileSync(build, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 600_000 }).trim();
  } catch {
    return undefined;
  }
}

/** A program's answers to questions, in their order: one line of JSON for each. */
export async function askProgram<T>(program: string, questions: readonly unknown[]): Promise<readonly T[]> {
  const child = spawn(program, { stdio: ["pipe", "pipe", "ignore"] });
  const answers: T[] = [];
  const read = (async () => {
    for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line) as T);
  })();
  for (const question of questions)
    if (!child.stdin.write(`${JSON.stringify(question)}\n`))
      await new Promise((resolve) => child.stdin.once("drain", resolve));
  child.stdin.end();
  await read;
  return answers;
}
