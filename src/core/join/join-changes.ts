import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import { type NodeBinding, maxMachineAddresses } from "../../api/kinds/node-binding.ts";
import { nodeIdentity } from "../../api/names.ts";
import { defined } from "../../api/schema/defined.ts";
import { timestampOf } from "../../api/schema/object.ts";
import { certificatesAfterJoin } from "./certificate-holder.ts";
import type { JoinCase, RequestFacts } from "./join-decision.ts";
import type { PlaceOfRequest } from "./join-places.ts";
import { poolOfRequester } from "./node-request.ts";

/** The status of a place once it has let in a machine. */
export const spentPlace = (
  { machine, publicKey }: Pick<JoinCase<"spendPlace">, "machine" | "publicKey">,
  now: number,
): NonNullable<JoinPlace["status"]> => ({ machine, publicKey, joinedAt: timestampOf(now) });

/** Fields of a binding that has ended and that another machine takes, for a merge patch. */
export const absentFields = {
  joinedAt: null,
  place: null,
  addresses: null,
  nodeUID: null,
  lastPool: null,
  releasedAt: null,
  revoked: null,
  certificates: null,
  formerCertificates: null,
  formerExpiresAt: null,
  exclusive: null,
} as const;

/** kube-controller-manager --cluster-signing-duration: what a request that names no duration gets at most. */
const longestSeconds = 366 * 86_400;

/** Of a machine that was in no pool: it may have been one of the control plane. */
const unknownPool = "unknown";
/** Of a machine whose key is not known: no key has this digest. */
const noKey = "0".repeat(64);

/** Whether a binding records the release of a machine that the suite did not admit, of which it knows the name alone. */
export const isOfUnknownMachine = ({ publicKey }: Pick<NodeBinding["spec"], "publicKey">): boolean =>
  publicKey === noKey;

/** The pool of a binding, if it is known. */
export const knownPoolOf = (spec: Pick<NodeBinding["spec"], "publicKey" | "pool">): string | undefined =>
  isOfUnknownMachine(spec) && spec.pool === unknownPool ? undefined : spec.pool;

/**
 * The spec of a binding that records the release of a node which the suite did not admit: the certificates of its machine are not
 * known, and another approver may renew them.
 *
 * @param pool of the node; `undefined`: it is in none, or gone.
 */
export function releasedSpec(pool: string | undefined, now: number): NodeBinding["spec"] {
  const end = timestampOf(now + 1000 * longestSeconds);
  return {
    pool: pool ?? unknownPool,
    publicKey: noKey,
    expiresAt: end,
    formerExpiresAt: end,
    exclusive: true,
    revoked: true,
  };
}

/** The spec of a binding once the name belongs to the key of a request. */
export function boundSpec(
  request: CertificateSigningRequest,
  { csr, binding, name, lines }: RequestFacts,
  now: number,
): NodeBinding["spec"] {
  const until = now + 1000 * Math.min(longestSeconds, request.spec.expirationSeconds ?? longestSeconds);
  const isNode = csr.requester.username === `${nodeIdentity.userPrefix}${name}`;
  const isSame = binding !== undefined && binding.spec.publicKey === csr.publicKey;
  const isOfHolder = binding !== undefined && (isNode || csr.binding?.isGood === true);
  return {
    ...(isOfHolder ? keptSpec(binding.spec, isNode) : joinedSpec(request, { csr, binding, name, lines }, now)),
    publicKey: csr.publicKey,
    // A node renews to another key: its certificate of the former one is good until its own end.
    expiresAt:
      (isSame || isOfHolder) && Date.parse(binding.spec.expiresAt) > until
        ? binding.spec.expiresAt
        : timestampOf(until),
  };
}

type OtherFields = Omit<NodeBinding["spec"], "publicKey" | "expiresAt">;

/** The fields that stay when the machine that has the name requests its next certificate. */
function keptSpec({ releasedAt, lastPool, ...rest }: NodeBinding["spec"], isNode: boolean): OtherFields {
  return {
    ...rest,
    ...defined({
      // A machine that joins by the account of its pool again is no longer one whose Node is missing.
      releasedAt: isNode ? releasedAt : undefined,
      // The pool of its deleted Node says nothing of its next one.
      lastPool: releasedAt !== undefined && !isNode ? undefined : lastPool,
    }),
  };
}

/** The record of a machine that takes the name. */
function joinedSpec(
  request: CertificateSigningRequest,
  { csr, binding, name, lines }: Pick<RequestFacts, "csr" | "binding" | "name" | "lines">,
  now: number,
): OtherFields {
  const place = csr.place.verdict === "free" ? csr.place : undefined;
  return {
    ...certificatesAfterJoin(binding?.spec, csr.publicKey, lines.holder, now),
    pool: poolOfRequester(request) ?? "",
    joinedAt: timestampOf(now),
    ...defined({
      place: place?.place.metadata.name,
      addresses: place === undefined ? undefined : hostsOf(place, name),
    }),
  };
}

/** Addresses that a machine may serve under: where it fetched its configuration from, and those of its token. */
const hostsOf = ({ place, isHeld }: Extract<PlaceOfRequest, { readonly verdict: "free" }>, name: string) =>
  [...(isHeld ? [name] : []), ...(place.spec.addresses ?? [])].slice(0, maxMachineAddresses);
