import { completeLine } from "../api/books/short-lines.ts";
import { type LineStamp, lineOf } from "../core/books/journal.ts";
import type { BookIndexesNews } from "./book-indexes.ts";
import type { ChildContext } from "./child.ts";
import { bookExpired, gapText, linesLost } from "./reports.ts";

/** Reports in the cluster's book that a book has a gap, or that it goes with its subject. */
export function reportIndexNews(
  news: BookIndexesNews,
  stamp: LineStamp,
  { notify, report }: Pick<ChildContext, "notify" | "report">,
): void {
  if (news.is === "gap") {
    notify({ is: "gap", of: news.book, message: gapText(news) });
    report(lineOf(completeLine(linesLost(news)), stamp));
    return;
  }
  // A final line stays one line however often it is reported.
  const { uid = "" } = news.subject;
  report({
    ...lineOf(completeLine(bookExpired(news)), stamp),
    writer: { component: "state", instance: news.book.slice(0, 253) },
    boot: uid === "" ? "-" : uid,
    seq: 1,
  });
}
