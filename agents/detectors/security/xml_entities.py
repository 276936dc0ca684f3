"""The detector `xml_entities`: XML parsers of Java that resolve external entities, as they do unless told not to."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding
from agents.detectors.detector import Detector, DetectorContext, LazyRules
from agents.detectors.security.taint.rules import RULES
from agents.detectors.security.taint.value import SinkKind
from agents.detectors.security.tree_code import tree_code, tree_files
from agents.workspace.workspace import Workspace

_FACTORIES = re.compile(
    r"(DocumentBuilderFactory|SAXParserFactory|XMLInputFactory|TransformerFactory|SchemaFactory|XPathFactory)\.(newInstance|newFactory|newDefaultInstance)$"
    r"|^(SAXReader|SAXBuilder|XMLReader|XMLReaderFactory\.createXMLReader)$"
)
_USES = re.compile(
    r"\.(parse|newSAXParser|createXMLStreamReader|createXMLEventReader|transform|newSchema|read|build)$"
)
_SAFE = re.compile(
    r"disallow-doctype-decl|external-general-entities|FEATURE_SECURE_PROCESSING|ACCESS_EXTERNAL|SUPPORT_DTD|IS_SUPPORTING_EXTERNAL"
    r"|setExpandEntityReferences\(\s*false|isSupportingExternalEntities"
)
_MESSAGE = "External entities are resolved unless they are switched off: set the feature disallow-doctype-decl."


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    rule = RULES[SinkKind.XML]
    for file in tree_files(workspace, context, ["java"]):
        code = tree_code(file)
        for call in code.calls:
            if not _FACTORIES.search(call.name):
                continue
            function = code.function(call.node)
            if _SAFE.search(
                code.text_of_function(call.node) if function is not None else file.text
            ):
                continue
            used = [
                one
                for one in code.calls
                if function is not None
                and _USES.search(one.name)
                and function.start_byte <= one.node.start_byte < function.end_byte
                and one.node.start_byte > call.node.start_byte
            ]
            line = used[0].line if used else call.line
            yield rule.at(file, line, _MESSAGE, confidence=0.8)


XML_ENTITIES = Detector(
    "xml_entities",
    "Finds XML parsers of Java that resolve external entities.",
    _detect,
    LazyRules(lambda: [RULES[SinkKind.XML]]),
)
