import { describe, expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/** A question that one function decides, and a pattern for a second place that decides it. */
interface Rule {
  readonly title: string;
  readonly forbids: RegExp;
  /** Files or folders that may. */
  readonly except: readonly string[];
  /** What the rule must find, so that it cannot stop working unnoticed. */
  readonly finds: readonly string[];
  readonly leaves: readonly string[];
}

const rules: readonly Rule[] = [
  {
    title:
      "lists of what tenants and kubelets make name what is kept of each object: a page of them may fill the memory",
    forbids: /\.list\(kubernetes\.(Pod|PodDisruptionBudget),(?!.*\bkeep:)/,
    // Commands, tests' parts and the one-machine cluster read what their user made.
    except: ["src/cli/", "src/standin/cluster/"],
    finds: ["(await kube.list(kubernetes.Pod, { fieldSelector: `spec.nodeName=${name}` }, { signal })).items;"],
    leaves: ["await kube.list(kubernetes.Pod, { namespace }, { signal, keep: trimPod })"],
  },
  {
    title: "what a rendered name is, and whether a MachineConfig is rendered, core/config/is-rendered.ts decides",
    forbids: /startsWith\(["'`]rendered|\^rendered-/,
    // It shortens names for display.
    except: ["src/core/config/is-rendered.ts", "src/cli/draw-status.ts"],
    finds: ['!config.metadata.name.startsWith("rendered-") &&', "/^rendered-(.+)-[0-9a-f]{32}$/.exec(run)"],
    leaves: ["name: `rendered-${pool}-${hash}`,", "!isRendered(config, pools)"],
  },
  {
    title: "whether a pool boots images, core/config/opt-in.ts decides: switches, MachineOSConfigs and the default",
    forbids: /\bswitchOf\(|annotations\??\.?\[annotations\.layeringEnabled\]|\)\.defaultOptIn\b/,
    // The tour of an example cluster writes the annotation.
    except: ["src/core/config/opt-in.ts", "src/core/build/build-settings.ts", "src/cli/image-mode-tour.ts"],
    finds: [
      "  const asked = switchOf(pool);",
      "if (switchOf(pool) === false || machineOSConfigOf(name, objects.configs) === undefined)",
      "  metadata.annotations?.[annotations.layeringEnabled],",
      "switched === true || buildSettings(buildConfig).defaultOptIn",
    ],
    leaves: ["const optIn = optInOf(pool, { configs, defaultOptIn: undefined, graceMs, now });"],
  },
  {
    title: "whether a running machine can follow, irreconcilableBetween decides, with what the administrator allows",
    forbids: /\breconcile\b.*from ".*reconcilable\.ts"/,
    // The library offers the rules themselves, and the daemon passes what is allowed by name.
    except: ["src/core/index.ts", "src/core/config/", "src/daemon/"],
    finds: ['import { type StorageOverride, reconcile } from "../config/reconcilable.ts";'],
    leaves: ['import { irreconcilableBetween } from "../config/reconcilable.ts";'],
  },
  {
    title: "when two hosts are the same, core/join/canonical-host.ts decides: letters, final dots, IPv4 in IPv6",
    forbids:
      /0xff_?ff && groups|replace\(\/\\\.\$\/, ""\)|\b(?:addresses|owners|servers)\.(?:includes|has)\((?:address|host|dns)\)/,
    // The embedded API server validates the text of an address, as Kubernetes does.
    except: ["src/core/join/canonical-host.ts", "src/standin/apiserver/"],
    finds: [
      'export const comparableHost = (name: string): string => name.toLowerCase().replace(/\\.$/, "");',
      "if (mark === 0xff_ff && groups.slice(0, 5).every((group) => group === 0))",
      "(address) => binding?.addresses.includes(address) !== true,",
    ],
    leaves: ["ipAddresses.filter((address) => !known.has(canonicalHost(address))),"],
  },
  {
    title: "when a condition last changed its status, api/schema/conditions.ts decides",
    forbids: /status === .*\? \(?\w+\.lastTransitionTime|^\s*\? \(?\w+\.lastTransitionTime/,
    // The API server stands in for Kubernetes' own code.
    except: ["src/standin/apiserver/"],
    finds: [
      "lastTransitionTime: old?.status === status ? old.lastTransitionTime : stamp,",
      "        ? (before.lastTransitionTime ?? timestamp(now))",
    ],
    leaves: [
      'since: tells ? condition.lastTransitionTime : "",',
      "pod.lastTransitionTime ?? pod.metadata.creationTimestamp",
    ],
  },
  {
    title:
      "how a signal follows another one, ports/linked-signal.ts decides: a composite with listeners is never freed",
    forbids: /AbortSignal\.any\(/,
    except: [],
    finds: ["const until = AbortSignal.any([signal, stopping.signal]);"],
    leaves: ["const stopping = linkedSignal(signal);"],
  },
  {
    title: "what a terminal is given to print, cli/io.ts decides: text of objects is escaped there",
    forbids: /process\.std(?:out|err)\.write\(|\bconsole\.(?:log|info|warn|error)\(/,
    // Logs are redacted and escaped before their logger gets them (cli/run-process.ts); the console is a browser's.
    except: ["src/cli/io.ts", "src/ports/node/json-logger.ts", "src/console/"],
    finds: ["process.stdout.write(`${lines.join()}\\n`);", "console.log(text)"],
    leaves: ["processIo().out(text);", "processScreen().draw(lines)"],
  },
  {
    title: "how a list is shortened, core/text/list-text.ts decides",
    forbids: /and \$\{[^}]*\} more\b/,
    // Ignition lies below core.
    except: ["src/core/text/list-text.ts", "src/ignition/problem.ts"],
    finds: ['`${names.slice(0, 5).join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}`;'],
    leaves: ["`${andMore(all.length - mostWarnings + 1)}; mco plan says everything`", "and ${count} moreover"],
  },
  {
    title: "how many items are worked on at the same time, ports/each-at-once.ts sees to",
    forbids: /Promise\.all(Settled)?\(\s*Array\.from\(\{ length: \w*(atOnce|AtOnce|parallel|Math\.min)/,
    except: ["src/ports/each-at-once.ts"],
    finds: [
      "await Promise.all(Array.from({ length: syncsAtOnce }, worker));",
      "await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));",
    ],
    leaves: ["await eachAtOnce(files, syncsAtOnce, sync);", "Array.from({ length: 8 })"],
  },
  {
    title: "whether a failure means that a path does not exist, ports/absent-file.ts decides",
    forbids: /function orUndefined|"ENOENT", "ENOTDIR"/,
    except: ["src/ports/absent-file.ts"],
    finds: ["async function orUndefined<T>(work: Promise<T>)", 'const absentCodes = ["ENOENT", "ENOTDIR"];'],
    leaves: ['import { orUndefined } from "../../ports/absent-file.ts";'],
  },
  {
    title: "JSON of which equal values have equal text, core/text/canonical-json.ts writes",
    forbids: /\$\{JSON\.stringify\(\w+\)\}:\$\{/,
    // The text of field sets is that of Go's encoder.
    except: ["src/core/text/canonical-json.ts", "src/standin/apiserver/schema/merge/field-sets.ts"],
    finds: ['return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`).join(",")}}`;'],
    leaves: ["canonicalJson({ apiGroup, version })"],
  },
  {
    title: "a decision reads values, never a sentence of the suite's own",
    forbids:
      /\b(?:message|reason|problem|remedy|headline|todo|next)\??\.(?:startsWith|endsWith|includes|match)\(|\.(?:test|exec)\((?:\w+\.)*(?:message|problem|remedy)\b/,
    except: [
      // Errors of Node, of libraries, of Kubernetes and of kubelets have no other values.
      "src/standin/apiserver/node/sqlite-store.ts",
      "src/standin/apiserver/schema/validation/cel.ts",
      "src/cli/manifests.ts",
      "src/core/build/build-failures.ts",
      "src/core/text/kubernetes-yaml.ts",
      "src/kube/kube-error.ts",
      // Messages of admission policies, of which Kubernetes hands on the text alone.
      "src/cli/judge-by-policies.ts",
      // A name that a sentence begins with or has is not printed twice.
      "src/cli/commands/render.ts",
      "src/cli/plan/describe-plan.ts",
      "src/core/render/render-for-pool.ts",
      // The condition of a machine holds its failure as text only.
      "src/core/preview/explain.ts",
    ],
    finds: [
      'object.status.message?.includes("cannot be handled as") !== true',
      'return result.problem.startsWith("invalid patch format")',
      "if (isInvalid(error) && /closed chapter is never changed|stay as they are/.test(error.message))",
      'next === "" || next.startsWith("Nothing:")',
    ],
    leaves: ['inputs.message.split("\\n")', "known.includes(reason)", "/^Sync[A-Z]/.test(reason)"],
  },
  {
    title: "what files of MachineConfigs hold, ignition/held-contents.ts decodes: each once, and within limits",
    forbids: /\bdecode(?:Contents|Measured)\((?!\{)/,
    except: [
      "src/ignition/data-url.ts",
      "src/ignition/held-contents.ts",
      // The whole text of a base file that is written again as it is, and parsed by nobody.
      "src/core/render/config-file.ts",
      // A machine that is provisioned reads its own configuration once.
      "src/host/ignition/",
      // Parts of the Secret that machines of the cluster start with.
      "src/core/join/installed-user-data.ts",
    ],
    finds: ["const contents = decodeContents(file.contents);", "decodeContents(resource, { maxBytes })"],
    // Text of other objects.
    leaves: ["decodeContents({ source: `data:;base64,${base64}` })", "const read = contentsReader();"],
  },
  {
    title: "what a drain request says, core/machine/drain-requests.ts decides",
    forbids: /["'`](un)?(drain|cordon)-(\$\{|["'`])|\(drain\|uncordon\)/,
    except: ["src/core/machine/drain-requests.ts"],
    finds: ["`drain-${config}`", 'request.startsWith("uncordon-")', 'request.replace(/^(drain|uncordon)-/, "")'],
    leaves: ['"drain-deadline-seconds"', "drainRequest(target)"],
  },
];

describe.for(rules)("$title", ({ forbids, except, finds, leaves }) => {
  test("everywhere", () => {
    const found = sourceFiles()
      .filter(({ path }) => !except.some((allowed) => path.startsWith(allowed)))
      .flatMap(({ path, text }) =>
        text.split("\n").flatMap((line, index) => (forbids.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
      );
    expect(found).toEqual([]);
  });

  test("the rule finds what it looks for, and nothing else", () => {
    expect(finds.filter((line) => !forbids.test(line))).toEqual([]);
    expect(leaves.filter((line) => forbids.test(line))).toEqual([]);
  });
});
