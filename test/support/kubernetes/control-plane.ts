import { readFileSync } from "node:fs";
import { join } from "node:path";
import { kubernetesFolder, missingPrograms } from "../../../src/cli/kubernetes-binaries.ts";
import { addressesOf, type ClusterRecord, ports } from "../../../src/standin/cluster/layout.ts";
import { type Authority, certificateAuthority } from "../../../src/kube/certificates.ts";
import { systemClock, systemRandom } from "../../../src/ports/node/index.ts";
import { type ApiTarget, testUsers, type TestUser } from "../../contract/api-target.ts";
import { httpsTarget } from "../../contract/https-target.ts";
import { mcoUp } from "../mco-up.ts";
import type { Identity } from "../test-pki.ts";

/** `false` where Kubernetes' programs are not built: tests on the real control plane are then skipped, by name. */
export const hasKubernetes = missingPrograms(kubernetesFolder(process.env)).length === 0;

/** The kubectl of the control plane's version. */
export const kubectlProgram = join(kubernetesFolder(process.env), "kubectl");

/** What another process needs to speak to a running control plane. */
export interface ControlPlaneAddress {
  readonly directory: string;
  readonly url: string;
}

/** A control plane made of Kubernetes' own programs, without machines and without the operator. */
export async function startControlPlane(): Promise<ControlPlaneAddress & { stop(): Promise<void> }> {
  const up = await mcoUp("mco-kubernetes-", [
    "--api-server",
    "kubernetes",
    "--without-operator",
    "--control-plane",
    "0",
    "--workers",
    "0",
  ]);
  const { directory } = up;
  const record = JSON.parse(readFileSync(join(directory, "cluster.json"), "utf8")) as ClusterRecord;
  return {
    directory,
    url: `https://${addressesOf(record.network).apiServer}:${ports.apiServer}`,
    async stop() {
      await up.end();
      up.remove();
    },
  };
}

/** The authority of a control plane, which issues certificates for the users of a test. */
export function authorityOf({ directory }: Pick<ControlPlaneAddress, "directory">): Promise<Authority> {
  const read = (name: string) => readFileSync(join(directory, "pki", name), "utf8");
  return certificateAuthority({
    name: "mco-cluster-ca",
    clock: systemClock,
    random: systemRandom,
    existing: { certificate: read("cluster-ca.crt"), key: read("cluster-ca.key") },
  });
}

/** A control plane as contract cases see it. */
export async function kubernetesTarget(
  address: ControlPlaneAddress,
): Promise<ApiTarget & { close(): void; identity(user: Exclude<TestUser, "nobody">): Identity }> {
  const authority = await authorityOf(address);
  const identities = new Map<TestUser, Identity>();
  for (const [user, { name, groups }] of Object.entries(testUsers))
    identities.set(
      user as TestUser,
      await authority.issue({ commonName: name, organizations: groups, usage: "client" }),
    );
  return {
    ...httpsTarget({ url: address.url, ca: authority.certificate, identities }),
    identity(user) {
      const own = identities.get(user);
      if (own === undefined) throw new Error(`no identity for ${user}`);
      return own;
    },
  };
}
