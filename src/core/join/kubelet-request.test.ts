import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nodeIdentity, signers } from "../../api/names.ts";
import { type KubeletRequest, boundedRequest, kubeletRequestProblem, mostNames, namedNode } from "./kubelet-request.ts";

const request = (asked: Partial<KubeletRequest["asked"]> = {}): KubeletRequest => ({
  signer: signers.kubeletServing,
  usages: ["digital signature", "server auth"],
  asked: {
    commonNames: ["system:node:w1"],
    organizations: [nodeIdentity.group],
    otherAttributes: 0,
    dnsNames: ["w1"],
    ipAddresses: [],
    emailAddresses: [],
    uris: [],
    otherNames: 0,
    ...asked,
  },
});
const many = (count: number, text: string) => Array.from({ length: count }, (_, index) => `${text}${index}`);

describe("what is kept of a request", () => {
  test("is no more than the names that one may have, so that thousands of names do not fill the memory [attack-requests-4]", () => {
    const { asked } = boundedRequest(
      request({
        commonNames: many(700, "system:node:w"),
        organizations: many(700, "system:nodes"),
        dnsNames: many(4000, "a"),
        ipAddresses: many(4000, "10.0.0."),
        emailAddresses: many(700, "a@b"),
        uris: many(700, "a://b"),
      }),
    );
    const lengths = Object.values(asked).flatMap((value) => (Array.isArray(value) ? [value.length] : []));
    expect(lengths.reduce((sum, length) => sum + length)).toBeLessThan(2 * mostNames + 10);
  });

  test("is refused for the same problem, and granted if the whole is [attack-requests-5]", () => {
    const texts = (one: string) => fc.array(fc.constantFrom(one, "system:node:w1", "x"), { maxLength: 4 });
    const names = fc.integer({ min: 0, max: 3 * mostNames }).map((count) => many(count, "a"));
    fc.assert(
      fc.property(
        fc.constantFrom(signers.kubeletServing, signers.kubeletClient, "other"),
        fc.record({
          commonNames: texts("system:node:w1"),
          organizations: texts(nodeIdentity.group),
          dnsNames: names,
          ipAddresses: names,
          emailAddresses: texts("a@b"),
          uris: texts("a://b"),
        }),
        (signer, asked) => {
          const whole = { ...request(asked), signer };
          expect(kubeletRequestProblem(boundedRequest(whole))).toBe(kubeletRequestProblem(whole));
        },
      ),
    );
  });

  test("names one node, of several common names the last, as Go reads it [attack-requests-6]", () => {
    const nodeOf = (commonNames: readonly string[]) => namedNode(boundedRequest(request({ commonNames })));
    expect(nodeOf(["system:node:w1"])).toBe("w1");
    expect(nodeOf([...many(700, "system:node:w"), "system:node:last"])).toBe("last");
    expect(nodeOf(["system:node:w1", "somebody"])).toBeUndefined();
    expect(nodeOf([])).toBeUndefined();
  });
});
