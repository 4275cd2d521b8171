/** A process that fetches one image as a daemon does: `fetch-once.ts FOLDER IMAGE`. */
import { imageTrees } from "../../../src/cli/image-trees.ts";
import { settings } from "./settings.ts";

const [, , folder = "", image = ""] = process.argv;
await imageTrees(folder).fetch(image, settings(), new AbortController().signal);
