import { resolve } from "node:path";
import { expect, test } from "vitest";
import { localAddresses } from "./local-cluster.ts";

/** Folders with the record of a cluster, and its network. */
const folders = (networks: Readonly<Record<string, string>>) => ({
  readFrom: (path: string) => {
    const folder = Object.keys(networks).find((each) => path === resolve(each, "cluster.json"));
    const supervisor = { pid: 1, startTime: "1" };
    return Promise.resolve(
      folder === undefined
        ? undefined
        : new TextEncoder().encode(
            JSON.stringify({ v: 1, network: networks[folder], supervisor, processes: [], hosts: [] }),
          ),
    );
  },
  stat: () => Promise.resolve(undefined),
});
const files = folders({ "/tmp/one": "127.1.1", "/tmp/two": "127.2.2", ".mco": "127.3.3" });
const one = "https://127.1.1.1:6443";

test.for([
  { what: "the folder that the flag names", directory: "/tmp/one", finds: "127.1.1.3" },
  { what: "the folder that holds the kubeconfig", kubeconfig: "/tmp/one/kubeconfig", finds: "127.1.1.3" },
  { what: "another cluster's folder", directory: "/tmp/two", finds: undefined },
  { what: "a kubeconfig elsewhere", kubeconfig: "/root/.kube/config", finds: undefined },
  {
    what: "a kubeconfig elsewhere, of the default folder",
    server: "https://127.3.3.1:6443",
    kubeconfig: "/root/.kube/config",
    finds: "127.3.3.3",
  },
  { what: "no flag and no kubeconfig", server: "https://127.3.3.1:6443", finds: "127.3.3.3" },
])(
  "the config server of a one-machine cluster is found by $what: $finds [local-cluster-1]",
  async ({ server = one, finds, ...flags }) => {
    expect((await localAddresses(files, server, flags))?.configServer).toBe(finds);
  },
);
