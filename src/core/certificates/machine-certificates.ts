import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { hostPaths } from "../../api/names.ts";
import { decodeContents, textOf } from "../../ignition/data-url.ts";
import { bundleProblem } from "./certificate-facts.ts";

/** A file that machines take from ControllerConfig directly, not from a MachineConfig. */
export interface MachineFile {
  readonly path: string;
  readonly contents: Uint8Array;
  /** Permission bits of a new file; an existing file keeps its own unless it holds credentials. */
  readonly mode: number;
  readonly credentials: boolean;
}

export interface MachineCertificates {
  readonly files: readonly MachineFile[];
  /**
   * What cannot be written, and why, without contents. `path`: the file that stays unchanged; absent if the problem
   * concerns no file.
   */
  readonly problems: readonly { readonly path: string | undefined; readonly message: string }[];
}

/**
 * Files that only the certificate writer owns: their contents in a MachineConfig are as old as that MachineConfig, so
 * no plan writes or compares them. Same as the reference: openshift/machine-config-operator pkg/daemon/daemon.go
 * (main).
 */
export const certificatePaths: ReadonlySet<string> = new Set([
  hostPaths.kubeletCa,
  hostPaths.cloudCa,
  hostPaths.internalPullSecret,
]);

type Spec = Pick<
  ControllerConfig["spec"],
  | "kubeAPIServerServingCAData"
  | "cloudProviderCAData"
  | "internalRegistryPullSecret"
  | "imageRegistryBundleData"
  | "imageRegistryBundleUserData"
>;

/**
 * The certificate and credential files of a machine. Paths and form:
 * openshift/machine-config-operator pkg/daemon/certificate_writer.go (main). Later entries of one registry win.
 */
export function machineCertificates(spec: Spec): MachineCertificates {
  const files = new Map<string, MachineFile>();
  const problems: { path: string | undefined; message: string }[] = [];
  const add = (path: string, base64: string | null | undefined, what: string, check: "certificates" | "json") => {
    const bytes =
      base64 === undefined || base64 === null || base64 === ""
        ? undefined
        : decodeContents({ source: `data:;base64,${base64}` });
    if (bytes === undefined) return;
    const text = bytes.verdict === "decoded" ? textOf(bytes.bytes) : undefined;
    // A kubelet without any authority, or a registry without its own, is worse than an old one.
    const problem =
      text === undefined ? "is not base64 of a text" : check === "json" ? jsonProblem(text) : bundleProblem(text);
    if (text === undefined || problem !== undefined) {
      problems.push({ path, message: `${what} of the ControllerConfig ${problem}: ${path} stays as it is` });
      return;
    }
    const contents = new Uint8Array([
      ...(bytes.verdict === "decoded" ? bytes.bytes : []),
      ...(text.endsWith("\n") ? [] : [0x0a]),
    ]);
    files.set(path, { path, contents, mode: check === "json" ? 0o600 : 0o644, credentials: check === "json" });
  };
  add(hostPaths.kubeletCa, spec.kubeAPIServerServingCAData, "kubeAPIServerServingCAData", "certificates");
  add(hostPaths.cloudCa, spec.cloudProviderCAData, "cloudProviderCAData", "certificates");
  add(hostPaths.internalPullSecret, spec.internalRegistryPullSecret, "internalRegistryPullSecret", "json");
  for (const { file, data } of [...(spec.imageRegistryBundleData ?? []), ...(spec.imageRegistryBundleUserData ?? [])]) {
    if (!isRegistry(file))
      problems.push({
        path: undefined,
        message: `the registry "${file}" of the ControllerConfig is no name of a registry: it must be HOST or HOST..PORT`,
      });
    else add(registryCaPath(file), data, `the certificate of registry ${file}`, "certificates");
  }
  return { files: [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1)), problems };
}

/** ConfigMap keys cannot contain a colon: `host..port` stands for `host:port`. */
const registryCaPath = (file: string) => `${hostPaths.registryCas}/${file.replace("..", ":")}/ca.crt`;
/** Whether the key of a ConfigMap names a registry: HOST or HOST..PORT. */
export const isRegistry = (file: string): boolean =>
  /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(file) && file.split("..").length <= 2;

function jsonProblem(text: string): string | undefined {
  try {
    return typeof JSON.parse(text) === "object" ? undefined : "is no JSON object";
  } catch {
    return "is no JSON";
  }
}
