import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { hostPaths } from "../api/names.ts";
import { mergePolicies } from "../core/config/disruption-policy.ts";
import { type NodeConfig, nodeConfigOf } from "../core/config/node-config.ts";
import { type NodePlan, planNode } from "../core/machine/plan-node.ts";
import { ignitionOf } from "../core/config/validate-machine-config.ts";
import { type MemoryHost, memoryHost } from "../../test/support/hosts/memory-host.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { documentStore } from "./machine-documents.ts";
import { observeHost } from "./observe-host.ts";
import { type StepContext, performStep } from "./perform-step.ts";

const signal = new AbortController().signal;
const image = "os@sha256:stock";
const registriesConf = "/etc/containers/registries.conf";
const stock = {
  etc: { [registriesConf]: "vendor", "/etc/chrony.conf": "vendor chrony" },
  usr: { "/usr/lib/systemd/system/crio.service": "[Install]\nWantedBy=multi-user.target\n" },
};
const policies = mergePolicies({
  files: [{ path: "/etc/none", actions: [{ type: "None" }] }],
  units: [
    {
      name: "a.service",
      actions: [{ type: "DaemonReload" }, { type: "Restart", restart: { serviceName: "a.service" } }],
    },
  ],
});

interface Content {
  readonly files: Readonly<Record<string, string>>;
  readonly unit:
    | { readonly contents?: string; readonly enabled?: boolean; readonly dropin?: string; readonly mask?: boolean }
    | undefined;
  readonly keys: readonly string[];
  readonly kernelArguments: readonly string[];
}

const nothing: Content = { files: {}, unit: undefined, keys: [], kernelArguments: [] };

function wanted(name: string, content: Content): { machineConfig: MachineConfig; config: NodeConfig } {
  const { unit } = content;
  const machineConfig: MachineConfig = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name },
    spec: {
      kernelArguments: [...content.kernelArguments],
      config: {
        ignition: { version: "3.5.0" },
        storage: {
          files: Object.entries(content.files).map(([path, text]) => ({
            path,
            mode: 0o644,
            contents: { source: encodeDataUrl(text) },
          })),
        },
        ...(unit === undefined
          ? {}
          : {
              systemd: {
                units: [
                  {
                    name: "a.service",
                    ...(unit.contents === undefined ? {} : { contents: unit.contents }),
                    ...(unit.enabled === undefined ? {} : { enabled: unit.enabled }),
                    ...(unit.mask === undefined ? {} : { mask: unit.mask }),
                    ...(unit.dropin === undefined ? {} : { dropins: [{ name: "10-x.conf", contents: unit.dropin }] }),
                  },
                ],
              },
            }),
        ...(content.keys.length === 0
          ? {}
          : { passwd: { users: [{ name: "core", sshAuthorizedKeys: [...content.keys] }] } }),
      },
    },
  };
  const ignition = ignitionOf(machineConfig);
  if (ignition?.verdict !== "valid") throw new Error(JSON.stringify(ignition));
  const config = nodeConfigOf(machineConfig, ignition.config);
  if (config.verdict === "refused") throw new Error(config.reason);
  return { machineConfig, config: config.config };
}

async function newHost(): Promise<MemoryHost> {
  const host = memoryHost({
    images: { [image]: stock },
    image,
    kernelArguments: ["root=x"],
    random: systemRandom,
    onReboot: () => undefined,
  });
  await host.units.enable("crio.service", signal);
  await host.boot({ orderly: true });
  return host;
}

/** One life of a daemon: looks and acts until it is in sync, or is killed after `survives` steps. */
async function live(
  host: MemoryHost,
  target: ReturnType<typeof wanted>,
  survives: number,
): Promise<{ plans: NodePlan[]; drained: number }> {
  const documents = documentStore(host.ledger);
  const plans: NodePlan[] = [];
  let left = survives;
  let drained = 0;
  for (let round = 0; round < 6; round += 1) {
    const known = await documents.load(signal);
    const previous =
      known.previous === undefined
        ? undefined
        : wanted(known.previous.config.metadata.name, contents.get(known.previous.config.metadata.name) ?? nothing)
            .config;
    const observed = await observeHost(
      host,
      known,
      { previous, target: target.config, inService: previous !== undefined, onlyControlPlane: false },
      signal,
    );
    const plan = planNode(observed, target.config, policies);
    plans.push(plan);
    if (plan.verdict !== "change") return { plans, drained };
    const site: StepContext = {
      host,
      documents,
      clock: systemClock,
      observed,
      target,
      originals: observed.originals,
      ledger: observed.ledger,
    };
    for (const step of plan.steps) {
      if (left === 0) return { plans, drained };
      left -= 1;
      if (step.do === "drain") drained += 1;
      else await performStep(step, site, signal);
      if (step.do === "reboot") {
        await host.boot({ orderly: true });
        break;
      }
    }
  }
  throw new Error(`no end: ${JSON.stringify(plans.at(-1))}`);
}

