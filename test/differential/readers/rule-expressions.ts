import fc from "fast-check";
import type { Schema } from "../../../src/standin/apiserver/schema/contract.ts";
import type { RuledValue } from "../../support/go-rules.ts";
import { schemas } from "./rule-cases.ts";

/** Types of expressions that are written; what stands at a place has nearly always the type of the place. */
const types = ["bool", "int", "double", "string", "ints", "strings", "map", "time", "length", "object", "any"] as const;
type Type = (typeof types)[number];

/** An expression of a type, at most so deep. */
type Writer = (type: Type, depth: number) => fc.Arbitrary<string>;

interface Variable {
  readonly name: string;
  readonly type: Type;
}

const literals: Readonly<Record<Type, readonly string[]>> = {
  bool: ["true", "false"],
  int: ["0", "1", "2", "-3", "7", "9223372036854775807"],
  double: ["0.0", "1.5", "-2.0", "1e10"],
  string: ["''", "'a'", "'ab'", "'A.b-1'", "'10.0.0.1'", "'1.2.3'", "'1Gi'", "'äö'", "'https://h.example/p'", "'a,b'"],
  ints: ["[]", "[1]", "[1, 2]", "[2, 1, 2]"],
  strings: ["[]", "['a']", "['b', 'a']"],
  map: ["{}", "{'a': 'b'}", "{'a': 'x', 'c': 'd'}"],
  time: ["timestamp('2026-01-02T03:04:05Z')", "timestamp('1999-12-31T23:59:59.5Z')"],
  length: ["duration('1s')", "duration('90m')", "duration('-1.5h')"],
  object: ["null"],
  any: ["dyn(1)", "dyn('a')", "dyn([1])"],
};

const places: Readonly<Record<Type, readonly string[]>> = {
  bool: ["self.flag", "has(self.name)", "has(self.part.n)"],
  int: ["self.whole", "self.part.n", "size(self.texts)", "self.parts[0].n"],
  double: ["self.fraction", "double(self.whole)"],
  string: ["self.name", "self.name", "self.map.a", "self.texts[0]", "string(self.whole)", "self.?other.orValue('z')"],
  ints: ["self.numbers", "self.parts.map(p, p.n)"],
  strings: ["self.texts", "self.tags", "self.tags"],
  map: ["self.map"],
  time: ["self.time"],
  length: ["self.length"],
  object: ["self.part", "self.like", "self.parts[0]"],
  any: ["self.either", "dyn(self.name)", "dyn(self.whole)"],
};

/** Expressions with a place for each TYPE in them. */
const shapes: Readonly<Record<Type, readonly string[]>> = {
  bool: [
    "$int == $int",
    "$int < $int",
    "$int >= $double",
    "$double < $double",
    "$double == $double",
    "$string == $string",
    "$string < $string",
    "$ints == $ints",
    "$strings == $strings",
    "$map == $map",
    "$time < $time",
    "$time == $time",
    "$length > $length",
    "$object == $object",
    "$any == $any",
    "$any == $int",
    "$any < $any",
    "$bool == $bool",
    "!$bool",
    "$bool && $bool",
    "$bool || $bool",
    "$bool ? $bool : $bool",
    "$int in $ints",
    "$string in $strings",
    "$string in $map",
    "$any in $ints",
    "$string.contains($string)",
    "$string.startsWith($string)",
    "$string.endsWith($string)",
    "$string.matches('^[a-z]+')",
    "isIP($string)",
    "isCIDR($string)",
    "isURL($string)",
    "isSemver($string)",
    "isSemver($string, $bool)",
    "isQuantity($string)",
    "quantity($string).isGreaterThan(quantity('1Mi'))",
    "ip($string) == ip('10.0.0.1')",
    "semver($string).isLessThan(semver('1.3.0'))",
    "format.dns1123Label().validate($string).hasValue()",
    "$ints.isSorted()",
    "sets.contains($strings, $strings)",
    "sets.intersects($ints, $ints)",
    "sets.equivalent($strings, $strings)",
    "$ints.all(x, $bool:x:int)",
    "$ints.exists(x, $bool:x:int)",
    "$strings.exists_one(s, $bool:s:string)",
    "$strings.all(i, s, $bool:i:int:s:string)",
    "$map.exists(k, v, $bool:k:string:v:string)",
    "$map.all(k, $bool:k:string)",
    "$ints.first() == $ints.last()",
    "$map.?a.hasValue()",
    "has(self.either)",
    "type($any) == int",
    "bool($string)",
  ],
  int: [
    "$int + $int",
    "$int - $int",
    "$int * $int",
    "$int / $int",
    "$int % $int",
    "-$int",
    "size($string)",
    "size($strings)",
    "$map.size()",
    "int($string)",
    "int($double)",
    "$string.indexOf($string)",
    "$string.lastIndexOf($string)",
    "$ints.sum()",
    "$ints.min()",
    "$ints.max()",
    "$ints.indexOf($int)",
    "$ints[$int]",
    "$time.getFullYear()",
    "$time.getHours()",
    "$time.getDayOfYear()",
    "$length.getMinutes()",
    "int($time)",
    "$bool ? $int : $int",
    "$ints.first().orValue($int)",
    "quantity($string).asInteger()",
    "semver($string).minor()",
    "ip($string).family()",
  ],
  double: [
    "$double + $double",
    "$double * $double",
    "$double / $double",
    "double($int)",
    "double($string)",
    "-$double",
  ],
  string: [
    "$string + $string",
    "$string.lowerAscii()",
    "$string.upperAscii()",
    "$string.trim()",
    "$string.replace($string, $string)",
    "$string.substring($int)",
    "$string.charAt($int)",
    "string($int)",
    "string($bool)",
    "string($time)",
    "string($length)",
    "$strings.join('-')",
    "$strings[$int]",
    "$map[$string]",
    "$string.find('[a-z]')",
    "'%s:%d'.format([$string, $int])",
    "strings.quote($string)",
    "$bool ? $string : $string",
    "$map.?a.orValue($string)",
    "url($string).getHost()",
  ],
  ints: [
    "$ints + $ints",
    "[$int, $int]",
    "$ints.map(x, $int:x:int)",
    "$ints.filter(x, $bool:x:int)",
    "$strings.transformList(i, s, $int:i:int:s:string)",
  ],
  strings: [
    "$strings + $strings",
    "[$string]",
    "$string.split(',')",
    "$strings.filter(s, $bool:s:string)",
    "$map.map(k, $string:k:string)",
    "$map.transformList(k, v, $string:k:string:v:string)",
    "$string.findAll('[a-z]')",
  ],
  map: ["$map.transformMap(k, v, $string:k:string:v:string)", "{'a': $string}"],
  time: ["$time + $length", "$time - $length", "timestamp($string)"],
  length: ["$length + $length", "$time - $time", "duration($string)"],
  object: [],
  any: ["dyn($int)", "dyn($strings)", "$any"],
};

