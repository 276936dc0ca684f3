"""Whether a function checks a path, an address or a host before it uses it, in tree-sitter's languages.

Only whether a check of the right kind stands between the start of the function and the call, not whether
it is the right one.
"""

import re

from agents.detectors.security.taint.value import SinkKind
from agents.detectors.security.tree_code import TreeCall, TreeCode

_LISTED = (
    r"\b(?i:\w*(allow|permit|trusted|whitelist|known|valid)\w*)(\.(includes|has|contains|get|indexOf|test)\(|\[)"
    r"|slices\.Contains\(|\.hostname\s*(===?|!==?)|\.host\s*(===?|!==?)|\.Host(name\(\))?\s*(==|!=)"
)
_GUARDS = {
    SinkKind.PATH: re.compile(
        r"\.startsWith\(|HasPrefix\(|starts_with\(|IsLocal\(|path\.relative\(|filepath\.Rel\(|includes\(\s*['\"]\.\."
        r"|Contains\([^)]*\"\.\.\"|contains\(\s*[\"']\.\.|strip_prefix\(|\.components\(\)|getCanonicalPath|toRealPath"
        r"|\broot\s*:|path\.basename\(|filepath\.Base\(|file_name\(\)|" + _LISTED
    ),
    SinkKind.URL: re.compile(_LISTED),
    SinkKind.REDIRECT: re.compile(r"\.startsWith\(|HasPrefix\(|starts_with\(|" + _LISTED),
}


def is_guarded(kind: SinkKind, code: TreeCode, call: TreeCall) -> bool:
    """Whether the function that makes the call checks such a value before or in the call."""
    pattern = _GUARDS.get(kind)
    if pattern is None:
        return False
    return bool(pattern.search(code.text_of_function(call.node, until=call.node.end_byte)))
