import { McoError } from "../../src/api/errors.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigNode } from "../../src/api/kinds/machine-config-node.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { judgeDelivery } from "../../src/core/config/given-configs.ts";
import type { ConfigReader } from "../../src/daemon/delivered-configs.ts";
import type { KubeClient } from "../../src/kube/kube-client.ts";

/** Reads configurations from the API server, for tests of daemons beside which no controller and config server run. */
export const clusterConfigs: ConfigReader = (name, kube, signal) => kube.get(MachineConfig, { name }, { signal });

/**
 * Reads configurations from the API server as the config server would give them to the daemon of `node`: a daemon that
 * needs one which it may not read fails.
 *
 * @param admin reads what the config server decides by.
 */
export const ownConfigs =
  (node: string, admin: KubeClient, onRefused: (error: unknown) => void): ConfigReader =>
  async (name, kube, signal) => {
    const config = await kube.get(MachineConfig, { name }, { signal });
    const machineConfigNode = await admin.get(MachineConfigNode, { name: node });
    const pool = await admin.get(MachineConfigPool, { name: machineConfigNode?.spec.pool.name ?? "none" });
    const verdict = judgeDelivery({ node, nodeUid: undefined, asked: name, machineConfigNode, pool, config });
    if (verdict.verdict === "deliver") return config;
    const error = new McoError("MCO_CONFIG_NOT_DELIVERED", { config: name }, { message: verdict.message });
    onRefused(error);
    throw error;
  };
