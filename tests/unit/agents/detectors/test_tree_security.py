"""Security of JavaScript, TypeScript, Go, Rust, Java and C: beyond the seeded programs."""

from agents.detectors.security.tree_injection import TREE_INJECTION
from agents.detectors.security.unsafe_memory import UNSAFE_MEMORY
from agents.detectors.security.xml_entities import XML_ENTITIES
from tests.unit.agents.detectors.seeded import rules_at


def test_packed_code_is_not_reported():
    assert rules_at(TREE_INJECTION, "a.js", "x = 1; " * 1_000 + "eval(x);\n") == []


def test_a_stated_reason_makes_unsafe_code_a_note():
    text = "fn f(b: &[u8]) -> &str {\n    // SAFETY: the caller checked it.\n    unsafe { std::str::from_utf8_unchecked(b) }\n}\n"
    from agents.api.finding import Severity
    from agents.workspace.workspace import Workspace
    from tests.unit.agents.detectors.seeded import findings

    (found,) = findings([UNSAFE_MEMORY], Workspace.of_texts({"a.rs": text}))
    assert found.severity is Severity.INFO


def test_java_resolves_entities_unless_told_not_to():
    text = (
        "class A {\n  void f(InputStream s) {\n    var d = DocumentBuilderFactory.newInstance();\n    d.newDocumentBuilder().parse(s);\n  }\n"
        "  void g(InputStream s) {\n    var d = DocumentBuilderFactory.newInstance();\n"
        '    d.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);\n    d.newDocumentBuilder().parse(s);\n  }\n}\n'
    )
    assert rules_at(XML_ENTITIES, "A.java", text) == [("xxe", 4)]


def test_a_long_chain_of_calls_is_named_in_linear_time():
    import ast

    from agents.detectors.python_names import ImportedNames

    chain = "text" + ".replace('a', 'b')" * 35
    tree = ast.parse(chain)
    (statement,) = tree.body
    assert isinstance(statement, ast.Expr)
    names = ImportedNames(tree, "a.py")
    assert names.resolve(statement.value).count(".replace()") == 35
