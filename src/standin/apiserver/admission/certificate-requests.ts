import { signers } from "../../../api/names.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import type { Authorizer } from "../access/authorization.ts";
import type { KubeObject, UserInfo } from "../schema/contract.ts";
import { invalid as invalidField, tooLong } from "../schema/field-errors.ts";
import { at, equalJson, isObject, textAt, type JsonObject } from "../schema/json-values.ts";
import { approvals, conditionsIn } from "../schema/kinds/signing-request.ts";
import { forbidden, invalid, type Refusal } from "../schema/status.ts";
import { isJoiningAccount, shareOf } from "../schema/shares.ts";
import { verifySignature } from "../access/verify-signature.ts";
import { timestamp } from "../schema/timestamp.ts";
import { signingRequests, askedBy } from "../access/signing-requests.ts";

/** Of a request by a machine: kubelets send none, and requests without end would fill the room of all others. */
const annotationsLimit = 4 * 1024;

/**
 * A certificate request records its actual requester, and its decisions record their time: `k8s.io/kubernetes
 * pkg/registry/certificates (v1.34)`.
 */
export function certificateRequester(clock: Clock): AdmissionPlugin {
  return {
    mutate({ operation, served, subresource, object, before }, { user }): KubeObject | undefined {
      if (served.stored !== signingRequests || object === undefined) return undefined;
      if (operation === "CREATE" && subresource === "") return askedAs(user, object);
      return operation === "UPDATE" && subresource !== ""
        ? withTimes(object, before, timestamp(clock.now()))
        : undefined;
    },
    /** The requester must have the key. */
    async validate({ operation, served, subresource, name, object, before }, { user }) {
      if (served.stored !== signingRequests || subresource !== "") return undefined;
      if (isOfMachine(user) && annotationLength(object) > Math.max(annotationsLimit, annotationLength(before)))
        return invalid(served.definition, name, [tooLong("metadata.annotations", annotationsLimit)]);
      if (operation !== "CREATE") return undefined;
      const asked = askedBy(object);
      if (asked === undefined || (await verifySignature(asked))) return undefined;
      return invalid(served.definition, name, [
        invalidField(
          "spec.request",
          textAt(object, "spec", "request"),
          "the signature of the request is not that of its key",
        ),
      ]);
    },
  };
}

const isOfMachine = (user: UserInfo): boolean => isJoiningAccount(user) || shareOf(user).part === "nodes";

const annotationLength = (object: KubeObject | undefined): number =>
  Object.entries(object?.metadata.annotations ?? {}).reduce(
    (length, [key, value]) => length + key.length + value.length,
    0,
  );

function askedAs(user: UserInfo, object: KubeObject): KubeObject {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const { username: _, uid: __, groups: ___, extra: ____, ...asked } = spec;
  return {
    ...object,
    spec: {
      ...asked,
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: [...user.groups],
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    },
  };
}

function withTimes(object: KubeObject, before: KubeObject | undefined, now: string): KubeObject | undefined {
  const status = object["status"];
  if (!isObject(status) || status["conditions"] === undefined) return undefined;
  const conditions = conditionsIn(object).map((condition): JsonObject => {
    const same = conditionsIn(before).find(
      (other) => other["type"] === condition["type"] && other["status"] === condition["status"],
    );
    return {
      ...condition,
      lastUpdateTime: condition["lastUpdateTime"] ?? now,
      lastTransitionTime: condition["lastTransitionTime"] ?? same?.["lastTransitionTime"] ?? now,
    };
  });
  return { ...object, status: { ...status, conditions } };
}

/** The status that is sent to /status, with the approval that is there: /status neither changes nor loses it unseen. */
export function withDecisionsOf(before: KubeObject, status: unknown): unknown {
  if (!isObject(status)) return status;
  const sent = conditionsIn({ status });
  const kept = conditionsIn(before);
  const conditions = sent.map((condition) => {
    const type = condition["type"];
    const ofType = (list: readonly JsonObject[]) => list.filter((other) => other["type"] === type);
    if (typeof type !== "string" || !approvals.includes(type) || ofType(sent).length !== ofType(kept).length)
      return condition;
    return ofType(kept)[ofType(sent).indexOf(condition)] ?? condition;
  });
  return status["conditions"] === undefined ? status : { ...status, conditions };
}

/**
 * Approving and signing require a right to the signer, or to its whole domain; no certificate grants system:masters:
 * `k8s.io/kubernetes plugin/pkg/admission/certificates (v1.34)`.
 */
export function signerRights(access: Authorizer): AdmissionPlugin {
  const may = (user: UserInfo, verb: string, signer: string) =>
    [signer, `${signer.split("/")[0]}/*`].some((name) =>
      access.allows({
        user,
        verb,
        group: "certificates.k8s.io",
        resource: "signers",
        subresource: "",
        namespace: "",
        name,
      }),
    );
  return {
    validate(request, { user }): Refusal | undefined {
      const { operation, served, subresource, name, object, before } = request;
      if (served.stored !== signingRequests) return undefined;
      if (operation === "CREATE" && subresource === "") return mastersRefused(request);
      if (operation !== "UPDATE") return undefined;
      const signer = textAt(before, "spec", "signerName");
      if (subresource === "approval")
        return may(user, "approve", signer)
          ? undefined
          : forbidden(
              served.definition,
              name,
              `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`,
            );
      const decided =
        !equalJson(at(before, "status", "certificate") ?? "", at(object, "status", "certificate") ?? "") ||
        !equalJson(conditionsIn(before), conditionsIn(object));
      if (subresource !== "status" || !decided || may(user, "sign", signer)) return undefined;
      return forbidden(
        served.definition,
        name,
        `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`,
      );
    },
  };
}

function mastersRefused({ served, name, object }: AdmissionRequest): Refusal | undefined {
  if (
    textAt(object, "spec", "signerName") !== signers.client ||
    askedBy(object)?.organizations.includes("system:masters") !== true
  )
    return undefined;
  return forbidden(served.definition, name, `use of ${signers.client} signer with system:masters group is not allowed`);
}
