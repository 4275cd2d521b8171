/** One way in which a server wants to be convinced, from its `WWW-Authenticate` header (RFC 9110 §11). */
export interface Challenge {
  /** Lower case: `basic`, `bearer`. */
  readonly scheme: string;
  /** Names in lower case. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Every challenge of the header, in its order. What cannot be read is left out. */
export function parseChallenges(header: string): readonly Challenge[] {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  const word =
    /[\s,]*(?:([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?=\s|,|$))/y;
  const text = header.slice(0, 8192);
  for (let match = word.exec(text); match !== null; match = word.exec(text)) {
    const [, name, quoted, plain, scheme] = match;
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: {} });
    else if (name !== undefined)
      (challenges.at(-1)?.parameters ?? {})[name.toLowerCase()] =
        quoted === undefined ? (plain ?? "") : quoted.replaceAll(/\\(.)/g, "$1");
  }
  return challenges;
}
