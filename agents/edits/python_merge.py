"""Merging the definitions of an answer's Python code into a file, by their names.

* A function replaces the one of its name; a method that is given without its class, the only method of its
  name. Decorators, annotations, a docstring and comments that the answer leaves out stay.
* A class is merged member by member: what the answer does not mention stays.
* A new definition is inserted behind the one that precedes it in the answer, else before the one that
  follows it, else at the end.
* Assignments replace the one of their name; imports that the merged code uses are added.
* Examples (calls, `print`, asserts, a main guard that the file lacks) are left out and counted.

Code that leaves out a part of a function (`# ... rest of the code`) is refused: the rest cannot be known.
"""

import ast
import copy
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.api.errors import InvalidTask
from agents.edits.elisions import first_elision
from agents.edits.kept_comments import keep_comments
from agents.edits.python_imports import import_splices, row_below_imports
from agents.edits.python_indent import indent_unit, moved
from agents.edits.python_nodes import (
    DEFINITION,
    FUNCTION,
    Definition,
    Function,
    annotations,
    assigned,
    body_row,
    column,
    definitions,
    dumps,
    first_row,
    head_end,
    header_end,
    is_ellipsis,
    is_main_guard,
    is_method,
    is_placeholder,
    names_in,
    plain_head,
    statements,
)
from agents.edits.source_lines import SourceLines, Splice, leading_space

_NOT_UNIQUE = "the answer does not say which one it means"


@dataclass(slots=True)
class PythonMerge:
    """What a merge does to a file.

    Attributes:
        splices: of the file's lines.
        names: the definitions that are replaced or added, such as `Queue.position`.
        left_out: statements of the answer that are no definitions.
    """

    splices: list[Splice] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    left_out: int = 0


def parse_snippet(code: str) -> ast.Module:
    """The syntax tree of an answer's code, which may be indented as a whole.

    Raises:
        InvalidTask: it does not parse.
    """
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line} of the block)" if line else ""
        reason = getattr(error, "msg", None) or str(error)
        raise InvalidTask(f"The code of the answer does not parse{where}: {reason}.") from error


