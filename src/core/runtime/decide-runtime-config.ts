import type { ContainerRuntimeConfig } from "../../api/kinds/container-runtime-config.ts";
import { type SettingsDecision, type SettingsView, decideSettings } from "../kubelet/decide-generated.ts";
import { type RuntimeInputs, runtimeFiles } from "./container-runtime-config.ts";

/** Everything that decides what a ContainerRuntimeConfig makes. */
export interface RuntimeConfigView extends Omit<SettingsView<ContainerRuntimeConfig>, "kind" | "filesOf" | "decides"> {
  /** The files that it changes, as a pool has them without it. */
  inputsOf(pool: string): RuntimeInputs;
}

/** What to do about a ContainerRuntimeConfig. */
export const decideRuntimeConfig = (view: RuntimeConfigView): SettingsDecision =>
  decideSettings({
    ...view,
    kind: "containerruntime",
    decides: "the files of the same names",
    filesOf: (pool) => runtimeFiles(view.object, view.inputsOf(pool)),
  });
