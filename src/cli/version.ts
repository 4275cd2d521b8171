/** Version of the suite: that of package.json, kept equal by a test. */
export const version = "0.1.0";

/**
 * Changes only when generated content changes, so that a new release neither fences nor re-renders (foundation of the
 * upgrade fence).
 */
export const generatorVersion = "1";
