# ruff: noqa: E501
"""What of a mail is indexed: what a mail program shows, then what is attached."""

import base64
from collections.abc import Callable
from email import message_from_bytes
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.mail import extract_mail
from engine.retrieval.parsing.mail_header import MAIL_POLICY, decode_header, header_date, part_name
from engine.retrieval.parsing.mailbox import extract_mailbox

from . import samples

Parse = Callable[[str, bytes], ParsedDocument]
_MOST = 1 << 20
_FOOTER = "Content-Type: text/plain\n\n_____\nList info: https://lists.example.org/ports"
_HTML = "Content-Type: text/html\n\n<p>The ferry leaves at <b>09:40</b>.</p>"
_PLAIN = "Content-Type: text/plain\n\nThe ferry leaves at nine."
_EVENT = (
    "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nDTSTART:19700101T000000\nEND:VTIMEZONE\nBEGIN:VEVENT\n"
    "SUMMARY:Harbour\n  tour\\, part 2\nDTSTART;TZID=Europe/Copenhagen:20260704T094000\nDTEND:20260704T100000Z\n"
    'LOCATION:Pier 4\nORGANIZER;CN="Ada L":mailto:ada@example.org\nBEGIN:VALARM\nDESCRIPTION:no\n'
    "END:VALARM\nEND:VEVENT\nEND:VCALENDAR"
)
_FORWARDED = (
    "Content-Type: message/rfc822\n\nFrom: bob@example.org\nTo: ada@example.org\nSubject: Old news\n"
    "Date: Tue, 2 Jan 2024 08:00:00 -0500\n\nThe old text."
)


def multipart(kind: str, *parts: str, more: str = "") -> str:
    boundary = f"b{len(kind)}{len(parts)}{sum(map(len, parts))}"
    body = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"{more}\n\n{body}--{boundary}--\n'


def mail(body: str, header: str = "From: ada@example.org\nSubject: Hi\n") -> Extracted:
    return extract_mail((header + body).encode(), _MOST)


def shown(body: str) -> str:
    """The text without the header."""
    return mail(body).text.partition("\n\n")[2].strip()


