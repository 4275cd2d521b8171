/**
 * The program as a thread, with a planner that runs into a loop without an end on a review that says so. Started as the
 * endpoint it is the real one.
 */
import { threadId } from "node:worker_threads";
import { runThread } from "../../src/cli/own-thread.ts";
import { answerReview } from "../../src/controller/admission-handler.ts";
import { admissionThreads } from "../../src/controller/admission-endpoint.ts";
import type { ReviewMessage } from "../../src/controller/plan-queue.ts";
import { ownThread } from "../../src/ports/node/index.ts";
import { silentLogger } from "../../src/ports/logger.ts";

const thread = ownThread();
if (thread?.name === admissionThreads.planner) {
  const { parent } = thread;
  parent.listen((message) => {
    const { id, body } = message as ReviewMessage;
    const text = typeof body === "string" ? body : new TextDecoder().decode(body);
    if (text.includes("never-ends")) for (;;);
    const response = answerReview(body, { log: silentLogger });
    parent.send({
      is: "answer",
      id,
      response: { ...response, headers: { ...response.headers, "x-thread": String(threadId) } },
    });
  });
  parent.send({ is: "ready" });
} else if (thread !== undefined) await runThread(thread);
