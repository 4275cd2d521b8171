import { homedir } from "node:os";
import { join } from "node:path";

/** Where `hack/ignition` puts the real Ignition and where distributions do, the newest first. */
export function ignitionPrograms(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const cache = environment["XDG_CACHE_HOME"];
  const named = environment["MCO_IGNITION_BINARIES"];
  const built =
    named !== undefined && named !== ""
      ? named
      : join(
          cache === undefined || cache === "" ? join(homedir(), ".cache") : cache,
          "machine-config-operator",
          `ignition-v2.24.0-${process.platform}-${process.arch}`,
        );
  return [join(built, "ignition"), "/usr/lib/dracut/modules.d/30ignition/ignition"];
}
