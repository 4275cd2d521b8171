import { utf8ToBytes } from "@noble/hashes/utils.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Secret } from "../../api/foreign/kubernetes.ts";
import { labels } from "../../api/names.ts";
import { encodeBase64, encodeDataUrl } from "../../ignition/data-url.ts";
import { parseIgnition } from "../../ignition/parse-ignition.ts";
import { decideAuthority } from "./installed-user-data.ts";

const certificate = (text: string) => `-----BEGIN CERTIFICATE-----\n${btoa(text)}\n-----END CERTIFICATE-----\n`;
const before = certificate("before");
/** Of two authorities, while one follows the other. */
const present = `${certificate("present???")}${certificate("next")}`;
const source = "https://api-int.example.com:22623/config/worker";
const inBase64 = (text: string) => `data:text/plain;charset=utf-8;base64,${btoa(text)}`;
const trusting = (certificateAuthorities: unknown, more: object = {}) => ({
  ignition: {
    version: "3.2.0",
    config: { merge: [{ source, verification: {} }] },
    security: { tls: { certificateAuthorities } },
    ...more,
  },
});
const secret = (userData: unknown, metadata: object = {}): Pick<Secret, "metadata" | "data"> => ({
  metadata: { name: "worker-user-data", namespace: "openshift-machine-api", ...metadata },
  data: {
    userData: encodeBase64(utf8ToBytes(typeof userData === "string" ? userData : JSON.stringify(userData))),
    disableTemplating: "",
  },
});
const decide = (userData: unknown, metadata: object = {}) => decideAuthority(secret(userData, metadata), present);

/** The user data after its authority was renewed. */
function renewed(userData: unknown): unknown {
  const decision = decide(userData);
  if (decision.verdict !== "renew") throw new Error(`${decision.verdict}, and not renewed`);
  return JSON.parse(decision.userData);
}

describe("the installer's user data", () => {
  test("gets the present authorities in place of the one that it has, and keeps everything else [installed-user-data-1]", () => {
    const proxy = { httpsProxy: "http://proxy.example.com" };
    const data = { ...trusting([{ source: inBase64(before) }], { proxy }), storage: {} };
    const after = renewed(data);
    expect(after).toEqual({ ...trusting([{ source: encodeDataUrl(present) }], { proxy }), storage: {} });
    expect(parseIgnition(after).verdict).toBe("valid");
    expect(decide(after)).toEqual({ verdict: "current" });
  });

  test("of Ignition 2 as well [installed-user-data-2]", () => {
    const config = { append: [{ source, verification: {} }] };
    const tls = (text: string) => ({
      ignition: { version: "2.2.0", config, security: { tls: { certificateAuthorities: [{ source: text }] } } },
      networkd: {},
    });
    expect(renewed(tls(inBase64(before)))).toEqual(tls(encodeDataUrl(present)));
  });

  test("loses what was said of the contents of the old authority [installed-user-data-3]", () => {
    const authority = { source: inBase64(before), verification: { hash: `sha512-${"0".repeat(128)}` } };
    expect(renewed(trusting([authority]))).toEqual(trusting([{ source: encodeDataUrl(present) }]));
  });

  test("stays as it is written if it trusts the present authorities [installed-user-data-4]", () => {
    for (const text of [present, present.trim(), `\n${certificate("next")}${certificate("present???")}\n`])
      expect(decide(trusting([{ source: inBase64(text) }]))).toEqual({ verdict: "current" });
    const [first, next] = [certificate("present???"), certificate("next")].map((text) => ({ source: inBase64(text) }));
    expect(decide(trusting([{ source: "https://ca.example.com" }, next, first]))).toEqual({ verdict: "current" });
  });

  test("loses an authority that the config server no longer has [installed-user-data-8]", () => {
    const both = { source: inBase64(`${before}${present}`) };
    expect(renewed(trusting([both]))).toEqual(trusting([{ source: encodeDataUrl(present) }]));
  });

  test("is left alone if it is somebody else's, is being deleted, or does not exist [installed-user-data-5]", () => {
    const data = trusting([{ source: inBase64(before) }]);
    expect(decide(data, { labels: { [labels.managedUserData]: "" } })).toEqual({ verdict: "current" });
    expect(decide(data, { deletionTimestamp: "2026-01-01T00:00:00Z" })).toEqual({ verdict: "current" });
    expect(decideAuthority(undefined, present)).toEqual({ verdict: "current" });
  });

  const one = { source: inBase64(before) };
  test.for<[string, unknown, string]>([
    ["nothing", "", "it has no userData"],
    ["a script", "#!/bin/sh", "its userData is no JSON"],
    ["null", "null", "its userData is no Ignition config"],
    ["a list", [], "its userData is no Ignition config"],
    ["a config without a version", { ignition: {} }, "its userData is no Ignition config"],
    ["no config server", trusting([one], { config: {} }), "its userData leads to no config server"],
    [
      "a config of another server",
      trusting([one], { config: { merge: [{ source: "https://files.example.com/worker.ign" }, 7] } }),
      "its userData leads to no config server",
    ],
    ["no security", trusting([one], { security: undefined }), "its userData names no authority"],
    ["a security that is none", trusting([one], { security: [] }), "its userData names no authority"],
    ["a word as authorities", trusting("all"), "its userData names no authority"],
    ["no authority", trusting([]), "its userData names no authority"],
    ["two authorities", trusting([one, one]), "its userData names 2 authorities, and not one"],
    ["an authority without a source", trusting([null]), "its userData does not hold the authority itself"],
    ["a source that is none", trusting([{ source: 7 }]), "its userData does not hold the authority itself"],
    [
      "an authority to fetch",
      trusting([{ source: "https://ca.example.com/ca.crt" }]),
      "its userData does not hold the authority itself",
    ],
  ])("with %s stays, and the message says why and what to do [installed-user-data-6]", ([, data, why]) => {
    expect(decide(data)).toEqual({
      verdict: "refused",
      message: `the Secret openshift-machine-api/worker-user-data does not trust the present authorities of the config server and is left as it is, since ${why}; let machines start from the Secret worker-user-data-managed, or keep its authorities up to date yourself and say so: kubectl label secret -n openshift-machine-api worker-user-data machineconfiguration.openshift.io/managed-ca-bundle-derived-from-configmap=`,
    });
  });

  test("of any form is decided about, and its contents are never shown [installed-user-data-7]", () => {
    const value = fc.oneof(fc.jsonValue(), fc.constant([one]), fc.constant("secret-word"));
    const ignition = fc.record(
      {
        version: fc.oneof(fc.constant("3.2.0"), value),
        config: fc.oneof(fc.constant({ merge: [{ source }] }), value),
        security: fc.oneof(value, fc.record({ tls: fc.oneof(value, fc.record({ certificateAuthorities: value })) })),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.record({ ignition }), value, fc.string()), (data) => {
        const decision = decide(data);
        if (decision.verdict === "refused") expect(decision.message).not.toContain("secret-word");
        else if (decision.verdict === "renew") expect(decide(decision.userData)).toEqual({ verdict: "current" });
      }),
    );
    expect(decideAuthority({ ...secret(""), data: { userData: "%%%" } }, present).verdict).toBe("refused");
  });
});
