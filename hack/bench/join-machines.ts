/**
 * Simulated machines that boot at once: each fetches its configuration, asks for its certificate as the account in it,
 * waits for it, and registers its Node with it. Prints a JSON line with the milliseconds of each step of each machine.
 *   join-machines.ts CONFIG_SERVER CONFIG_CA TOKEN POOL COUNT
 */
import type { IncomingHttpHeaders } from "node:http";
import { Agent, request } from "node:https";
import { performance } from "node:perf_hooks";
import { parse } from "yaml";
import { decodeContents, textOf } from "../../src/ignition/data-url.ts";
import { requestCertificate } from "../../src/kube/certificates.ts";

const [server = "", ca = "", token = "", pool = "", count = "0"] = process.argv.slice(2);

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
}

function ask(
  agent: Agent,
  url: string,
  { method = "GET", headers = {}, body, contentType = "application/json" }: Ask = {},
): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        agent,
        method,
        headers: {
          ...headers,
          ...(text === undefined
            ? {}
            : { "content-type": contentType, "content-length": String(Buffer.byteLength(text)) }),
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.once("error", reject);
        incoming.once("end", () =>
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text: Buffer.concat(chunks).toString("utf8"),
          }),
        );
      },
    );
    outgoing.once("error", reject);
    outgoing.end(text);
  });
}

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Retries as a machine does after `Retry-After`. */
async function untilOk(what: () => Promise<Answer>): Promise<Answer & { readonly tries: number }> {
  for (let tries = 1; ; tries += 1) {
    const answer = await what().catch((error: unknown): Answer => ({ status: 0, headers: {}, text: String(error) }));
    if (answer.status >= 200 && answer.status < 300) return { ...answer, tries };
    if (answer.status === 401 || answer.status === 403 || answer.status === 404 || answer.status === 409 || tries > 200)
      throw new Error(`${answer.status}: ${answer.text.slice(0, 300)}`);
    await pause(
      Number(answer.headers["retry-after"] ?? 0) * 1000 ||
        Math.min(5000, 100 * 2 ** Math.min(tries, 6)) * (0.5 + Math.random()),
    );
  }
}

interface Served {
  readonly storage: {
    readonly files: readonly { readonly path: string; readonly contents?: { readonly source?: string } }[];
  };
}

interface Request {
  readonly status?: { readonly certificate?: string };
}

/** Milliseconds after the start at which a machine was so far. */
interface Steps {
  fetched: number;
  asked: number;
  certified: number;
  registered: number;
  fetches: number;
}

const began = performance.now();
const at = () => performance.now() - began;

async function join(index: number): Promise<Steps> {
  const name = `sim-${String(index).padStart(4, "0")}`;
  const toServer = new Agent({ ca, keepAlive: false });
  const config = await untilOk(() =>
    ask(toServer, `${server}/config/${pool}`, {
      headers: { authorization: `Bearer ${token}`, accept: "application/vnd.coreos.ignition+json;version=3.5.0" },
    }),
  );
  const fetched = at();
  const file = (JSON.parse(config.text) as Served).storage.files.find(
    ({ path }) => path === "/etc/kubernetes/kubeconfig",
  );
  const contents = decodeContents({ source: file?.contents?.source ?? "" });
  const kubeconfig = parse(contents.verdict === "decoded" ? (textOf(contents.bytes) ?? "") : "") as {
    readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
    readonly users: readonly { readonly user: { readonly token: string } }[];
  };
  const cluster = kubeconfig.clusters[0]?.cluster ?? {};
  const api = cluster["server"] ?? "";
  const trusted = Buffer.from(cluster["certificate-authority-data"] ?? "", "base64").toString("utf8");
  const bearer = { authorization: `Bearer ${kubeconfig.users[0]?.user.token ?? ""}` };

  const { request: csr, key } = await requestCertificate({
    commonName: `system:node:${name}`,
    organizations: ["system:nodes"],
  });
  const asBootstrapper = new Agent({ ca: trusted, keepAlive: true, maxSockets: 1 });
  const requests = `${api}/apis/certificates.k8s.io/v1/certificatesigningrequests`;
  await untilOk(() =>
    ask(asBootstrapper, requests, {
      method: "POST",
      headers: bearer,
      body: {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { name: `csr-${name}` },
        spec: {
          request: Buffer.from(csr).toString("base64"),
          signerName: "kubernetes.io/kube-apiserver-client-kubelet",
          usages: ["digital signature", "client auth"],
        },
      },
    }),
  );
  const asked = at();
  let certificate: string | undefined;
  for (let wait = 200; certificate === undefined; wait = Math.min(2000, wait * 1.5)) {
    await pause(wait * (0.75 + Math.random() / 2));
    certificate = (
      JSON.parse(
        (await untilOk(() => ask(asBootstrapper, `${requests}/csr-${name}`, { headers: bearer }))).text,
      ) as Request
    ).status?.certificate;
  }
  const certified = at();
  asBootstrapper.destroy();
  const asNode = new Agent({
    ca: trusted,
    cert: Buffer.from(certificate, "base64").toString("utf8"),
    key,
    keepAlive: true,
    maxSockets: 1,
  });
  await untilOk(() =>
    ask(asNode, `${api}/api/v1/nodes`, {
      method: "POST",
      body: {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "simulated" } },
      },
    }),
  );
  await untilOk(() =>
    ask(asNode, `${api}/api/v1/nodes/${name}/status`, {
      method: "PATCH",
      contentType: "application/merge-patch+json",
      body: {
        status: {
          conditions: [
            {
              type: "Ready",
              status: "True",
              reason: "KubeletReady",
              message: "",
              lastHeartbeatTime: new Date().toISOString(),
              lastTransitionTime: new Date().toISOString(),
            },
          ],
        },
      },
    }),
  );
  asNode.destroy();
  return { fetched, asked, certified, registered: at(), fetches: config.tries };
}

const steps = await Promise.all(Array.from({ length: Number(count) }, (_, index) => join(index)));
process.stdout.write(`${JSON.stringify(steps)}\n`);
