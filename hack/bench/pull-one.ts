/**
 * The process that `machines.ts` measures: pulls one image into a folder of trees, `pull-one.ts FOLDER IMAGE`, and
 * prints what it cost.
 */
import { readFileSync } from "node:fs";
import { imageTrees } from "../../src/cli/image-trees.ts";
import { settings } from "../../test/support/registry/settings.ts";

const [, , folder = "", image = ""] = process.argv;
const began = performance.now();
await imageTrees(folder).fetch(image, settings(), new AbortController().signal);
const seconds = Math.round(performance.now() - began) / 1000;
const peakKiB = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
process.stdout.write(JSON.stringify({ seconds, peak: Math.round(peakKiB / 102.4) / 10 }));