class TestBody:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            (_PLAIN, "The ferry leaves at nine."),
            (_HTML, "The ferry leaves at 09:40."),
            (multipart("alternative", _PLAIN, _HTML), "The ferry leaves at 09:40."),
            (multipart("alternative", _HTML, _PLAIN), "The ferry leaves at 09:40."),
            (multipart("alternative", "Content-Type: text/plain\n\n \n", _HTML), "The ferry leaves at 09:40."),
            (multipart("alternative", _PLAIN, "Content-Type: text/html\n\n<img src=cid:x>"), "The ferry leaves at nine."),
            (multipart("alternative", _PLAIN, "Content-Type: text/html\n\nOpen"), "The ferry leaves at nine."),
            (multipart("alternative", _PLAIN, multipart("related", _HTML)), "The ferry leaves at 09:40."),
            (multipart("alternative", _PLAIN, "Content-Type: text/x-amp-html\n\n<p>amp"), "The ferry leaves at nine."),
            (multipart("mixed", _HTML, _FOOTER), "The ferry leaves at 09:40.\n\n_____\nList info: https://lists.example.org/ports"),
            (multipart("mixed", multipart("alternative", _PLAIN, _HTML), _FOOTER), "The ferry leaves at 09:40.\n\n_____\nList info: https://lists.example.org/ports"),
            (multipart("mixed", _PLAIN, _HTML), "The ferry leaves at nine.\n\nThe ferry leaves at 09:40."),
            (multipart("mixed", _PLAIN, "Content-Type: text/html\n\n<p>The ferry <b>leaves</b> at nine."), "The ferry leaves at nine."),
            (multipart("signed", _HTML, "Content-Type: application/pgp-signature; name=s.asc\n\nxx"), "The ferry leaves at 09:40."),
            (multipart("strange", _PLAIN, _FOOTER), "The ferry leaves at nine.\n\n_____\nList info: https://lists.example.org/ports"),
            ("Content-Type: multipart/mixed\n\nNo boundary.", "No boundary."),
            ("Content-Type: multipart/mixed; boundary=x\n\nNot there.", "Not there."),
            ("Content-Type: multipart/mixed; boundary=x\n\n--x\n\nNo end.", "No end."),
            ("Content-Type: nonsense\n\nA text.", "A text."),
            ("Content-Type: text/enriched\n\n<bold>Big</bold> news", "Big news"),
            ("\n> quoted\n\nreply\n-- \nAda", "> quoted\n\nreply\n-- \nAda"),
        ],
    )  # fmt: skip
    def test_what_a_mail_program_shows(self, body: str, expected: str) -> None:
        assert shown(body) == expected

    def test_an_invitation_stands_below_the_body(self) -> None:
        part = f"Content-Type: text/calendar; method=REQUEST\n\n{_EVENT}"
        assert shown(multipart("alternative", _PLAIN, _HTML, part)) == (
            "The ferry leaves at 09:40.\n\nEvent: Harbour tour, part 2\n"
            "Start: 2026-07-04 09:40 Europe/Copenhagen\nEnd: 2026-07-04 10:00 UTC\nPlace: Pier 4\n"
            "Organizer: Ada L <ada@example.org>"
        )

    def test_an_invitation_that_is_attached_as_well_is_shown_once(self) -> None:
        inside = multipart("alternative", _HTML, f"Content-Type: text/calendar\n\n{_EVENT}")
        file = f"Content-Type: application/ics; name=invite.ics\nContent-Disposition: attachment\n\n{_EVENT}"
        assert shown(multipart("mixed", inside, file)).count("Event: Harbour tour, part 2") == 1

    def test_apple_mail_puts_documents_between_two_halves_of_its_text(self) -> None:
        halves = multipart(
            "mixed",
            _HTML,
            "Content-Type: text/csv; name=p.csv\nContent-Disposition: inline\n\ncity,code",
            "Content-Type: text/html\n\n<p>Second half.",
        )
        assert shown(multipart("alternative", _PLAIN, halves)) == (
            "The ferry leaves at 09:40.\n\nSecond half.\n\nAttachment: p.csv\n\ncity,code"
        )

    def test_a_card_stands_below_the_body(self) -> None:
        part = (
            "Content-Type: text/vcard\n\nBEGIN:VCARD\nFN:Ada L\nORG:Ports;Ferries\n"
            "item1.TEL;TYPE=work:+45 12\nEND:VCARD"
        )
        assert shown(multipart("mixed", _HTML, part)) == (
            "The ferry leaves at 09:40.\n\nName: Ada L\nOrganization: Ports, Ferries\nPhone: +45 12"
        )

    def test_the_report_of_a_delivery(self) -> None:
        status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n\nStatus: 5.1.1"
        found = shown(multipart("report", _PLAIN, status, _FORWARDED))
        assert "Status: 5.1.1" in found
        assert "Subject: Old news" in found

    @pytest.mark.parametrize(
        ("body", "note"),
        [
            (multipart("encrypted", "Content-Type: application/octet-stream\n\nx"), "is encrypted"),
            ("Content-Type: application/pkcs7-mime; name=smime.p7m\n\nx", "S/MIME"),
            ("\n-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----", "OpenPGP"),
        ],
    )
    def test_what_is_encrypted_is_named(self, body: str, note: str) -> None:
        found = mail(body)
        assert note in found.notes[0]
        assert "abc" not in found.text

    def test_the_headings_of_the_body_are_below_the_subject(self) -> None:
        found = mail("Content-Type: text/html\n\n<h1>One</h1>x")
        assert [(one.level, one.title) for one in found.headings] == [(1, "Hi"), (2, "One")]
        assert found.text[found.headings[1].start :].startswith("One")

    def test_flowed_paragraphs(self) -> None:
        text = "A long \nline.\n> quoted \n> text\n>> deeper\n space\n-- \nAda"
        assert shown(f"Content-Type: text/plain; format=flowed\n\n{text}") == (
            "A long line.\n> quoted text\n>> deeper\nspace\n-- \nAda"
        )
        assert shown("Content-Type: text/plain; format=flowed; delsp=yes\n\nfoo \nbar") == "foobar"


