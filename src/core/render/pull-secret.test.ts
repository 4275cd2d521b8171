import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { compactJson, pullSecretOf } from "./pull-secret.ts";

const secret = (text: string, type = "kubernetes.io/dockerconfigjson") => ({
  type,
  data: { ".dockerconfigjson": encodeBase64(new TextEncoder().encode(text)) },
});

describe("the pull secret of machines", () => {
  test("is compact, whatever its author wrote, and otherwise as it is [render-pull-secret-1]", () => {
    const text =
      ' {\n\t"auths" : { "r.example" : { "auth" : "dTpw" } } ,\r\n "credHelpers": {"a": "b c"}, "n": 1.50e+3 }\n';
    expect(pullSecretOf(secret(text))).toEqual({
      verdict: "read",
      text: '{"auths":{"r.example":{"auth":"dTpw"}},"credHelpers":{"a":"b c"},"n":1.50e+3}',
    });
    expect(pullSecretOf(secret('{"auths":{}}'))).toMatchObject({ verdict: "read" });
    expect(pullSecretOf(undefined)).toEqual({ verdict: "absent" });
  });

  test("keeps what stands in strings, and means the same [render-pull-secret-2]", () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false }), fc.constantFrom(0, 1, 3), (text, indent) => {
        const value: unknown = JSON.parse(text);
        expect(compactJson(JSON.stringify(value, undefined, indent))).toBe(JSON.stringify(value));
      }),
    );
  });

  test.for([
    { title: "no JSON", given: secret('{"auths": {"a": }'), says: "is no JSON" },
    { title: "nothing", given: secret(""), says: "has no .dockerconfigjson" },
    { title: "without the key", given: { type: "kubernetes.io/dockerconfigjson", data: {} }, says: "has no" },
    { title: "auths of null", given: secret('{"auths":null}'), says: "auths of its .dockerconfigjson is no object" },
    { title: "the old shape", given: secret('{"r.example":{"auth":"dTpw"}}'), says: "has no field auths" },
    { title: "a list", given: secret("[]"), says: "is no JSON object" },
    { title: "an entry that is a text", given: secret('{"auths":{"r.example":"dTpw"}}'), says: '"r.example"' },
    { title: "another type", given: secret('{"auths":{}}', "Opaque"), says: "is of type Opaque" },
  ])("is refused with its reason, and without its contents: $title [render-pull-secret-3]", ({ given, says }) => {
    const judged = pullSecretOf(given);
    expect(judged).toMatchObject({ verdict: "refused", problem: expect.stringContaining(says) });
    expect(JSON.stringify(judged)).not.toContain("dTpw");
  });
});
