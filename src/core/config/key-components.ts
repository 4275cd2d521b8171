/** The relevant inputs, each as a short text: stored with the build, so that two keys can be compared. */
export type KeyComponents = Readonly<Record<string, string | number | null>>;

/** Reads what {@link printComponents} wrote; `undefined` for any other text. */
export function readComponents(text: string | undefined): KeyComponents | undefined {
  if (text === undefined) return undefined;
  try {
    const read: unknown = JSON.parse(text);
    if (typeof read !== "object" || read === null || Array.isArray(read)) return undefined;
    const { parent, ...rest } = read as { readonly parent?: unknown };
    return {
      ...(typeof parent === "object" && parent !== null ? (parent as KeyComponents) : {}),
      ...(rest as KeyComponents),
    };
  } catch {
    return undefined;
  }
}