class TestEncodings:
    @pytest.mark.parametrize(
        ("header", "data", "expected"),
        [
            ("Content-Type: text/plain; charset=us-ascii", "é €".encode(), "é €"),
            ("Content-Type: text/plain; charset=iso-8859-1", b"\x93a\x94", "“a”"),
            ("Content-Type: text/plain; charset=x-unknown", "é".encode(), "é"),
            ("Content-Type: text/plain; charset=iso-2022-jp", "日本".encode("iso-2022-jp"), "日本"),
            ("Content-Type: text/plain; charset=gb2312", "镕".encode("gb18030"), "镕"),
            ('Content-Type: text/html; charset="koi8-r"', "<meta charset=utf-8>Река".encode("koi8-r"), "Река"),
            ("Content-Type: text/html", "<meta charset=koi8-r>Река".encode("koi8-r"), "Река"),
            ("Content-Transfer-Encoding: quoted-printable;\nContent-Type: text/plain", b"a=\nb=C3=A9 =ZZ", "abé =ZZ"),
            ("Content-Transfer-Encoding: BASE64", b"aGVs\n\nbG8\n", "hello"),
            ("Content-Transfer-Encoding: base64", b"aGVsbG8=\n_____\nList footer\n", "hello\n_____\nList footer"),
            ("Content-Transfer-Encoding: base64", b"aGVsbG8h\n_____\nList\n", "hello!\n_____\nList"),
            ("Content-Transfer-Encoding: base64", b"aGVsbG8hx", "hello!"),
            ("Content-Transfer-Encoding: 8bit", "é".encode(), "é"),
            ("Content-Transfer-Encoding: strange", b"a=20b", "a=20b"),
        ],
    )  # fmt: skip
    def test_broken_ones_give_what_can_be_read(
        self, header: str, data: bytes, expected: str
    ) -> None:
        found = extract_mail(f"From: a@b.c\n{header}\n\n".encode() + data, _MOST)
        assert found.text.partition("\n\n")[2].strip() == expected

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("=?utf-8?q?Caf=C3=A9_au?=\n =?utf-8?q?_lait?=", "Café au lait"),
            ("=?utf-8?b?w6k=?= =?utf-8?b?w6k=?=", "éé"),
            ("=?utf-8?b?ww==?= =?utf-8?b?qQ?=", "é"),
            ("=?utf-8?q?a=C3?= =?utf-8?q?=A9b?=", "aéb"),
            ("Re: =?ISO-8859-1?Q?=80?= x", "Re: € x"),
            ("=?utf-8*en?q?a?= b =?utf-8?q?c?=", "a b c"),
            ('"=?utf-8?q?L=C3=A9a?=" <l@e.org>', '"Léa" <l@e.org>'),
            ("=?utf-8?q?two words?=", "two words"),
            ("=?nonsense?q?a?= =?utf-8?x?b?=", "a =?utf-8?x?b?="),
            ("Café".encode().decode("ascii", "surrogateescape"), "Café"),
            ("folded\r\n\tline", "folded line"),
        ],
    )
    def test_header_fields(self, value: str, expected: str) -> None:
        assert decode_header(value) == expected

    @pytest.mark.parametrize(
        ("date", "expected"),
        [
            ("Mon, 1 Jan 2024 10:00:00 +0100", "2024-01-01 10:00:00+01:00"),
            ("1 Jan 24 10:00 GMT", "2024-01-01 10:00:00+00:00"),
            ("Mon, 1 Jan 2024 10:00:00 -0000 (UTC)", "2024-01-01 10:00:00+00:00"),
            ("yesterday", "yesterday"),
            ("Mon, 99 Jan 2024 10:00:00 +9999", "Mon, 99 Jan 2024 10:00:00 +9999"),
        ],
    )
    def test_dates(self, date: str, expected: str) -> None:
        assert (
            header_date(message_from_bytes(f"Date: {date}\n\n".encode(), policy=MAIL_POLICY))
            == expected
        )

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            ("Content-Disposition: attachment; filename*=utf-8''caf%C3%A9.txt", "café.txt"),
            ("Content-Disposition: attachment; filename*0*=utf-8''a%20; filename*1=b.txt", "a b.txt"),
            ("Content-Disposition: attachment; filename*0=a; filename*1=b.txt", "ab.txt"),
            ('Content-Disposition: attachment; filename="=?utf-8?q?=C3=A9.txt?="', "é.txt"),
            ("Content-Disposition: attachment; filename=é.txt", "é.txt"),
            ("Content-Disposition: attachment; filename*=nonsense''a.txt", "a.txt"),
            ("Content-Type: text/csv; name=c:\\dir\\x.csv", "x.csv"),
            ('Content-Disposition: attachment; filename="../../etc/x"', "x"),
            ("Content-Disposition: attachment", ""),
        ],
    )  # fmt: skip
    def test_names_of_files(self, header: str, expected: str) -> None:
        assert (
            part_name(message_from_bytes(f"{header}\n\n".encode(), policy=MAIL_POLICY)) == expected
        )


class TestHeader:
    def test_the_fields_in_their_order(self) -> None:
        header = (
            "Date: Mon, 1 Jan 2024 10:00:00 +0000\nSubject: S\nX-Other: no\nCc: c@e.org\n"
            "To: b@e.org\nTo: d@e.org\nFrom: =?utf-8?q?L=C3=A9a?= <l@e.org>\n"
        )
        found = mail("\nx", header)
        assert found.text == (
            "From: Léa <l@e.org>\nTo: b@e.org, d@e.org\nCc: c@e.org\nSubject: S\n"
            "Date: 2024-01-01 10:00:00+00:00\n\nx\n\n"
        )
        assert found.title == "S"

    def test_it_is_known_by_its_header(self, parse: Parse) -> None:
        assert parse("cur-1", samples.MAIL).media_type == "message/rfc822"


