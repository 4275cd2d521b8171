import { convertIgnition } from "../../ignition/convert-ignition.ts";
import { readWhole } from "../../ignition/parse-ignition.ts";
import { isRecord } from "../../ignition/shape.ts";

/** Whether the Ignition of a recent boot image reads the user data of its machines. */
export type StubDecision =
  | { readonly verdict: "readable" }
  | { readonly verdict: "upgrade"; readonly text: string; readonly version: string }
  | { readonly verdict: "refused"; readonly because: string };

/** The version that every Ignition of spec 3 reads which sends headers. */
const version = "3.2.0";

/**
 * Decides about user data of any form. Recent boot images read spec 3 alone: openshift/machine-config-operator
 * pkg/controller/bootimage/helpers.go (main).
 */
export function decideStub(text: string | undefined): StubDecision {
  const refused = (because: string): StubDecision => ({ verdict: "refused", because });
  if (text === undefined || text === "") return refused("it has no userData");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refused("its userData is no JSON");
  }
  const ignition = isRecord(value) ? value["ignition"] : undefined;
  const written = isRecord(ignition) ? ignition["version"] : undefined;
  if (typeof written !== "string") return refused("its userData is no Ignition config");
  if (written.startsWith("3.")) return { verdict: "readable" };
  const read = readWhole(value);
  const converted = read.verdict === "valid" ? convertIgnition(read.config, version) : read;
  if (!("config" in converted)) {
    const [first] = converted.problems;
    return refused(
      `its userData of Ignition ${written} has no equal in ${version}: ${first === undefined ? "unknown" : `${first.path}: ${first.reason}`}`,
    );
  }
  return { verdict: "upgrade", text: JSON.stringify(converted.config), version };
}
