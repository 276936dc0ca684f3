"""The part of a JSON schema that a grammar can enforce, and the names of the rest.

`enforceable_schema` rewrites a schema into keywords that the grammar library implements. What can be said
exactly is (look-ahead at the start of a pattern, names of properties from a list, some formats); the rest is
left out, which only widens the schema, and its keyword is reported. So every answer that the schema allows
stays possible, and a client learns what it has to check itself.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.files.json_pointer import at_pointer
from engine.grammar.integer_bounds import MAX_INTEGER
from engine.grammar.lookaround import without_lookaround

Node = dict[str, Any]

_SCHEMAS = ("items", "additionalProperties", "additionalItems")
_LISTS = ("prefixItems", "anyOf", "oneOf", "allOf", "items")
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "if", "dependentSchemas"})
"""Keywords whose schemas apply to the same value."""
_MAX_REFERENCES = 16
MAX_LENGTH = 2_048
"""The longest length of a string that is enforced: counting takes five to ten lexer states a character, of
the 40,000 that a matcher may have, and makes a token twenty times as costly."""

_NOT_ENFORCED = (
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems",
    "unevaluatedItems", "unevaluatedProperties", "propertyNames", "dependentRequired",
    "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef", "contentEncoding",
    "contentMediaType", "contentSchema",
)  # fmt: skip
"""Keywords that the library lacks; by the standard `content…` only describe."""
_ANCHORS = ("$dynamicAnchor", "$recursiveAnchor")

_FORMATS = frozenset(
    {
        "date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri",
    }
)  # fmt: skip
"""Formats of strings that the library implements."""
_HEX = "[0-9a-fA-F]"
_UUID = rf"^{_HEX}{{8}}-{_HEX}{{4}}-%s{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}$"
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_PATTERNS = {
    "base64": _BASE64,
    "byte": _BASE64,  # OpenAPI
    "base64url": r"^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}(?:==)?|[A-Za-z0-9_-]{3}=?)?$",
    "json-pointer": r"^(?:/(?:[^~/]|~[01])*)*$",
    **{f"uuid{version}": _UUID % version for version in range(1, 9)},
}
"""Formats that a pattern says exactly."""
_RANGES = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
    "int64": (-MAX_INTEGER, MAX_INTEGER),  # as integers without bounds (`integer_bounds`)
    "uint64": (0, MAX_INTEGER),
}
"""Formats of integers, which are ranges."""


def enforceable_schema(schema: Any) -> tuple[Any, tuple[str, ...]]:
    """A schema of keywords that the library implements, and what of the given one it does not enforce.

    Args:
        schema: a JSON schema, nested at most `limits.MAX_JSON_DEPTH` deep.

    Returns:
        A copy that allows all that the schema allows; the names of the keywords that were left out or
        weakened, sorted, a format as `format:NAME`.
    """
    rewriter = _Rewriter(schema)
    return rewriter.rewritten(schema), tuple(sorted(rewriter.left_out))


class _Rewriter:
    """Rewrites one schema.

    Attributes:
        left_out: names of what is not enforced.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self.left_out: set[str] = set()
        self._rules: tuple[Callable[[Node], None], ...] = (
            self._boolean_bounds,
            self._property_names,
            self._unevaluated,
            self._at_least_one,
            self._unique_items,
            self._pattern_properties,
            self._number_of_properties,
            self._format,
            self._pattern,
            self._lengths,
            self._one_of,
            self._rest,
        )

    def rewritten(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        if _allows_all(schema.get("not")):
            return False
        node = dict(schema)
        for name in _SCHEMAS:
            if isinstance(node.get(name), dict):
                node[name] = self.rewritten(node[name])
        for name in _LISTS:
            if isinstance(node.get(name), list):
                node[name] = [self.rewritten(one) for one in node[name]]
        for name in _MAPS:
            if isinstance(node.get(name), dict):
                node[name] = {key: self.rewritten(one) for key, one in node[name].items()}
        for rule in self._rules:
            rule(node)
        return _nullable(node)

    def _boolean_bounds(self, node: Node) -> None:
        """Draft 4 marks `minimum` and `maximum` as exclusive."""
        for exclusive, inclusive in (
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ):
            if isinstance(node.get(exclusive), bool):
                is_exclusive = node.pop(exclusive)
                if is_exclusive and inclusive in node:
                    node[exclusive] = node.pop(inclusive)

    def _property_names(self, node: Node) -> None:
        names = self._resolved(node.get("propertyNames"))
        if not isinstance(names, dict):
            return
        rule = {key: names[key] for key in names if key not in ("type", "title", "description")}
        values = node.get("additionalProperties", True)
        has_others = "patternProperties" in node
        listed = [rule["const"]] if rule.keys() == {"const"} else rule.get("enum")
        properties = node.get("properties", {})
        if not rule:
            del node["propertyNames"]
        elif (
            isinstance(listed, list)
            and len(rule) == 1
            and not has_others
            and isinstance(properties, dict)
            and properties.keys() <= {one for one in listed if isinstance(one, str)}
        ):
            del node["propertyNames"]
            named = {one: values for one in listed if isinstance(one, str)}
            node["properties"] = named | properties if values is not False else properties
            node["additionalProperties"] = False
        elif (
            rule.keys() == {"pattern"}
            and isinstance(rule["pattern"], str)
            and not (has_others or properties)
        ):
            del node["propertyNames"]
            node["patternProperties"] = {rule["pattern"]: values}
            node["additionalProperties"] = False

    def _unevaluated(self, node: Node) -> None:
        """What no other keyword looks at, where only neighbours can look at anything."""
        if node.keys() & _IN_PLACE:
            return
        for name, additional in (
            ("unevaluatedProperties", "additionalProperties"),
            ("unevaluatedItems", "items"),
        ):
            if name in node:
                node.setdefault(additional, self.rewritten(node.pop(name)))

    def _at_least_one(self, node: Node) -> None:
        """An array that contains something has items."""
        least = node.get("minContains", 1)
        if "contains" in node and _is_count(least) and _is_count(node.get("minItems", 0)):
            node["minItems"] = max(least, node.get("minItems", 0))
        if least == 0 and "maxContains" not in node:
            node.pop("contains", None)
            node.pop("minContains", None)

    def _unique_items(self, node: Node) -> None:
        """A set of listed values has at most as many."""
        if node.get("uniqueItems") is not True:
            node.pop("uniqueItems", None)
            return
        items = self._resolved(node.get("items"))
        values = items.get("enum") if isinstance(items, dict) else None
        if isinstance(values, list) and _is_count(node.get("maxItems", 0)):
            node["maxItems"] = min(node.get("maxItems", len(values)), len(values))

    def _pattern_properties(self, node: Node) -> None:
        """A name's pattern cannot be widened: its schema would hold for other properties."""
        named = node.get("patternProperties")
        if not isinstance(named, dict):
            return
        kept = {key: one for key, one in named.items() if _is_plain(key)}
        if len(kept) < len(named):
            self.left_out.add("patternProperties")
            node["patternProperties"] = kept
            node.pop("additionalProperties", None)

    def _number_of_properties(self, node: Node) -> None:
        """The library counts properties only where each declared one is required."""
        declared = node.get("properties")
        required = node.get("required", [])
        if isinstance(declared, dict) and isinstance(required, list):
            if all(name in required for name in declared):
                return
            self._leave_out(node, ("minProperties", "maxProperties"))

    def _format(self, node: Node) -> None:
        name = node.get("format")
        if not isinstance(name, str) or name in _FORMATS:
            return
        del node["format"]
        kinds = _kinds(node)
        if name in _PATTERNS and kinds <= {"string", "null"}:
            _also(node, {"pattern": _PATTERNS[name]})
        elif name in _RANGES and kinds <= {"integer", "null"}:
            low, high = _RANGES[name]
            if not node.keys() & {"minimum", "exclusiveMinimum"}:
                node["minimum"] = low
            if not node.keys() & {"maximum", "exclusiveMaximum"}:
                node["maximum"] = high
        else:
            self.left_out.add(f"format:{name}")

    def _pattern(self, node: Node) -> None:
        pattern = node.get("pattern")
        if not isinstance(pattern, str):
            return
        plain = without_lookaround(pattern)
        if not plain.is_exact:
            self.left_out.add("pattern")
        if plain.patterns == (pattern,):
            return
        del node["pattern"]
        for one in plain.patterns:
            _also(node, {"pattern": one})

    def _lengths(self, node: Node) -> None:
        """A length that takes too many states ends the answer with an error once a string is as long."""
        for name in ("minLength", "maxLength"):
            if _is_count(node.get(name)) and node[name] > MAX_LENGTH:
                self._leave_out(node, (name,))

    def _one_of(self, node: Node) -> None:
        """`oneOf` as `anyOf`, which is the same where the branches exclude each other."""
        branches = node.get("oneOf")
        if not isinstance(branches, list):
            return
        del node["oneOf"]
        if not self._exclude_each_other([self._resolved(one) for one in branches]):
            self.left_out.add("oneOf")
        _also(node, {"anyOf": branches})

    def _rest(self, node: Node) -> None:
        self._leave_out(node, _NOT_ENFORCED)
        for name in _ANCHORS:
            node.pop(name, None)

    def _leave_out(self, node: Node, names: Iterable[str]) -> None:
        for name in names:
            if name in node:
                del node[name]
                self.left_out.add(name)

    def _resolved(self, schema: Any) -> Any:
        """The schema that a reference within the root leads to; None if it leads nowhere."""
        for _ in range(_MAX_REFERENCES):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            schema = at_pointer(self._root, schema["$ref"])
        return None

    def _exclude_each_other(self, branches: list[Any]) -> bool:
        """Whether no value is valid under two branches, as far as types and constants say."""
        if len(branches) < 2 or _are_disjoint([_kinds(one) for one in branches]):
            return True
        tagged = [self._constants(one) for one in branches]
        names = set.intersection(*map(set, tagged))
        return any(_are_disjoint([one[name] for one in tagged]) for name in names)

    def _constants(self, schema: Any) -> dict[str, frozenset[Any]]:
        """The required properties of an object that have listed texts only, and those."""
        if _kinds(schema) != {"object"} or not isinstance(schema.get("properties"), dict):
            return {}
        required = schema.get("required", [])
        found = {}
        for name, one in schema["properties"].items():
            value = self._resolved(one)
            if (
                not isinstance(value, dict)
                or not isinstance(required, list)
                or name not in required
            ):
                continue
            listed = [value["const"]] if "const" in value else value.get("enum", [None])
            if isinstance(listed, list) and all(isinstance(text, str) for text in listed):
                found[name] = frozenset(listed)
        return found


_OF_THE_ROOT = ("$schema", "$id", "$defs", "definitions")
"""Members that references into the root, or its name, depend on."""


def _allows_all(schema: Any) -> bool:
    return schema is True or (isinstance(schema, dict) and not schema)


def _nullable(node: Node) -> Node:
    """OpenAPI 3.0's `nullable`, as a type."""
    if node.pop("nullable", None) is not True:
        return node
    kind = node.get("type")
    if not isinstance(kind, str) or "const" in node:
        outside = {name: node.pop(name) for name in _OF_THE_ROOT if name in node}
        return {**outside, "anyOf": [node, {"type": "null"}]}
    node["type"] = [kind, "null"]
    if isinstance(node.get("enum"), list):
        node["enum"] = [*node["enum"], None]
    return node


def _also(node: Node, schema: Node) -> None:
    """Add a schema that must hold as well."""
    if not node.keys() & schema.keys():
        node.update(schema)
    elif isinstance(node.get("allOf", []), list):
        node["allOf"] = [*node.get("allOf", ()), schema]


def _is_plain(pattern: str) -> bool:
    return without_lookaround(pattern).patterns == (pattern,)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kinds(schema: Any) -> frozenset[str]:
    """The types that a schema allows; all of them if it does not say."""
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    named = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        return frozenset({"null", "boolean", "string", "number", "integer", "array", "object"})
    return frozenset(named) | ({"integer"} if "number" in named else set())


def _are_disjoint(sets: list[frozenset[Any]]) -> bool:
    return sum(map(len, sets)) == len(frozenset[Any]().union(*sets))
