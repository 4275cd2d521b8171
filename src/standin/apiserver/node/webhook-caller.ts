import { request } from "node:https";
import type { WebhookCaller } from "../admission/admission-webhooks.ts";

/** Answers of webhooks are read up to this size. */
const answerLimitBytes = 4 * 1024 * 1024;

/** Calls admission webhooks over HTTPS; plain HTTP is refused, as the real server refuses it. */
export const httpsWebhookCaller: WebhookCaller = ({ url, ca, body }, signal) =>
  new Promise((resolve, reject) => {
    if (!url.startsWith("https://")) {
      reject(new Error("url must use https"));
      return;
    }
    const call = request(
      url,
      {
        method: "POST",
        signal,
        ...(ca === undefined ? {} : { ca }),
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          "content-length": Buffer.byteLength(body),
        },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let length = 0;
        answer.on("data", (chunk: Buffer) => {
          length += chunk.length;
          if (length > answerLimitBytes) call.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
        );
        answer.on("error", reject);
      },
    );
    call.on("error", reject);
    call.end(body);
  });
