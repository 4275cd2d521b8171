import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestUser } from "../contract/api-target.ts";
import type { TlsTarget } from "../contract/tls-target.ts";

export interface KubectlResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the real kubectl against a target, with its own home. `input` goes to its standard input. */
export type Kubectl = (
  args: readonly string[],
  options?: {
    readonly input?: string;
    readonly user?: Exclude<TestUser, "nobody">;
    readonly env?: Readonly<Record<string, string>>;
    /** Called with all output so far. */ readonly onOutput?: (out: string) => void;
  },
) => Promise<KubectlResult>;

export const kubectlPath = "/usr/bin/kubectl";

/** What kubectl needs to reach an API server: an address, an authority, credentials, and a place for its home. */
export type KubectlTarget = Pick<TlsTarget, "folder" | "identity"> & {
  readonly running: Pick<TlsTarget["running"], "url">;
  readonly authority: Pick<TlsTarget["authority"], "certificate">;
};

export function kubectlFor(target: KubectlTarget, program = kubectlPath): Kubectl {
  let count = 0;
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const kubeconfig = (user: Exclude<TestUser, "nobody">): string => {
    const home = join(target.folder, `home-${user}`);
    const file = join(home, "kubeconfig");
    mkdirSync(home, { recursive: true });
    const { certificate, key } = target.identity(user);
    // In one step: another kubectl may be about to read it.
    const written = `${file}.${(count += 1)}`;
    writeFileSync(
      written,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        clusters: [
          {
            name: "c",
            cluster: { server: target.running.url, "certificate-authority-data": base64(target.authority.certificate) },
          },
        ],
        users: [
          { name: user, user: { "client-certificate-data": base64(certificate), "client-key-data": base64(key) } },
        ],
        contexts: [{ name: "c", context: { cluster: "c", user } }],
        "current-context": "c",
      }),
    );
    renameSync(written, file);
    return file;
  };
  return (args, { input, user = "admin", env = {}, onOutput } = {}) =>
    new Promise((resolve, reject) => {
      const file = kubeconfig(user);
      const child = spawn(program, args, {
        env: { PATH: process.env["PATH"] ?? "", HOME: join(target.folder, `home-${user}`), KUBECONFIG: file, ...env },
        stdio: ["pipe", "pipe", "pipe"],
      });
      let out = "";
      let err = "";
      child.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString();
        onOutput?.(out);
      });
      child.stderr.on("data", (chunk: Buffer) => {
        err += chunk.toString();
      });
      child.on("error", reject);
      child.on("close", (code) => resolve({ code: code ?? -1, out, err }));
      child.stdin.end(input ?? "");
    });
}

/** A script that an EDITOR variable can name: it replaces text in the file. */
export function editorScript(target: Pick<TlsTarget, "folder">, from: string, to: string): string {
  const file = join(target.folder, `editor-${from.length}-${to.length}.sh`);
  writeFileSync(file, `#!/bin/sh\nsed -i 's|${from}|${to}|' "$1"\n`);
  chmodSync(file, 0o755);
  return file;
}
