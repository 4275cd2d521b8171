import { expect, test } from "vitest";
import type { CertificateSigningRequest } from "../api/foreign/kubernetes.ts";
import type { NodeBinding } from "../api/kinds/node-binding.ts";
import { signers } from "../api/names.ts";
import { credentialKey } from "../core/join/certificate-holder.ts";
import { DecisionMeter } from "../core/metrics/decision-meter.ts";
import type { Caches, Context } from "../kube/controller.ts";
import { emptyMemory } from "./join-memory.ts";
import { joinWatches } from "./join-watches.ts";
import { performJoin } from "./perform-join.ts";

const hex = (digits: string) => digits.padStart(64, "0");

const requestOf = (name: string, certificate: string, node = "w1") =>
  ({
    metadata: { name, creationTimestamp: "2030-01-01T00:00:00Z" },
    spec: {
      username: `system:node:${node}`,
      signerName: signers.kubeletClient,
      request: "",
      extra: { [credentialKey]: [`X509SHA256=${certificate}`] },
    },
  }) as unknown as CertificateSigningRequest;

const bindingOf = (spec: Partial<NodeBinding["spec"]>) =>
  ({ metadata: { name: "w1" }, spec: { pool: "worker", ...spec } }) as NodeBinding;

/** The approver's memory, with one binding of `w1` in the cache and no time that passes. */
function turns(binding: NodeBinding) {
  const memory = emptyMemory();
  const caches = {
    of: () => ({ get: (name: string) => (name === "w1" ? binding : undefined) }),
  } as unknown as Caches;
  const context = { caches, clock: { monotonic: () => 0 } } as unknown as Context;
  const decisions = new DecisionMeter();
  const arrives = (request: CertificateSigningRequest) =>
    joinWatches(memory)[0].concerns?.({ key: request.metadata.name, before: undefined, after: request }, caches);
  return {
    arrives,
    take: async (request: CertificateSigningRequest) => {
      const { name } = request.metadata;
      const pass = await performJoin(
        { do: "takeTurn", because: "" },
        { request },
        { name, memory, decisions, context },
      );
      return "turn" in pass ? pass.turn?.verdict : undefined;
    },
  };
}

test("a former machine takes no turn from the machine that has the name, by however many certificates [attack-joining-47]", async () => {
  const [own, former] = [hex("a"), hex("f")];
  const of = turns(
    bindingOf({ certificates: [own], formerCertificates: [{ sha256: former, expiresAt: "2031-01-01T00:00:00Z" }] }),
  );
  const renewal = requestOf("renewal", own);
  of.arrives(renewal);
  const flood = Array.from({ length: 300 }, (_, index) =>
    requestOf(`flood-${index}`, index % 3 === 0 ? former : hex(`${index % 30}`)),
  );
  let judged = 0;
  for (const request of flood) {
    of.arrives(request);
    if ((await of.take(request)) === "judge") judged += 1;
  }
  expect(judged).toBe(60);
  expect(await of.take(renewal)).toBe("judge");
});

test.for<{ title: string; spec: Partial<NodeBinding["spec"]>; node: string }>([
  { title: "that its binding does not list", spec: { certificates: [hex("b")] }, node: "w1" },
  {
    title: "that is one of a former machine as well",
    spec: { certificates: [hex("a")], formerCertificates: [{ sha256: hex("a"), expiresAt: "2031-01-01T00:00:00Z" }] },
    node: "w1",
  },
  { title: "of another node", spec: { certificates: [hex("a")] }, node: "w2" },
])("a certificate $title has no turns beside those of its name [attack-joining-48]", async ({ spec, node }) => {
  const of = turns(bindingOf(spec));
  const request = requestOf("one", hex("a"), node);
  of.arrives(request);
  for (let index = 0; index < 15; index += 1) of.arrives(requestOf(`flood-${index}`, hex("c"), node));
  expect(await of.take(request)).toBe("abandoned");
});
