import type { IncomingHttpHeaders } from "node:http";

/** Headers of Node.js with one text per name; repeated headers are joined with commas. */
export const headerLines = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
