import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { readIgnition } from "../../ignition/parse-ignition.ts";
import { maskLines, masked } from "../text/mask-secrets.ts";
import { hunksBetween } from "../text/unified-diff.ts";

/**
 * A part of the storage section in which a machine differs from its configuration for good, as its MachineConfigNode
 * reports it.
 */
export interface IrreconcilableChange {
  readonly fieldPath: string;
  readonly diff: string;
}

type Config = Pick<MachineConfig, "metadata" | "spec">;

/**
 * Sections that a machine takes from the first configuration it was served, and from no later one. Source:
 * openshift/machine-config-operator pkg/daemon/irreconcilable_diff_reporter.go (main).
 */
const sections = ["disks", "raid", "filesystems", "luks"] as const;
/** Maximum length in the API. */
const diffLimit = 4096;

/**
 * Where the disks that a machine was installed with differ from those in its configuration now. Once an
 * administrator has allowed such a change, only this report still shows it. Keys of encrypted disks are not shown. An
 * unreadable configuration gives no findings.
 */
export function irreconcilableChanges(served: Config, target: Config): readonly IrreconcilableChange[] {
  const [before, after] = [storageOf(served), storageOf(target)];
  return sections.flatMap((section): IrreconcilableChange[] => {
    const [was, is] = [before?.[section] ?? [], after?.[section] ?? []];
    if (before === undefined || after === undefined || equalValues(was, is)) return [];
    return [{ fieldPath: `spec.config.storage.${section}`, diff: clip(difference(textOf(was), textOf(is))) }];
  });
}

function storageOf({
  spec,
}: Config): Readonly<Partial<Record<(typeof sections)[number], readonly unknown[]>>> | undefined {
  const raw = spec?.config;
  if (raw === undefined || raw === null) return {};
  const read = readIgnition(raw);
  return read.verdict === "valid" ? (read.config.storage ?? {}) : undefined;
}

/** One value to a line, so that a changed field is one line. */
const textOf = (items: readonly unknown[]): readonly string[] =>
  JSON.stringify(items, (key, value: unknown) => (isKey(key, value) ? masked : value), 2).split("\n");

/** Keys of encrypted disks, and how to obtain them. */
const isKey = (key: string, value: unknown) => (key === "keyFile" || key === "clevis") && value !== undefined;

function difference(before: readonly string[], after: readonly string[]): string {
  const lines = hunksBetween(before, after).flatMap((hunk) =>
    hunk.lines.map(({ sign, index }) => `${sign}${(sign === "+" ? after : before)[index] ?? ""}`),
  );
  // Both sides look the same where only hidden values differ.
  return lines.length === 0 ? `a part that is not shown differs (${masked})` : maskLines(lines).join("\n");
}

const clip = (text: string) => (text.length <= diffLimit ? text : `${text.slice(0, diffLimit - 1)}…`);
