"""The screenshots of the README are there, are well-formed, and refer to nothing outside themselves.

A page that shows an SVG as an image runs no script of it and loads nothing for it.
"""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = sorted(set(re.findall(r'(?:!\[[^\]]*\]\(|<img [^>]*src=")([^)"]+)', README)))
ANIMATIONS = {"docs/images/demo.svg"}
SVG = "{http://www.w3.org/2000/svg}"
LIMIT, ANIMATION_LIMIT = 300_000, 1_500_000
"""Bytes."""


def test_the_readme_shows_every_screenshot_of_the_docs():
    drawn = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "images").iterdir()}
    assert set(SHOWN) == drawn


def test_every_screenshot_has_words_for_those_who_do_not_see_it():
    alternatives = re.findall(r"!\[([^\]]*)\]|<img [^>]*alt=\"([^\"]*)\"", README)
    assert len(alternatives) == len(SHOWN)
    assert all(any(words) for words in alternatives)


@pytest.mark.parametrize("name", SHOWN)
def test_a_screenshot_is_self_contained_svg(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title")
    assert {element.tag for element in root.iter()} <= {
        SVG + tag for tag in ("svg", "title", "style", "rect", "g", "path", "text", "defs", "use")
    }
    for element in root.iter():
        for attribute, value in element.attrib.items():
            assert not attribute.startswith("on")
            assert not attribute.endswith("href") or value.startswith("#")
    style = root.findtext(f"{SVG}style") or ""
    assert not re.search(r"@import|@font-face|url\(", style)
    assert len(text.encode()) < (ANIMATION_LIMIT if name in ANIMATIONS else LIMIT)
