from menu.build import mark_commands, press, zoom_commands
from menu.commands import Document


def test_every_zoom():
    document = Document()
    commands = zoom_commands(document)
    assert [one.title for one in commands] == ["Zoom 50 %", "Zoom 100 %", "Zoom 200 %"]
    for key, percent in (("2", 100), ("1", 50), ("3", 200), ("2", 100)):
        assert press(commands, key) == f"zoom {percent} %"
        assert document.zoom == percent


def test_two_documents():
    first, second = Document(), Document()
    press(zoom_commands(first), "1")
    press(zoom_commands(second), "3")
    press(mark_commands(first, [1, 2, 3]), "m2")
    assert (first.zoom, second.zoom, first.marks, second.marks) == (50, 200, [2], [])
