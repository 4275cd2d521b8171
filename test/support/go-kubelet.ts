import { askProgram, builtProgram } from "./go-programs.ts";

/** How kubelet 1.34 judges a configuration; `hack/go-kubelet/main.go`. */
export interface KubeletAnswer {
  /** Absent: it takes it. */
  readonly error?: string;
}

/** The program that `hack/go-kubelet/build` makes; `undefined`: this machine cannot build it. */
export const goKubeletProgram = (): string | undefined => builtProgram("go-kubelet");

/** The kubelet's verdicts on configurations, in their order. */
export const askKubelet = (program: string, configs: readonly unknown[]): Promise<readonly KubeletAnswer[]> =>
  askProgram<KubeletAnswer>(
    program,
    configs.map((config) => ({ config })),
  );
