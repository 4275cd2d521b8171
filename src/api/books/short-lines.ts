/**
 * Lines as the pages of reports make them: without what the tables have for their reasons. `completeLine` adds it.
 */
import {
  type BookKind,
  type BookNameOf,
  type BookSections,
  type JournalEntry,
  type PathOf,
  type ReportText,
  bookKindOf,
  bookKinds,
  bookSections,
  progressReasons,
} from "./report-table.ts";

/** Chapter and section of a reason in books of a kind, as a union. */
type SectionsWith<B extends BookKind, R> = {
  [C in keyof BookSections[B]]: {
    [P in keyof BookSections[B][C]]: BookSections[B][C][P] extends readonly (infer S)[]
      ? R extends S
        ? readonly [C, P]
        : never
      : never;
  }[keyof BookSections[B][C]];
}[keyof BookSections[B]];
type IsOne<T, All = T> = T extends unknown ? ([All] extends [T] ? true : false) : never;

/** Of an open section, the last word of the path is free. */
type ShortPath<P> = P extends `${string}/*` ? { readonly path: PathOf<P> } : { readonly path?: never };
type ShortPlace<B extends BookKind, C, P, R> =
  IsOne<SectionsWith<B, R>> extends true
    ? { readonly chapter?: never } & ShortPath<P>
    : { readonly chapter: C; readonly path: PathOf<P> };
type ShortText = Omit<ReportText, "level"> & { readonly level?: never };
type LineOfReason<B extends BookKind, C, P, R> = R extends unknown
  ? {
      readonly is: readonly [B, C, P, R];
      readonly line: { readonly book: BookNameOf<B>; readonly reason: R } & ShortPlace<B, C, P, R> & ShortText;
    }
  : never;

/** The lines of a kind of book, each with its book kind, chapter, section and reason. */
export type ShortLineOf<B extends BookKind> = {
  [C in keyof BookSections[B]]: {
    [P in keyof BookSections[B][C]]: BookSections[B][C][P] extends readonly (infer R)[]
      ? LineOfReason<B, C, P, R>
      : never;
  }[keyof BookSections[B][C]];
}[keyof BookSections[B]];

interface Place {
  readonly chapter: string;
  /** Absent for a section whose last word is free. */
  readonly path?: string;
}

/** Book kind and reason → the section that it alone is in. */
const places: ReadonlyMap<string, Place> = new Map(
  bookKinds.flatMap((kind) => {
    const found = new Map<string, Place[]>();
    for (const [chapter, sections] of Object.entries<Readonly<Record<string, readonly string[]>>>(bookSections[kind]))
      for (const [path, reasons] of Object.entries(sections))
        for (const reason of reasons)
          found.set(reason, [...(found.get(reason) ?? []), path.endsWith("/*") ? { chapter } : { chapter, path }]);
    return [...found].flatMap(([reason, [first, ...more]]) =>
      first === undefined || more.length > 0 ? [] : [[`${kind} ${reason}`, first] as const],
    );
  }),
);

/** The chapter and section that the table has for a reason; `undefined` if the reason is in several, or in none. */
export const placeOfReason = (kind: BookKind, reason: string): Place | undefined => places.get(`${kind} ${reason}`);

/** Adds what the tables have for its reason. A line that is complete stays as it is. */
export function completeLine<L extends { readonly book: string; readonly reason: string }>(line: L): L & JournalEntry {
  const place = placeOfReason(bookKindOf(line.book) ?? "cluster", line.reason);
  const level = progressReasons.has(line.reason) ? "progress" : "boundary";
  return { ...place, level, ...line } as L & JournalEntry;
}
