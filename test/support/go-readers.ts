import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** What Go's libraries read; `hack/go-readers/main.go` says what each field is. Bytes are base64. */
export interface GoAnswer {
  readonly error?: string;
  readonly blocks?: readonly { readonly label: string; readonly headers: number; readonly der: string }[];
  readonly certificates?: readonly {
    readonly der: string;
    readonly commonName: string;
    readonly notBefore: string;
    readonly notAfter: string;
  }[];
  readonly request?: {
    readonly commonName: string;
    readonly organizations: readonly string[] | null;
    readonly dnsNames: readonly string[] | null;
    readonly ipAddresses: readonly string[] | null;
    readonly emailAddresses: readonly string[] | null;
    readonly uris: readonly string[] | null;
    readonly publicKey: string;
    readonly signed: boolean;
  };
  readonly entries?: readonly {
    readonly name: string;
    readonly type: string;
    readonly linkname: string;
    readonly mode: number;
    readonly contents: string;
  }[];
  readonly bytes?: string;
  readonly json?: unknown;
  readonly url?: { readonly scheme: string; readonly opaque: string; readonly query: string; readonly text: string };
  /** What strict validation of fields finds. */
  readonly strict?: readonly string[];
  readonly requests?: readonly {
    readonly method: string;
    readonly target: string;
    readonly host: string;
    readonly headers: Readonly<Record<string, readonly string[]>>;
    readonly hasBody: boolean;
  }[];
  readonly reference?: { readonly name: string; readonly tag: string; readonly digest: string };
  readonly sections?: readonly string[];
  /** Of Go itself. */
  readonly version?: string;
}

export type GoReader =
  | "pem"
  | "bundle"
  | "request"
  | "tar"
  | "gzip"
  | "json"
  | "kubeJson"
  | "kubeYaml"
  | "manifests"
  | "kubeconfig"
  | "url"
  | "http"
  | "reference"
  | "image"
  | "unit"
  | "ignition"
  | "version";

export interface GoReaders {
  ask(reader: GoReader, bytes: Uint8Array | string): Promise<GoAnswer>;
  close(): Promise<void>;
}

/** The program, built where Go is on this machine; `undefined` elsewhere: its tests are skipped, by name. */
export function goReadersProgram(): string | undefined {
  try {
    return execFileSync(join(import.meta.dirname, "../../hack/go-readers/build"), { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

export function startGoReaders(program: string): GoReaders {
  // The module names an older Go, and so would read hosts with several colons, as Go before 1.26.
  const env = { ...process.env, GODEBUG: "urlstrictcolons=1" };
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"], env });
  const waiting: { resolve(answer: GoAnswer): void; reject(error: Error): void }[] = [];
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  createInterface({ input: child.stdout }).on("line", (line) => waiting.shift()?.resolve(JSON.parse(line) as GoAnswer));
  child.once("exit", (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`Go's readers ended with ${code}`));
  });
  return {
    ask(reader, bytes) {
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        child.stdin.write(`${JSON.stringify({ reader, bytes: Buffer.from(bytes).toString("base64") })}\n`);
      });
    },
    async close() {
      child.stdin.end();
      await gone;
    },
  };
}
