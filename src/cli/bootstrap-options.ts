/** Flags of `mco operator bootstrap` and `mco controller bootstrap`. */
export const bootstrapOptions = {
  "manifest-dir": { type: "string" },
  "dest-dir": { type: "string" },
  "journal-dir": { type: "string" },
  "release-image": { type: "string" },
  json: { type: "boolean" },
} as const;
