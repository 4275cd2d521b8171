import { type BookSections, inTable } from "../../api/books/report-table.ts";

/** When a chapter begins and ends. */
export interface ChapterRule {
  /** Sections whose lines may start a new instance of the chapter; absent: any section. */
  readonly opens?: readonly string[];
  /** Sections whose end closes it. `every`: any line that ends a section; `line`: it is one line long. */
  readonly closes: readonly string[] | "every" | "line";
  /** Sections whose beginning or failure ends one instance and begins the next. */
  readonly turns?: readonly string[];
  /** The same for their end: the problem is over, and a new period begins. */
  readonly recovers?: string;
  /** Its writer reports regularly: the chapter is abandoned after an hour without a line. */
  readonly goesOn?: boolean;
}

/** Rules of every chapter; one of a newer version is closed by any end. */
export const chapterRules: {
  readonly [B in keyof BookSections]: { readonly [C in keyof BookSections[B]]: ChapterRule };
} = {
  node: {
    Bootstrap: { closes: "line" },
    Firstboot: { closes: ["Validated"], goesOn: true },
    Join: { closes: ["Validated"], goesOn: true },
    Update: { opens: ["Requested", "Prepared"], closes: ["Updated"], goesOn: true },
    Drift: { opens: ["Detected"], closes: ["Ended"] },
    Degraded: { opens: ["Failed"], closes: ["Ended"] },
    Certificates: { closes: "line" },
    PinnedImages: { closes: "line" },
    PoolMove: { closes: "line" },
    Rollback: { opens: ["Decided"], closes: ["Done"] },
    Lost: { opens: ["Silent"], closes: ["Back"] },
    Leave: { closes: "line" },
  },
  pool: {
    Created: { closes: "line" },
    Render: { closes: "every" },
    OptIn: { closes: "line" },
    Build: { closes: ["Built"] },
    Rollout: { opens: ["Begun"], closes: ["Finished"] },
    Paused: { opens: ["Paused"], closes: ["Ended"] },
    Blocked: { opens: ["Blocked"], closes: ["Ended"] },
    Degraded: { opens: ["Degraded"], closes: ["Ended"] },
    Join: { closes: "line" },
    OptOut: { closes: "line" },
    Deleted: { closes: "line" },
  },
  build: {
    Planned: { closes: "line" },
    Prepared: { closes: "line" },
    Building: { closes: "every", goesOn: true },
    Verified: { closes: "line" },
    Published: { closes: "line" },
    RolledOut: { closes: "line" },
    Pruned: { closes: "line" },
    Failed: { closes: "line" },
    Interrupted: { closes: "line" },
  },
  cluster: {
    Bootstrap: { closes: ["HandedOver"], goesOn: true },
    Install: { opens: ["Begun"], closes: ["Finished"] },
    Upgrade: { opens: ["Begun"], closes: ["Finished"] },
    // The life of a component: from a start, or a change of its health, to the next.
    Operator: { closes: ["Start"], turns: ["Start", "Degraded"], recovers: "Degraded" },
    Controller: { closes: ["Start"], turns: ["Start", "Degraded"], recovers: "Degraded" },
    Daemons: { closes: [], turns: ["Degraded"], recovers: "Degraded" },
    Server: { closes: ["Start"], turns: ["Start", "Degraded"], recovers: "Degraded" },
    OsBuilder: { closes: ["Start", "Shutdown"], turns: ["Start", "Degraded"], recovers: "Degraded" },
    BookIndex: { closes: "line" },
  },
};

export function chapterRule(book: keyof BookSections, chapter: string): ChapterRule {
  return inTable<ChapterRule>(chapterRules[book], chapter) ?? { closes: "every" };
}
