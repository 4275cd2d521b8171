import { arch } from "node:os";
import type { PullSettings } from "../host/directory/pull-settings.ts";
import type { Clock } from "../ports/clock.ts";
import { systemRandom } from "../ports/node/index.ts";
import { parseAuthFile } from "../registry/auth-file.ts";
import type { httpsWire } from "../registry/node/https-wire.ts";
import { signatureVerifier } from "../registry/node/verify-signature.ts";
import { registryClient } from "../registry/registry-client.ts";

/** The architecture of this machine, as images name it. */
export const architecture = (): string => (arch() === "x64" ? "amd64" : arch());

/** How a machine pulls images: with its credentials, certificates, registries and signature policy. */
export const pullOptions = (
  settings: PullSettings,
  clock: Clock,
  wire: Pick<ReturnType<typeof httpsWire>, "send">,
) => ({
  clock,
  random: systemRandom,
  client: registryClient({
    wire: wire.send,
    clock,
    auth: parseAuthFile(settings.auth),
    certificates: (host) => settings.certificates(host),
  }),
  policy: settings.policy,
  registries: settings.registries,
  verifier: (keys: Parameters<typeof signatureVerifier>[0]) => signatureVerifier(keys, (path) => settings.file(path)),
});
