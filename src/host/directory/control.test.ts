import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { askMachine } from "./control.ts";

test.for(["no JSON", '{"message":', "null"])(
  "an answer that says nothing is a failure of who asked: %s [host-control-1]",
  async (answer) => {
    const folder = mkdtempSync(join(tmpdir(), "mco-control-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const at = join(folder, "control.sock");
    const server = createServer((_asked, outgoing) => void outgoing.writeHead(500).end(answer));
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => void server.listen(at, resolve));
    await expect(askMachine(at, "reboot", "a test", new AbortController().signal)).rejects.toMatchObject({
      code: "MCO_HOST_COMMAND_FAILED",
    });
  },
);
