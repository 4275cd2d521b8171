import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { McoError } from "../../src/api/errors.ts";
import { connect } from "../../src/cli/connect.ts";
import { takeGlobalFlags } from "../../src/cli/global-flags.ts";
import type { Impersonated } from "../../src/kube/kubeconfig.ts";
import { hasKubernetes, kubectlProgram } from "../support/kubernetes/control-plane.ts";

const exec = promisify(execFile);
/** `refused`: there is no request. */
type Acting = Impersonated | "nobody else" | "refused";

function actingBy({ headersDistinct }: Pick<IncomingMessage, "headersDistinct">): Acting {
  const user = headersDistinct["impersonate-user"]?.[0];
  const uid = headersDistinct["impersonate-uid"]?.[0];
  const groups = headersDistinct["impersonate-group"];
  const extra = Object.entries(headersDistinct).flatMap(([name, values = []]) => {
    const key = /^impersonate-extra-(.*)$/.exec(name)?.[1];
    return key === undefined ? [] : [[decodeURIComponent(key), values] as const];
  });
  if (user === undefined) return "nobody else";
  return {
    user,
    ...(uid === undefined ? {} : { uid }),
    ...(groups === undefined ? {} : { groups }),
    ...(extra.length === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}

describe.skipIf(!hasKubernetes)("whom a command acts as, by kubeconfig and flags", () => {
  let folder = "";
  let heard: Acting | undefined;
  const server = createServer((request, response) => {
    heard = actingBy(request);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "mco-impersonation-"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    takeGlobalFlags([], { kind: "people" });
    rmSync(folder, { recursive: true, force: true });
    await new Promise((resolve) => server.close(resolve));
  });

  function kubeconfigOf(user: object): string {
    const file = join(folder, "kubeconfig");
    const { port } = server.address() as AddressInfo;
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "c",
        clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
        users: [{ name: "u", user }],
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      }),
    );
    return file;
  }

  async function byKubectl(kubeconfig: string, flags: readonly string[]): Promise<Acting> {
    heard = undefined;
    const args = ["get", "--raw", "/x", "--kubeconfig", kubeconfig, "--cache-dir", join(folder, "cache"), ...flags];
    await exec(kubectlProgram, args, { env: { HOME: folder } }).catch((error: unknown) => {
      expect(String(error)).toContain("without impersonating a user");
    });
    return heard ?? "refused";
  }

  async function byUs(kubeconfig: string, flags: readonly string[]): Promise<Acting> {
    takeGlobalFlags(flags, { kind: "people", flags: [{ flag: "--kubeconfig", value: "FILE", text: "" }] });
    try {
      const { connection, close } = await connect({ kubeconfig, component: "test" });
      close();
      return connection.impersonate ?? "nobody else";
    } catch (error) {
      expect(error).toBeInstanceOf(McoError);
      return "refused";
    }
  }

  const users = {
    "nobody else": {},
    everything: {
      as: "jane",
      "as-uid": "7",
      "as-groups": ["a", "b"],
      "as-user-extra": { "example.com/k": ["v", "w"], l: ["x"] },
    },
    "a user": { as: "jane" },
    "groups alone": { "as-groups": ["a"] },
    "a uid alone": { "as-uid": "7" },
    "extra values alone": { "as-user-extra": { k: ["v"] } },
  };
  const flags = [
    "",
    "--as joe",
    "--as joe --as-group c --as-group d",
    "--as-group c",
    "--as-uid 9",
    "--as=joe --as-uid=9",
  ];

  test.for(Object.entries(users))(
    "a kubeconfig with %s leads to whom kubectl acts as, whatever the flags [impersonation-1]",
    { timeout: 120_000 },
    async ([, user]) => {
      const kubeconfig = kubeconfigOf(user);
      for (const given of flags) {
        const words = given.split(" ").filter((word) => word !== "");
        expect(await byUs(kubeconfig, words), given).toEqual(await byKubectl(kubeconfig, words));
      }
    },
  );
});
