/**
 * A field's name as Go's JSON and TOML readers compare it: without regard to case. The long s folds to a letter of ASCII,
 * too. Source: golang/go src/encoding/json/fold.go (release-branch.go1.26).
 */
export const foldedName = (name: string): string => name.toLowerCase().replaceAll("\u017f", "s");
