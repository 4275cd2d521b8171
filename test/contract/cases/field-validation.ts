import { expect } from "vitest";
import { apps, deployment, widget, widgetGroup, type ContractCase } from "./case-fixture.ts";

export const fieldValidationCases: readonly ContractCase[] = [
  {
    title: "fieldValidation=Strict refuses unknown fields by their path",
    async run(api, namespace) {
      const reply = await api.post(
        `${apps(namespace, "deployments")}?fieldValidation=Strict`,
        deployment("d", 1, { conteiners: [] }),
      );
      expect(reply.status).toBe(400);
      expect(reply.at("message")).toContain('strict decoding error: unknown field "spec.template.spec.conteiners"');
    },
  },
  {
    title: "fieldValidation=Warn warns in a header, drops the field, and goes on",
    async run(api, namespace) {
      const { group, path } = widgetGroup(namespace);
      const reply = await api.post(`${path}?fieldValidation=Warn`, widget(group, "w", { colour: "red" }));
      expect(reply.status).toBe(201);
      expect([reply.headers["warning"]].flat().join(",")).toContain('299 - "unknown field \\"spec.colour\\""');
      expect(reply.at("spec.colour")).toBeUndefined();
      const quiet = await api.post(`${path}?fieldValidation=Ignore`, widget(group, "v", { colour: "red" }));
      expect(quiet.headers["warning"]).toBeUndefined();
    },
  },
];
