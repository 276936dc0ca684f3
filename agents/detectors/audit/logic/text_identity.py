"""Texts and boxed numbers of Java compared by identity."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.audit.syntax_nodes import ancestors, line_of, node_text, walk
from agents.detectors.detector import Rule
from agents.workspace.source_file import SourceFile

IDENTITY = Rule("identity-comparison", Severity.MEDIUM, "objects compared by identity", 597)
RULES = (IDENTITY,)
_TYPES = r"(?:String|Integer|Long|Double|Float|Short|Byte|Character|BigDecimal|BigInteger|LocalDate|Instant|UUID)"


def check_identity(file: SourceFile) -> Iterator[Finding]:
    """`first == second` where both are declared as objects that have `equals`."""
    if file.tree is None:
        return
    fields = set(
        re.findall(
            rf"(?m)^\s*(?:private|public|protected|final|static|\s)+{_TYPES}\s+(\w+)\s*[=;]",
            file.text,
        )
    )
    for node in walk(file.tree.root_node, "binary_expression"):
        if node_text(node.child_by_field_name("operator")) not in ("==", "!="):
            continue
        sides = [node_text(node.child_by_field_name(name)) for name in ("left", "right")]
        if "null" in sides:
            continue
        method = next(
            (
                node_text(one)
                for one in ancestors(node)
                if one.type in ("method_declaration", "constructor_declaration")
            ),
            "",
        )
        declared = set(re.findall(rf"\b{_TYPES}\s+(\w+)\b", method)) | fields
        objects = [side.removeprefix("this.") in declared or side.startswith('"') for side in sides]
        if all(objects):
            yield IDENTITY.at(
                file,
                line_of(node),
                f"`{sides[0]:.40} == {sides[1]:.40}` compares identity: use equals.",
            )
