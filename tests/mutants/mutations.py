"""Small faults, put into source text one at a time: what a test that proves something must notice.

A fault replaces the text of one expression and leaves the rest of the file as it is, so that a line number in a
failure is the line of the source. Which faults are drawn depends on the texts of the statements alone: a change
elsewhere in the code leaves the draw, and with it the answers so far, as they are.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_COMPUTED: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
_CALLED = {
    "min": "max",
    "max": "min",
    "least": "greatest",
    "greatest": "least",
    "asc": "desc",
    "desc": "asc",
    "min_by": "max_by",
    "max_by": "min_by",
    "isNull": "isNotNull",
    "isNotNull": "isNull",
}
_TEXTS = {"left_anti": "left_semi", "left_semi": "left_anti", "left": "inner", "full": "inner", "full_outer": "inner"}
_IN_SQL = (
    (r"<=", "<"),
    (r">=", ">"),
    (r"(?<![<>=!])<(?![<>=])", "<="),
    (r"(?<![<>=!-])>(?![<>=])", ">="),
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bAND\b", "OR"),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bNOT IN\b", "IN"),
)
_SQL = re.compile(r"\b(SELECT|WHERE|JOIN|CASE)\b")
# These change no row: a fault in them is no fault of the figures.
_NO_ROWS = re.compile(r"\b(_?log\w*\.|broadcast\(|on_step\(|logging\.|\.persist\(|\.unpersist\(|raise |assert )")


@dataclass(frozen=True)
class Mutation:
    """One fault: in the file ``path``, ``before`` at ``start`` becomes ``after``."""

    path: str
    statement: str
    """The function, and the text of the statement in it."""
    line: int
    start: int
    before: str
    after: str
    nth: int
    """How many faults of the same texts the statement has before this one."""

    @property
    def key(self) -> str:
        """Names the fault, whatever lies around its statement."""
        return _digest(f"{self.statement}|{self.before}|{self.after}|{self.nth}")[:16]

    def applied(self, source: str) -> str:
        """``source`` with the fault.

        Raises:
            ValueError: the text at its place is another one.
        """
        end = self.start + len(self.before)
        if source[self.start : end] != self.before:
            raise ValueError(f"{self.path}:{self.line}: {source[self.start : end]!r} is there, not {self.before!r}")
        return source[: self.start] + self.after + source[end:]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"


def mutations_in(path: str, source: str) -> dict[str, list[Mutation]]:
    """The faults that can be put into ``source``, by the statement that they are in."""
    offsets = _Offsets(source)
    found: dict[str, list[Mutation]] = {}
    for name, statement in _statements(ast.parse(source), ""):
        text = ast.get_source_segment(source, statement) or ""
        if _NO_ROWS.search(text.splitlines()[0] if text else ""):
            continue
        label = f"{path}|{name}|{_head(text)}"
        seen: dict[tuple[str, str], int] = {}
        for line, start, before, after in _faults(source, offsets, statement):
            nth = seen[before, after] = seen.get((before, after), -1) + 1
            found.setdefault(label, []).append(Mutation(path, label, line, start, before, after, nth))
    return found


def draw(candidates: dict[str, list[Mutation]], count: int, seed: int) -> list[Mutation]:
    """``count`` of the faults: each statement has the same chance, and gives at most one."""
    ranked = sorted(candidates, key=lambda statement: _digest(f"{seed}|{statement}"))
    return [min(candidates[label], key=lambda one: _digest(f"{seed}|{one.key}")) for label in ranked[:count]]


class _Offsets:
    """Turns the positions of the syntax tree (line, byte in it) into positions in the text."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def of(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _statements(node: ast.AST, name: str) -> Iterator[tuple[str, ast.stmt]]:
    """The statements in functions, each with the name of its function; of a compound one, its head counts."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _statements(child, f"{name}.{child.name}" if name else child.name)
        elif isinstance(child, ast.stmt) and name and not isinstance(child, ast.Import | ast.ImportFrom):
            if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):  # not a docstring
                yield name, child
            yield from _statements(child, name)
        elif isinstance(child, ast.excepthandler | ast.match_case):
            yield from _statements(child, name)


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of ``statement`` itself, without the statements in it and without annotations."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        yield node
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns"):
                continue
            values = value if isinstance(value, list) else [value]
            todo += [one for one in values if isinstance(one, ast.AST) and not isinstance(one, ast.stmt)]


def _faults(source: str, at: _Offsets, statement: ast.stmt) -> Iterator[tuple[int, int, str, str]]:
    # `strict` only checks that two lists are as long as each other.
    checks = {id(node.value) for node in _own(statement) if isinstance(node, ast.keyword) and node.arg == "strict"}
    in_f_strings = {
        id(part)
        for node in _own(statement)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in sorted(_own(statement), key=lambda one: (getattr(one, "lineno", 0), getattr(one, "col_offset", 0))):
        if id(node) in in_f_strings | checks or not hasattr(node, "lineno"):
            continue
        yield from _faults_of(source, at, node)


def _faults_of(source: str, at: _Offsets, node: ast.AST) -> Iterator[tuple[int, int, str, str]]:
    if isinstance(node, ast.Compare):
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            yield from _between(source, at, left, right, _COMPARED.get(type(operator)), r"[<>=!]+|\b(?:is|not|in)\b")
            left = right
    elif isinstance(node, ast.BinOp):
        yield from _between(source, at, node.left, node.right, _COMPUTED.get(type(node.op)), r"//|[-+*&|]")
    elif isinstance(node, ast.BoolOp):
        after = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _between(source, at, left, right, after, r"\b(?:and|or)\b")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        start, operand = at.of(node.lineno, node.col_offset), at.of(node.operand.lineno, node.operand.col_offset)
        gap = source[start:operand]
        sign = "not" if isinstance(node.op, ast.Not) else "~"
        yield node.lineno, start, gap, gap.replace(sign, "", 1).lstrip(" ")
    elif isinstance(node, ast.Constant):
        yield from _of_constant(source, at, node)
    elif isinstance(node, ast.JoinedStr):
        yield from _of_sql(source, at, node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLED:
        end = at.of(node.func.end_lineno or 0, node.func.end_col_offset or 0)
        start = end - len(node.func.attr)
        yield node.func.end_lineno or 0, start, node.func.attr, _CALLED[node.func.attr]


def _between(
    source: str, at: _Offsets, left: ast.expr, right: ast.expr, after: str | None, sign: str
) -> Iterator[tuple[int, int, str, str]]:
    """The operator between two operands, replaced; operands may be in brackets, which the tree does not have."""
    if after is None:
        return
    start = at.of(left.end_lineno or 0, left.end_col_offset or 0)
    found = list(re.finditer(sign, source[start : at.of(right.lineno, right.col_offset)]))
    if found:
        first, last = start + found[0].start(), start + found[-1].end()  # "is not" and "not in" are two words
        yield left.end_lineno or 0, first, source[first:last], after


def _of_constant(source: str, at: _Offsets, node: ast.Constant) -> Iterator[tuple[int, int, str, str]]:
    start = at.of(node.lineno, node.col_offset)
    before = source[start : at.of(node.end_lineno or 0, node.end_col_offset or 0)]
    if isinstance(node.value, bool):
        yield node.lineno, start, before, str(not node.value)
    elif isinstance(node.value, int):
        yield node.lineno, start, before, str(node.value + 1)
    elif isinstance(node.value, str) and node.value in _TEXTS and before[0] in "'\"":
        yield node.lineno, start, before, f'"{_TEXTS[node.value]}"'
    elif isinstance(node.value, str):
        yield from _of_sql(source, at, node)


def _of_sql(source: str, at: _Offsets, node: ast.Constant | ast.JoinedStr) -> Iterator[tuple[int, int, str, str]]:
    start = at.of(node.lineno, node.col_offset)
    text = source[start : at.of(node.end_lineno or 0, node.end_col_offset or 0)]
    if not _SQL.search(text):
        return
    for pattern, after in _IN_SQL:
        for match in re.finditer(pattern, text):
            yield node.lineno + text.count("\n", 0, match.start()), start + match.start(), match[0], after


def _head(text: str) -> str:
    """The text of a statement up to the statements in it, so that a change in its body leaves it the same."""
    return text.split(":\n", 1)[0] if re.match(r"(if|for|while|with|try|match)\b", text) else text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
