import { expect } from "vitest";
import { core, created, names, type ContractCase } from "./case-fixture.ts";

export const eventsCases: readonly ContractCase[] = [
  {
    title: "an event can be written in one group and read in the other",
    async run(api, namespace) {
      const event = {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: "e" },
        involvedObject: { kind: "Pod", name: "p", namespace },
        reason: "Started",
        message: "It started",
        type: "Normal",
        count: 1,
      };
      await created(api, core(namespace, "events"), event);
      const other = await api.get(`/apis/events.k8s.io/v1/namespaces/${namespace}/events/e`);
      expect(other.json).toMatchObject({
        apiVersion: "events.k8s.io/v1",
        regarding: { name: "p" },
        note: "It started",
        deprecatedCount: 1,
      });
      expect(
        names(
          (await api.get(`${core(namespace, "events")}?fieldSelector=involvedObject.name%3Dp,reason%3DStarted`)).json,
        ),
      ).toEqual(["e"]);
    },
  },
];
