import { describe, expect, test } from "vitest";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, labels } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { overriddenFiles } from "./overridden-files.ts";

const path = "/etc/containers/registries.conf";
const config = (name: string, text: string, more: { readonly role?: string; readonly generated?: true } = {}) =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: {
      name,
      labels: { [labels.role]: more.role ?? "worker" },
      annotations: more.generated ? { [annotations.generatedByController]: "1" } : {},
    },
    spec: {
      config: {
        ignition: { version: "3.4.0" },
        storage: { files: [{ path, contents: { source: encodeDataUrl(text) } }] },
      },
    },
  }) satisfies MachineConfig;
const pool = (name: string, ...roles: readonly string[]) =>
  ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigPool",
    metadata: { name },
    spec: { machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: roles }] } },
  }) as unknown as MachineConfigPool;
const pools = [pool("master", "master"), pool("worker", "worker"), pool("infra", "worker", "infra")];
const base = config("01-worker-container-runtime", "base", { generated: true });
const generated = config("99-worker-generated-registries", "mirrors", { generated: true });

describe("files of a generated MachineConfig that machines do not get", () => {
  test.for([
    { title: "none: it is the last", others: [base, config("50-theirs", "old")], lost: [] },
    {
      title: "a person's MachineConfig comes after it, in every pool that has both",
      others: [base, config("99-worker-mirror", "theirs")],
      lost: ["worker by 99-worker-mirror", "infra by 99-worker-mirror"],
    },
    {
      title: "one of a custom pool alone",
      others: [base, config("99-zz", "theirs", { role: "infra" })],
      lost: ["infra by 99-zz"],
    },
    {
      title: "a link takes its place",
      others: [
        {
          ...config("99-worker-mirror", ""),
          spec: { config: { ignition: { version: "3.4.0" }, storage: { links: [{ path, target: "/etc/x" }] } } },
        },
      ],
      lost: ["worker by 99-worker-mirror", "infra by 99-worker-mirror"],
    },
    {
      title: "none: the later one is not a configuration",
      others: [{ ...config("99-worker-mirror", ""), spec: { config: { storage: { files: [null] } } } }],
      lost: [],
    },
    { title: "none: the contents are the same", others: [base, config("99-worker-mirror", "mirrors")], lost: [] },
    {
      title: "none: a controller made the later one",
      others: [base, config("99-worker-z", "more", { generated: true })],
      lost: [],
    },
    {
      title: "none: the later one is being deleted",
      others: [
        {
          ...config("99-worker-mirror", "theirs"),
          metadata: { ...config("99-worker-mirror", "").metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
        },
      ],
      lost: [],
    },
  ])("$title", ({ others, lost }) => {
    const found = overriddenFiles(generated, { pools, machineConfigs: [generated, ...others] });
    expect(found.map((file) => `${file.pool} by ${file.by}`)).toEqual(lost);
    expect(new Set(found.map((file) => file.path))).toEqual(new Set(lost.length === 0 ? [] : [path]));
  });
});
