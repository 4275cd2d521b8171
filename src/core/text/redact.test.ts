import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anySecret } from "../../../test/support/any-secret.ts";
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
