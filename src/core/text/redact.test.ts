import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anySecret } from "../../../test/support/any-secret.ts";
import { maskLines, maskText } from "./mask-secrets.ts";
import { redactLine, redactText } from "./redact.ts";

describe("redaction", () => {
  test("leaves nothing of what looks like a secret, whatever stands around it [text-redact-1]", () => {
    fc.assert(
      fc.property(
        anySecret,
        fc.string({ maxLength: 40, unit: fc.constantFrom(..."abc ,;()\n".split("")) }),
        fc.string({ maxLength: 40, unit: fc.constantFrom(..."abc ,;()\n".split("")) }),
        ({ text, secret }, before, after) => {
          expect(redactText(`${before} ${text} ${after}`)).not.toContain(secret);
        },
      ),
      { numRuns: 600 },
    );
  });

  test("reaches every text of a line, and hides a detail that is named like a secret whatever it looks like [text-redact-2]", () => {
    fc.assert(
      fc.property(anySecret, ({ text, secret }) => {
        const line = redactLine({
          message: `pull failed: ${text}`,
          data: { url: text, count: 3, pullSecret: "hunter2" },
          next: { action: `look at ${text}`, actor: "administrator" },
        });
        expect(JSON.stringify(line)).not.toContain(secret);
        expect(line.data).toMatchObject({ count: 3, pullSecret: "(masked)" });
      }),
      { numRuns: 200 },
    );
  });

  const secret = "k3x9q0z7m2v8b4n1c6p5w0t3r7y2u9ia";
  test.for<[shown: string, as: string]>([
    [`abcdefgh12.${secret}`, "abcdefgh12.(masked)"],
    [`the token abcdefgh12.${secret}.`, "the token abcdefgh12.(masked)."],
    [`(abcdefgh12.${secret}), "abcdefgh12.${secret}"`, '(abcdefgh12.(masked)), "abcdefgh12.(masked)"'],
    [`Authorization: Bearer abcdefgh12.${secret}`, "Authorization: Bearer abcdefgh12.(masked)"],
    [`{"a":"x\\nabcdefgh12.${secret}\\n"}`, '{"a":"x\\nabcdefgh12.(masked)\\n"}'],
    [`GET /config/worker/abcdefgh12.${secret}?a=b`, "GET /config/worker/abcdefgh12.(masked)?a=b"],
    [`first\nabcdefgh12.${secret}\nlast`, "first\nabcdefgh12.(masked)\nlast"],
    [`id=abcdefgh12.${secret},pool=worker`, "id=abcdefgh12.(masked),pool=worker"],
    [`abcdefgh12.${"0".repeat(32)}`, "abcdefgh12.(masked)"],
  ])("keeps the id of a provisioning token and masks its secret: %s [text-redact-4]", ([text, as]) => {
    expect(redactText(text)).toBe(as);
    expect(maskText(text).includes(secret)).toBe(false);
    expect(maskLines(text.split("\n")).join("\n")).toBe(as);
  });

  test.for([
    `quay.io/os@sha256:${"0123456789abcdef".repeat(4)}`,
    `registry01.${secret}.example.com`,
    `registry01.${secret}:5000/os/stock:latest`,
    `https://registry01.${secret}/v2/`,
    `os.registry01.${secret}`,
    `rendered-abcdefghij-${"0123456789abcdef".repeat(2)}`,
    `my-abcdefgh12.${secret}`,
    `abcdefgh1.${secret}`,
    `abcdefgh123.${secret}`,
    `abcdefgh12.${secret.slice(1)}`,
    `abcdefgh12.${secret}a`,
    `ABCDEFGH12.${secret}`,
    `abcdefgh12.${secret.toUpperCase()}`,
    "worker-000.17a3b5c7d9e1f203",
    "machine-config-daemon.service",
  ])("masks nothing else of that shape: %s [text-redact-5]", (text) => {
    expect(redactText(text)).toBe(text);
  });

  test.for([
    "3 changes, drain required: reboot because /etc/chrony.conf has no policy",
    "quay.io/os/stock@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "after 3 reboots for rendered-worker-0123456789abcdef0123456789abcdef the machine still boots os@sha256:1",
    "step stageOs of the update to rendered-worker-1 failed: https://registry.example.com/v2/os/manifests/latest answers 404",
    "core@worker-0 is not the owner of /home/core/.ssh",
  ])("leaves ordinary words alone: %s [text-redact-3]", (text) => {
    expect(redactText(text)).toBe(text);
  });
});
