import type { ConfigChange } from "../config/diff-configs.ts";
import { describeDiff } from "../config/describe-diff.ts";
import { kubeletConfPaths, kubeletLoggingPath, nodeSizingPath } from "../kubelet/kubelet-config.ts";
import { kubeletValues } from "../kubelet/settings-causes.ts";
import { storageConfPath } from "../runtime/container-runtime-config.ts";
import { policyPath, registriesConfPath, searchRegistriesPath, sigstorePath } from "../runtime/registries-config.ts";
import { shortList } from "../text/list-text.ts";

/** Files that controllers write from objects with settings. */
const settingFiles: ReadonlySet<string> = new Set([
  ...kubeletConfPaths,
  kubeletLoggingPath,
  nodeSizingPath,
  storageConfPath,
  policyPath,
  registriesConfPath,
  searchRegistriesPath,
  sigstorePath,
]);
const isSettingFile = (path: string) =>
  settingFiles.has(path) || path.startsWith("/etc/crio/crio.conf.d/") || path.startsWith("/etc/crio/policies/");

/** Lines that are shown of one file at most. */
const mostLines = 40;

/**
 * What changes within a file that an object with settings decides: the fields of kubelet.conf with their values, and
 * the lines of the others; empty for every other change.
 */
export function settingLines(change: ConfigChange): readonly string[] {
  if (change.kind !== "file" || !isSettingFile(change.path)) return [];
  const lines = kubeletConfPaths.includes(change.path) ? kubeletLines(change) : textLines(change);
  return shortList(lines, mostLines, (line) => line);
}

/** Without the headers of hunks. */
const textLines = (change: ConfigChange): readonly string[] =>
  describeDiff([change]).flatMap(({ lines }) => lines.filter((line) => /^[-+](?![-+]{2})/.test(line)));

function kubeletLines({ before, after }: Extract<ConfigChange, { kind: "file" }>): readonly string[] {
  const [had, has] = [before, after].map((state) =>
    state?.contents.kind === "text" ? kubeletValues(state.contents.text) : new Map(),
  ) as [ReadonlyMap<string, string>, ReadonlyMap<string, string>];
  return [...new Set([...had.keys(), ...has.keys()])].toSorted().flatMap((path) => {
    const [from, to] = [had.get(path), has.get(path)];
    return from === to ? [] : [`${path}: ${from ?? "unset"} → ${to ?? "unset"}`];
  });
}
