"""Files that belong together by their names."""

import pytest

from agents.detectors.text.conventions import pairs_by_name
from agents.workspace.workspace import Workspace


def pairs(kind, *paths):
    found = pairs_by_name(Workspace.of_texts(dict.fromkeys(paths, "x\n")), kind)
    return [
        ([one.path for one in output], [one.path for one in source]) for output, source in found
    ]


@pytest.mark.parametrize(
    ("kind", "paths", "expected"),
    [
        ("text", ["a/summary.md", "a/source.md"], [(["a/summary.md"], ["a/source.md"])]),
        ("text", ["a/summary.md", "b/source.md"], []),
        ("text", ["story.md", "facts.json"], [(["story.md"], ["facts.json"])]),
        ("text", ["README.md", "guide.md"], []),
        ("values", ["extracted.json", "invoice.txt"], [(["extracted.json"], ["invoice.txt"])]),
        ("answer", ["q/answer.md", "q/sources/a.md"], [(["q/answer.md"], ["q/sources/a.md"])]),
        ("translation", ["app.en.json", "app.fr.json", "web.de.json"], [(["app.fr.json"], ["app.en.json"])]),
        ("translation", ["source.en.md", "target.de.md"], [(["target.de.md"], ["source.en.md"])]),
        ("translation", ["locales/en/a.json", "locales/de/a.json"], [(["locales/de/a.json"], ["locales/en/a.json"])]),
        ("translation", ["locales/en.json", "locales/de.json"], [(["locales/de.json"], ["locales/en.json"])]),
        ("schema", ["r.schema.json", "r.json", "s.json"], [(["r.json"], ["r.schema.json"])]),
        ("schema", ["schema.json", "r.json", "s.json"], []),
        ("checklist", ["checklist.md", "draft.md"], [(["draft.md"], ["checklist.md"])]),
    ],
)  # fmt: skip
def test_pairs(kind, paths, expected):
    assert pairs(kind, *paths) == expected
