import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import { joinNamespace, nodeIdentity, objects } from "../../api/names.ts";
import { mostRequestCharacters } from "../certificates/certificate-request-facts.ts";
import { credentialKey } from "./certificate-holder.ts";
import { defined } from "../../api/schema/defined.ts";

/** Accounts of the suite that machines join with. */
const accounts = `system:serviceaccount:${joinNamespace}:${objects.nodeBootstrapperPrefix}`;

/** Length of an issued certificate in base64, with those that certify it; kubelets' have some 2,000. */
const mostCertificateCharacters = 65_536;

/**
 * A request as far as the suite decides about it. Nodes and machines that join create as many as they like, of 1.5 MiB
 * each: of a request that is too long to be read nothing is kept but that it is there, and nothing of what others request.
 */
export function trimRequest({
  apiVersion,
  kind,
  metadata,
  spec,
  status,
}: CertificateSigningRequest): CertificateSigningRequest {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const { request, signerName, username, groups, usages, expirationSeconds, extra } = spec;
  const credential = extra !== undefined && Object.hasOwn(extra, credentialKey) ? extra[credentialKey] : undefined;
  const { certificate, conditions } = status ?? {};
  const isOurs = username?.startsWith(accounts) === true || username?.startsWith(nodeIdentity.userPrefix) === true;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...defined({ uid, resourceVersion, creationTimestamp, deletionTimestamp }),
    },
    spec: {
      request: isOurs && request.length <= mostRequestCharacters ? request : "",
      signerName,
      ...defined({ username, groups, usages, expirationSeconds }),
      ...(credential === undefined ? {} : { extra: { [credentialKey]: credential } }),
    },
    ...(status === undefined
      ? {}
      : {
          status: {
            ...defined({ conditions }),
            ...(isOurs && certificate !== undefined && certificate.length <= mostCertificateCharacters
              ? { certificate }
              : {}),
          },
        }),
  };
}
