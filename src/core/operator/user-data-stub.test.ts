import { describe, expect, test } from "vitest";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { pointerConfig } from "../join/pointer-config.ts";
import { decideStub } from "./user-data-stub.ts";

const source = "https://api-int.example.com:22623/config/worker";

describe("user data that a recent boot image has to read", () => {
  test("of spec 2 becomes spec 3 with the same source and authority [operator-user-data-stub-1]", () => {
    const authority = encodeDataUrl("-----BEGIN CERTIFICATE-----\n");
    const decision = decideStub(
      JSON.stringify({
        ignition: {
          version: "2.2.0",
          config: { append: [{ source, verification: {} }] },
          security: { tls: { certificateAuthorities: [{ source: authority, verification: {} }] } },
          timeouts: {},
        },
        networkd: {},
        passwd: {},
        storage: {},
        systemd: {},
      }),
    );
    expect(decision).toMatchObject({ verdict: "upgrade", version: "3.2.0" });
    expect(JSON.parse(decision.verdict === "upgrade" ? decision.text : "{}")).toMatchObject({
      ignition: {
        version: "3.2.0",
        config: { merge: [{ source }] },
        security: { tls: { certificateAuthorities: [{ source: authority }] } },
      },
    });
  });

  test("of spec 3 stays [operator-user-data-stub-2]", () => {
    const pointer = pointerConfig({ server: "a:1", pool: "worker", token: undefined, authorities: "x" });
    expect(decideStub(JSON.stringify(pointer))).toEqual({ verdict: "readable" });
  });

  test.for<[string | undefined, string]>([
    [undefined, "has no userData"],
    ["#cloud-config", "no JSON"],
    ["null", "no Ignition config"],
    ["[]", "no Ignition config"],
    ['{"ignition":{"version":3}}', "no Ignition config"],
    ['{"ignition":{"version":"1.0.0"}}', "has no equal"],
    ['{"ignition":{"version":"2.2.0"},"systemd":7}', "has no equal"],
  ])("%s is refused with the reason [operator-user-data-stub-3]", ([text, says]) => {
    const decision = decideStub(text);
    expect(decision.verdict === "refused" ? decision.because : decision.verdict).toContain(says);
  });
});
