"""Definitions of an answer in a Python file: by name, and nothing else changes."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.api.errors import InvalidTask
from agents.edits.python_merge import merge_python
from agents.edits.source_lines import SourceLines

FILE = '''\
#!/usr/bin/env python3
"""Holds."""

from datetime import date

KEEP_DAYS = 7  # a copy is kept so long


class Queue:
    """The holds of one book."""

    limit: int = 5

    # Members look at this often.
    def position(self, member: str) -> int | None:
        """The position, from 1."""
        for index, hold in enumerate(self.holds):  # oldest first
            if hold.member == member:
                return index
        # nobody of that name
        return None

    @property
    def size(self) -> int:
        return len(self.holds)

    @size.setter
    def size(self, value: int) -> None:
        raise AttributeError("size")


class Shelf:
    def first(self): return 1


@cached
def expires(ready: date) -> date:
    return ready


if __name__ == "__main__":
    print(expires(date.today()))
'''


def merged(code, file=FILE):
    source = SourceLines(file.encode())
    merge = merge_python("holds.py", source, code)
    return source.spliced(merge.splices).decode(), merge


def changed(before, after):
    """The lines that went, and those that came."""
    old, new = before.splitlines(), after.splitlines()
    return [one for one in old if one not in new], [one for one in new if one not in old]


def test_a_method_without_its_class_replaces_the_only_one_of_its_name():
    text, merge = merged(
        "def position(self, member):\n    for index, hold in enumerate(self.holds):\n"
        "        if hold.member == member:\n            return index + 1\n    return None\n"
    )
    assert changed(FILE, text) == (
        ["                return index"],
        ["                return index + 1"],
    )
    assert merge.names == ["Queue.position"]


def test_what_a_class_does_not_mention_stays():
    text, merge = merged(
        "class Queue:\n    # ... existing code ...\n\n    def cancel(self, member):\n"
        "        self.holds = []\n"
    )
    assert changed(FILE, text) == (
        [],
        ["    def cancel(self, member):", "        self.holds = []"],
    )
    assert merge.names == ["Queue.cancel"]
    assert [node.name for node in ast.parse(text).body[3].body if hasattr(node, "name")] == [
        "position", "size", "size", "cancel",
    ]  # fmt: skip


def test_decorators_docstring_and_comments_that_the_answer_leaves_out_stay():
    text, _ = merged("def expires(ready):\n    return ready + 1\n")
    assert "@cached\ndef expires(ready: date) -> date:\n    return ready + 1\n" in text
    text, _ = merged("def position(self, member: str) -> int | None:\n    return 3\n")
    assert '"""The position, from 1."""\n        return 3\n' in text
    assert "    # Members look at this often.\n    def position" in text


def test_decorators_of_the_answer_replace_the_old_ones():
    text, _ = merged("@lru_cache(maxsize=3)\ndef expires(ready):\n    return ready\n")
    assert "@lru_cache(maxsize=3)\ndef expires" in text
    assert "@cached" not in text


def test_comments_alone_are_a_change_that_was_meant():
    text, _ = merged(
        "def position(self, member: str) -> int | None:\n"
        '    """The position, from 1."""\n'
        "    for index, hold in enumerate(self.holds):\n"
        "        if hold.member == member:\n            return index\n    return None\n"
    )
    assert "# nobody of that name" not in text


def test_a_property_and_its_setter_are_told_apart_by_their_decorators():
    text, _ = merged("@size.setter\ndef size(self, value):\n    self.limit = value\n")
    assert "        self.limit = value\n" in text
    assert "        return len(self.holds)\n" in text
    with pytest.raises(InvalidTask, match=r"2 definitions of Queue.size"):
        merged("def size(self):\n    return 1\n")


def test_a_new_function_goes_behind_the_one_that_precedes_it_in_the_answer():
    text, merge = merged(
        "def expires(ready):\n    return late(ready)\n\n\n# Later.\ndef late(day):\n    return day\n"
    )
    assert (
        "    return late(ready)\n\n\n# Later.\ndef late(day):\n    return day\n\n\nif __name__"
        in text
    )
    assert merge.names == ["expires", "late"]


def test_a_new_function_before_a_known_one_goes_before_it():
    text, _ = merged(
        "def late(day):\n    return day\n\n\ndef expires(ready):\n    return late(ready)\n"
    )
    assert "def late(day):\n    return day\n\n\n@cached\ndef expires" in text


def test_a_new_function_alone_goes_above_the_main_guard():
    text, _ = merged("def late(day):\n    return day\n")
    assert "def late(day):\n    return day\n\n\nif __name__" in text


def test_imports_that_the_code_uses_are_added_and_others_are_not():
    text, _ = merged(
        "import os\nfrom datetime import date, timedelta\nfrom library.holds import Queue\n\n"
        "def expires(ready: date) -> date:\n    return ready + timedelta(days=KEEP_DAYS)\n"
    )
    assert "from datetime import date\nfrom datetime import timedelta\n\nKEEP_DAYS" in text
    assert "import os" not in text
    assert "library" not in text


def test_an_import_that_binds_a_name_otherwise_is_refused():
    with pytest.raises(InvalidTask, match="imports date from elsewhere"):
        merged("from pendulum import date\n\ndef expires(ready):\n    return date(ready)\n")


def test_constants_are_replaced_by_name_and_keep_their_comment():
    text, merge = merged("KEEP_DAYS = 14\nLATE_DAYS = 3\n\nclass Queue:\n    limit: int = 9\n")
    assert "KEEP_DAYS = 14\nLATE_DAYS = 3\n" in text
    assert "    limit: int = 9\n" in text
    assert merge.names == ["KEEP_DAYS", "LATE_DAYS", "Queue.limit"]


def test_examples_are_left_out_and_counted():
    text, merge = merged(
        "def expires(ready):\n    return ready + 1\n\nqueue = Queue()\nprint(expires(1))\n"
        "assert expires(1) == 2\nif __name__ == '__main__':\n    main()\n"
    )
    assert merge.left_out == 4
    assert text.count("print(") == 1
    assert "queue = " not in text


@pytest.mark.parametrize(
    "body",
    [
        "    # ... rest of the code\n    return 1\n",
        "    ...\n    return 1\n",
        "    x = 1\n    # remaining code unchanged\n",
    ],
)
def test_a_function_of_which_a_part_is_left_out_is_refused(body):
    with pytest.raises(InvalidTask, match="leaves out a part of expires"):
        merged(f"def expires(ready):\n{body}")


def test_a_placeholder_changes_nothing():
    text, merge = merged("class Shelf:\n    ...\n\ndef expires(ready):\n    pass\n")
    assert text == FILE
    assert not merge.names


def test_a_method_that_two_classes_have_is_refused():
    file = "class A:\n    def f(self):\n        return 1\n\n\nclass B:\n    def f(self):\n        return 2\n"
    with pytest.raises(InvalidTask, match="A and B have a method f"):
        merged("def f(self):\n    return 3\n", file)
    text, _ = merged("class B:\n    def f(self):\n        return 3\n", file)
    assert text == file.replace("return 2", "return 3")


def test_code_and_files_that_do_not_parse_are_refused_with_the_line():
    with pytest.raises(InvalidTask, match=r"does not parse \(line 1 of the block\)"):
        merged("def f(:\n    return 1\n")
    with pytest.raises(InvalidTask, match=r"holds.py does not parse \(line 1\)"):
        merged("def f():\n    return 1\n", "def f(\n")


def test_a_definition_that_shares_its_line_is_refused():
    with pytest.raises(InvalidTask, match="more than one statement"):
        merged("B = 3\n", "A = 1; B = 2\n")


def test_tabs_and_two_blanks_are_the_styles_of_the_file():
    file = "class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n\t\treturn 2\n"
    text, _ = merged(
        "class A:\n    def f(self):\n        if self:\n            return 3\n        return 2\n",
        file,
    )
    assert text == file.replace("return 1", "return 3")
    two = "class A:\n  def f(self):\n    return 1\n"
    assert merged("def f(self):\n    return 2\n", two)[0] == two.replace("1", "2")


def test_lines_within_a_text_are_not_moved():
    file = "class A:\n    def f(self):\n        return 1\n"
    text, _ = merged('def f(self):\n    return """a\n  b\n"""\n', file)
    assert text == 'class A:\n    def f(self):\n        return """a\n  b\n"""\n'


def test_base_classes_and_docstrings_of_a_class_change():
    file = 'class A:\n    """Old."""\n\n    x = 1\n\n\ny = 2  # stays\n'
    text, _ = merged('class A(B):\n    """New."""\n', file)
    assert text == file.replace("class A:", "class A(B):").replace("Old", "New")


def test_an_async_function_replaces_a_plain_one():
    text, _ = merged("async def expires(ready):\n    return ready\n")
    assert "@cached\nasync def expires(ready):\n    return ready\n" in text


NAMES = st.sampled_from(["f", "g", "h"])


@st.composite
def functions(draw):
    """A function of the file or the answer, with comments, odd blanks and a decorator at times."""
    name = draw(NAMES)
    lines = draw(
        st.lists(
            st.sampled_from(
                [
                    "x = 1",
                    "x = 2  # two",
                    "# a comment",
                    "",
                    'y = """a\n  b"""',
                    "if x:\n        x = 3",
                ]
            ),
            max_size=4,
        )
    )
    decorator = draw(st.sampled_from(["", "@d\n", "@d(1)\n"]))
    return name, f"{decorator}def {name}(a, b=1):\n" + "".join(
        f"    {line}\n" for line in lines
    ) + (f"    return {draw(st.integers(0, 3))}\n")


@given(
    st.lists(functions(), min_size=1, max_size=3, unique_by=lambda one: one[0]),
    st.lists(functions(), min_size=1, max_size=3, unique_by=lambda one: one[0]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
)
def test_only_the_functions_of_the_answer_change(file, answer, newline, ends, bom):
    text = '"""Doc."""  # first\n\n\n' + "\n\n".join(code for _, code in file) + "\n# the end\n"
    data = text.replace("\n", newline)
    data = (("\ufeff" if bom else "") + (data if ends else data.removesuffix(newline))).encode()
    source = SourceLines(data)
    merge = merge_python("a.py", source, "\n\n".join(code for _, code in answer))
    result = source.spliced(merge.splices)
    assert result.startswith(b"\xef\xbb\xbf") == bom
    assert result.endswith(newline.encode()) == ends
    assert newline == "\n" or b"\n" not in result.replace(b"\r\n", b"")
    after = SourceLines(result).text
    given_names = {name for name, _ in answer}
    for name, code in file:
        if name not in given_names:
            assert code in after
    bodies = {node.name: node for node in ast.parse(after).body if hasattr(node, "name")}
    assert set(bodies) == given_names | {name for name, _ in file}
    for name, code in answer:
        wanted = ast.parse(code).body[0]
        assert [ast.dump(one) for one in bodies[name].body] == [
            ast.dump(one) for one in wanted.body
        ]
    assert after.startswith('"""Doc."""  # first\n')
    assert "# the end" in after
