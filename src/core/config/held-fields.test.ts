import { describe, expect, test } from "vitest";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations } from "../../api/names.ts";
import { configHolder, hasFilesAlone } from "../kubelet/held-configs.ts";
import { generatedConfig, isCurrent } from "../render/generated-config.ts";
import { fieldsNotHeld } from "./held-fields.ts";

const owner = { apiVersion: "v1", kind: "KubeletConfig", metadata: { name: "one", uid: "1" } };
const wanted = generatedConfig({
  name: "99-worker-generated-kubelet",
  role: "worker",
  owner,
  files: [{ path: "/etc/a", mode: 0o644, text: "a" }],
  generatorVersion: "v1",
});
/** As an API server has it whose definition of MachineConfig is of a later release. */
const withFields = (fields: object): MachineConfig => ({ ...wanted, spec: { ...wanted.spec, ...fields } });
const { config } = wanted.spec ?? {};

describe("a MachineConfig that holds what was written", () => {
  test.for([
    { title: "as it was", fields: {} },
    { title: "with a default that a later definition adds", fields: { laterField: { mode: "Standard" } } },
    { title: "with fields without a value", fields: { extensions: null, kernelArguments: [], fips: false } },
  ])("$title [config-held-fields-1]", ({ fields }) => {
    const has = withFields(fields);
    expect(fieldsNotHeld(has, wanted)).toEqual([]);
    expect(isCurrent(has, wanted)).toBe(true);
    expect(hasFilesAlone(has)).toBe(true);
  });

  test.for([
    { title: "with another field", fields: { kernelType: "realtime" }, lost: ["spec.kernelType"] },
    { title: "without one", fields: { config: undefined }, lost: ["spec.config"] },
    {
      title: "with a section that was added to its Ignition config",
      fields: { config: { ...config, passwd: { users: [{ name: "evil" }] } } },
      lost: ["spec.config"],
    },
  ])("does not, $title [config-held-fields-2]", ({ fields, lost }) => {
    const has = withFields(fields);
    expect(fieldsNotHeld(has, wanted)).toEqual(lost);
    expect(isCurrent(has, wanted)).toBe(false);
  });

  test("and that the installation made stays its object's under a later definition [config-held-fields-3]", () => {
    const installed = (fields: object): MachineConfig => ({
      apiVersion: MachineConfig.apiVersion,
      kind: MachineConfig.kind,
      metadata: { name: wanted.metadata.name, annotations: { [annotations.generatedByController]: "v1" } },
      spec: { ...wanted.spec, kernelArguments: ["a=1"], ...fields },
    });
    const both = { spec: { ...wanted.spec, kernelArguments: ["a=1"] } };
    expect(configHolder(installed({ laterField: "Standard" }), owner, both)).toBe("this");
    expect(configHolder(installed({ kernelType: "realtime" }), owner, both)).toBe("another");
    expect(configHolder(installed({ kernelArguments: [], laterField: "Standard" }), owner)).toBe("this");
  });
});
