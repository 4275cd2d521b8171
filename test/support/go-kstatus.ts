import type { KubeObject } from "../../src/api/schema/object.ts";
import { askProgram, builtProgram } from "./go-programs.ts";

/** How kstatus, or a health script of Argo CD, judges an object; `hack/go-kstatus/main.go`. */
export interface KstatusAnswer {
  /** `Current`, `InProgress`, `Failed`, `Terminating`; of a script `Healthy`, `Progressing`, `Degraded`, `Suspended`. */
  readonly status?: string;
  readonly message?: string;
  readonly error?: string;
}

/** The program that `hack/go-kstatus/build` makes; `undefined`: this machine cannot build it. */
export const goKstatusProgram = (): string | undefined => builtProgram("go-kstatus");

/** The status of objects by kstatus, or by a health script of Argo CD, in their order. */
export const askKstatus = (
  program: string,
  objects: readonly KubeObject[],
  script?: string,
): Promise<readonly KstatusAnswer[]> =>
  askProgram<KstatusAnswer>(
    program,
    objects.map((object) => ({ object, script })),
  );
