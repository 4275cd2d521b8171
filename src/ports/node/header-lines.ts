import type { IncomingHttpHeaders } from "node:http";

/** Headers as Node.js gives them, one text for each name; what came several times is one list with commas. */
export const headerLines = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
