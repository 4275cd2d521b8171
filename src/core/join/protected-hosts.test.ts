import { expect, test } from "vitest";
import type { Service } from "../../api/foreign/kubernetes.ts";
import { protectedHosts } from "./protected-hosts.ts";

test("the hosts of a Service are read once, and those alone are found that are asked about [attack-joining-41]", () => {
  let reads = 0;
  const services = Array.from(
    { length: 100 },
    (_, index) =>
      ({
        metadata: { name: `s${index}`, namespace: "shop" },
        spec: {
          clusterIPs: [`10.96.0.${index}`, "None"],
          get externalIPs() {
            reads += 1;
            return [`FD00:0::${index}`];
          },
        },
        status: { loadBalancer: { ingress: [{ hostname: `S${index}.example.com.` }] } },
      }) as unknown as Service,
  );
  const sources = { apiServer: ["API.example.com"], services };
  for (const _ of [1, 2, 3]) {
    const found = protectedHosts(sources, ["fd00::7", "s7.example.com", "10.96.0.8", "api.example.com.", "w1"]);
    const clause = (name: string) => `is an address of the Service shop/${name}`;
    expect([...found.external]).toEqual([
      ["fd00:0:0:0:0:0:0:7", clause("s7")],
      ["s7.example.com", clause("s7")],
    ]);
    expect([...found.cluster]).toEqual([["10.96.0.8", clause("s8")]]);
    expect([...found.apiServer]).toEqual([["api.example.com", "is the API server or the config server"]]);
  }
  expect(reads).toBe(services.length);
});
