import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kubectl, kubectlFor } from "../support/kubectl.ts";
import { startBareControlPlane } from "../support/kubernetes/bare-control-plane.ts";
import { authorityOf, hasKubernetes, kubectlProgram, kubernetesTarget } from "../support/kubernetes/control-plane.ts";
import { goldenText, record, recording } from "./golden-files.ts";
import { playSession, prepareServer } from "./play-session.ts";
import { sessions } from "./sessions.ts";

describe.skipIf(!hasKubernetes)("kubectl sessions on a real kube-apiserver", () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-sessions-"));
  let controlPlane: Awaited<ReturnType<typeof startBareControlPlane>> | undefined;
  let kubectl: Kubectl;

  beforeAll(async () => {
    controlPlane = await startBareControlPlane();
    const target = await kubernetesTarget(controlPlane);
    await prepareServer(
      target,
      sessions.map(({ name }) => name),
    );
    target.close();
    const authority = await authorityOf(controlPlane);
    kubectl = kubectlFor(
      { folder, identity: (user) => target.identity(user), running: { url: controlPlane.url }, authority },
      kubectlProgram,
    );
  });
  afterAll(async () => {
    await controlPlane?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test.for([...sessions])("$name: $title", async (session) => {
    const text = await playSession(session, kubectl, { folder });
    if (recording) record(session.name, text);
    expect(text).toBe(goldenText(session.name));
  });
});
