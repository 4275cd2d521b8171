/** What stands in for a secret wherever something is shown to people. */
export const masked = "(masked)";

/** Paths whose contents are secrets whatever their mode says. */
const secretPaths: readonly RegExp[] = [
  /^\/var\/lib\/kubelet\/config\.json$/,
  /^\/etc\/mco\/internal-registry-pull-secret\.json$/,
  /^\/etc\/g?shadow-?$/,
  /\/(\.docker\/config\.json|\.dockercfg|\.dockerconfigjson|auth\.json|\.netrc|\.pgpass|\.htpasswd|htpasswd)$/,
  /\.(key|keytab|p12|pfx|jks)$/,
  /[-_]key(\.pem)?$/,
  /\/\.ssh\/id_[^/]*$/,
  /^\/etc\/(NetworkManager\/system-connections|wpa_supplicant|ipsec\.d|ppp)\//,
  /^\/etc\/ipsec\.secrets$/,
];
/** What the last name of such a path may have in it: searched by itself, so that a path of any length costs one look. */
const secretNames: readonly RegExp[] = [
  /kubeconfig/,
  /(^|[._-])(secrets?|tokens?|passwords?|passwd|credentials?|pull-secret)([._-]|$)/i,
];
/** The list of accounts holds no secret since shadow(5) does. */
const openPaths: readonly RegExp[] = [/^\/etc\/passwd-?$/, /\.pub$/, /^\/etc\/containers\/policy\.json$/];

/**
 * Whether a file's contents must not be shown: its path is one that holds secrets, it is not readable by everybody
 * (mode 0600, 0640, …), or it is a Secret's manifest.
 */
export function isSecretFile(path: string, mode: number, text?: string): boolean {
  if ((mode & 0o004) === 0) return true;
  if (openPaths.some((pattern) => pattern.test(path))) return false;
  const name = path.slice(path.lastIndexOf("/") + 1);
  return (
    secretPaths.some((pattern) => pattern.test(path)) ||
    secretNames.some((pattern) => pattern.test(name)) ||
    (text !== undefined && secretManifest.test(text))
  );
}

/** Blanks that no other part of the pattern can take, or few of them: a text of blanks alone costs one pass. */
const secretManifest = /^[ \t]*"?kind"?\s{0,64}:\s{0,64}"?Secret"?[ \t]*(?:,[ \t]*)?\r?$/m;

/** Names of settings whose value is a secret; a value in quotes ends with them, any other at the end of the line. */
const secretName = String.raw`[\w.-]*(?:pass(?:word|wd|phrase)?hash|password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|psk|auth)`;
const assignment = new RegExp(
  String.raw`((?:^|[^A-Za-z0-9_.-])(?:["']?)${secretName}["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"'].*$)`,
  "gi",
);
const blockAssignment = new RegExp(String.raw`^(\s*)(?:- )?["']?${secretName}["']?\s*:\s*[|>][-+0-9]*\s*$`, "i");
/**
 * A provisioning token, `<id>.<secret>` (`core/join/provisioning-token.ts`): its id is the name of an object and stays. A
 * host (after `//`, before a port or one more label) is none, nor is a part of a longer word; a line feed that JSON
 * escapes is no letter.
 */
const provisioningToken =
  /(?:(?<=\\[nrt])|(?<![A-Za-z0-9_.-]|\/\/))([a-z0-9]{10})\.[a-z0-9]{32}(?![A-Za-z0-9_-]|\.[A-Za-z0-9]|:\d)/g;
const patterns: readonly (readonly [RegExp, string])[] = [
  [provisioningToken, `$1.${masked}`],
  [/\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|argon2\w*)\$[./A-Za-z0-9$=,+-]{8,}/g, masked],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/[^/\s:@"']*):[^/\s@"']+@/gi, `$1:${masked}@`],
  [/\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*/g, masked],
  [/\b((?:bearer|basic)\s+)(?![a-z0-9]{10}\.\(masked\))[A-Za-z0-9+/=._~-]{8,}/gi, `$1${masked}`],
  [assignment, `$1${masked}`],
];
/** Longer lines are not searched but hidden: no line that people write is that long. */
const maxSearchedCharacters = 20_000;

/** A line, or any short text, with what looks like a secret in it masked. */
export function maskText(text: string): string {
  if (text.length > maxSearchedCharacters) return masked;
  return patterns.reduce((line, [pattern, replacement]) => line.replaceAll(pattern, replacement), text);
}

/**
 * The lines of a text, one for one, with what looks like a secret masked: also private keys and values over several
 * lines.
 */
export function maskLines(lines: readonly string[]): readonly string[] {
  let inKey = false;
  let blockIndent: number | undefined;
  return lines.map((line) => {
    if (inKey) {
      if (/-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----/.test(line)) inKey = false;
      return masked;
    }
    if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----/.test(line)) {
      inKey = !/-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----/.test(line);
      return masked;
    }
    if (blockIndent !== undefined) {
      const indent = /^\s*/.exec(line)?.[0].length ?? 0;
      if (line.trim() === "" || indent > blockIndent)
        return line.trim() === "" ? line : `${line.slice(0, indent)}${masked}`;
      blockIndent = undefined;
    }
    const block = blockAssignment.exec(line);
    if (block !== null) {
      blockIndent = block[1]?.length ?? 0;
      return line;
    }
    return maskText(line);
  });
}

/** A public key in short: its type, its end and its comment. */
export function shortKey(key: string): string {
  const [type = "", body = "", ...comment] = key.trim().split(/\s+/);
  if (body.length <= 16) return maskText(key);
  return [type, `…${body.slice(-8)}`, ...comment].join(" ");
}
