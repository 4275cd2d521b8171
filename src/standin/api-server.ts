/** The embedded API server as a process: `mco apiserver`. */
export { serveApiServer } from "./apiserver/node/serve.ts";
export { readYamlInThread, yamlThread } from "./apiserver/node/yaml-threads.ts";
