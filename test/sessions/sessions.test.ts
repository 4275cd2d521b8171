import { accessSync, constants } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kubectl, kubectlFor } from "../support/kubectl.ts";
import { tlsTarget, type TlsTarget } from "../contract/tls-target.ts";
import { kubectlProgram } from "../support/kubernetes/control-plane.ts";
import { goldenText } from "./golden-files.ts";
import { playSession, prepareServer } from "./play-session.ts";
import { sessions } from "./sessions.ts";

/** Other versions print other texts: only kubectl of the recorded version will do. */
function hasKubectl(): boolean {
  try {
    accessSync(kubectlProgram, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasKubectl())("kubectl sessions on the embedded API server", () => {
  let target: TlsTarget;
  let kubectl: Kubectl;

  beforeAll(async () => {
    target = await tlsTarget();
    await prepareServer(
      target,
      sessions.map(({ name }) => name),
    );
    kubectl = kubectlFor(target, kubectlProgram);
  });
  afterAll(() => target.close());

  test.for([...sessions])("$name: $title", async (session) => {
    expect(await playSession(session, kubectl, target)).toBe(goldenText(session.name));
  });
});
