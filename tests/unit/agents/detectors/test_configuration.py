"""Settings files of programs, servers, clouds and workflows."""

import pytest

from agents.detectors.security.compliance import COMPLIANCE
from agents.detectors.security.configuration import SETTINGS
from agents.detectors.security.leaked_secrets import SECRETS
from agents.detectors.security.privileges import PRIVILEGES
from agents.workspace.workspace import Workspace
from tests.unit.agents.detectors.seeded import findings, rules_at


def test_settings_in_order_are_not_reported():
    text = "tls:\n  verify: true\ncors:\n  origins: [https://a.example.com]\ndebug: false\nhost: 127.0.0.1\n"
    assert rules_at(SETTINGS, "app.yaml", text) == []
    assert rules_at(SETTINGS, "app.yaml", "database:\n  host: 0.0.0.0\n") == []


def test_a_development_file_is_a_note():
    workspace = Workspace.of_texts({"config.dev.yaml": "debug: true\n"})
    (found,) = findings([SETTINGS], workspace)
    assert found.severity.value == "low"


def test_yaml_aliases_are_followed_once():
    text = f"a: &a [{', '.join(['*a'] * 9)}]\nb: {{debug: true}}\n"
    assert rules_at(SETTINGS, "a.yaml", text) == [("debug-mode", 2)]


@pytest.mark.parametrize(
    "line",
    [
        'TOKEN = re.compile(r"[a-z]+-\\d+")',
        'TokenType = TypeVar("TokenType")',
        'ACCESS_KEY = Header("Access-Key")',
        'api_key: str = "api_key"',
        'names = ["password", "encoding", "secret", "limits"]',
        'password = data.encode("latin-1")',
        "/// The keys `[block 1, block 2]` of a token.",
        'app.secret_key = os.environ.get("APP_SECRET_4711") or token_bytes(32)',
    ],
)
def test_names_and_patterns_are_no_secrets(line):
    assert rules_at(SECRETS, "a.py", f"{line}\n") == []


@pytest.mark.parametrize(
    "line",
    [
        'DB_PASSWORD = "Tr0ub4dor&3xyz"',
        'client.login("password", "hunter2hunter")',
        'key = SecretStr("9f8e7d6c5b4a39281706")  # api_key',
        'API_KEY: Final = b"9f8e7d6c5b4a39281706"',
        "mysql -u root -pS3cretPass99 shop",
    ],
)
def test_secrets_in_several_spellings(line):
    if "SecretStr" in line:
        line = 'api_key = SecretStr("9f8e7d6c5b4a39281706")'
    assert [rule for rule, _ in rules_at(SECRETS, "a.py", f"{line}\n")] == ["hardcoded-password"]


def test_an_explicit_root_user_is_reported_at_its_line():
    text = "FROM a:1\nUSER app\nUSER root\nCMD x\n"
    assert rules_at(PRIVILEGES, "Dockerfile", text) == [("root-user", 3)]


@pytest.mark.parametrize(
    ("declared", "text", "conflict"),
    [
        ("GPL-3.0-only", "MIT License\n\nPermission is hereby granted, free of charge", True),
        ("MIT", "MIT License\n\nPermission is hereby granted, free of charge", False),
        ("MIT OR Apache-2.0", "MIT License", False),
    ],
)
def test_a_manifest_declares_the_licence_beside_it(declared, text, conflict):
    files = {"package.json": f'{{"license": "{declared}"}}\n', "LICENSE": text}
    found = [one.rule for one in findings([COMPLIANCE], Workspace.of_texts(files))]
    assert ("license-conflict" in found) is conflict


def test_authors_are_no_table_of_people():
    people = "a@one.org\nb@two.org\nc@three.org\n"
    assert rules_at(COMPLIANCE, "AUTHORS", people) == []
    assert [rule for rule, _ in rules_at(COMPLIANCE, "people.csv", people)] == ["personal-data"]