/** Something of another type, or something that is no function or field of it. */
const misfits = [
  "self.nosuch",
  "1.0",
  "'x'",
  "[1, 'x']",
  "self.name.nosuch()",
  "null",
  "self.part",
  "oldSelf.whole",
  "cel",
  "{1: 2}",
];

const isType = (name: string): name is Type => (types as readonly string[]).includes(name);

function writer(variables: readonly Variable[]): Writer {
  return (type, depth) => {
    const own = variables.filter((variable) => variable.type === type).map(({ name }) => name);
    const leaf = fc.constantFrom(...literals[type], ...places[type], ...places[type], ...own, ...own, ...own);
    const fitting =
      depth <= 0 || shapes[type].length === 0
        ? leaf
        : fc.oneof(
            leaf,
            fc.constantFrom(...shapes[type]).chain((shape) => filled(shape, variables, depth - 1)),
          );
    return fc.oneof({ weight: 60, arbitrary: fitting }, { weight: 1, arbitrary: fc.constantFrom(...misfits) });
  };
}

/** A shape with an expression in each place: `$TYPE`, or `$TYPE:VARIABLE:TYPE…` for one that sees more variables. */
function filled(shape: string, variables: readonly Variable[], depth: number): fc.Arbitrary<string> {
  const parts = shape.split(/(\$[a-z]+(?::[a-z]+:[a-z]+)*)/);
  const arbitraries = parts.map((part) => {
    if (!part.startsWith("$")) return fc.constant(part);
    const [type = "", ...declared] = part.slice(1).split(":");
    const more: Variable[] = [];
    for (let index = 0; index + 1 < declared.length; index += 2) {
      const [name = "", of = ""] = [declared[index], declared[index + 1]];
      if (isType(of)) more.push({ name, type: of });
    }
    if (!isType(type)) throw new Error(`no type ${type}`);
    return writer([...variables, ...more])(type, depth).map((text) =>
      /^[\w.'-]+$/.test(text) && !text.startsWith("-") ? text : `(${text})`,
    );
  });
  return fc.tuple(...arbitraries).map((texts) => texts.join(""));
}

const schema: Schema = {
  type: "object",
  properties: {
    ...schemas.object.properties,
    flag: schemas.flag,
    fraction: schemas.fraction,
    time: schemas.time,
    length: schemas.length,
    texts: schemas.texts,
    numbers: schemas.numbers,
    tags: schemas.set,
    map: schemas.map,
  },
};

const word = fc.constantFrom(
  "a",
  "b",
  "ab",
  "A.b-1",
  "10.0.0.1",
  "fe80::1",
  "1.2.3",
  "v1.2",
  "1Gi",
  "äö😀",
  "",
  "a,b",
  "https://h.example/p",
  "12",
  "2026-01-02T03:04:05Z",
  "1h",
);
const whole = fc.constantFrom(-3, 0, 1, 2, 7, 4_000_000_000);
const partOf = fc.record({ n: whole });

const values = fc.record(
  {
    name: word,
    other: word,
    whole,
    flag: fc.boolean(),
    fraction: fc.constantFrom(0.5, 1, -2.25, 1e10),
    time: fc.constantFrom("2026-01-02T03:04:05Z", "2024-02-29T23:59:59.125Z"),
    length: fc.constantFrom("1s", "1h30m", "0s", "-5m"),
    either: fc.oneof(word, whole),
    part: partOf,
    like: partOf,
    parts: fc.array(partOf, { maxLength: 3 }),
    texts: fc.array(word, { maxLength: 3 }),
    numbers: fc.array(whole, { maxLength: 3 }),
    tags: fc.uniqueArray(word, { maxLength: 3 }),
    map: fc.dictionary(fc.constantFrom("a", "c", "d"), word, { maxKeys: 3 }),
  },
  {
    requiredKeys: [
      "name",
      "whole",
      "flag",
      "fraction",
      "time",
      "length",
      "part",
      "like",
      "parts",
      "texts",
      "numbers",
      "tags",
      "map",
      "either",
    ],
  },
);

/** Objects under a schema with one random rule, most of them with a rule that a definition may have. */
export const ruledValues: fc.Arbitrary<RuledValue> = fc
  .tuple(writer([])("bool", 3), values, fc.option(values, { nil: undefined, freq: 3 }))
  .map(([rule, value, old]) => ({
    schema: { ...schema, "x-kubernetes-validations": [{ rule }] },
    value,
    ...(old === undefined ? {} : { old }),
  }));
