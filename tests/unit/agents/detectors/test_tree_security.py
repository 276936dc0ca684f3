"""Security of JavaScript, TypeScript, Go, Rust, Java and C: beyond the seeded programs."""

import pytest

from agents.detectors.security.archives import ARCHIVES
from agents.detectors.security.browser import BROWSER
from agents.detectors.security.tree_injection import TREE_INJECTION
from agents.detectors.security.unsafe_memory import UNSAFE_MEMORY
from agents.detectors.security.xml_entities import XML_ENTITIES
from tests.unit.agents.detectors.seeded import rules_at


def test_packed_code_is_not_reported():
    assert rules_at(TREE_INJECTION, "a.js", "x = 1; " * 1_000 + "eval(x);\n") == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.rs", "fn f(b: &[u8]) -> &str {\n    unsafe { std::str::from_utf8_unchecked(b) }\n}\n", [("unchecked-access", 2)]),
        ("a.rs", "static mut COUNT: u32 = 0;\nunsafe fn f() {}\n", [("unsafe-shared-state", 1)]),
        ("a.rs", "fn f(b: &[u8]) -> u8 {\n    b.first().copied().unwrap_or(0)\n}\n", []),
        ("a.c", "void f(char *d, char *s) {\n  strcpy(d, s);\n  strcpy(d, \"x\");\n  printf(s);\n  printf(\"%s\", s);\n}\n", [("unbounded-copy", 2), ("format-string", 4)]),
        ("a.c", "void f(char *s) {\n  system(s);\n  system(\"ls\");\n}\n", [("command-injection", 2)]),
    ],
)  # fmt: skip
def test_unchecked_memory_is_found(path, text, expected):
    assert rules_at(UNSAFE_MEMORY, path, text) == expected


def test_a_stated_reason_makes_unsafe_code_a_note():
    text = "fn f(b: &[u8]) -> &str {\n    // SAFETY: the caller checked it.\n    unsafe { std::str::from_utf8_unchecked(b) }\n}\n"
    from agents.api.finding import Severity
    from agents.workspace.workspace import Workspace
    from tests.unit.agents.detectors.seeded import findings

    (found,) = findings([UNSAFE_MEMORY], Workspace.of_texts({"a.rs": text}))
    assert found.severity is Severity.INFO


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("a.py", "import tarfile\ndef f(a, t):\n    tarfile.open(a).extractall(t)\n", [3]),
        ("a.py", 'import tarfile\ndef f(a, t):\n    tarfile.open(a).extractall(t, filter="data")\n', []),
        ("a.py", "import zipfile\ndef f(a, t):\n    with zipfile.ZipFile(a) as z:\n        z.extractall(t)\n", []),
        ("a.js", "const AdmZip = require('adm-zip');\nfunction f(z, t) {\n  for (const entry of new AdmZip(z).getEntries()) {\n    const p = path.join(t, entry.entryName);\n    fs.writeFileSync(p, entry.getData());\n  }\n}\n", [4]),
        ("A.java", "class A { void f(ZipInputStream in, File d) {\n  ZipEntry entry = in.getNextEntry();\n  File f = new File(d, entry.getName());\n} }\n", [3]),
        ("A.java", "class A { void f(ZipInputStream in, File d) {\n  ZipEntry entry = in.getNextEntry();\n  File f = new File(d, entry.getName());\n  if (!f.getCanonicalPath().startsWith(d.getPath())) throw new X();\n} }\n", []),
        ("a.rs", "fn f(root: &Path, name: &str) -> PathBuf {\n    root.join(name)\n}\n", [2]),
        ("a.rs", "fn f(root: &Path) -> PathBuf {\n    root.join(\"x\")\n}\n", []),
    ],
)  # fmt: skip
def test_members_of_archives_stay_in_their_folder(path, text, lines):
    assert [line for _, line in rules_at(ARCHIVES, path, text)] == lines


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.js", "function set(o, p, v) {\n  const keys = p.split('.');\n  let c = o;\n  for (const key of keys) { c = c[key]; }\n  let key = keys.pop();\n  c[key] = v;\n}\n", [("prototype-pollution", 6)]),
        ("a.js", "function set(o, key, v) {\n  o[key] = v;\n}\n", []),
        ("a.html", '<form action="/pay" method="get">\n<input name="pin" type="password">\n</form>\n', [("sensitive-get", 1)]),
        ("a.html", '<form action="/search" method="get">\n<input name="q">\n</form>\n', []),
        ("a.html", '<script src="http://cdn.example.net/a.js"></script>\n', [("plain-script", 1)]),
        ("a.html", '<script src="https://cdn.example.net/a.js" integrity="sha384-x"></script>\n', []),
    ],
)  # fmt: skip
def test_pages_and_their_scripts(path, text, expected):
    assert rules_at(BROWSER, path, text) == expected


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
