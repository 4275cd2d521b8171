import { describe, expect, test } from "vitest";
import type { Node } from "../../src/api/foreign/kubernetes.ts";
import { annotations } from "../../src/api/names.ts";
import type { Host, HostEntry, HostWrite } from "../../src/host/host.ts";
import type { HttpRequest } from "../../src/ports/http.ts";
import { type Invariant, invariants } from "./invariants.ts";
import { type Plant, CrashHarness, type Scenario } from "./crash-harness.ts";
import { faultsAt, rehearse } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { inMemory } from "./subjects.ts";

const titled = (part: string): Scenario => {
  const found = scenarios.find(({ title }) => title.includes(part));
  if (found === undefined) throw new Error(`bug: no scenario speaks of ${part}`);
  return found;
};

/** A host with some verbs replaced. */
function instead(
  host: Host,
  verbs: { readonly [G in "files" | "units" | "os" | "users" | "ledger" | "books"]?: Partial<Host[G]> },
): Host {
  const part = <G extends keyof typeof verbs>(group: G): Host[G] =>
    new Proxy(host[group], {
      get: (target, name) =>
        (verbs[group] as Record<string | symbol, unknown> | undefined)?.[name] ??
        (Reflect.get(target, name) as unknown),
    });
  return {
    driver: host.driver,
    files: part("files"),
    units: part("units"),
    os: part("os"),
    users: part("users"),
    ledger: part("ledger"),
    books: part("books"),
  };
}

const withBody =
  (change: (body: string, request: HttpRequest) => string): NonNullable<Plant["transport"]> =>
  (transport) =>
  (request, until) =>
    transport(typeof request.body === "string" ? { ...request, body: change(request.body, request) } : request, until);

let serial = 0;

const base = {
  path: "/etc/app/base",
  entry: { kind: "file", contents: new TextEncoder().encode("too early"), mode: 0o644, uid: 0, gid: 0 },
} as const;

