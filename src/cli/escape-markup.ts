const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A text of XML or HTML, or of an attribute there. XML has no way to write most control characters. */
export const escapeMarkup = (value: string): string =>
  value
    // oxlint-disable-next-line no-control-regex -- these are what XML cannot hold
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll(/[&<>"]/g, (character) => entities[character] ?? character);
