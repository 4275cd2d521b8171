/** Base64 with the alphabet of URLs and no padding (RFC 4648 §5), of UTF-8 text or of bytes. */
export function encodeBase64Url(data: string | Uint8Array): string {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** `undefined` for what is no base64url. */
export function decodeBase64UrlBytes(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    );
  } catch {
    return undefined;
  }
}

/** `undefined` for what is no base64url of UTF-8 text. */
export function decodeBase64Url(text: string): string | undefined {
  const bytes = decodeBase64UrlBytes(text);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Standard base64 of UTF-8 text; `undefined` for anything else. */
export function decodeBase64Text(text: string): string | undefined {
  return decodeBase64Url(text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""));
}
