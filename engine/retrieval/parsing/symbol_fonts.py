"""`symbol_text`: characters of Symbol, Wingdings and Webdings, whose codes are pictures, as Unicode.

Where Unicode has a rare character of the very same drawing and a common one beside it, the common one is
taken (`→`, not U+1F86A): it is what people search for and what models know.
"""

_SYMBOL = (
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑"
    "⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ ⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
)
_WINGDINGS = (
    " ✏✂✁👓🔔📖🕯☎✆✉✉📪📫📬📭📁📂📄📄📄🗄⌛⌨🖱🖲🖥🖴💾🖬✇✍✍✌👌👍👎☜☞☝☟✋☺😐☹💣☠🏳🏱✈☼💧❄✞✞✞✠✡☪"
    "☯ॐ☸♈♉♊♋♌♍♎♏♐♑♒♓&&●❍■□□❑❒⬧⧫◆❖⬥⌧⮹⌘🏵🏶❝❞",
    " ⚪○○◉◎○▪◻✦✦★✶✴✹✵⯐⌖⟡⌑⯑✪✰🕐🕑🕒🕓🕔🕕🕖🕗🕘🕙🕚🕛⮰⮱⮲⮳⮴⮵⮶⮷🙪🙫🙕🙔🙗🙖🙐🙑🙒🙓⌫⌦⮘➢⮙⮛"
    "⮈⮊⮉⮋←→↑↓↖↗↙↘⬅➔⬆⬇⬉⬈⬋⬊⇦⇨⇧⇩⬄⇳⬀⬁⬃⬂▭▫✗✔☒☑",
)


def _table(low: str, high: str) -> dict[int, str]:
    return dict(enumerate(low, 0x20)) | dict(enumerate(high, 0xA0))


_CIRCLED = dict(enumerate("⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿", 0x80))
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"}
_WINGDINGS_3 = dict(zip(b"fghipqtu}", "←→↑↓▲▼◀▶▶", strict=True))
_WEBDINGS = dict(zip(b"acgnr", "✔□■●✖", strict=True))
_FONTS: dict[str, dict[int, str]] = {
    "symbol": _table(*_SYMBOL),
    "wingdings": _table(*_WINGDINGS) | _CIRCLED | {0x9E: "·", 0x9F: "•"},
    "wingdings 2": _WINGDINGS_2,
    "wingdings 3": _WINGDINGS_3,
    "webdings": _WEBDINGS,
}
_PRIVATE = 0xF000
"""Where these fonts' codes lie in Unicode's private area."""


def symbol_text(text: str, font: str) -> str:
    """A text in the characters that a person sees.

    Codes of the private area that no known font explains are left out: they mean nothing without their font.

    Args:
        text: characters as they are stored; codes of a symbol font may be raised into the private area.
        font: the name of the font that it is written in.
    """
    known = _FONTS.get(font.lower(), {})
    return "".join(
        known.get(ord(one) - _PRIVATE, "") if _PRIVATE <= ord(one) <= _PRIVATE + 0xFF else one
        for one in text
    )


def symbol(code: int, font: str) -> str:
    """One character, by its code with or without the offset of the private area."""
    known = _FONTS.get(font.lower())
    if known is not None and code <= 0xFF:
        return known.get(code, "")
    return symbol_text(chr(code), font) if 0x20 <= code <= 0x10FFFF else ""
