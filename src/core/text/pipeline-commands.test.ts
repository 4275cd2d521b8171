import { expect, test } from "vitest";
import { withoutPipelineCommands } from "./pipeline-commands.ts";

test.for([
  { text: "::set-output name=a::b", is: "\\u003a:set-output name=a::b" },
  { text: "a\n  ::stop-commands::x", is: "a\n  \\u003a:stop-commands::x" },
  { text: "error: a##[add-mask]a", is: "error: a\\u0023#[add-mask]a" },
  { text: " ##vso[task.prependpath]/tmp", is: " \\u0023#vso[task.prependpath]/tmp" },
  { text: "##VSO[task.setvariable]", is: "\\u0023#VSO[task.setvariable]" },
  { text: "##teamcity[publishArtifacts 'x']", is: "\\u0023#teamcity[publishArtifacts 'x']" },
])("$text is shown as $is [text-pipeline-commands-1]", ({ text, is }) => {
  expect(withoutPipelineCommands(text)).toBe(is);
});

test.for([" ::1 localhost", "+::set-output::x", "std::vector::at", "## [a]", "### Heading", "a: b"])(
  "%j stays as it is [text-pipeline-commands-2]",
  (text) => {
    expect(withoutPipelineCommands(text)).toBe(text);
  },
);
