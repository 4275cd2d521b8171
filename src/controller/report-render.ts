import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { describeRendered } from "../core/preview/describe-rendered.ts";
import type { RenderCase, RenderView } from "../core/render/render-decision.ts";
import type { Context } from "../kube/controller.ts";

type Reports = Pick<Context, "report">;

/** Reports that a pool selects every MachineConfig. */
export const reportSelectingAll = (pool: MachineConfigPool, { report }: Reports): void =>
  report({
    about: pool,
    notice: "SelectingAll",
    message: "This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.",
  });

/** Reports that a rendered config was made. */
export const reportGenerated = (
  rendered: string,
  { pool, version, generatorVersion }: RenderView,
  { report }: Reports,
): void =>
  report({
    about: pool,
    notice: "RenderedConfigGenerated",
    message: `${rendered} successfully generated (release version: ${version}, controller version: ${generatorVersion})`,
  });

const refused = { chapter: "Render", path: "Refused", level: "boundary" } as const;

/** Enters in the pool's book why it cannot be rendered. */
export const reportRefusal = (
  { reason, because }: RenderCase<"refuse">,
  { pool }: RenderView,
  { report }: Reports,
): void => report({ book: `pool/${pool.metadata.name}`, ...refused, mark: "begin", reason, message: because });

/** Enters in the pool's book that it can be rendered again. */
export const reportRecovered = (pool: string, { report }: Reports): void =>
  report({
    book: `pool/${pool}`,
    ...refused,
    mark: "end",
    reason: "Recovered",
    message: "the pool can be rendered again",
  });

/** Reports the changes of a new target; for the first target of a pool, how many configs it was merged from. */
export function reportTarget(
  { rendered, news }: RenderCase<"point">,
  { pool, members: { length: members } }: RenderView,
  { report }: Reports,
): void {
  const { name } = pool.metadata;
  const to = rendered.config.metadata.name;
  const here = { book: `pool/${name}`, chapter: "Render", run: to, mark: "end", level: "boundary" } as const;
  if (news?.is === "first")
    report({
      ...here,
      path: "Rendered",
      reason: "RenderedConfigGenerated",
      message: `rendered from ${members} MachineConfigs`,
      data: { to, members },
    });
  if (news?.is !== "changed") return;
  const from = news.from.metadata.name;
  const message = `${to} in place of ${from}: ${describeRendered(news.from, rendered)}`;
  if (news.isKnown) report({ about: pool, notice: "RenderedConfigChanged", message });
  else
    report({
      about: pool,
      ...here,
      path: "Changed",
      reason: "RenderedConfigChanged",
      message,
      data: { from, to, members },
    });
}
