import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { isOfUnknownMachine, knownPoolOf } from "../join/join-changes.ts";
import { endedTokensStayMs, tokenEnd } from "../join/ended-tokens.ts";
import type { Facts } from "../pool/pool-queries.ts";
import { type Explanation, type Remedies, section } from "./explanation.ts";
import { shellWord } from "../text/shell-word.ts";

const explanation = (
  kind: string,
  name: string,
  facts: Facts,
  state: Pick<Explanation, "reason" | "headline"> & Partial<Remedies>,
  sections: Explanation["sections"] = [],
): Explanation => ({
  subject: `${kind}/${name}`,
  asOf: timestampOf(facts.heardAt ?? facts.now),
  freshness: facts.heardAt === undefined ? "Unknown" : "Fresh",
  sections,
  next: [],
  todo: [],
  ...state,
});

/** Whether machines can still fetch a configuration by a token. */
export function explainProvisioningToken(token: ProvisioningToken, facts: Facts): Explanation {
  const { metadata, spec, status } = token;
  const { name } = metadata;
  const uses = `${status?.uses ?? 0}${spec.maxUses === undefined ? "" : ` of ${spec.maxUses}`} uses`;
  const sections = section(
    "Used",
    status?.lastUsedAt === undefined ? [] : [`last at ${status.lastUsedAt} by ${status.lastUsedBy?.[0] ?? ""}`],
  );
  const of = (state: Parameters<typeof explanation>[3]) =>
    explanation("provisioningtoken", name, facts, state, sections);
  const end = tokenEnd(token, facts.now);
  if (end !== undefined && end.endedAt <= facts.now)
    return of({
      reason: end.because,
      headline: `The token ${name} gives no configuration any more: ${end.because === "Expired" ? `it ended at ${timestampOf(end.endedAt)}` : `it had ${uses}`}.`,
      next: [`it is removed by itself at ${timestampOf(end.endedAt + endedTokensStayMs)}`],
      todo: [`for more machines, make another token: mco token create --pool ${shellWord(spec.pool)}`],
    });
  if (facts.members.pool(spec.pool) === undefined)
    return of({
      reason: "PoolNotFound",
      headline: `The token ${name} is for pool ${spec.pool}, which does not exist.`,
      todo: [`make the pool, or revoke the token: mco token revoke ${name}`],
    });
  return of({
    reason: "Good",
    headline: `The token ${name} gives the configuration of pool ${spec.pool}: ${uses}${spec.expiresAt === undefined ? "" : `, until ${spec.expiresAt}`}.`,
  });
}

/** What room for one new node waits for. */
export function explainJoinPlace({ metadata: { name }, spec, status }: JoinPlace, facts: Facts): Explanation {
  const isOver = Date.parse(spec.expiresAt) <= facts.now;
  const who = spec.node === undefined ? "a machine" : `the machine ${spec.node}`;
  if (status?.machine !== undefined)
    return explanation("joinplace", name, facts, {
      reason: "Spent",
      headline: `The machine ${status.machine} joined pool ${spec.pool} by it, and no other one does.`,
      next: [`the controller removes it at ${spec.expiresAt}`],
    });
  return explanation("joinplace", name, facts, {
    reason: isOver ? "Expired" : "Waiting",
    headline: isOver
      ? `The place for ${who} in pool ${spec.pool} ended at ${spec.expiresAt}, and none took it.`
      : `${who} was served the configuration of pool ${spec.pool} and may join until ${spec.expiresAt}.`,
    next: isOver
      ? ["the controller removes it"]
      : [`mco explain ${shellWord(`pool/${spec.pool}`)} names machines that are overdue`],
    todo: isOver ? ["if the machine is still to join, boot it again: it fetches its configuration again"] : [],
  });
}

