import { type BookKind, bookKinds } from "../../api/books/report-table.ts";
import { type Retention, defaultRetention } from "../books/book-retention.ts";

/** Parts of the state process that can be switched by themselves. */
export const stateChildren = ["nodes", "pools", "builds", "health"] as const;
export type StateChild = (typeof stateChildren)[number];

export interface StateSettings {
  /**
   * `off`: no history is kept and nothing else changes. `bootstrap`: a folder is read where there is no cluster yet.
   */
  readonly mode: "on" | "off" | "bootstrap";
  readonly children: Readonly<Record<StateChild, boolean>>;
  readonly retention: Readonly<Record<BookKind, Retention>>;
  /** What was not understood, for people; the default stands in its place. */
  readonly problems: readonly string[];
}

/** Days and numbers of chapters that may be asked for. */
const most = 100_000;

/**
 * What the ConfigMap machine-state-controller-config asks for: `mode: on|off|bootstrap`, `children.NAME: on|off`, and
 * `retention.KIND.chapters|days|days-after-end`, as numbers.
 *
 * @param data `undefined`: there is no such ConfigMap, and everything is on.
 */
export function stateSettings(data: Readonly<Record<string, string>> | undefined): StateSettings {
  const problems: string[] = [];
  let mode: StateSettings["mode"] = "on";
  const children: Record<StateChild, boolean> = { nodes: true, pools: true, builds: true, health: true };
  const retention: Record<BookKind, Retention> = { ...defaultRetention };
  for (const [key, value] of Object.entries(data ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const wrong = (wants: string) => problems.push(`${key}: "${value}" is not understood; it takes ${wants}`);
    const [head = "", middle = "", last] = key.split(".");
    const child = stateChildren.find((name) => key === `children.${name}`);
    const kind = bookKinds.find((name) => head === "retention" && middle === name);
    if (key === "mode") {
      if (value === "on" || value === "off" || value === "bootstrap") mode = value;
      else wrong("on, off or bootstrap");
    } else if (child !== undefined) {
      if (value === "on" || value === "off") children[child] = value === "on";
      else wrong("on or off");
    } else if (
      kind !== undefined &&
      (last === "chapters" || last === "days" || (last === "days-after-end" && kind !== "cluster"))
    ) {
      const number = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN;
      if (Number.isNaN(number) || number > most) wrong(`a number from 0 to ${most}`);
      else
        retention[kind] = {
          ...retention[kind],
          ...(last === "chapters"
            ? { chapters: number }
            : last === "days"
              ? { days: number }
              : { daysAfterEnd: number }),
        };
    } else
      problems.push(
        `${key}: there is no such setting; there are mode, children.NAME, retention.KIND.chapters, retention.KIND.days and retention.KIND.days-after-end`,
      );
  }
  return { mode, children, retention, problems };
}
