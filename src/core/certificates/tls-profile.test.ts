import { describe, expect, test } from "vitest";
import { tlsOfFlags, tlsOfProfile } from "./tls-profile.ts";

describe("tlsOfProfile", () => {
  test.for([
    {
      title: "a cluster that says nothing has Intermediate",
      profile: undefined,
      minVersion: "TLSv1.2",
      has: "ECDHE-RSA-AES128-GCM-SHA256",
      count: 9,
    },
    {
      title: "Modern speaks 1.3 alone",
      profile: { type: "Modern" },
      minVersion: "TLSv1.3",
      has: "TLS_AES_128_GCM_SHA256",
      count: 3,
    },
    {
      title: "Old is raised to 1.2",
      profile: { type: "Old" },
      minVersion: "TLSv1.2",
      has: "ECDHE-RSA-AES128-SHA",
      count: 20,
    },
    {
      title: "Custom is followed as far as it can be",
      profile: {
        type: "Custom",
        custom: { ciphers: ["ECDHE-RSA-AES128-GCM-SHA256", "DES-CBC3-SHA"], minTLSVersion: "VersionTLS11" },
      },
      minVersion: "TLSv1.2",
      has: "ECDHE-RSA-AES128-GCM-SHA256",
      count: 1,
    },
    {
      title: "ciphers of 1.2 are none where 1.3 is the least",
      profile: {
        type: "Custom",
        custom: { ciphers: ["ECDHE-RSA-AES128-GCM-SHA256", "TLS_AES_256_GCM_SHA384"], minTLSVersion: "VersionTLS13" },
      },
      minVersion: "TLSv1.3",
      has: "TLS_AES_256_GCM_SHA384",
      count: 1,
    },
  ])("$title [certificates-tls-profile-1]", ({ profile, minVersion, has, count }) => {
    const decided = tlsOfProfile(profile);
    if (decided.verdict === "refused") throw new Error(decided.reason);
    expect(decided.settings.minVersion).toBe(minVersion);
    expect(decided.settings.ciphers).toContain(has);
    expect(decided.settings.ciphers.length).toBe(count);
    // Flags say the same: the operator hands a profile on by them.
    expect(tlsOfFlags(minVersion === "TLSv1.3" ? "VersionTLS13" : "VersionTLS12", decided.flags)).toMatchObject({
      settings: decided.settings,
    });
  });

  test.for([
    {
      title: "a list that is empty",
      profile: { type: "Custom", custom: { ciphers: [], minTLSVersion: "VersionTLS12" } },
      reason: "no ciphers",
    },
    {
      title: "only unsupported ciphers",
      profile: { type: "Custom", custom: { ciphers: ["NULL-MD5"] } },
      reason: "none is left",
    },
    {
      title: "1.3 with ciphers of 1.2 alone",
      profile: { type: "Custom", custom: { ciphers: ["ECDHE-RSA-AES128-GCM-SHA256"], minTLSVersion: "VersionTLS13" } },
      reason: "none is left",
    },
    { title: "a profile that there is not", profile: { type: "Future" }, reason: "no TLS profile Future" },
    {
      title: "a version that there is not",
      profile: { type: "Custom", custom: { ciphers: ["AES128-SHA"], minTLSVersion: "VersionTLS14" } },
      reason: "no TLS version VersionTLS14",
    },
  ])("$title is refused [certificates-tls-profile-2]", ({ profile, reason }) => {
    expect(tlsOfProfile(profile)).toMatchObject({ verdict: "refused", reason: expect.stringContaining(reason) });
  });

  test("what is left out is said [certificates-tls-profile-3]", () => {
    const decided = tlsOfProfile({ type: "Old" });
    expect(decided).toMatchObject({
      notes: [expect.stringContaining("before 1.2"), expect.stringContaining("DES-CBC3-SHA")],
    });
  });
});

describe("tlsOfFlags", () => {
  test.for([
    { title: "an older version", least: "VersionTLS10", suites: undefined, reason: "VersionTLS10 is not spoken" },
    { title: "a version that there is not", least: "TLS12", suites: undefined, reason: "no TLS version TLS12" },
    { title: "an empty list", least: undefined, suites: [], reason: "empty" },
    {
      title: "a name that is not IANA's",
      least: undefined,
      suites: ["ECDHE-RSA-AES128-GCM-SHA256"],
      reason: "not known",
    },
  ])("$title is refused [certificates-tls-profile-4]", ({ least, suites, reason }) => {
    expect(tlsOfFlags(least, suites)).toMatchObject({ verdict: "refused", reason: expect.stringContaining(reason) });
  });
});
