import type { IncomingMessage } from "node:http";

/** Headers of which a second one would mean something else to another reader. */
const single = new Set(["host", "authorization", "content-length", "transfer-encoding", "expect"]);

/**
 * Why a request that Node's parser accepts may mean something else to an intermediary or another server; `undefined`: it
 * means one thing. Source: RFC 9112 §2.2, §3.2, §5 and §6, and golang/go src/net/http/server.go (release-branch.go1.26).
 */
export function problemOfRequest({ httpVersion, rawHeaders, url = "" }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "the version of HTTP is not 1.0 or 1.1";
  if (!url.startsWith("/")) return "the target is no path";
  if (/%(?![0-9A-Fa-f]{2})/.test(url.split("?", 1)[0] ?? "")) return "an escape of the target is incomplete";
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? "";
    if (!single.has(name)) continue;
    if (seen.has(name)) return `there are several headers ${name}`;
    seen.add(name);
    const value = rawHeaders[i + 1] ?? "";
    if (name === "expect" && value.toLowerCase() !== "100-continue") return "it expects what this server does not do";
    if (name === "host" && !/^[A-Za-z0-9!$%&'()*+,\-.:;=[\]_~]*$/.test(value)) return "the host is no host";
  }
  return httpVersion === "1.1" && !seen.has("host") ? "there is no header host" : undefined;
}
