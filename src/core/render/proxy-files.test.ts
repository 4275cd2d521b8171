import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { validateMachineConfig } from "../config/validate-machine-config.ts";
import { baseConfigs } from "./base-configs.ts";
import { proxyParts, proxyPath } from "./proxy-files.ts";

const proxy = {
  httpProxy: 'http://user:p$a"s`s\\w@proxy.example:3128',
  httpsProxy: "https://proxy.example:3129",
  noProxy: ".cluster.local,10.0.0.0/16",
};

describe("the cluster's proxy", () => {
  test("is the environment of the services that fetch from outside; only root reads it [proxy-files-1]", () => {
    const { files, units } = proxyParts(proxy);
    expect(files.map(({ path, mode }) => [path, mode])).toEqual([[proxyPath, 0o600]]);
    expect(units.map(({ name, dropins }) => [name, dropins[0]?.contents.split("\n").slice(1)])).toEqual(
      ["crio.service", "kubelet.service", "rpm-ostreed.service"].map((name) => [
        name,
        ["[Service]", `EnvironmentFile=-${proxyPath}`, ""],
      ]),
    );
  });

  test("has the values that a shell reads from the quoted lines too [proxy-files-2]", () => {
    const folder = mkdtempSync(join(tmpdir(), "mco-proxy-"));
    try {
      const path = join(folder, "proxy.env");
      writeFileSync(path, proxyParts(proxy).files[0]?.text ?? "");
      const script = `. ${path}; printf '%s\\n' "$HTTP_PROXY" "$HTTPS_PROXY" "$NO_PROXY"`;
      expect(execFileSync("/bin/sh", ["-c", script], { encoding: "utf8", env: {} }).split("\n")).toEqual([
        ...Object.values(proxy),
        "",
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("brings nothing where it is empty, and one variable for one field [proxy-files-3]", () => {
    for (const none of [null, undefined, {}, { httpProxy: "" }])
      expect(proxyParts(none)).toEqual({ files: [], units: [] });
    expect(proxyParts({ noProxy: "a" }).files[0]?.text.split("\n").slice(1)).toEqual(['NO_PROXY="a"', ""]);
  });

  test("reaches the base configuration of every role, which is valid with it [proxy-files-4]", () => {
    const made = (spec: object) =>
      baseConfigs({
        controllerConfig: {
          apiVersion: "machineconfiguration.openshift.io/v1",
          kind: "ControllerConfig",
          metadata: { name: "machine-config-controller", uid: "1" },
          spec: { clusterDNSIP: "10.0.0.10", ...spec },
        } as ControllerConfig,
        pullSecret: undefined,
        generatorVersion: "1",
      }).filter(({ spec }) => JSON.stringify(spec?.config).includes(proxyPath));
    const configs = made({ proxy });
    expect(configs.map(({ metadata }) => metadata.name)).toEqual(["00-master", "00-worker"]);
    for (const config of configs)
      expect(validateMachineConfig(config).filter(({ severity }) => severity === "error")).toEqual([]);
    expect(made({ proxy: null })).toEqual([]);
  });
});
