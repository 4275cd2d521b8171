import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { isRecord } from "../../ignition/shape.ts";
import type { IgnitionConfig } from "../../ignition/types.ts";

/** Where the config server listens: openshift/machine-config-operator cmd/machine-config-server (main). */
export const configServerPort = 22623;

/**
 * The address of the config server as people write it: a name, an IPv4 or an IPv6 address, with or without a port; an
 * IPv6 address with a port is in brackets. For RE2 and for JavaScript.
 */
export const configServerAddress =
  "^([A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]{2,45}\\])(:[0-9]{1,5})?$|^[0-9A-Fa-f:.]{2,45}$";

/**
 * Platforms whose machines cannot resolve a name for the API server: openshift/machine-config-operator
 * pkg/controller/common/helpers.go (main).
 */
const byAddress: Readonly<Record<string, string>> = {
  BareMetal: "baremetal",
  OpenStack: "openstack",
  Ovirt: "ovirt",
  VSphere: "vsphere",
};

/**
 * `host:port` of the config server for machines: the administrator's setting, else the internal name or address of the
 * API server; `undefined`: unknown.
 */
export function configServerAuthority({
  controllerConfig,
  machineConfiguration,
}: {
  readonly controllerConfig: Pick<ControllerConfig, "spec"> | undefined;
  readonly machineConfiguration: Pick<MachineConfiguration, "metadata"> | undefined;
}): string | undefined {
  const written = machineConfiguration?.metadata.annotations?.[annotations.configServerAddress];
  if (written !== undefined && written !== "") return withPort(written);
  const infra = controllerConfig?.spec.infra;
  const status = isRecord(infra?.["status"]) ? infra["status"] : {};
  const { platformStatus, apiServerInternalURI: uri } = status;
  const platform = isRecord(platformStatus)
    ? platformStatus[byAddress[String(platformStatus["type"])] ?? ""]
    : undefined;
  if (isRecord(platform)) {
    const addresses: readonly unknown[] = Array.isArray(platform["apiServerInternalIPs"])
      ? platform["apiServerInternalIPs"]
      : [];
    const address = addresses[0] ?? platform["apiServerInternalIP"];
    if (typeof address === "string" && address !== "") return withPort(address);
  }
  const host = typeof uri === "string" ? /^[a-z]+:\/\/(\[[^\]]+\]|[^:/]+)/i.exec(uri)?.[1] : undefined;
  return host === undefined ? undefined : withPort(host);
}

/** Adds the port if none is given; an IPv6 address gets its brackets. */
export function withPort(host: string): string {
  if (/^\[[^\]]+\]:\d+$/.test(host) || /^[^:]+:\d+$/.test(host)) return host;
  const bracketed = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return `${bracketed}:${configServerPort}`;
}

/**
 * Boot images are older than clusters: the version that every Ignition reads which sends headers (coreos/ignition
 * config/v3_1 to v3_5).
 */
const pointerVersion = "3.2.0";

/** The user data of a new machine: the URL of its configuration, the authority that it trusts, and its credential. */
export function pointerConfig({
  server,
  pool,
  token,
  authorities,
}: {
  readonly server: string;
  readonly pool: string;
  readonly token: string | undefined;
  /** PEM. */ readonly authorities: string;
}): IgnitionConfig {
  const headers = token === undefined ? {} : { httpHeaders: [{ name: "Authorization", value: `Bearer ${token}` }] };
  return {
    ignition: {
      version: pointerVersion,
      config: { merge: [{ source: `https://${server}/config/${pool}`, ...headers }] },
      security: { tls: { certificateAuthorities: [{ source: encodeDataUrl(authorities) }] } },
    },
  };
}
