import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { servedVersions } from "../../ignition/convert-ignition.ts";
import { negotiateVersion } from "./negotiate-version.ts";

const ign = "application/vnd.coreos.ignition+json";
const answer = (accept: string | undefined) => {
  const result = negotiateVersion(accept);
  return result.verdict === "version" ? result.version : `refused ${result.asked}`;
};

describe("negotiateVersion", () => {
  // What the reference answers, run for run; `but` is where we differ on purpose, and why.
  test.for([
    [undefined, "2.2.0"],
    ["", "2.2.0"],
    ["*/*", "2.2.0"],
    ["text/html", "2.2.0"],
    [ign, "2.2.0"],
    [`${ign};version=1`, "2.2.0"],
    [`${ign};version=abc`, "2.2.0"],
    [`${ign};version="3.2.0"`, "2.2.0"],
    [`${ign};VERSION=3.2.0`, "2.2.0"],
    [`${ign};version=1.0.0`, "refused 1.0.0"],
    [`${ign};version=2.1.0`, "refused 2.1.0"],
    [`${ign};version=2.2.0`, "2.2.0"],
    [`${ign};version=2.2.0-experimental`, "2.2.0"],
    [`${ign};version=2.4.0`, "2.2.0"],
    [`${ign};version=2.9.9`, "2.2.0"],
    [`${ign};version=3.1.0`, "3.1.0"],
    [`${ign};version=3.1.7`, "3.1.0"],
    [`${ign};version=3.2.0`, "3.2.0"],
    [`${ign};version=3.3.0`, "3.3.0"],
    [`${ign};version=3.4.0`, "3.4.0"],
    [`${ign};version=3.5.0`, "3.5.0"],
    [`${ign};version=3.5.0-experimental`, "3.5.0"],
    [`${ign};version=3.6.0`, "3.5.0"],
    [`${ign};version=3.6.0-experimental`, "3.5.0"],
    [`${ign};version=4.0.0`, "refused 4.0.0"],
    [`${ign};version=3.2.0;q=0.5, ${ign};version=3.4.0;q=0.9`, "3.4.0"],
    [`${ign};version=1.0.0, ${ign};version=3.2.0;q=0.5`, "refused 1.0.0"],
    // Ignition 0.x, then 2.x: coreos/ignition internal/resource/http.go.
    [`${ign};version=2.4.0, ${ign};version=1;q=0.5, */*;q=0.1`, "2.2.0"],
    [`${ign};version=3.2.0, */*;q=0.1`, "3.2.0"],
    // A machine of tomorrow is told what it cannot have; "anything" is not taken for an older major version.
    [`${ign};version=4.0.0, */*;q=0.1`, "refused 4.0.0"],
  ] as const)("%s gets %s, as from the reference [join-negotiate-version-1]", ([accept, version]) => {
    expect(answer(accept)).toBe(version);
  });

  test.for([
    { accept: `${ign};version=3.0.0`, reference: "500", ours: "refused 3.0.0", why: "there is no conversion to it" },
    { accept: `${ign};version=3.2.0;q=0`, reference: "3.2.0", ours: "2.2.0", why: "q=0 is never" },
    { accept: `${ign};version=2.2.0;q=0`, reference: "2.2.0", ours: "refused anything but 2.2.0", why: "q=0 is never" },
    {
      accept: "text/vnd.coreos.ignition+json;version=3.2.0",
      reference: "3.2.0",
      ours: "2.2.0",
      why: "it is another type, as text/html",
    },
  ])("$accept gets $ours where the reference gives $reference: $why [join-negotiate-version-2]", ({ accept, ours }) => {
    expect(answer(accept)).toBe(ours);
  });

  test.for([
    [
      "spaces and capitals of the type are nobody's business",
      `  APPLICATION/vnd.coreos.ignition+json ; version=3.3.0 ; q=1`,
      "3.3.0",
    ],
    ["the first version that can be read counts", `${ign};version=x;version=3.3.0;version=3.4.0`, "3.3.0"],
    [
      "the first weight that can be read counts",
      `${ign};version=3.3.0;q=x;q=0.1;q=1, ${ign};version=3.4.0;q=0.2`,
      "3.4.0",
    ],
    ["a weight above 1 is none", `${ign};version=3.3.0;q=5, ${ign};version=3.4.0`, "3.3.0"],
    ["what never counts leaves room for another", `${ign};version=3.4.0;q=0, ${ign};version=3.2.0;q=0.1`, "3.2.0"],
    ["of equal ones the first", `${ign};version=3.3.0;q=0.5, ${ign};version=3.4.0;q=0.5`, "3.3.0"],
    ["what has no slash is no type", `ignition;version=3.3.0, ${ign};version=3.4.0`, "3.4.0"],
    ["a wildcard has no version", `application/*;version=3.3.0`, "2.2.0"],
  ] as const)("%s [join-negotiate-version-3]", ([, accept, version]) => {
    expect(answer(accept)).toBe(version);
  });

  test("a refusal says what was asked for and what there is [join-negotiate-version-4]", () => {
    expect(negotiateVersion(`${ign};version=3.0.0`)).toEqual({
      verdict: "refused",
      asked: "3.0.0",
      offered: ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"],
    });
  });

  test("whatever is sent is answered with a version that is served, or refused in few words [join-negotiate-version-5]", () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom(ign, ";", ",", "version=", "q=", "3.2.0", "3.0.0", "0", "-", "*/*"),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 2000 }), (parts) => {
        const result = negotiateVersion(parts.join(""));
        if (result.verdict === "version") expect(servedVersions).toContain(result.version);
        else expect(result.asked.length).toBeLessThan(200);
      }),
    );
    expect(negotiateVersion(`${ign};version=3.2.0,${"x/y,".repeat(100_000)}`)).toMatchObject({ verdict: "refused" });
  });
});
