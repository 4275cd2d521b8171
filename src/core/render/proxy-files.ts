import type { GeneratedFile, GeneratedUnit } from "./generated-config.ts";

/** Where machines have the variables of the cluster's proxy, as in the reference. */
export const proxyPath = "/etc/mco/proxy.env";

/** The services that talk to registries and other hosts outside of the cluster. */
const services = ["crio.service", "kubelet.service", "rpm-ostreed.service"];
const dropIn = "10-mco-default-env.conf";

const variables = [
  ["HTTP_PROXY", "httpProxy"],
  ["HTTPS_PROXY", "httpsProxy"],
  ["NO_PROXY", "noProxy"],
] as const;

/**
 * The environment of services behind a proxy; nothing without one. A proxy's address may hold a password, so that only
 * root reads the file: systemd reads it before a service has its user.
 *
 * @param proxy `spec.proxy` of the ControllerConfig.
 */
export function proxyParts(proxy: Readonly<Record<string, unknown>> | null | undefined): {
  readonly files: readonly GeneratedFile[];
  readonly units: readonly GeneratedUnit[];
} {
  const lines = variables.flatMap(([name, field]) => {
    const value = proxy?.[field];
    return typeof value === "string" && value !== "" ? [`${name}=${quoted(value)}\n`] : [];
  });
  if (lines.length === 0) return { files: [], units: [] };
  const why = "# The cluster's proxy, for the services of this machine that fetch from outside: Proxy/cluster.\n";
  const contents = `# Gives the service the cluster's proxy.\n[Service]\nEnvironmentFile=-${proxyPath}\n`;
  return {
    files: [{ path: proxyPath, mode: 0o600, text: `${why}${lines.join("")}` }],
    units: services.map((name) => ({ name, dropins: [{ name: dropIn, contents }] })),
  };
}

/** A value of an environment file: in double quotes, a backslash keeps `"`, `\`, `` ` `` and `$` (systemd.exec(5)). */
const quoted = (value: string): string => `"${value.replaceAll(/["\\`$]/g, String.raw`\$&`)}"`;
