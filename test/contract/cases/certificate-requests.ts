import { X509Certificate } from "node:crypto";
import { expect } from "vitest";
import { type Api, at, type Json, type Reply } from "../api-target.ts";
import { signingRequest } from "../../support/test-pki.ts";
import { type ContractCase, created, eventually } from "./case-fixture.ts";

const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const clientSigner = "kubernetes.io/kube-apiserver-client-kubelet";
const servingSigner = "kubernetes.io/kubelet-serving";
const nodeA = "O=system:nodes,CN=system:node:node-a";

const csr = (name: string, request: string, spec: Json = {}) => ({
  apiVersion: "certificates.k8s.io/v1",
  kind: "CertificateSigningRequest",
  metadata: { name },
  spec: { request, signerName: "example.com/contract", usages: ["client auth"], ...spec },
});
const made = async (api: Api, name: string, spec: Json = {}, subject = "CN=x") =>
  created(api, requests, csr(name, await signingRequest(subject), spec));
const approved = { type: "Approved", status: "True", reason: "Test", message: "m" };
/** For every version. */
const withConditions = (object: Json, conditions: readonly Json[], more: Json = {}) => ({
  ...object,
  metadata: { name: at(object, "metadata.name") },
  status: { conditions, ...more },
});
const causes = (reply: Reply) =>
  ((reply.at("details.causes") ?? []) as Json[]).map(
    (cause) => `${String(at(cause, "reason"))} ${String(at(cause, "field"))}`,
  );

/** A role for one user alone, in force. */
async function allow(api: Api, namespace: string, user: string, rules: readonly Json[]): Promise<void> {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  await created(api, `${rbac}/clusterroles`, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: namespace },
    rules,
  });
  await created(api, `${rbac}/clusterrolebindings`, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: namespace },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: namespace },
    subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: user }],
  });
  await eventually(async () => expect((await api.as(user as "alice").get(requests)).status).toBe(200));
}

const certificatesGroup = { apiGroups: ["certificates.k8s.io"] };
const everythingButSigners = {
  ...certificatesGroup,
  resources: ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"],
  verbs: ["*"],
};

async function signed(api: Api, name: string): Promise<X509Certificate> {
  const object = await eventually(async () => {
    const reply = await api.get(`${requests}/${name}`);
    expect(reply.at("status.certificate")).toBeDefined();
    return reply;
  });
  return new X509Certificate(Buffer.from(String(object.at("status.certificate")), "base64"));
}

