import { createServer, request } from "node:http";
import { rmSync } from "node:fs";
import { McoError } from "../../api/errors.ts";
import type { ControlHandler } from "../host.ts";

const bodyLimitBytes = 64 * 1024;

/** Serves the control socket of a directory machine until `signal` aborts. Only this user can open it. */
export async function serveControl(socketPath: string, handle: ControlHandler, signal: AbortSignal): Promise<void> {
  rmSync(socketPath, { force: true });
  const server = createServer((incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk: Buffer) => {
      body += chunk.toString("utf8");
      if (body.length > bodyLimitBytes) incoming.destroy();
    });
    incoming.once("end", () => {
      void (async () => {
        try {
          const { because = "" } = body === "" ? {} : (JSON.parse(body) as { because?: string });
          const answer = await handle((incoming.url ?? "/").slice(1), because);
          outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer ?? {}));
        } catch (error) {
          outgoing
            .writeHead(500, { "content-type": "application/json" })
            .end(JSON.stringify({ message: error instanceof Error ? error.message : String(error) }));
        }
      })();
    });
  });
  const oldMask = process.umask(0o077);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketPath, resolve);
  });
  process.umask(oldMask);
  signal.addEventListener(
    "abort",
    () => {
      server.close();
      server.closeAllConnections();
      rmSync(socketPath, { force: true });
    },
    { once: true },
  );
}

/** Asks something of the machine behind a control socket. */
export function askMachine(socketPath: string, verb: string, because: string, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) => reject(new McoError("MCO_HOST_COMMAND_FAILED", { verb, socketPath }, { cause }));
    const outgoing = request(
      { socketPath, path: `/${verb}`, method: "POST", signal, headers: { "content-type": "application/json" } },
      (incoming) => {
        let body = "";
        incoming.on("data", (chunk: Buffer) => {
          body += chunk.toString("utf8");
        });
        incoming.once("error", fail);
        incoming.once("end", () => {
          let answer: { readonly message?: string } | null;
          try {
            answer = JSON.parse(body === "" ? "{}" : body) as typeof answer;
          } catch (cause) {
            return fail(cause);
          }
          if (incoming.statusCode === 200) resolve(answer);
          else fail(new Error(answer?.message));
        });
      },
    );
    outgoing.once("error", fail);
    outgoing.end(JSON.stringify({ because }));
  });
}
