import type { CredentialProviderConfig } from "../../api/foreign/openshift.ts";
import type { SettingsCause } from "../kubelet/settings-causes.ts";
import { genericProviderPath, platformProviderPaths, providerDropInPath } from "./credential-providers.ts";

const files: ReadonlySet<string> = new Set([...platformProviderPaths, genericProviderPath, providerDropInPath]);

/** Whether the object writes a file of a path. */
export const isFileOfCredentials = (path: string): boolean => files.has(path);

/** Which fields of the object say what stands in a file. @param file absent: the machines' one, whatever its name. */
export const credentialsCauses = (
  { kind, metadata, spec }: CredentialProviderConfig,
  file: string = genericProviderPath,
): readonly SettingsCause[] =>
  (spec?.matchImages ?? []).map((image, i) => ({
    file,
    what: `${image}: credentials by CRI-O`,
    object: `${kind}/${metadata.name}`,
    path: `spec.matchImages[${i}]`,
  }));
