import { hostDrivers } from "../../host/drivers.ts";
import { readArguments } from "../arguments.ts";
import { flags } from "../flags.ts";
import { version } from "../version.ts";
import { processIo } from "../io.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, flags.version);
  const facts = {
    apiVersion: "cli.mco/v1",
    kind: "Version",
    version,
    node: process.version,
    drivers: hostDrivers.map(({ name, proven, note }) => ({ name, proven, note })),
  };
  processIo().out(values.json ? `${JSON.stringify(facts)}\n` : `mco ${version} (Node.js ${process.version})\n`);
  return 0;
}
