import type { Files } from "../../ports/files.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import { certificateAuthority, storedPair } from "../../kube/certificates.ts";
import { type ClusterCredentials, writeKubeconfig } from "./credentials.ts";
import { type Addresses, type Layout, ports } from "./layout.ts";

/** One program of a Kubernetes control plane, and how it is run. */
export interface KubernetesProcess {
  readonly name: "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";
  readonly program: string;
  readonly args: readonly string[];
}

const etcdPorts = { client: 2379, peer: 2380 } as const;
const ownPorts = { controllerManager: 10257, scheduler: 10259 } as const;

/** Every request with its user and whether it was allowed, but without its contents: `audit.k8s.io/v1`. */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived", "ResponseStarted"],
  rules: [{ level: "None", users: ["system:apiserver"] }, { level: "Metadata" }],
};

/**
 * The processes of a Kubernetes control plane on one machine: Kubernetes' own programs, from the folder `binaries`, on
 * the addresses of this cluster, with its certificates. Only etcd has an authority of its own: access to etcd means
 * full control of the cluster, and the cluster's authority also vouches for every machine.
 *
 * Flags: https://kubernetes.io/docs/reference/command-line-tools-reference/ (1.34),
 * https://etcd.io/docs/v3.6/op-guide/configuration/
 */
export async function kubernetesProcesses(options: {
  readonly binaries: string;
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly layout: Layout;
  readonly addresses: Addresses;
  readonly credentials: ClusterCredentials;
}): Promise<readonly KubernetesProcess[]> {
  const { files, clock, random, layout, credentials, binaries } = options;
  const { pki, directory } = layout;
  const address = options.addresses.apiServer;
  const etcdCa = await storedPair(files, pki, "etcd-ca", () =>
    certificateAuthority({ name: "mco-etcd-ca", clock, random }),
  );
  const etcdAuthority = await certificateAuthority({ name: "mco-etcd-ca", clock, random, existing: etcdCa });
  await storedPair(files, pki, "etcd", () =>
    etcdAuthority.issue({ commonName: "etcd", usage: "peer", hosts: [address] }),
  );
  await storedPair(files, pki, "etcd-client", () =>
    etcdAuthority.issue({ commonName: "kube-apiserver", usage: "client" }),
  );
  const controllerManager = await writeKubeconfig(files, credentials, {
    name: "system:kube-controller-manager",
    path: `${pki}/kube-controller-manager.kubeconfig`,
  });
  const scheduler = await writeKubeconfig(files, credentials, {
    name: "system:kube-scheduler",
    path: `${pki}/kube-scheduler.kubeconfig`,
  });
  const audit = `${directory}/audit-policy.json`;
  await files.write(audit, `${JSON.stringify(auditPolicy, undefined, 2)}\n`);
  const etcdUrl = `https://${address}:${etcdPorts.client}`;
  // It has no peers. What it takes from one goes into its log unasked, so that a stranger must not pass for one.
  const peerUrl = `https://${address}:${etcdPorts.peer}`;
  return [
    {
      name: "etcd",
      program: `${binaries}/etcd`,
      args: [
        `--data-dir=${directory}/etcd`,
        `--listen-client-urls=${etcdUrl}`,
        `--advertise-client-urls=${etcdUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=default=${peerUrl}`,
        `--cert-file=${pki}/etcd.crt`,
        `--key-file=${pki}/etcd.key`,
        `--trusted-ca-file=${pki}/etcd-ca.crt`,
        "--client-cert-auth",
        `--peer-cert-file=${pki}/etcd.crt`,
        `--peer-key-file=${pki}/etcd.key`,
        `--peer-trusted-ca-file=${pki}/etcd-ca.crt`,
        "--peer-client-cert-auth",
        "--log-level=warn",
        // As the embedded store by default: survives kill -9, and not a power cut of the machine under it.
        "--unsafe-no-fsync",
      ],
    },
    {
      name: "kube-apiserver",
      program: `${binaries}/kube-apiserver`,
      args: [
        `--etcd-servers=${etcdUrl}`,
        `--etcd-cafile=${pki}/etcd-ca.crt`,
        `--etcd-certfile=${pki}/etcd-client.crt`,
        `--etcd-keyfile=${pki}/etcd-client.key`,
        `--bind-address=${address}`,
        `--advertise-address=${address}`,
        `--secure-port=${ports.apiServer}`,
        // The address is of the loopback range, which an Endpoints object may not hold.
        "--endpoint-reconciler-type=none",
        `--tls-cert-file=${pki}/apiserver.crt`,
        `--tls-private-key-file=${pki}/apiserver.key`,
        `--client-ca-file=${pki}/cluster-ca.crt`,
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        `--service-account-key-file=${pki}/tokens.crt`,
        `--service-account-signing-key-file=${pki}/tokens.key`,
        "--service-cluster-ip-range=10.96.0.0/16",
        `--kubelet-certificate-authority=${pki}/cluster-ca.crt`,
        `--kubelet-client-certificate=${pki}/kubelet-client.crt`,
        `--kubelet-client-key=${pki}/kubelet-client.key`,
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        `--audit-policy-file=${audit}`,
        `--audit-log-path=${layout.logs}/audit.log`,
        "--audit-log-maxsize=500",
        "--audit-log-maxbackup=1",
      ],
    },
    {
      name: "kube-controller-manager",
      program: `${binaries}/kube-controller-manager`,
      args: [
        `--kubeconfig=${controllerManager}`,
        `--authentication-kubeconfig=${controllerManager}`,
        `--authorization-kubeconfig=${controllerManager}`,
        `--bind-address=${address}`,
        `--secure-port=${ownPorts.controllerManager}`,
        `--cert-dir=${directory}/kube-controller-manager`,
        `--root-ca-file=${layout.trustedAuthorities}`,
        `--service-account-private-key-file=${pki}/tokens.key`,
        `--cluster-signing-cert-file=${pki}/cluster-ca.crt`,
        `--cluster-signing-key-file=${pki}/cluster-ca.key`,
        "--use-service-account-credentials",
        "--leader-elect=false",
      ],
    },
    {
      name: "kube-scheduler",
      program: `${binaries}/kube-scheduler`,
      args: [
        `--kubeconfig=${scheduler}`,
        `--authentication-kubeconfig=${scheduler}`,
        `--authorization-kubeconfig=${scheduler}`,
        `--bind-address=${address}`,
        `--secure-port=${ownPorts.scheduler}`,
        `--cert-dir=${directory}/kube-scheduler`,
        "--leader-elect=false",
      ],
    },
  ];
}
