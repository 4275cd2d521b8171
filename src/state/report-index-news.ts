import { type LineStamp, lineOf } from "../core/books/journal.ts";
import type { BookIndexesNews } from "./book-indexes.ts";
import type { ChildContext } from "./child.ts";

/** Reports in the cluster's book that a book has a gap, or that it goes with its subject. */
export function reportIndexNews(
  news: BookIndexesNews,
  stamp: LineStamp,
  { notify, report }: Pick<ChildContext, "notify" | "report">,
): void {
  const line = {
    book: "cluster",
    chapter: "BookIndex",
    mark: "end",
    level: "boundary",
    message: news.message,
  } as const;
  if (news.is === "gap") {
    notify({ is: "gap", of: news.book, message: news.message });
    report(lineOf({ ...line, path: "Gap", reason: "Gap", data: { book: news.book, lines: news.lines } }, stamp));
    return;
  }
  // A final line stays one line however often it is reported.
  const made = lineOf({ ...line, path: `Gone/${news.book}`, reason: "SubjectGone", data: { book: news.book } }, stamp);
  report({
    ...made,
    writer: { component: "state", instance: news.book.slice(0, 253) },
    boot: news.uid === "" ? "-" : news.uid,
    seq: 1,
  });
}