def _forwarded_note() -> str:
    return "Content-Type: message/rfc822\n\nFrom: a@b.c\nSubject: Note\n\nIt rains."


class TestAttachments:
    def test_texts_are_read_below_the_body(self) -> None:
        part = "Content-Type: text/csv; name=p.csv\nContent-Disposition: attachment\n\ncity,code\nAarhus,4410"
        found = mail(multipart("mixed", part, _PLAIN))
        assert "Attachments: p.csv\n" in found.text
        assert found.text.endswith("at nine.\n\nAttachment: p.csv\n\ncity,code\nAarhus,4410\n\n")
        assert found.headings[-1].title == "Attachment: p.csv"

    def test_rows_of_an_attached_table_belong_to_its_header_row(self) -> None:
        part = "Content-Type: text/csv; name=p.csv\nContent-Disposition: attachment\n\ncity,code\nOslo,1\nRome,2\n"
        found = mail(multipart("mixed", _PLAIN, part, _forwarded_note()))
        first, end = found.row_headers
        assert (first.text, found.text[first.start :][:6]) == ("city,code", "Oslo,1")
        assert (end.text, found.text[end.start :].strip()[:5]) == (None, "From:")

    def test_rich_text_format_is_not_read_as_text(self) -> None:
        found = mail(multipart("mixed", _PLAIN, "Content-Type: text/rtf\n\n{\\rtf1 hello}"))
        assert "rtf1" not in found.text
        assert len(found.notes) == 1

    def test_documents_are_read(self, parse: Parse) -> None:
        message = EmailMessage()
        message["From"], message["Subject"] = "a@b.c", "Book"
        message.set_content("See the book.")
        message.add_attachment(
            samples.epub(), maintype="application", subtype="octet-stream", filename="b.epub"
        )
        message.add_attachment(
            samples.pdf(["Page one"]), maintype="application", subtype="pdf", filename="p.pdf"
        )
        message.add_attachment(
            b"\x89PNG\r\n\x1a\n0000", maintype="image", subtype="png", filename="i.png"
        )
        message.add_attachment(
            b"\x78\x9f\x3e\x22xx", maintype="application", subtype="ms-tnef", filename="winmail.dat"
        )
        document = parse("a.eml", message.as_bytes())
        assert "It was a night." in document.text
        assert "Page one" in document.text
        assert document.pages == ()
        assert [one.partition(" was")[0] for one in document.notes] == [
            "The attachment 'i.png'",
            "The attachment 'winmail.dat'",
        ]  # fmt: skip

    def test_one_that_is_damaged_is_named(self, parse: Parse) -> None:
        document = parse("a.eml", samples.MAIL.replace(b"xx", b"%PDF-1.7 xx"))
        assert document.title == "Café at noon"
        assert "See you at the bar." in document.text
        assert "café." not in document.text
        assert document.notes[0].startswith("The attachment 'map.pdf' was not read: It")

    def test_pictures_of_the_body_are_none(self) -> None:
        picture = "Content-Type: image/png; name=logo.png\nContent-ID: <x>\nContent-Transfer-Encoding: base64\n\nAAAA"
        found = mail(multipart("related", _HTML, picture))
        assert (found.notes, "Attachments" in found.text) == ((), False)

    def test_a_forwarded_message_has_its_header(self) -> None:
        found = mail(multipart("mixed", _FORWARDED, _HTML))
        assert found.text.endswith(
            "at 09:40.\n\nFrom: bob@example.org\nTo: ada@example.org\nSubject: Old news\n"
            "Date: 2024-01-02 08:00:00-05:00\n\nThe old text.\n\n"
        )
        assert [(one.level, one.title) for one in found.headings] == [(1, "Hi"), (2, "Old news")]
        assert found.title == "Hi"

    def test_a_forwarded_message_that_is_encoded(self) -> None:
        inner = base64.b64encode(_FORWARDED.partition("\n\n")[2].encode()).decode()
        part = f"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}"
        assert "Subject: Old news" in mail(multipart("mixed", _PLAIN, part)).text

    def test_a_digest_is_messages(self) -> None:
        part = "\nFrom: x@y.z\nSubject: In the digest\n\nIts text."
        assert "Subject: In the digest" in mail(multipart("digest", part)).text

    def test_messages_inside_each_other_end_at_a_depth(self) -> None:
        body = _PLAIN
        for _ in range(40):
            body = f"Content-Type: message/rfc822\n\nFrom: a@b.c\n{body}"
        found = mail(body)
        assert found.notes == ("Messages that are nested too deep were not read.",)


