/** Longer headers are nobody's that boots a machine. */
const longest = 64;

/**
 * The version of Ignition on a machine's boot image, as the machine's request says it; `undefined`: the request says none. It
 * decides nothing: every client can write it. Form: coreos/ignition internal/resource/http.go, internal/version (main).
 */
export function ignitionVersionOf(userAgent: string | undefined): string | undefined {
  if (userAgent === undefined || userAgent.length > longest) return undefined;
  const [, major, minor] = /^Ignition\/v?(\d{1,2})\.(\d{1,3})(?![\d])/.exec(userAgent) ?? [];
  return major === undefined || minor === undefined ? undefined : `${Number(major)}.${Number(minor)}`;
}

/** The first Ignition that reads configurations of 3.4: coreos/ignition docs/release-notes.md (main). */
export const recentIgnition = "2.15";

/** Whether an Ignition reads only configurations that have to be converted for it. */
export function isOldIgnition(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [recentMajor = 0, recentMinor = 0] = recentIgnition.split(".").map(Number);
  return major < recentMajor || (major === recentMajor && minor < recentMinor);
}
