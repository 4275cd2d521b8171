import { McoError } from "../../api/errors.ts";
import { applyImageContent } from "../../daemon/apply-image-content.ts";
import { readArguments } from "../arguments.ts";
import { flags } from "../flags.ts";
import { hostAt } from "../host-at.ts";
import { runProcess } from "../run-process.ts";

/** Runs in the unit machine-config-settle at boot. Exits with 1 if the machine does not match its payload. */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.settle);
  return runProcess({ component: "settle" }, async (ports, signal) => {
    const host = await hostAt(values["root-mount"]);
    const outcome = await applyImageContent({ ...ports, host }, signal);
    if (outcome.verdict === "failed")
      throw new McoError("MCO_SETTLE_FAILED", { path: outcome.path, cause: outcome.cause, goesBack: outcome.goesBack });
    ports.log.info(outcome, "settled");
  });
}
