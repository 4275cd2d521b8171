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
