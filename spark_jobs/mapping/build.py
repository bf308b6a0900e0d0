"""From the syntax tree to typed expressions; refuses everything that is not of the language."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from spark_jobs.contract.record_places import META, META_KEYS
from spark_jobs.mapping import casts
from spark_jobs.mapping.calls import ArgumentError, call
from spark_jobs.mapping.coercion import coerced, common_type, converted
from spark_jobs.mapping.declare import Implementation
from spark_jobs.mapping.errors import MappingError, RefusalError
from spark_jobs.mapping.functions import FUNCTIONS, forms
from spark_jobs.mapping.grammar import offset_of, text_of_literal
from spark_jobs.mapping.nodes import Call, Conditions, Constant, FieldNode, FirstGiven, Junction, Node
from spark_jobs.mapping.paths import OUTER_ROOT, OUTERMOST_ROOT, PLACEHOLDER, Path
from spark_jobs.mapping.refusals import unknown_function
from spark_jobs.mapping.syntax import COMPARISONS, OPERATORS, check_nesting, foreign, number_literal
from spark_jobs.mapping.types import Type

_CAST_TYPES = {"TEXT": Type.TEXT, "VARCHAR": Type.TEXT, "BIGINT": Type.INTEGER, "BOOLEAN": Type.BOOLEAN}
_CAST_TYPES |= {"TIMESTAMP": Type.TIME, "TIMESTAMPTZ": Type.TIME, "TIMESTAMPLTZ": Type.TIME}
_FLOATS = {"DOUBLE", "FLOAT"}


class Builder:
    """Builds the typed expression of one text.

    Args:
        text: as written, for literals and positions.
        paths: by where they start in it.
        roots: by the name in the text, the root of paths into something else than the record.
    """

    def __init__(self, text: str, paths: dict[int, Path], roots: Mapping[str, str]) -> None:
        self._text = text
        self._paths = paths
        self._roots = roots
        self._builders: dict[type[exp.Expr], Callable[[Any], Node]] = {
            exp.Paren: lambda tree: self.build(tree.this),
            exp.Literal: self._literal,
            exp.RawString: self._literal,
            exp.Null: lambda _: Constant(Type.NULL, None),
            exp.Boolean: lambda tree: Constant(Type.BOOLEAN, bool(tree.this)),
            exp.Column: self._column,
            exp.Anonymous: self._function,
            exp.Neg: self._negative,
            exp.Not: lambda tree: self._logical(forms.NOT, tree.this),
            exp.And: lambda tree: self._junction(tree, decisive=False),
            exp.Or: lambda tree: self._junction(tree, decisive=True),
            exp.NullSafeEQ: lambda tree: self._unified(
                forms.NULL_SAFE_EQUAL, [tree.this, tree.expression], sees_null=True
            ),
            exp.Is: self._is,
            exp.In: self._is_in,
            exp.Between: lambda tree: self._unified(
                forms.BETWEEN, [tree.this, tree.args["low"], tree.args["high"]], sees_null=True
            ),
            exp.If: lambda tree: self._conditions([(tree.this, tree.args.get("true"))], tree.args.get("false")),
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Bracket: self._bracket,
        }

    def build(self, tree: exp.Expr) -> Node:
        """The typed expression of ``tree``.

        Raises:
            MappingError: it is not of the language.
        """
        try:
            check_nesting(tree)
            if type(tree) in OPERATORS:
                return self._called(OPERATORS[type(tree)], [tree.this, tree.expression])
            if type(tree) in COMPARISONS:
                return self._unified(forms.COMPARISONS[COMPARISONS[type(tree)]], [tree.this, tree.expression])
            builder = self._builders.get(type(tree))
            if builder is None:
                raise foreign(tree)
            return builder(tree)
        except RefusalError as error:
            raise MappingError(self._text, offset_of(tree), error.reason, error.remedy) from error

    def _literal(self, tree: exp.Expr) -> Constant:
        source = self._text[tree.meta["start"] : tree.meta["end"] + 1] if "start" in tree.meta else None
        if isinstance(tree, exp.RawString) or tree.args.get("is_string"):
            text = str(tree.this) if source is None else text_of_literal(source)
            return Constant(Type.TEXT, text)
        return number_literal(str(tree.this))

    def _column(self, tree: exp.Column) -> FieldNode:
        name = tree.name
        offset = offset_of(tree)
        if set(name) == {PLACEHOLDER} and offset in self._paths and not tree.args.get("table"):
            return FieldNode(self._rooted(self._paths[offset]))
        if name.lower() in {
            "current_timestamp",
            "current_date",
            "localtimestamp",
            "current_time",
            "current_user",
            "user",
        }:
            raise unknown_function(name, FUNCTIONS)
        shown = tree.sql("spark").replace(PLACEHOLDER, "")
        raise RefusalError(f"unknown column {shown!r}", f"a field of the record is written $.{name.strip(PLACEHOLDER)}")

    def _rooted(self, path: Path) -> Path:
        if path.root in {"", *self._roots}:
            if path.root == META and next(iter(path.steps), None) not in META_KEYS:
                raise RefusalError(f"{path} is not known", f"$meta has {', '.join(META_KEYS)}")
            return Path(path.steps, self._roots.get(path.root, ""))
        if path.root == OUTER_ROOT:
            raise RefusalError("$$ is the record around an element, and the source has no each")
        if path.root == OUTERMOST_ROOT:
            raise RefusalError("$$$ is the record around a list within a list, and the source has no each with [*]")
        raise RefusalError(f"there is no let {path.root}", "a field of the record is written $.name")

    def _function(self, tree: exp.Anonymous) -> Node:
        name, arguments = str(tree.this).lower(), list(tree.expressions)
        if name in {"coalesce", "nvl", "ifnull"}:
            if not arguments or (name != "coalesce" and len(arguments) != 2):  # noqa: PLR2004 it takes two
                raise RefusalError(
                    f"{name} does not take {len(arguments)} arguments", f"write {FUNCTIONS[name].signature}"
                )
            return self._first_given(arguments)
        if name in forms.EXTREMES:
            if len(arguments) < 2:  # noqa: PLR2004 one of several
                raise RefusalError(f"{name} takes at least 2 arguments", f"write {FUNCTIONS[name].signature}")
            return self._extreme(forms.EXTREMES[name], arguments)
        if name == "nullif":
            if len(arguments) != 2:  # noqa: PLR2004 it takes two
                raise RefusalError(f"nullif does not take {len(arguments)} arguments", "write nullif(a, b)")
            return self._nullif(*arguments)
        function = FUNCTIONS.get(name)
        if function is None or not function.overloads or not name.isidentifier():
            raise unknown_function(str(tree.this), FUNCTIONS)
        return self._called(name, arguments)

    def _called(self, name: str, trees: Sequence[exp.Expr]) -> Node:
        arguments = [self.build(tree) for tree in trees]
        try:
            return call(FUNCTIONS[name], arguments)
        except ArgumentError as error:
            raise MappingError(self._text, offset_of(trees[error.number]), error.reason, error.remedy) from error

    def _negative(self, tree: exp.Neg) -> Node:
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return number_literal(f"-{tree.this.this}")
        return self._called("negative", [tree.this])

    def _coerced(self, tree: exp.Expr, target: Type) -> Node:
        return self._as(target, self.build(tree), tree)

    def _logical(self, implementation: Implementation, tree: exp.Expr) -> Node:
        return Call(Type.BOOLEAN, implementation, (self._coerced(tree, Type.BOOLEAN),))

    def _junction(self, tree: exp.And | exp.Or, *, decisive: bool) -> Node:
        left, right = (self._coerced(side, Type.BOOLEAN) for side in (tree.this, tree.expression))
        return Junction(left, right, decisive)

    def _same(self, trees: Sequence[exp.Expr | None], *, for_comparison: bool = False) -> tuple[Type, tuple[Node, ...]]:
        nodes = [Constant(Type.NULL, None) if tree is None else self.build(tree) for tree in trees]
        target = common_type((node.type for node in nodes), for_comparison=for_comparison)
        if target is Type.NULL:
            target = Type.TEXT
        return target, tuple(self._as(target, node, tree) for node, tree in zip(nodes, trees, strict=True))

    def _as(self, target: Type, node: Node, tree: exp.Expr | None) -> Node:
        try:
            return coerced(node, target)
        except RefusalError as error:
            offset = 0 if tree is None else offset_of(tree)
            raise MappingError(self._text, offset, error.reason, error.remedy) from error

    def _unified(self, implementation: Implementation, trees: Sequence[exp.Expr], *, sees_null: bool = False) -> Node:
        _, nodes = self._same(trees, for_comparison=True)
        return Call(Type.BOOLEAN, implementation, nodes, sees_null=sees_null)

    def _extreme(self, implementation: Implementation, trees: Sequence[exp.Expr]) -> Node:
        target, nodes = self._same(trees)
        return Call(target, implementation, nodes, sees_null=True)

    def _nullif(self, value: exp.Expr, other: exp.Expr) -> Node:
        target, nodes = self._same([value, other])
        return Call(target, forms.NULLIF, nodes, sees_null=True)

    def _first_given(self, trees: Sequence[exp.Expr]) -> Node:
        target, nodes = self._same(trees)
        return FirstGiven(target, nodes)

    def _is(self, tree: exp.Is) -> Node:
        kinds: dict[object, Implementation] = {True: forms.IS_TRUE, False: forms.IS_FALSE}
        if isinstance(tree.expression, exp.Null):
            node = self.build(tree.this)
            if node.type is Type.LIST:
                raise RefusalError("a list is compared with null", "compare the text or an element")
            return Call(Type.BOOLEAN, forms.IS_NULL, (node,), sees_null=True)
        if isinstance(tree.expression, exp.Boolean):
            node = self._coerced(tree.this, Type.BOOLEAN)
            return Call(Type.BOOLEAN, kinds[bool(tree.expression.this)], (node,), sees_null=True)
        raise RefusalError("is stands before something else than null, true or false")

    def _is_in(self, tree: exp.In) -> Node:
        if not tree.expressions or tree.args.get("query"):
            raise RefusalError("in takes a list of values: a mapping has no subqueries", "write a in (b, c)")
        return self._unified(forms.IS_IN, [tree.this, *tree.expressions], sees_null=True)

    def _case(self, tree: exp.Case) -> Node:
        branches = [(branch.this, branch.args["true"]) for branch in tree.args["ifs"]]
        if tree.this is None:
            return self._conditions(branches, tree.args.get("default"))
        conditions = [(exp.EQ(this=tree.this, expression=value), result) for value, result in branches]
        return self._conditions(conditions, tree.args.get("default"))

    def _conditions(self, branches: Sequence[tuple[exp.Expr, exp.Expr | None]], otherwise: exp.Expr | None) -> Node:
        conditions = [self._coerced(condition, Type.BOOLEAN) for condition, _ in branches]
        target, same = self._same([*(value for _, value in branches), otherwise])
        return Conditions(target, tuple(zip(conditions, same[:-1], strict=True)), same[-1])

    def _cast(self, tree: exp.Cast) -> Node:
        node, kind = self.build(tree.this), tree.to
        name = kind.this.name if isinstance(kind.this, exp.DType) else str(kind.this)
        if name in _FLOATS:
            raise RefusalError(
                f"{name.lower()} is refused: money and ids pass through no floating point", "use decimal"
            )
        if name == "DECIMAL":
            return self._cast_to_decimal(node, [int(size.name) for size in kind.expressions])
        if name.lower() in casts.INTEGER_BITS:
            return Call(
                Type.INTEGER, casts.small_integer(name.lower()), (converted(node, Type.INTEGER),), can_fail=True
            )
        if name not in _CAST_TYPES or kind.expressions:
            raise RefusalError(
                f"there is no cast to {kind.sql('spark').lower()}", "use string, bigint, decimal, boolean or timestamp"
            )
        return converted(node, _CAST_TYPES[name])

    @staticmethod
    def _cast_to_decimal(node: Node, sizes: list[int]) -> Node:
        if not sizes:
            return converted(node, Type.NUMBER)
        precision, scale = (*sizes, 0)[:2]
        if not casts.fits_number(precision, scale):
            raise RefusalError(
                f"decimal({precision},{scale}) does not fit: a NUMBER has 21 digits before the point and 9 behind it"
            )
        implementation = casts.decimal(node.type, precision, scale)
        if implementation is None:
            return converted(node, Type.NUMBER)
        return Call(Type.NUMBER, implementation, (node,), can_fail=True)

    def _bracket(self, tree: exp.Bracket) -> Node:
        if len(tree.expressions) != 1:
            raise RefusalError("one index stands in brackets", "write list[0]")
        node = self.build(tree.this)
        if node.type is not Type.LIST:
            raise RefusalError(
                f"[ ] takes an element of a list, and this is a {node.type}", "write $.list[0] without spaces"
            )
        return self._called("[]", [tree.this, tree.expressions[0]])
