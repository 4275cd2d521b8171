import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** How kubelet 1.34 judges a configuration; `hack/go-kubelet/main.go`. */
export interface KubeletAnswer {
  /** Absent: it takes it. */
  readonly error?: string;
}

/** The program that `hack/go-kubelet/build` makes; `undefined`: this machine cannot build it. */
export function goKubeletProgram(): string | undefined {
  const build = join(import.meta.dirname, "../../hack/go-kubelet/build");
  try {
    return execFileSync(build, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 600_000 }).trim();
  } catch {
    return undefined;
  }
}

/** The kubelet's verdicts on configurations, in their order. */
export async function askKubelet(program: string, configs: readonly unknown[]): Promise<readonly KubeletAnswer[]> {
  const child = spawn(program, { stdio: ["pipe", "pipe", "ignore"] });
  const answers: KubeletAnswer[] = [];
  const read = (async () => {
    for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line) as KubeletAnswer);
  })();
  for (const config of configs)
    if (!child.stdin.write(`${JSON.stringify({ config })}\n`))
      await new Promise((resolve) => child.stdin.once("drain", resolve));
  child.stdin.end();
  await read;
  return answers;
}