export const certificateRequestCases: readonly ContractCase[] = [
  {
    title: "a certificate request cannot be changed, whichever user writes it",
    async run(api, namespace) {
      const first = await made(api.as("node-a"), namespace, {}, nodeA);
      expect(first.at("spec.username")).toBe("system:node:node-a");
      const changed = await api.put(`${requests}/${namespace}`, {
        ...first.json,
        metadata: { name: namespace, labels: { a: "b" } },
        spec: { ...(first.json["spec"] as Json), username: "root", signerName: "example.com/other" },
        status: { conditions: [approved] },
      });
      expect(changed.status, changed.text).toBe(200);
      expect(changed.at("metadata.labels")).toEqual({ a: "b" });
      expect(changed.json["spec"]).toEqual(first.json["spec"]);
      expect(changed.at("status.conditions")).toBeUndefined();
      const status = await api.patch(`${requests}/${namespace}/status`, "merge", {
        spec: { username: "root" },
        status: { conditions: [{ type: "Mine", status: "Unknown" }] },
      });
      expect(status.json["spec"]).toEqual(first.json["spec"]);
      expect(status.at("status.conditions")).toEqual([
        {
          type: "Mine",
          status: "Unknown",
          lastUpdateTime: expect.any(String) as string,
          lastTransitionTime: expect.any(String) as string,
        },
      ]);
    },
  },
  {
    title: "a certificate request must be valid and signed with its own key",
    async run(api, namespace) {
      const good = await signingRequest("CN=x");
      const refused = async (request: string, spec: Json, wanted: readonly string[]) => {
        const reply = await api.post(requests, csr(namespace, request, spec));
        expect(reply.status, reply.text).toBe(422);
        expect(causes(reply)).toEqual(wanted);
        return String(reply.at("message"));
      };
      expect(
        await refused(Buffer.from("rubbish").toString("base64"), {}, ["FieldValueInvalid spec.request"]),
      ).toContain('Invalid value: "cnViYmlzaA==": PEM block type must be CERTIFICATE REQUEST');
      // The last byte belongs to the signature.
      const [, body = ""] = /-----\n([\s\S]*)\n-----/.exec(Buffer.from(good, "base64").toString()) ?? [];
      const der = Buffer.from(body, "base64");
      der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
      await refused(
        Buffer.from(
          `-----BEGIN CERTIFICATE REQUEST-----\n${der
            .toString("base64")
            .replaceAll(/(.{64})/g, "$1\n")
            .trimEnd()}\n-----END CERTIFICATE REQUEST-----\n`,
        ).toString("base64"),
        {},
        ["FieldValueInvalid spec.request"],
      );
      await refused(good, { usages: [] }, ["FieldValueRequired spec.usages"]);
      await refused(good, { usages: ["client auth", "dancing", "client auth"] }, [
        "FieldValueNotSupported spec.usages[1]",
        "FieldValueDuplicate spec.usages[2]",
      ]);
      expect(await refused(good, { signerName: "nowhere" }, ["FieldValueInvalid spec.signerName"])).toContain(
        "must be a fully qualified domain and path of the form 'example.com/signer-name'",
      );
      expect(await refused(good, { signerName: "nowhere/x" }, ["FieldValueInvalid spec.signerName"])).toContain(
        "should be a domain with at least two segments separated by dots",
      );
      await refused(good, { signerName: "example.com/Loud" }, ["FieldValueInvalid spec.signerName"]);
      expect(
        await refused(good, { signerName: "kubernetes.io/legacy-unknown" }, ["FieldValueInvalid spec.signerName"]),
      ).toContain("the legacy signerName is not allowed via this API version");
      expect(await refused(good, { expirationSeconds: 599 }, ["FieldValueInvalid spec.expirationSeconds"])).toContain(
        "may not specify a duration less than 600 seconds (10 minutes)",
      );
      for (const curve of ["P-384", "P-521"] as const)
        expect(
          (
            await api.post(
              requests,
              csr(`${namespace}-${curve.toLowerCase()}`, await signingRequest("CN=x", { curve })),
            )
          ).status,
        ).toBe(201);
    },
  },
  {
    title: "a decision about a certificate request is final",
    async run(api, namespace) {
      const { json } = await made(api, namespace);
      const approval = `${requests}/${namespace}/approval`;
      const both = await api.put(approval, withConditions(json, [approved, { ...approved, type: "Denied" }]));
      expect(both.status, both.text).toBe(422);
      expect(both.at("message")).toContain("Approved and Denied conditions are mutually exclusive");
      expect(causes(await api.put(approval, withConditions(json, [{ ...approved, status: "False" }])))).toEqual([
        "FieldValueNotSupported status.conditions[0].status",
      ]);
      expect(causes(await api.put(approval, withConditions(json, [{ ...approved, type: "" }])))).toEqual([
        "FieldValueRequired status.conditions[0].type",
      ]);
      expect(causes(await api.put(approval, withConditions(json, [approved, approved])))).toEqual([
        "FieldValueDuplicate status.conditions[1].type",
      ]);
      const added = await api.put(`${requests}/${namespace}/status`, withConditions(json, [approved]));
      expect(causes(added)).toEqual(["FieldValueForbidden status.conditions"]);
      expect(added.at("message")).toContain('updates may not add a condition of type "Approved"');

      const yes = await api.put(approval, withConditions(json, [approved], { certificate: "eA==" }));
      expect(yes.status, yes.text).toBe(200);
      expect(yes.at("status.certificate")).toBeUndefined();
      expect(yes.at("status.conditions.0")).toMatchObject({
        ...approved,
        lastUpdateTime: expect.any(String) as string,
        lastTransitionTime: expect.any(String) as string,
      });
      const removed = await api.put(approval, withConditions(json, []));
      expect(causes(removed)).toEqual(["FieldValueForbidden status.conditions"]);
      expect(removed.at("message")).toContain('updates may not remove a condition of type "Approved"');
      // An approval that is sent to /status is ignored.
      const kept = await api.put(
        `${requests}/${namespace}/status`,
        withConditions(json, [{ ...approved, message: "other" }]),
      );
      expect(kept.status, kept.text).toBe(200);
      expect(kept.at("status.conditions.0.message")).toBe("m");
    },
  },
  {
    title: "a certificate is PEM and cannot be replaced",
    async run(api, namespace) {
      const { json } = await made(api, namespace);
      const status = `${requests}/${namespace}/status`;
      const certificate = (text: string) =>
        withConditions(json, [], { certificate: Buffer.from(text).toString("base64") });
      expect(causes(await api.put(status, certificate("x")))).toEqual(["FieldValueInvalid status.certificate"]);
      expect(causes(await api.put(status, certificate("-----BEGIN KEY-----\neA==\n-----END KEY-----\n")))).toEqual([
        "FieldValueInvalid status.certificate",
      ]);
      const config = await api.get("/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt");
      const root = String(at(config.json["data"], "ca.crt"));
      // The in-process server publishes no certificate at all; the others their own.
      if (!root.includes("CERTIFICATE")) return;
      expect((await api.put(status, certificate(root))).status).toBe(200);
      const again = await api.put(status, certificate(`${root}${root}`));
      expect(causes(again)).toEqual(["FieldValueForbidden status.certificate"]);
      expect(again.at("message")).toContain("updates may not modify existing certificate content");
    },
  },
  {
    title: "approving and signing need a right to the signer",
    async run(api, namespace) {
      await allow(api, namespace, "alice", [everythingButSigners]);
      const alice = api.as("alice");
      const { json } = await made(api, namespace);
      const refused = await alice.put(`${requests}/${namespace}/approval`, withConditions(json, [approved]));
      expect(refused.status).toBe(403);
      expect(refused.at("message")).toContain(
        'user not permitted to approve requests with signerName "example.com/contract"',
      );
      const failed = withConditions(json, [{ type: "Failed", status: "True" }]);
      const unsigned = await alice.put(`${requests}/${namespace}/status`, failed);
      expect(unsigned.status).toBe(403);
      expect(unsigned.at("message")).toContain(
        'user not permitted to sign requests with signerName "example.com/contract"',
      );
      // A write that changes nothing needs no right to sign.
      expect((await alice.put(`${requests}/${namespace}/status`, withConditions(json, []))).status).toBe(200);

      const rights = {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRole",
        metadata: { name: namespace },
        rules: [
          everythingButSigners,
          {
            ...certificatesGroup,
            resources: ["signers"],
            resourceNames: ["example.com/*"],
            verbs: ["approve", "sign"],
          },
        ],
      };
      expect((await api.put(`/apis/rbac.authorization.k8s.io/v1/clusterroles/${namespace}`, rights)).status).toBe(200);
      await eventually(async () =>
        expect((await alice.put(`${requests}/${namespace}/approval`, withConditions(json, [approved]))).status).toBe(
          200,
        ),
      );
      expect(
        (
          await alice.put(
            `${requests}/${namespace}/status`,
            withConditions(json, [approved, { type: "Failed", status: "True" }]),
          )
        ).status,
      ).toBe(200);
    },
  },
  {
    title: "no certificate makes a user a master, and a node requests only its own",
    async run(api, namespace) {
      const masters = await api.post(
        requests,
        csr(namespace, await signingRequest("CN=x,O=system:masters"), {
          signerName: "kubernetes.io/kube-apiserver-client",
        }),
      );
      expect(masters.status).toBe(403);
      expect(masters.at("message")).toContain(
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
      );
      const other = await api.as("node-a").post(
        requests,
        csr(namespace, await signingRequest("O=system:nodes,CN=system:node:node-b"), {
          signerName: clientSigner,
          usages: ["digital signature", "client auth"],
        }),
      );
      expect(other.status).toBe(403);
      expect(other.at("message")).toContain("can only create a node CSR with CN=system:node:node-a");
      expect(
        (
          await api.as("node-a").post(
            requests,
            csr(namespace, await signingRequest(nodeA), {
              signerName: clientSigner,
              usages: ["digital signature", "client auth"],
            }),
          )
        ).status,
      ).toBe(201);
    },
  },
  {
    title: "approved requests of kubelets are signed with the requested lifetime and usages",
    async run(api, namespace) {
      const client = `${namespace}-client`;
      await created(
        api,
        requests,
        csr(client, await signingRequest(nodeA), {
          signerName: clientSigner,
          usages: ["digital signature", "client auth"],
          expirationSeconds: 3600,
        }),
      );
      const serving = `${namespace}-serving`;
      const names = [
        { type: "dns", value: "node-a" } as const,
        { type: "ip", value: "10.0.0.7" } as const,
        { type: "ip", value: "fd00::7" } as const,
      ];
      await created(
        api,
        requests,
        csr(serving, await signingRequest(nodeA, { names }), {
          signerName: servingSigner,
          usages: ["digital signature", "key encipherment", "server auth"],
        }),
      );
      for (const name of [client, serving])
        expect(
          (await api.patch(`${requests}/${name}/approval`, "merge", { status: { conditions: [approved] } })).status,
        ).toBe(200);

      const first = await signed(api, client);
      expect(first.subject.split("\n").toSorted()).toEqual(["CN=system:node:node-a", "O=system:nodes"]);
      expect(first.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
      const life = (certificate: X509Certificate) =>
        Date.parse(certificate.validTo) - Date.parse(certificate.validFrom);
      expect(life(first) / 1000).toBe(3600 + 300);
      const second = await signed(api, serving);
      expect(second.subjectAltName?.split(", ").toSorted()).toEqual([
        "DNS:node-a",
        "IP Address:10.0.0.7",
        "IP Address:FD00:0:0:0:0:0:0:7",
      ]);
      expect(second.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
      expect(second.ca).toBe(false);
    },
  },
  {
    title: "an approved request that its signer refuses has failed",
    async run(api, namespace) {
      await created(
        api,
        requests,
        csr(namespace, await signingRequest("CN=system:node:node-a"), {
          signerName: clientSigner,
          usages: ["digital signature", "client auth"],
        }),
      );
      await api.patch(`${requests}/${namespace}/approval`, "merge", { status: { conditions: [approved] } });
      const reply = await eventually(async () => {
        const object = await api.get(`${requests}/${namespace}`);
        expect((object.at("status.conditions") as Json[]).map((condition) => condition["type"])).toContain("Failed");
        return object;
      });
      expect((reply.at("status.conditions") as Json[]).find(({ type }) => type === "Failed")).toMatchObject({
        status: "True",
        reason: "SignerValidationFailure",
      });
      expect(reply.at("status.certificate")).toBeUndefined();
    },
  },
];
