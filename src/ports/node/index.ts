export { configListen } from "./config-listener.ts";
export { forward } from "./tcp-forward.ts";
export { httpGet } from "./http-get.ts";
export { httpListen, httpsListen } from "./https-listener.ts";
export { errorText, jsonLogger } from "./json-logger.ts";
export { systemClock } from "./system-clock.ts";
export { systemFiles } from "./system-files.ts";
export { systemProcesses } from "./system-processes.ts";
export { systemRandom } from "./system-random.ts";
