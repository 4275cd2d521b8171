import { journals } from "../api/names.ts";
import { BooksChild } from "./books-child.ts";
import type { KeeperChild } from "./child.ts";

/** Books of builds: what the os-builder reports. */
export function buildsChild(): KeeperChild {
  return new BooksChild({
    name: "builds",
    kinds: ["build"],
    journals: [journals.osBuilder],
    missedIn: () => undefined,
    others: [],
    look: () => ({ subject: undefined, lines: [] }),
  });
}
