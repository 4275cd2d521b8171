/** The image registry of a one-machine cluster: `mco registry`. */
export { blobFolder } from "./registry/node/blob-folder.ts";
export { deriveKey } from "./registry/node/derive-key.ts";
export { listenRegistry } from "./registry/node/registry-listener.ts";
export { refusePushesFile, registryServer } from "./registry/registry-server.ts";
export { type DeriveKey, passwordCheck, readUsers, type RegistryRight } from "./registry/registry-users.ts";