const contents = new Map<string, Content>();
let serial = 0;
function named(content: Content): ReturnType<typeof wanted> {
  const name = `rendered-worker-${(serial += 1)}`;
  contents.set(name, content);
  return wanted(name, content);
}

const text = fc.constantFrom("a", "b", "");
const unitText = fc.constantFrom(
  "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n",
  "[Service]\nExecStart=/bin/b\n[Install]\nWantedBy=x.target\n",
  "[Service]\nExecStart=/bin/c\n",
);
const anyContent = (): fc.Arbitrary<Content> =>
  fc.record({
    files: fc.dictionary(
      fc.constantFrom(registriesConf, "/etc/chrony.conf", "/etc/new/file", "/etc/none", "/var/lib/x"),
      text,
      { maxKeys: 5 },
    ),
    unit: fc.option(
      fc.record(
        {
          contents: unitText,
          enabled: fc.boolean(),
          dropin: fc.constantFrom("[Service]\nA=1\n", ""),
          mask: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
      { nil: undefined },
    ),
    keys: fc.uniqueArray(fc.constantFrom("ssh-ed25519 AAAA1 a", "ssh-ed25519 AAAA2 b"), { maxLength: 2 }),
    kernelArguments: fc.array(fc.constantFrom("quiet", "nosmt", "a=1"), { maxLength: 3 }),
  });

const files = (host: MemoryHost) => new Map([...host.snapshot()].filter(([path]) => path !== hostPaths.currentConfig));

describe("a daemon on a machine", () => {
  test(
    "killed after any step finishes after its restart, even if the target changes in between",
    { timeout: 1_200_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(
          anyContent(),
          fc.array(fc.tuple(anyContent(), fc.nat(8), fc.boolean()), { maxLength: 4 }),
          anyContent(),
          async (from, lives, to) => {
            const host = await newHost();
            await live(host, named(from), Infinity);
            for (const [content, steps, cut] of lives) {
              await live(host, named(content), steps);
              if (cut) await host.boot({ orderly: false });
            }
            const target = named(to);
            await live(host, target, Infinity);

            const { plans } = await live(host, target, Infinity);
            expect(plans).toEqual([{ verdict: "inSync" }]);
            for (const [path, entry] of target.config.entries) {
              if (entry.kind === "file")
                expect(host.snapshot().get(path)).toContain(new TextDecoder().decode(entry.contents));
            }
            const status = await host.os.status(signal);
            expect([...status.booted.kernelArguments].sort()).toEqual(["root=x", ...to.kernelArguments].sort());
            // Not only the files: what the service last read is what is there now.
            const fresh = await newHost();
            await live(fresh, target, Infinity);
            await fresh.boot({ orderly: true });
            await host.units.state(["crio.service"], signal);
            expect(host.seenBy("crio.service")[registriesConf]).toBe(fresh.seenBy("crio.service")[registriesConf]);
          },
        ),
        { numRuns: 300 },
      );
    },
  );

  test(
    "restores the disk byte for byte when a configuration is removed [daemon-converge-2]",
    { timeout: 1_200_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(anyContent(), anyContent(), async (base, extra) => {
          const host = await newHost();
          await live(host, named(base), Infinity);
          const before = files(host);
          await live(host, named(extra), Infinity);
          await live(host, named(base), Infinity);
          expect(files(host)).toEqual(before);
        }),
        {
          numRuns: 200,
          examples: [
            [
              {
                ...nothing,
                unit: { contents: "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n" },
              },
              {
                ...nothing,
                unit: {
                  contents: "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n",
                  enabled: false,
                },
              },
            ],
          ],
        },
      );
    },
  );

  test("that joins does not drain; later reboots come after a drain [daemon-converge-1]", async () => {
    const host = await newHost();
    expect((await live(host, named({ ...nothing, files: { "/etc/new/file": "1" } }), Infinity)).drained).toBe(0);
    expect((await live(host, named({ ...nothing, files: { "/etc/new/file": "2" } }), Infinity)).drained).toBe(1);
    expect(
      (await live(host, named({ ...nothing, files: { "/etc/new/file": "2", "/etc/none": "x" } }), Infinity)).drained,
    ).toBe(0);
  });

  test("restores the original of a file [daemon-converge-3]", async () => {
    const host = await newHost();
    await host.files.write(
      [
        {
          path: "/etc/mine",
          entry: { kind: "file", contents: new TextEncoder().encode("mine"), mode: 0o640, uid: 7, gid: 8 },
        },
      ],
      signal,
    );
    const before = files(host);
    await live(host, named({ ...nothing, files: { "/etc/mine": "theirs" } }), Infinity);
    expect(host.snapshot().get("/etc/mine")).toBe("644 0:0 theirs");
    await live(host, named(nothing), Infinity);
    expect(files(host)).toEqual(before);
  });
});
