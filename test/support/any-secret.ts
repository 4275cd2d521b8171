/** Texts that look like secrets, for properties that none of them is ever shown. */
import fc from "fast-check";

const hex = (length: number) =>
  fc.string({ minLength: length, maxLength: length, unit: fc.constantFrom(..."0123456789abcdef".split("")) });
const lower = (length: number) =>
  fc.string({
    minLength: length,
    maxLength: length,
    unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz0123456789".split("")),
  });
const word = (least: number, most = least) =>
  fc.string({
    minLength: least,
    maxLength: most,
    unit: fc.constantFrom(..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".split("")),
  });
const base64 = word(24, 60);

/** Shapes of secrets, each with the part that must never be shown. */
export const anySecret = fc.oneof(
  base64.map((key) => ({
    text: `-----BEGIN RSA PRIVATE KEY-----\n${key}\n-----END RSA PRIVATE KEY-----`,
    secret: key,
  })),
  base64.map((key) => ({ text: `-----BEGIN OPENSSH PRIVATE KEY-----\\n${key}\\n`, secret: key })),
  fc
    .tuple(word(3, 8), word(10, 20))
    .map(([user, password]) => ({ text: `https://${user}:${password}@registry.example.com/v2/`, secret: password })),
  word(12, 30).map((token) => ({ text: `http://${token}@proxy.example.com:3128`, secret: token })),
  word(20, 40).map((token) => ({
    text: `https://store.example.com/blob?a=1&X-Amz-Signature=${token}&b=2`,
    secret: token,
  })),
  word(20, 40).map((token) => ({ text: `Authorization: Bearer ${token}`, secret: token })),
  fc.tuple(word(20), word(20), word(20)).map(([a, b, c]) => ({ text: `eyJ${a}.${b}.${c}`, secret: b })),
  word(43).map((token) => ({ text: `sha256~${token}`, secret: token })),
  fc.tuple(hex(6), hex(16)).map(([id, secret]) => ({ text: `${id}.${secret}`, secret })),
  word(22, 86).map((hash) => ({ text: `core:$6$saltsalt$${hash}:19000:0:99999:7:::`, secret: hash })),
  fc.tuple(lower(10), lower(32)).map(([id, secret]) => ({ text: `${id}.${secret}`, secret })),
  word(36).map((token) => ({ text: `ghp_${token}`, secret: token })),
  word(16, 30).map((password) => ({ text: `password=${password}`, secret: password })),
  word(16, 30).map((password) => ({ text: `"auth":"${password}"`, secret: password })),
  base64.map((contents) => ({ text: `data:text/plain;charset=utf-8;base64,${contents}`, secret: contents })),
);
