import { nodeIdentity, signers } from "../../api/names.ts";
import type { CertificateRequestFacts } from "../certificates/certificate-request-facts.ts";

/** The `spec` of a CertificateSigningRequest, with its request parsed. */
export interface KubeletRequest {
  readonly signer: string;
  readonly usages: readonly string[];
  readonly asked: Omit<CertificateRequestFacts, "publicKey" | "signature">;
}

/** Names and addresses in one request: each is compared with those of every node and Service. */
export const mostNames = 100;

/**
 * A request without what no request that is granted has: of lists that are too long one entry more than they may have, so that
 * it is refused for the same problem. A request of 32 KiB holds thousands of names.
 */
export function boundedRequest({ signer, usages, asked }: KubeletRequest): KubeletRequest {
  const { commonNames, organizations, otherAttributes, dnsNames, ipAddresses, emailAddresses, uris, otherNames } =
    asked;
  return {
    signer,
    usages,
    asked: {
      commonNames: commonNames.slice(-2),
      organizations: organizations.slice(0, 2),
      otherAttributes,
      dnsNames: dnsNames.slice(0, mostNames + 1),
      ipAddresses: ipAddresses.slice(0, mostNames + 1),
      emailAddresses: emailAddresses.slice(0, 1),
      uris: uris.slice(0, 1),
      otherNames,
    },
  };
}

/** The node that a request names. Of several common names the last one counts, as for Go; such a request is refused. */
export function namedNode({ asked: { commonNames } }: Pick<KubeletRequest, "asked">): string | undefined {
  const name = commonNames.at(-1);
  return name?.startsWith(nodeIdentity.userPrefix) === true ? name.slice(nodeIdentity.userPrefix.length) : undefined;
}

const purposes: Readonly<Record<string, string>> = {
  [signers.kubeletClient]: "client auth",
  [signers.kubeletServing]: "server auth",
};

/**
 * Why the signer refuses a request for a kubelet's certificate; `undefined`: it does not. The rules of
 * `k8s.io/kubernetes pkg/apis/certificates/helpers.go (v1.34)`, and stricter in two: one common name, and nothing else
 * in the subject than it and the organization.
 */
export function kubeletRequestProblem({ signer, usages, asked }: KubeletRequest): string | undefined {
  const purpose = purposes[signer];
  if (purpose === undefined) return `the signer ${signer} signs no certificates of kubelets`;
  if (asked.organizations.length !== 1 || asked.organizations[0] !== nodeIdentity.group)
    return `the organization of the subject is not ${nodeIdentity.group} alone`;
  if (asked.commonNames.length !== 1) return "the subject has not one common name";
  if (asked.otherAttributes > 0) return "the subject has attributes other than a common name and an organization";
  if (asked.commonNames[0]?.startsWith(nodeIdentity.userPrefix) !== true)
    return `the common name does not begin with ${nodeIdentity.userPrefix}`;
  const wanted = new Set(["digital signature", purpose]);
  const others = usages.filter((usage) => !wanted.has(usage) && usage !== "key encipherment");
  if (others.length > 0 || [...wanted].some((usage) => !usages.includes(usage)))
    return `the usages are not "digital signature", "${purpose}" and at most "key encipherment"`;
  if (asked.emailAddresses.length > 0) return "e-mail addresses are not allowed";
  if (asked.uris.length > 0) return "URIs are not allowed";
  if (asked.otherNames > 0) return "names other than DNS names and addresses are not allowed";
  const names = asked.dnsNames.length + asked.ipAddresses.length;
  if (names > mostNames) return `a machine has at most ${mostNames} names and addresses`;
  if (signer === signers.kubeletClient && names > 0) return "a client has no names and addresses";
  if (signer === signers.kubeletServing && names === 0) return "a server needs a name or an address";
  return undefined;
}
