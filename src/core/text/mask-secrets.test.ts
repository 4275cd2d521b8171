import { describe, expect, test } from "vitest";
import { isSecretFile, maskLines, maskText, shortKey } from "./mask-secrets.ts";

describe("isSecretFile", () => {
  test.for([
    ["/etc/chrony.conf", 0o644, false],
    ["/etc/chrony.conf", 0o600, true],
    ["/etc/chrony.conf", 0o640, true],
    ["/var/lib/kubelet/config.json", 0o644, true],
    ["/etc/pki/tls/private/server.key", 0o644, true],
    ["/etc/pki/tls/certs/server.crt", 0o644, false],
    ["/etc/kubernetes/kubeconfig", 0o644, true],
    ["/etc/passwd", 0o644, false],
    ["/etc/shadow", 0o644, true],
    ["/etc/app/secrets.env", 0o644, true],
  ] as const)("%s", ([path, mode, secret]) => {
    expect(isSecretFile(path, mode)).toBe(secret);
  });

  test("a Secret's manifest is one whatever its path", () => {
    expect(isSecretFile("/etc/kubernetes/manifests/a.yaml", 0o644, "apiVersion: v1\nkind: Secret\n")).toBe(true);
    expect(isSecretFile("/etc/kubernetes/manifests/a.yaml", 0o644, "apiVersion: v1\nkind: Pod\n")).toBe(false);
  });
});

test.for([
  ["password = hunter2 and more", "hunter2"],
  ["Environment=API_TOKEN=abc", "abc"],
  ['{"auths":{"q":{"auth":"dXNlcjpwdw=="}}}', "dXNlcjpwdw"],
  ["HTTPS_PROXY=http://user:hunter2@proxy:3128", "hunter2"],
  ["root:$6$saltsalt$hashhashhashhash:1::", "hashhash"],
  ["Authorization: Bearer abcdefghijk", "abcdefghijk"],
  ["x: eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWIifQ.c2lnbmF0dXJl", "c2lnbmF0dXJl"],
] as const)("%s does not show its secret", ([line, secret]) => {
  expect(maskText(line)).not.toContain(secret);
});

test.for([
  "driftfile /var/lib/chrony/drift",
  "authentication: {anonymous: true}",
  "tokenTTL: 5m",
  "see https://example.com/a:b@c",
  "net.core.somaxconn = 4096",
])("%s is shown", (line) => {
  expect(maskText(line)).toBe(line);
});

test("what goes over several lines stays hidden to its end, and no longer", () => {
  const lines = [
    "a",
    "-----BEGIN RSA PRIVATE KEY-----",
    "MIIE",
    "-----END RSA PRIVATE KEY-----",
    "b",
    "token: |",
    "  abc",
    "",
    "  def",
    "c: d",
  ];
  expect(maskLines(lines)).toEqual([
    "a",
    "(masked)",
    "(masked)",
    "(masked)",
    "b",
    "token: |",
    "  (masked)",
    "",
    "  (masked)",
    "c: d",
  ]);
});

test.for([
  "a.".repeat(9900),
  "http://".repeat(2800),
  "password".repeat(2400),
  `password="${"\\a".repeat(9000)}`,
  "eyJ".repeat(6600),
  "$6$".repeat(6600),
  "x".repeat(1_000_000),
])("a hostile line costs no more than its length", (line) => {
  const before = process.threadCpuUsage();
  for (let i = 0; i < 50; i++) maskText(line);
  expect(process.threadCpuUsage(before).user / 1000).toBeLessThan(2000);
});

test("a public key is shown by its end and its comment", () => {
  expect(shortKey("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGmDE0000 admin@example.com")).toBe(
    "ssh-ed25519 …GmDE0000 admin@example.com",
  );
});

test.for([
  ["line breaks", "\n"],
  ["carriage returns", "\r"],
  ["blanks", " "],
  ["tabs", "\t"],
])("to tell whether a file of %s is a Secret costs no more than its length [text-mask-secrets-1]", ([, character]) => {
  const text = (character ?? "").repeat(300_000);
  expect(isSecretFile("/etc/a", 0o644, text)).toBe(false);
  expect(isSecretFile("/etc/a", 0o644, `${text}\nkind: Secret\r\n`)).toBe(true);
  expect(isSecretFile("/etc/a", 0o644, `kind: Secret${text}!`)).toBe(/[\r\n]/.test(text));
});

test.for([
  ["/etc/kubernetes/kubeconfig.d/a", false],
  ["/etc/my-kubeconfig-1", true],
  ["/etc/secrets.d/a", false],
  ["/etc/a/pull-secret", true],
  ["/etc/a_token.txt", true],
  ["/etc/mytoken", false],
  ["/etc/tokenizer", false],
  ["secret", true],
] as const)("what holds secrets is told by the last name of a path: %s", ([path, secret]) => {
  expect(isSecretFile(path, 0o644)).toBe(secret);
});

test.for(["kubeconfig", "-secret"])("a path of %s without end costs one look [text-mask-secrets-2]", (word) => {
  const began = process.cpuUsage();
  expect(isSecretFile(`/etc/${word.repeat(30_000)}/a`, 0o644)).toBe(false);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
});