def defined_names(code: str) -> set[str]:
    """The functions, methods and classes that code defines; none if it does not parse."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.name for node in ast.walk(tree) if isinstance(node, DEFINITION)}


def merge_python(path: str, source: SourceLines, code: str) -> PythonMerge:
    """How the definitions of `code` change a file.

    Raises:
        InvalidTask: the code or the file does not parse, a place is not unique, or a part is left out.
    """
    code = textwrap.dedent(code)
    given = parse_snippet(code)
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidTask(
            f"{path} does not parse (line {getattr(error, 'lineno', '?')}), so a single function cannot be "
            "put in its place: ask for the whole file."
        ) from error
    merging = _Merging(path, source, tree, given, code.splitlines())
    merging.run()
    _check(path, merging, tree)
    return merging.result


class _Merging:
    """One merge."""

    def __init__(
        self,
        path: str,
        source: SourceLines,
        tree: ast.Module,
        given: ast.Module,
        code: Sequence[str],
    ) -> None:
        self.path = path
        self.source = source
        self.tree = tree
        self.given = given
        self.code = code
        self.result = PythonMerge()
        self.replaced: list[tuple[str, Function]] = []
        self._unit = indent_unit(tree, source.lines)
        self._code_unit = indent_unit(given, code)
        self._used: set[str] = set()

    def run(self) -> None:
        self._merge_body(self.tree.body, self.given.body, "", owner=None)
        if self.result.names:
            added = import_splices(self.path, self.source, self.tree, self.given, self._used)
            self.result.splices[:0] = added

    # Bodies.

    def _merge_body(
        self,
        body: list[ast.stmt],
        given: list[ast.stmt],
        prefix: str,
        owner: ast.ClassDef | None,
    ) -> None:
        """Merge the statements of a module, or of a class, into those of the file."""
        known = {ast.dump(one) for one in body}
        anchor: ast.stmt | None = None
        for at, one in enumerate(given):
            if isinstance(one, DEFINITION):
                anchor = self._merge_definition(one, given[at + 1 :], body, prefix, owner, anchor)
            elif isinstance(one, (ast.Import, ast.ImportFrom)):
                continue  # added if they are used
            elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                continue  # a docstring, or `...`
            elif (name := assigned(one)) is not None:
                self._merge_assignment(one, name, body, prefix, owner)
            elif not isinstance(one, ast.Pass) and ast.dump(one) not in known:
                self.result.left_out += 1

    def _merge_definition(
        self,
        one: Definition,
        later: Sequence[ast.stmt],
        body: list[ast.stmt],
        prefix: str,
        owner: ast.ClassDef | None,
        anchor: ast.stmt | None,
    ) -> ast.stmt | None:
        """Merge a function or class; the definition of the file behind which the next new one goes."""
        place = self._place_of(one, body, prefix)
        if place is not None:
            found, prefix = place
            if isinstance(found, ast.ClassDef) and isinstance(one, ast.ClassDef):
                self._merge_class(one, found, prefix)
            elif isinstance(found, FUNCTION) and isinstance(one, FUNCTION):
                self._replace_function(one, found, prefix)
            else:
                raise InvalidTask(
                    f"{prefix}{one.name} is a class in {self.path} or the answer, and a function elsewhere."
                )
            return found if found in body else anchor
        if owner is None and isinstance(one, FUNCTION) and is_method(one):
            self._add_method(one)
            return anchor
        self._insert(one, later, body, prefix, owner, anchor)
        return anchor

    def _place_of(
        self, one: Definition, body: list[ast.stmt], prefix: str
    ) -> tuple[Definition, str] | None:
        """The definition that has the name of `one`, and what precedes its name; None if it is new."""
        same = [node for node in definitions(body) if node.name == one.name]
        if not prefix and isinstance(one, FUNCTION) and (not same or is_method(one)):
            methods = [
                (node, f"{owner.name}.")
                for owner in ast.walk(self.tree)
                if isinstance(owner, ast.ClassDef)
                for node in definitions(owner.body)
                if node.name == one.name and isinstance(node, FUNCTION)
            ]
            owners = sorted({name for _, name in methods})
            if len(owners) > 1:
                classes = " and ".join(name[:-1] for name in owners)
                raise InvalidTask(f"{classes} have a method {one.name}: {_NOT_UNIQUE}.")
            if methods:
                same, prefix = [node for node, _ in methods], owners[0]
        if not same:
            return None
        if len(same) > 1:  # a property and its setter, or overloads
            wanted = [ast.dump(each) for each in one.decorator_list]
            alike = [node for node in same if [ast.dump(d) for d in node.decorator_list] == wanted]
            if len(alike) != 1:
                raise InvalidTask(
                    f"{self.path} has {len(same)} definitions of {prefix}{one.name}: {_NOT_UNIQUE}."
                )
            same = alike
        return same[0], prefix

    # Replacing.

    def _replace_function(self, one: Function, found: Function, prefix: str) -> None:
        start, end = first_row(found), found.end_lineno or found.lineno
        old = self.source.lines[start:end]
        given = self.code[first_row(one) : self._end_with_comments(one)]
        if is_placeholder(one) and not is_placeholder(found):
            return
        left_out = first_elision(given, old)
        if left_out or any(is_ellipsis(each) for each in statements(one)) > is_placeholder(one):
            raise InvalidTask(
                f"The answer leaves out a part of {prefix}{one.name} ({left_out or '...'}): ask for the "
                "whole function."
            )
        self._check_own_lines(found)
        space = leading_space(self.source.lines[found.lineno - 1])
        first = first_row(one) if one.decorator_list else one.lineno - 1
        new = self._moved(one, first, space)
        new = self._with_docstring(new, one, found)
        new = self._with_annotations(new, one, found)
        if not one.decorator_list and found.decorator_list:
            new = [*self.source.lines[start : found.lineno - 1], *new]
        new = keep_comments(old, new)
        self._used |= names_in(one)
        if tuple(new) != old:
            self.result.splices.append(Splice(start, end, tuple(new)))
            self.result.names.append(f"{prefix}{one.name}")
            self.replaced.append((f"{prefix}{one.name}", one))

    def _with_docstring(self, new: list[str], one: Function, found: Function) -> list[str]:
        """The new lines with the docstring of the old definition, if the answer leaves it out."""
        if ast.get_docstring(one, clean=False) is not None or not ast.get_docstring(found):
            return new
        text, first = found.body[0], one.body[0]
        if text.lineno <= found.lineno or first.lineno <= one.lineno or len(found.body) < 2:
            return new  # on the line of the `def`
        start = one.lineno - 1 if not one.decorator_list else first_row(one)
        at = first.lineno - 1 - start
        while at > 0 and new[at - 1].lstrip().startswith("#"):
            at -= 1  # above comments of the first statement
        lines = self.source.lines[text.lineno - 1 : text.end_lineno]
        return [*new[:at], *lines, *new[at:]]

    def _with_annotations(self, new: list[str], one: Function, found: Function) -> list[str]:
        """The new lines with the old `def`, if the answer only leaves out its annotations."""
        if annotations(one) or not annotations(found) or plain_head(one) != plain_head(found):
            return new
        if body_row(one) < one.lineno or body_row(found) < found.lineno:
            return new  # the body begins on the line of the `def`
        start = first_row(one) if one.decorator_list else one.lineno - 1
        head = one.lineno - 1 - start
        end = head + head_end(one, self.code) - one.lineno + 1
        old = self.source.lines[found.lineno - 1 : head_end(found, self.source.lines)]
        return [*new[:head], *old, *new[end:]]

    def _merge_class(self, one: ast.ClassDef, found: ast.ClassDef, prefix: str) -> None:
        name = f"{prefix}{one.name}"
        if found.body[0].lineno == found.lineno:  # all on one line
            self._check_own_lines(found)
            space = leading_space(self.source.lines[found.lineno - 1])
            new = tuple(self._moved(one, first_row(one), space))
            if new != self.source.lines[first_row(found) : found.end_lineno]:
                self.result.splices.append(
                    Splice(first_row(found), found.end_lineno or found.lineno, new)
                )
                self.result.names.append(name)
                self._used |= names_in(one)
            return
        self._merge_header(one, found, name)
        self._merge_body(found.body, one.body, f"{name}.", found)

    def _merge_header(self, one: ast.ClassDef, found: ast.ClassDef, name: str) -> None:
        """Replace the decorators and the line of a class where the answer gives others."""
        space = leading_space(self.source.lines[found.lineno - 1])
        if one.decorator_list and dumps(one.decorator_list) != dumps(found.decorator_list):
            lines = self._moved(one, first_row(one), space)[: one.lineno - 1 - first_row(one)]
            self.result.splices.append(Splice(first_row(found), found.lineno - 1, tuple(lines)))
            self.result.names.append(name)
            self._used |= {each for node in one.decorator_list for each in names_in(node)}
        given = [*dumps(one.bases), *dumps(one.keywords)]
        if given and given != [*dumps(found.bases), *dumps(found.keywords)]:
            lines = self._moved(one, one.lineno - 1, space)[: header_end(one) - one.lineno + 1]
            self.result.splices.append(Splice(found.lineno - 1, header_end(found), tuple(lines)))
            self.result.names.append(name)
            self._used |= {each for node in one.bases for each in names_in(node)}
        text, old = ast.get_docstring(one, clean=False), ast.get_docstring(found, clean=False)
        if (
            text is not None
            and old is not None
            and ast.get_docstring(one) != ast.get_docstring(found)
        ):
            first = found.body[0]
            inner = leading_space(self.source.lines[first.lineno - 1])
            moved_text = self._moved(one.body[0], one.body[0].lineno - 1, inner)
            self.result.splices.append(
                Splice(first.lineno - 1, first.end_lineno or first.lineno, tuple(moved_text))
            )
            self.result.names.append(name)

    def _merge_assignment(
        self,
        one: ast.stmt,
        name: str,
        body: list[ast.stmt],
        prefix: str,
        owner: ast.ClassDef | None,
    ) -> None:
        same = [node for node in body if assigned(node) == name]
        if len(same) > 1 or (same and ast.dump(same[0]) == ast.dump(one)):
            return
        if same:
            found = same[0]
            self._check_own_lines(found)
            start, end = found.lineno - 1, found.end_lineno or found.lineno
            new = self._moved(one, one.lineno - 1, leading_space(self.source.lines[start]))
            lines = keep_comments(self.source.lines[start:end], new)
            self.result.splices.append(Splice(start, end, tuple(lines)))
        elif owner is None and self._is_example(one):
            self.result.left_out += 1
            return
        else:
            fields = [node for node in body if assigned(node) is not None]
            before_definitions = [
                node
                for node in fields
                if not any(isinstance(each, DEFINITION) for each in body[: body.index(node)])
            ]
            row = self._row_for_assignment(before_definitions, body, owner)
            space = (
                "" if owner is None else leading_space(self.source.lines[owner.body[0].lineno - 1])
            )
            new = self._moved(one, one.lineno - 1, space)
            lead = [""] if owner is None and not before_definitions and row else []
            self.result.splices.append(Splice(row, row, (*lead, *new)))
        self.result.names.append(f"{prefix}{name}")
        self._used |= names_in(one)

    def _is_example(self, one: ast.stmt) -> bool:
        """Whether a new assignment is a part of an example: its value calls what this code defines."""
        value = getattr(one, "value", None)
        defined = {
            node.name for node in (*definitions(self.tree.body), *definitions(self.given.body))
        }
        given = {name for each in self.given.body if (name := assigned(each))}
        return value is not None and (
            any(isinstance(node, ast.Call) for node in ast.walk(value))
            and bool(names_in(value) & (defined | given))
        )

    def _row_for_assignment(
        self, fields: list[ast.stmt], body: list[ast.stmt], owner: ast.ClassDef | None
    ) -> int:
        if fields:
            return fields[-1].end_lineno or fields[-1].lineno
        if owner is not None:
            first = owner.body[0]
            has_text = ast.get_docstring(owner) is not None
            return (first.end_lineno or first.lineno) if has_text else first_row(first)
        return row_below_imports(body)

    # Inserting.

    def _add_method(self, one: Function) -> None:
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        if len(classes) != 1:
            raise InvalidTask(
                f"{one.name} takes {one.args.args[0].arg}, and {self.path} has {len(classes)} classes: the "
                "answer does not say to which it belongs."
            )
        owner = classes[0]
        self._insert(one, (), owner.body, f"{owner.name}.", owner, None)

    def _insert(
        self,
        one: Definition,
        later: Sequence[ast.stmt],
        body: list[ast.stmt],
        prefix: str,
        owner: ast.ClassDef | None,
        anchor: ast.stmt | None,
    ) -> None:
        """Insert a new definition, with the comments above it."""
        left_out = first_elision(self.code[first_row(one) : self._end_with_comments(one)])
        if left_out:
            raise InvalidTask(f"The answer leaves out a part of {prefix}{one.name} ({left_out}).")
        if owner is None:
            space, gap = "", 2
        else:
            if owner.body[0].lineno == owner.lineno:
                raise InvalidTask(
                    f"The class {owner.name} stands on one line, where {one.name} has no place."
                )
            space, gap = leading_space(self.source.lines[first_row(owner.body[0])]), 1
        first = first_row(one)
        while first and self.code[first - 1].lstrip().startswith("#"):
            first -= 1
        while first < first_row(one) and first_elision([self.code[first]]):
            first += 1
        new = self._moved(one, first, space)
        blank = [""] * gap
        row, before = self._row_for(later, body, owner, anchor)
        lines = [*new, *blank] if before else [*blank, *new]
        if not self.source.lines or (not before and not row):
            lines = new
        self.result.splices.append(Splice(row, row, tuple(lines)))
        self.result.names.append(f"{prefix}{one.name}")
        self._used |= names_in(one)

    def _row_for(
        self,
        later: Sequence[ast.stmt],
        body: list[ast.stmt],
        owner: ast.ClassDef | None,
        anchor: ast.stmt | None,
    ) -> tuple[int, bool]:
        """Where a new definition goes, and whether something follows it there without a gap."""
        if anchor is not None:
            return anchor.end_lineno or anchor.lineno, False
        names = [node.name for node in later if isinstance(node, DEFINITION)]
        following = [node for node in definitions(body) if node.name in names and node in body]
        if following:
            return self._row_above(following[0]), True
        guards = [node for node in body if owner is None and is_main_guard(node)]
        if guards:
            return self._row_above(guards[0]), True
        if not body:
            return len(self.source.lines), False
        return body[-1].end_lineno or body[-1].lineno, False

    def _row_above(self, node: ast.stmt) -> int:
        """The first line of a statement with the comments above it."""
        row = first_row(node)
        space = leading_space(self.source.lines[row])
        while row and self.source.lines[row - 1].startswith(f"{space}#"):
            row -= 1
        return row

    # Lines.

    def _end_with_comments(self, one: ast.stmt) -> int:
        """The number of the last line of a statement of the answer, with the comments that end its body."""
        end = one.end_lineno or one.lineno
        depth = len(leading_space(self.code[one.lineno - 1]))
        at = end
        while at < len(self.code) and (
            not (line := self.code[at]).strip()
            or (line.lstrip().startswith("#") and len(leading_space(line)) > depth)
        ):
            at += 1
            end = at if line.strip() else end
        return end

    def _moved(self, one: ast.stmt, first: int, space: str) -> list[str]:
        return moved(one, self.code, first, unit=self._code_unit, to=space, to_unit=self._unit)

    def _check_own_lines(self, found: ast.stmt) -> None:
        """Refuse a statement that shares a line with another one."""
        start, end = first_row(found), (found.end_lineno or found.lineno) - 1
        before = self.source.lines[start].encode()[: column(found)]
        behind = (
            self.source.lines[end].encode()[found.end_col_offset or 0 :].decode(errors="replace")
        )
        if before.strip(b" \t@") or not (not behind.strip() or behind.lstrip().startswith("#")):
            raise InvalidTask(
                f"Line {found.lineno} of {self.path} has more than one statement: apply the change by hand."
            )


def _check(path: str, merging: _Merging, before: ast.Module) -> None:
    """Make sure that the result parses and has the answer's functions; a mistake here is ours.

    Raises:
        InvalidTask: it does not.
    """
    text = SourceLines(merging.source.spliced(merging.result.splices), path).text
    try:
        after = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InvalidTask(
            f"{path} would not parse with the answer's code in it: {error}."
        ) from error
    for name, one in merging.replaced:
        if not any(_same_code(one, node) for node in ast.walk(after) if isinstance(node, FUNCTION)):
            raise InvalidTask(f"{name} cannot be put into {path} as the answer has it.")
    names = {node.name for node in definitions(before.body)}
    if not names <= {node.name for node in definitions(after.body)}:
        raise InvalidTask(f"{path} would lose a definition.")


def _same_code(one: Function, other: Function) -> bool:
    """Whether two functions are equal without decorators, annotations and docstrings."""
    return one.name == other.name and _bare_dump(one) == _bare_dump(other)


def _bare_dump(node: Function) -> str:
    bare = copy.deepcopy(node)
    bare.decorator_list = []
    bare.returns = None
    for each in ast.walk(bare):
        if isinstance(each, ast.arg):
            each.annotation = None
        elif isinstance(each, DEFINITION) and ast.get_docstring(each, clean=False) is not None:
            each.body = each.body[1:]
    return ast.dump(bare)
