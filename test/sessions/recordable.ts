/** kubectl's output, without what differs between runs: ages, times, ids, versions, addresses. */
export function recordable(text: string): string {
  return (
    text
      .split("\n")
      // kubectl's own log depends on timing.
      .filter((line) => !/^! [IWE]\d{4} \d\d:/.test(line))
      .map(cleanLine)
      .join("\n")
  );
}

const uid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;
const timestamp = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;
const date = /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g;
/** In tables and descriptions ages stand alone: `5s`, `2m10s`, and `6y326d` of what is dated 2020. */
const age = /(?<=^|\s)(?:(?:\d+h)?(?:\d+m)?\d+s|\d+y(?:\d+d)?)(?=\s|$|,|\))/g;

function cleanLine(line: string): string {
  // Commands stay as the session has them.
  if (/^\s*\$ kubectl/.test(line)) return line;
  const cleaned = line
    .replaceAll(uid, "<uid>")
    .replaceAll(timestamp, (time) => (time.startsWith("2020-") ? time : "<time>"))
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}/g, "<time>")
    .replaceAll(date, (time) => (time.includes(" 2020 ") ? time : "<time>"))
    .replaceAll(/https:\/\/127\.\d+\.\d+\.\d+:\d+/g, "<server>")
    .replaceAll(/127\.\d+\.\d+\.\d+:\d+/g, "<address>")
    .replaceAll(/(resource ?version"?:? +)"?\d+"?/gi, "$1<version>")
    .replaceAll(/(\/tmp\/)\S*?(kubectl-edit-|LIVE-|MERGED-)\S*/g, "$1$2<file>")
    .replaceAll(/X509SHA256=[0-9a-f]+/g, "X509SHA256=<hash>");
  // The text after an age moves with its width.
  return age.test(cleaned)
    ? cleaned
        .replaceAll(age, "<age>")
        .replaceAll(/(?<=\S) {2,}/g, "  ")
        .trimEnd()
    : cleaned;
}
