import { definedResources } from "../../src/api/index.ts";
import { Api, type ApiTarget } from "../contract/api-target.ts";
import { editorScript, type Kubectl, type KubectlTarget } from "../support/kubectl.ts";
import { untilSeen } from "../support/until-seen.ts";
import { recordable } from "./recordable.ts";
import type { Session, Step } from "./sessions.ts";

/** Prepares a server for sessions: our kinds, served and described, and the namespaces. */
export async function prepareServer(target: ApiTarget, namespaces: readonly string[]): Promise<void> {
  const api = new Api(target);
  for (const resource of definedResources) {
    const made = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", resource.crd());
    if (made.status !== 201) throw new Error(made.text);
  }
  for (const { group, version, plural, kind } of definedResources)
    await untilSeen(
      `${plural} are served and described`,
      async () => {
        const served = (await api.get(`/apis/${group}/${version}/${plural}`)).status;
        const { status, text } = await api.get(`/openapi/v3/apis/${group}/${version}`);
        return { served, status, text };
      },
      ({ served, text }) => served === 200 && text.includes(`"kind":"${kind}"`),
      { seconds: 420 },
    );
  for (const name of namespaces) {
    const made = await api.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
    if (made.status !== 201) throw new Error(made.text);
    // A controller makes it; some servers have it already.
    await api.post(`/api/v1/namespaces/${name}/serviceaccounts`, {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "default" },
    });
  }
}

/** Types the commands of a session, and returns what a user would see, without what differs every time. */
export async function playSession(
  session: Session,
  kubectl: Kubectl,
  target: Pick<KubectlTarget, "folder">,
): Promise<string> {
  const shown: string[] = [];
  for (const step of session.steps) {
    shown.push(`$ kubectl ${commandLine(step)}`);
    shown.push(await perform(step, session, kubectl, target));
  }
  return recordable(shown.join("\n"));
}

async function perform(
  step: Step,
  session: Session,
  kubectl: Kubectl,
  target: Pick<KubectlTarget, "folder">,
): Promise<string> {
  const args = ["-n", session.name, ...step.run];
  const env = step.edit === undefined ? {} : { EDITOR: editorScript(target, ...step.edit) };
  const options = {
    env,
    ...(step.input === undefined ? {} : { input: step.input }),
    ...(step.user === undefined ? {} : { user: step.user }),
  };
  if (step.meanwhile === undefined) {
    const { out, err, code } = await kubectl(args, options);
    return [
      out,
      ...err
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => `! ${line}\n`),
      code === 0 ? "" : `(exit code ${code})\n`,
    ].join("");
  }
  // A watch: the commands that run meanwhile are typed when its first line has come; it ends after its time.
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const watching = kubectl(args, { ...options, onOutput: () => resolve() });
  await begun;
  let text = "";
  for (const run of step.meanwhile) {
    const { out, err } = await kubectl(["-n", session.name, ...run]);
    text += `  $ kubectl ${run.join(" ")}\n  ${out}${err}`;
  }
  return `${text}${(await watching).out}`;
}

function commandLine({ run, input, edit, user }: Step): string {
  const typed = run.map((word) => (/[\s"'{}$*?]/.test(word) ? `'${word}'` : word)).join(" ");
  const manifest = input === undefined ? "" : ` <<EOF\n${input.trimEnd()}\nEOF`;
  return `${typed}${user === undefined ? "" : `   # as ${user}`}${edit === undefined ? "" : `   # s|${edit[0]}|${edit[1]}|`}${manifest}`;
}
