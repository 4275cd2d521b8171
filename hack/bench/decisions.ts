import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { diffConfigs } from "../../src/core/config/diff-configs.ts";
import { renderPool } from "../../src/core/render/render-pool.ts";
import type { ReferenceCase } from "../../test/vectors/answer-case.ts";
import { ratePerSecond } from "./statistics.ts";

export interface DecisionMetrics {
  readonly renderCases: number;
  readonly diffCases: number;
  readonly membersPerRender: number;
  readonly rendersPerSecond: number;
  readonly rendersPerSecondBaseline: number;
  /** Renders of a pool with `manyMembers` members, of which one is new each time. */
  readonly manyMembers: number;
  readonly rerendersPerSecond: number;
  readonly rerendersPerSecondBaseline: number;
  readonly diffsPerSecond: number;
  readonly diffsPerSecondBaseline: number;
}

const manyMembers = 100;

/** Three files of 2 KiB, a unit and a drop-in, as a spec 3.2 config. */
function largeMember(i: number): MachineConfig {
  const text = Buffer.from(`setting_${i} = value\n`.repeat(100)).toString("base64").slice(0, 2048);
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: `${100 + i}-worker`, labels: { "machineconfiguration.openshift.io/role": "worker" } },
    spec: {
      kernelArguments: [`argument${i}`],
      config: {
        ignition: { version: "3.2.0" },
        storage: {
          files: [0, 1, 2].map((k) => ({
            path: `/etc/example/${i}-${k}.conf`,
            mode: 0o644,
            contents: { source: `data:;base64,${text}` },
          })),
        },
        systemd: {
          units: [
            {
              name: `example-${i}.service`,
              enabled: true,
              contents:
                "[Unit]\nDescription=An example\n\n[Service]\nExecStart=/usr/bin/true\n\n[Install]\nWantedBy=multi-user.target\n",
              dropins: [{ name: "10-x.conf", contents: "[Service]\nMemoryHigh=1G\n" }],
            },
          ],
        },
      },
    },
  };
}

/**
 * Renders and comparisons in one thread, over the reference cases that can be rendered and compared.
 *
 * Ours works as a controller does: objects live in a watch cache, and one of them is new each time. The baseline knows
 * nothing from before: every object is read from its JSON text for every answer.
 */
export function measureDecisions(seconds: number): DecisionMetrics {
  const cases = gunzipSync(readFileSync(new URL("../../test/vectors/cases.jsonl.gz", import.meta.url)))
    .toString("utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ReferenceCase);
  const copy = <T>(text: string) => JSON.parse(text) as T;

  type Render = Extract<ReferenceCase, { op: "render" }>;
  const inputs = (one: Render, members: Render["configs"]) => ({
    pool: one.pool,
    members,
    controllerConfig: {
      spec: { baseOSContainerImage: one.osImageURL, baseOSExtensionsContainerImage: one.extensionsImage },
    },
  });
  const renders = cases
    .filter((one) => one.op === "render")
    .filter((one) => one.configs.length > 0 && renderPool(inputs(one, one.configs)).verdict === "rendered")
    .map((one) => ({ one, members: [...one.configs], texts: one.configs.map((config) => JSON.stringify(config)) }));
  const render = (one: Render, members: Render["configs"]) => {
    if (renderPool(inputs(one, members)).verdict !== "rendered") throw new Error(`${one.id} does not render`);
  };
  const rendersPerSecond = ratePerSecond((turn) => {
    for (const { one, members, texts } of renders) {
      const changed = turn % members.length;
      members[changed] = copy(texts[changed] ?? "");
      render(one, members);
    }
    return renders.length;
  }, seconds);
  const rendersPerSecondBaseline = ratePerSecond(() => {
    for (const { one, texts } of renders)
      render(
        one,
        texts.map((text) => copy(text)),
      );
    return renders.length;
  }, seconds);

  const many = Array.from({ length: manyMembers }, (_, i) => JSON.stringify(largeMember(i)));
  const pool = { metadata: { name: "worker" } };
  const renderMany = (configs: Render["configs"]) => {
    const result = renderPool({ pool, members: configs, controllerConfig: { spec: {} } });
    if (result.verdict !== "rendered") throw new Error(JSON.stringify(result.refusals));
    return 1;
  };
  const cached = many.map((text) => copy<MachineConfig>(text));
  const rerendersPerSecond = ratePerSecond((turn) => {
    const changed = turn % manyMembers;
    cached[changed] = copy(many[changed] ?? "");
    return renderMany(cached);
  }, seconds);
  const rerendersPerSecondBaseline = ratePerSecond(() => renderMany(many.map((text) => copy(text))), seconds);

  const diffs = cases
    .filter((one) => one.op === "diff")
    .map(({ Old, New }) => ({ from: Old, fromText: JSON.stringify(Old), toText: JSON.stringify(New) }));
  let found = 0;
  const diffsPerSecond = ratePerSecond(() => {
    for (const { from, toText } of diffs) found += diffConfigs(from, copy(toText)).length;
    return diffs.length;
  }, seconds);
  const diffsPerSecondBaseline = ratePerSecond(() => {
    for (const { fromText, toText } of diffs) found += diffConfigs(copy(fromText), copy(toText)).length;
    return diffs.length;
  }, seconds);
  if (found === 0) throw new Error("no case differs");

  const members = renders.reduce((sum, { texts }) => sum + texts.length, 0) / renders.length;
  return {
    renderCases: renders.length,
    diffCases: diffs.length,
    membersPerRender: Math.round(members * 10) / 10,
    rendersPerSecond,
    rendersPerSecondBaseline,
    manyMembers,
    rerendersPerSecond,
    rerendersPerSecondBaseline,
    diffsPerSecond,
    diffsPerSecondBaseline,
  };
}
