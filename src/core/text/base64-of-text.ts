import { utf8ToBytes } from "@noble/hashes/utils.js";
import { encodeBase64 } from "../../ignition/data-url.ts";

/** A text as base64, as the data of a Secret holds it. */
export const base64OfText = (text: string): string => encodeBase64(utf8ToBytes(text));