/** To which machine a name belongs, and what frees it. */
export function explainNodeBinding({ metadata: { name }, spec }: NodeBinding, facts: Facts): Explanation {
  const node = facts.members.node(name);
  const refused = refusedRequests(name, spec, facts.now);
  const sections = [...section("Bound to", [boundTo(spec)]), ...section("Requests for certificates", refused.lines)];
  const of = (state: Parameters<typeof explanation>[3]) => explanation("nodebinding", name, facts, state, sections);
  if (spec.revoked === true)
    return of({
      reason: "Revoked",
      headline: `An administrator released the name ${name}: its machine${isOfUnknownMachine(spec) ? ", which another approver admitted," : ""} gets no certificate.`,
      next: ["the next machine that takes the name ends this"],
      todo: refused.todo,
    });
  if (spec.releasedAt !== undefined && node === undefined)
    return of({
      reason: "Released",
      headline: `The Node ${name} was deleted at ${spec.releasedAt}: the name is free, and its machine may come back.`,
      next: ["its machine, or another one that joins by the name, takes it"],
      todo: [`if the machine shall not come back: mco node release ${name}`],
    });
  if (Date.parse(spec.expiresAt) <= facts.now)
    return of({
      reason: "CertificateEnded",
      headline: `The last certificate of ${name} ended at ${spec.expiresAt}: its kubelet cannot report.`,
      todo: [`look at the machine's kubelet; a machine that is gone for good: kubectl delete node ${name}`],
    });
  return node === undefined
    ? of({
        reason: "NotRegistered",
        headline: `The machine ${name} has its certificate, and no Node yet.`,
        next: [
          `its kubelet registers it; mco explain ${shellWord(`pool/${spec.pool}`)} names machines that are overdue`,
        ],
      })
    : of({
        reason: "Bound",
        headline: `The name ${name} belongs to its machine until ${spec.expiresAt}.`,
      });
}

function boundTo(spec: NodeBinding["spec"]): string {
  if (!isOfUnknownMachine(spec))
    return `the machine of key ${spec.publicKey.slice(0, 12)}…, which joined pool ${spec.pool}`;
  const pool = knownPoolOf(spec);
  return `no known machine: this suite did not admit the one of the name, and records its release alone; its Node was in ${pool === undefined ? "no pool, or gone" : `pool ${pool}`} then`;
}

/** The name of the admission policy that refuses requests for certificates. */
const policy = "former-machines-of-nodes";

/**
 * Which requests for certificates of a node the API server refuses, or leaves open, because of other machines that had its name,
 * and how to end that.
 */
export function refusedRequests(
  name: string,
  spec: NodeBinding["spec"],
  now: number,
): { readonly lines: readonly string[]; readonly todo: readonly string[] } {
  const { revoked, exclusive, expiresAt, formerExpiresAt, formerCertificates = [] } = spec;
  const pool = knownPoolOf(spec);
  const isGood = (end: string | undefined): end is string => end !== undefined && Date.parse(end) > now;
  if (revoked === true && [expiresAt, formerExpiresAt].some(isGood))
    return {
      lines: [
        `the API server refuses all requests of the Node (policy ${policy}), because an administrator released the name`,
      ],
      todo: [
        `to have a machine of this name, make a token for it: mco token create --pool ${pool === undefined ? "POOL" : shellWord(pool)} --node ${name}`,
        `to take the release back: kubectl delete nodebinding ${name}`,
      ],
    };
  if (!isGood(formerExpiresAt)) return { lines: [], todo: [] };
  const refused = formerCertificates.filter((one) => isGood(one.expiresAt));
  const open = `another machine had the name before: requests of the Node need a listed certificate until ${formerExpiresAt}`;
  if (exclusive === true)
    return {
      lines: [
        open,
        `the API server refuses those that are sent with any other certificate (policy ${policy})`,
        `if the right machine is refused: kubectl patch nodebinding ${name} --type merge -p '{"spec":{"exclusive":null}}'`,
      ],
      todo: [],
    };
  const remedy =
    refused.length === 0
      ? [
          "no certificate of that machine is recorded, so that the API server refuses none of its requests; it renews where another approver lets all nodes renew (docs/joining.md): turn it off",
          `if it is gone for good: kubectl patch nodebinding ${name} --type merge -p '{"spec":{"formerExpiresAt":null}}'`,
        ]
      : [
          `the API server refuses those that are sent with a recorded certificate of that machine (${refused.length}; policy ${policy})`,
          `if these are of the right machine, move them from formerCertificates to certificates: kubectl edit nodebinding ${name}`,
        ];
  return { lines: [open, ...remedy], todo: [] };
}
