"""Hypothesis strategies for JSON schemas of the kinds that are accepted."""

from hypothesis import strategies as st

from tests.structured.formats import CHECKS

NAMES = st.sampled_from(["a", "b", "id", "name", "kind", "größe", "x y", 'q"t', "items", "0"])
PATTERNS = ["^[a-z]{1,5}$", r"^\d{2,4}$", "^(foo|bar)+$", "^a.{0,3}b$", r"^[^\"\\]{1,6}$", "x"]
FORMATS = sorted(CHECKS)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000),
    st.sampled_from([0.5, -1.25, 3.0, 1e20]),
    st.text('abé"\\\n{}', max_size=6),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=5,
)


@st.composite
def integers(draw):
    schema = {"type": "integer"}
    low = draw(st.none() | st.integers(-500, 500))
    if low is not None:
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    if draw(st.booleans()):
        top = (low or -500) + draw(st.integers(3, 1000))
        schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = top
    elif draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from([1, 2, 5, 7, 10, 12]))
    return schema


@st.composite
def numbers(draw):
    schema = {"type": "number"}
    if draw(st.booleans()):
        schema["minimum"] = draw(st.sampled_from([-2.5, 0, 0.125, 10]))
        schema["maximum"] = schema["minimum"] + draw(st.sampled_from([0.5, 3, 1000.25]))
    return schema


@st.composite
def strings(draw):
    schema = {"type": "string"}
    kind = draw(st.sampled_from(["free", "length", "pattern", "format"]))
    if kind == "length":
        schema["minLength"] = draw(st.integers(0, 6))
        schema["maxLength"] = schema["minLength"] + draw(st.integers(0, 12))
    elif kind == "pattern":
        schema["pattern"] = draw(st.sampled_from(PATTERNS))
    elif kind == "format":
        schema["format"] = draw(st.sampled_from(FORMATS))
    return schema


def leaves(*, recursive=False):
    options = [
        st.just({"type": "null"}),
        st.just({"type": "boolean"}),
        integers(),
        numbers(),
        strings(),
        st.lists(values, min_size=1, max_size=4).map(lambda one: {"enum": one}),
        values.map(lambda one: {"const": one}),
        st.just({"type": ["integer", "null"]}),
        st.just({}),
        st.just(True),
    ]
    if recursive:
        options.append(st.just({"$ref": "#/$defs/node"}))
    return st.one_of(options)


@st.composite
def arrays(draw, inner):
    schema = {"type": "array"}
    if draw(st.booleans()):
        schema["items"] = draw(inner)
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=2))
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(0, 3))
    schema["maxItems"] = schema.get("minItems", 0) + draw(st.integers(0, 4))
    return schema


@st.composite
def objects(draw, inner):
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    schema = {"type": "object", "properties": properties}
    schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)
                              if properties else st.just([]))  # fmt: skip
    extra = draw(st.sampled_from(["no", "no", "any", "schema"]))
    if extra == "no":
        schema["additionalProperties"] = False
    elif extra == "schema":
        schema["additionalProperties"] = draw(inner)
    return schema


def schemas(*, recursive=False):
    """Any schema of these kinds; `recursive` ones may refer to `#/$defs/node`."""
    return st.recursive(
        leaves(recursive=recursive),
        lambda inner: st.one_of(
            arrays(inner),
            objects(inner),
            st.lists(inner, min_size=1, max_size=3).map(lambda one: {"anyOf": one}),
            st.tuples(objects(inner), objects(inner)).map(lambda two: {"allOf": list(two)}),
        ),
        max_leaves=8,
    )


@st.composite
def documents(draw):
    """A whole schema, some of them recursive."""
    if draw(st.integers(0, 4)):
        return draw(schemas())
    node = draw(objects(schemas(recursive=True)))
    return {"$defs": {"node": node}, "$ref": "#/$defs/node"}