/** One or more careless changes for each invariant. Without `crash`, a run without faults must find the change. */
const bugs: readonly {
  readonly invariant: Invariant;
  readonly bug: string;
  readonly scenario: string;
  readonly crash?: true;
  readonly plant: Plant;
}[] = [
  {
    invariant: "whole",
    bug: "the ledger is never written",
    scenario: "a changed file drains",
    plant: {
      host: (host) =>
        instead(host, {
          ledger: {
            write: (name, text, until) =>
              name === "ledger.json" ? Promise.resolve() : host.ledger.write(name, text, until),
          },
        }),
    },
  },
  {
    invariant: "whole",
    bug: "the ledger is closed before the reboot",
    scenario: "kernel arguments change",
    plant: {
      host: (host) =>
        instead(host, {
          os: {
            reboot: async (because, until) =>
              host.ledger.remove("ledger.json", until).then(() => host.os.reboot(because, until)),
          },
        }),
    },
  },
  {
    invariant: "whole",
    bug: "the previous configuration is not replaced at the end",
    scenario: "a changed file drains",
    plant: {
      host: (host) =>
        instead(host, {
          ledger: {
            write: (name, text, until) =>
              name === "previous.json" ? Promise.resolve() : host.ledger.write(name, text, until),
          },
        }),
    },
  },
  {
    invariant: "whole",
    bug: "a file gets another mode, and is said to have the right one",
    scenario: "many files of all kinds",
    plant: {
      host: (host) =>
        instead(host, {
          files: {
            write: (writes, until) =>
              host.files.write(
                writes.map((one) => withMode(one, 0o644)),
                until,
              ),
            read: async (path, until) =>
              path === "/etc/deep/er/file" ? lying(await host.files.read(path, until)) : host.files.read(path, until),
          },
        }),
    },
  },
  {
    invariant: "named",
    bug: "something else is written on the way",
    scenario: "a changed file drains",
    plant: {
      host: (host) =>
        instead(host, {
          files: {
            write: (writes, until) => host.files.write([...writes, { ...base, path: "/etc/app/surprise" }], until),
          },
        }),
    },
  },
  {
    invariant: "ledgerFirst",
    bug: "a file is written before the ledger is open",
    scenario: "a changed file drains",
    plant: {
      host: (host) =>
        instead(host, {
          ledger: {
            write: async (name, text, until) => (
              name === "target.json" ? host.files.write([base], until) : undefined,
              host.ledger.write(name, text, until)
            ),
          },
        }),
    },
  },
  {
    invariant: "drainFirst",
    bug: "the daemon believes that a drain is done before it is",
    scenario: "a changed file drains",
    plant: {
      transport: (transport) => async (request, until) => {
        const response = await transport(request, until);
        if (
          !request.target.startsWith("/api/v1/nodes") ||
          typeof response.body === "string" ||
          response.body instanceof Uint8Array
        )
          return response;
        return { ...response, body: believing(response.body) };
      },
    },
  },
  {
    invariant: "reboots",
    bug: "a reboot for good measure",
    scenario: "registries.conf changes",
    plant: {
      host: (host) =>
        instead(host, {
          ledger: {
            remove: async (name, until) =>
              host.ledger
                .remove(name, until)
                .then(() => (name === "ledger.json" ? host.os.reboot("to be sure", until) : undefined)),
          },
        }),
    },
  },
  {
    invariant: "reboots",
    bug: "a reboot without an announcement",
    scenario: "a changed file drains",
    plant: { transport: withBody((body) => body.replace('"Rebooting"', '""')) },
  },
  {
    invariant: "debts",
    bug: "a reload is forgotten",
    scenario: "registries.conf changes",
    plant: { host: (host) => instead(host, { units: { reload: () => Promise.resolve() } }) },
  },
  {
    invariant: "debts",
    bug: "a service is restarted twice",
    scenario: "a unit is rewritten",
    plant: {
      host: (host) =>
        instead(host, {
          units: {
            restart: async (name, until) => host.units.restart(name, until).then(() => host.units.restart(name, until)),
          },
        }),
    },
  },
  {
    invariant: "debts",
    bug: "a daemon-reload is forgotten",
    scenario: "a unit is rewritten",
    plant: { host: (host) => instead(host, { units: { daemonReload: () => Promise.resolve() } }) },
  },
  {
    invariant: "debts",
    bug: "debts live in memory only: a new daemon sees none in the ledger",
    scenario: "registries.conf changes",
    crash: true,
    plant: {
      host: (host) =>
        instead(host, {
          ledger: { read: async (name, until) => forgetting(name, await host.ledger.read(name, until)) },
        }),
    },
  },
  {
    invariant: "claims",
    bug: "the target is claimed when the update begins",
    scenario: "a changed file drains",
    plant: {
      transport: withBody((body) =>
        body.includes('"Working"')
          ? body.replace(
              `"${annotations.state}":`,
              `"${annotations.currentConfig}":"rendered-claimed","${annotations.state}":`,
            )
          : body,
      ),
    },
  },
  {
    invariant: "cordon",
    bug: "the daemon removes any cordon",
    scenario: "a person has cordoned",
    plant: {
      transport: withBody((body, { target }) =>
        target.startsWith("/api/v1/nodes/") && body.includes('"Done"')
          ? body.replace(/\}$/, ',"spec":{"unschedulable":null}}')
          : body,
      ),
    },
  },
  {
    invariant: "cordon",
    bug: "the uncordon is never asked for",
    scenario: "a changed file drains",
    plant: { transport: withBody((body) => body.replace(/"uncordon-[^"]*"/, '""')) },
  },
  {
    invariant: "own",
    bug: "the daemon writes another node's object",
    scenario: "a changed file drains",
    plant: {
      transport: (transport) => (request, until) =>
        transport(
          request.method === "PATCH" && request.target.startsWith("/api/v1/nodes/")
            ? { ...request, target: request.target.replace(/node-\d+/, "node-elsewhere") }
            : request,
          until,
        ),
    },
  },
  {
    invariant: "secrets",
    bug: "a failure quotes what was to be written",
    scenario: "a changed file drains",
    plant: {
      host: (host) =>
        instead(host, {
          files: {
            write: (writes) =>
              Promise.reject(
                new Error(
                  `cannot write ${writes.map(({ entry }) => (entry.kind === "file" ? new TextDecoder().decode(entry.contents) : entry.target)).join("")}`,
                ),
              ),
          },
        }),
    },
  },
  {
    invariant: "converges",
    bug: "a restart never works",
    scenario: "a unit is rewritten",
    plant: { host: (host) => instead(host, { units: { restart: () => Promise.reject(new Error("no")) } }) },
  },
  {
    invariant: "converges",
    bug: "nothing that was staged is ever booted",
    scenario: "kernel arguments change",
    plant: { host: (host) => instead(host, { os: { stage: () => Promise.resolve() } }) },
  },
  {
    invariant: "patient",
    bug: "every failure changes the Node, and every change of the Node is a reason to try again",
    scenario: "a unit is rewritten",
    plant: {
      host: (host, harness) =>
        instead(host, {
          units: {
            restart: async (name, until) => {
              await host.units.restart(name, until);
              await harness.annotate({ "test/failures": String((serial += 1)) });
              throw new Error("no");
            },
          },
        }),
    },
  },
  {
    invariant: "quiet",
    bug: "every pass writes a note",
    scenario: "registries.conf changes",
    plant: {
      host: (host) =>
        instead(host, {
          os: {
            status: async (until) => host.ledger.write("note.json", "{}", until).then(() => host.os.status(until)),
          },
        }),
    },
  },
  {
    invariant: "books",
    bug: "a daemon that comes back numbers its lines again",
    scenario: "a changed file drains",
    crash: true,
    plant: { host: (host) => instead(host, { books: { read: () => Promise.resolve([]) } }) },
  },
  {
    invariant: "books",
    bug: "what is sent is not on the disk",
    scenario: "a changed file drains",
    plant: { host: (host) => instead(host, { books: { append: () => Promise.resolve() } }) },
  },
  {
    invariant: "residue",
    bug: "what came is not taken away, and is said to be gone",
    scenario: "everything comes and goes",
    plant: {
      host: (host) =>
        instead(host, {
          files: {
            remove: (path, until) =>
              path === "/etc/deep/er/file" ? Promise.resolve() : host.files.remove(path, until),
            read: (path, until) =>
              path === "/etc/deep/er/file" ? Promise.resolve(undefined) : host.files.read(path, until),
          },
        }),
    },
  },
];

const withMode = (one: HostWrite, mode: number): HostWrite =>
  one.entry.kind === "file" && one.path === "/etc/deep/er/file" ? { ...one, entry: { ...one.entry, mode } } : one;
const lying = (entry: HostEntry | undefined) => (entry?.kind === "file" ? { ...entry, mode: 0o600 } : entry);

function forgetting(name: string, text: string | undefined): string | undefined {
  return name !== "ledger.json" || text === undefined
    ? text
    : JSON.stringify({ ...(JSON.parse(text) as object), owes: [] });
}

async function* believing(source: AsyncIterable<string | Uint8Array>): AsyncIterable<string> {
  for await (const chunk of source) {
    const line = typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
    const event = line.trim() === "" ? undefined : (JSON.parse(line) as { object: Node });
    const has = event?.object.metadata.annotations;
    const drain = has?.[annotations.desiredDrain];
    if (event === undefined || has === undefined || drain?.startsWith("drain-") !== true) yield line;
    else {
      has[annotations.lastAppliedDrain] = drain;
      event.object.spec = { ...event.object.spec, unschedulable: true };
      yield `${JSON.stringify(event)}\n`;
    }
  }
}

describe("a planted bug is found", () => {
  test.for(bugs)(
    "$invariant: $bug [crash-planted-bugs-1]",
    { timeout: 600_000 },
    async ({ invariant, scenario: part, crash, plant }) => {
      const scenario = titled(part);
      const { start, expectation, harness } = await rehearse(scenario, inMemory);
      expect(harness.keeper.violations).toEqual([]);
      const finds = async (faults: readonly { at: number; kind: "before" }[]) => {
        const { keeper } = await CrashHarness.run(
          {
            scenario,
            subject: inMemory,
            start,
            faults,
            plant,
            until: invariant,
            ...(invariant === "books" ? { books: "kept" } : {}),
          },
          expectation,
        );
        return keeper.violations.some((violation) => violation.invariant === invariant);
      };
      let found = false;
      if (crash !== true) found = await finds([]);
      else
        for (let at = 0; at < harness.effects.length && !found; at += 1)
          found = faultsAt(at, harness.effects[at] ?? "").includes("before") && (await finds([{ at, kind: "before" }]));
      expect(found).toBe(true);
    },
  );

  test("every invariant has a planted bug", () => {
    expect([...new Set(bugs.map(({ invariant }) => invariant))].sort()).toEqual(Object.keys(invariants).sort());
  });
});