class TestMailboxes:
    def test_every_message_is_read(self, parse: Parse) -> None:
        data = (
            b"From ada@e.org Mon Jan  1 10:00:00 2024\nFrom: ada@e.org\nDate: x\nSubject: One\n\nFirst.\n\n"
            b"From here on at 10:00 it rains.\n>From the sea.\n\n"
            b"From bob@e.org Mon Jan  1 11:00:00 2024\nFrom: bob@e.org\nSubject: Two\n\nSecond.\n"
        )
        document = parse("a.mbox", data)
        assert [one.title for one in document.headings] == ["One", "Two"]
        assert "First.\n\nFrom here on at 10:00 it rains.\nFrom the sea." in document.text
        assert parse("Inbox", data).media_type == "application/mbox"
        assert len(document.breaks) == 2

    def test_apple_mail(self, parse: Parse) -> None:
        message = b"From: a@b.c\nSubject: S\n\nText.\n"
        data = b"%-10d\n%b<?xml version='1.0'?><plist/>" % (len(message), message)
        assert parse("1.emlx", data).text == "From: a@b.c\nSubject: S\n\nText.\n\n"

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_a_mark_or_a_blank_line_before_the_header(self, encoding: str) -> None:
        data = "\r\nFrom: a@b.c\r\nSubject: é\r\n\r\nText".encode(encoding)
        assert extract_mail(data, _MOST).text == "From: a@b.c\nSubject: é\n\nText\n\n"

    def test_outlook_messages_are_named(self, parse: Parse) -> None:
        with pytest.raises(Unreadable, match="save it as EML"):
            parse("a.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 60)

    def test_a_saved_page(self, parse: Parse) -> None:
        page = multipart("related", _HTML, "Content-Type: image/png\nContent-Location: x\n\nx")
        document = parse("a.mht", f"From: <Saved by Blink>\nSubject: P\n{page}".encode())
        assert document.text.rstrip().endswith("The ferry leaves at 09:40.")


_LINES = st.sampled_from(
    [
        "Content-Type: multipart/mixed; boundary=b", "Content-Type: multipart/alternative; boundary=c",
        "Content-Type: text/html; charset=koi8-r", "Content-Type: text/plain; format=flowed; delsp=yes",
        "Content-Type: message/rfc822", "Content-Type: message/delivery-status", "Content-Type: text/calendar",
        "Content-Type: multipart/related; start=<x>; boundary=b", "Content-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: quoted-printable", "Content-Disposition: attachment; filename*=x'y'%z",
        "Subject: =?utf-8?b?w?= =?x?q?=?=", "Date: 1 1 1", "From a@b Mon Jan  1 10:00:00 2024", "--b", "--c", "--b--",
        "", "", "<p>x", "aGVsbG8", "=C3", "> y ", "BEGIN:VEVENT", "SUMMARY:x", "END:VEVENT", "\x80\xff", "begin 644 x",
    ]
)  # fmt: skip


@given(st.lists(_LINES, max_size=30).map("\n".join))
def test_any_mail_has_a_text(data: str) -> None:
    for extract in (extract_mail, extract_mailbox):
        found = extract(data.encode("latin-1"), _MOST)
        for one in found.headings:
            assert 0 <= one.start < len(found.text)


@given(st.text(max_size=60))
def test_any_header_can_be_decoded(value: str) -> None:
    assert "\n" not in decode_header(value)


@given(st.lists(st.tuples(st.sampled_from(["plain", "html"]), st.booleans()), max_size=6))
def test_each_text_of_a_mail_is_there_once_and_in_order(parts: list[tuple[str, bool]]) -> None:
    bodies, files = [], []
    texts: list[str] = []
    for number, (kind, attached) in enumerate(parts):
        word = f"w{number}x"
        header = f"Content-Type: text/{kind}\n"
        if attached:
            header += f"Content-Disposition: attachment; filename=f{number}.{kind}\n"
        (files if attached else bodies).append(word)
        texts.append(f"{header}\n<p>{word}</p>" if kind == "html" else f"{header}\n{word}")
    found = mail(multipart("mixed", *texts)).text
    places = [found.index(word) for word in bodies + files]
    assert places == sorted(places)
    assert all(found.count(word) == 1 for word in bodies + files)
