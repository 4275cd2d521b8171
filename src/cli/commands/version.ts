import { readArguments } from "../arguments.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(args, { json: { type: "boolean" } });
  const facts = {
    apiVersion: "cli.mco/v1",
    kind: "Version",
    version,
    node: process.version,
    hostDrivers: [
      { name: "directory", provenOn: "one-machine clusters; the conformance suite" },
      { name: "memory", provenOn: "the conformance suite; simulation" },
    ],
  };
  process.stdout.write(values.json === true ? `${JSON.stringify(facts)}\n` : `mco ${version} (Node.js ${process.version})\n`);
  return 0;
}
