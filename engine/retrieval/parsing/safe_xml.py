"""`read_xml`: XML as a stream of events. Entities may not be declared, so that none expands or is fetched."""

from collections.abc import Callable
from xml.parsers import expat  # declarations that make it dangerous are refused below

from engine.retrieval.api.errors import Unreadable

Attributes = dict[str, str]


def read_xml(
    data: bytes,
    *,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] = lambda name: None,
    text: Callable[[str], None] = lambda text: None,
) -> None:
    """Parse a document; nesting is not bounded by the stack.

    Args:
        data: the document.
        start: called at each start tag, with names without namespace prefix; of two attributes with the
            same name it gets the one with a prefix.
        end: called at each end tag.
        text: called with text, in parts of any length.

    Raises:
        Unreadable: it declares entities.
        expat.ExpatError: it is no well-formed XML.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise Unreadable("Its XML declares entities, which are not expanded.")

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, attributes: start(
        _local(name), _local_attributes(attributes)
    )
    parser.EndElementHandler = lambda name: end(_local(name))
    parser.CharacterDataHandler = text
    parser.Parse(data, True)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _local_attributes(attributes: Attributes) -> Attributes:
    plain = {key: value for key, value in attributes.items() if ":" not in key}
    if len(plain) < len(attributes):
        plain |= {_local(key): value for key, value in attributes.items() if ":" in key}
    return plain
