"""Paths of keys alone, read from a variant in one pass: as the struct that the objects of a record make.

Each path by itself would go through the keys of every object on its way again, and add to the code that Spark compiles
at each start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.mapping.paths import Path, Step

_Tree = dict[str, "_Tree | None"]
"""By key, what is read below it; None: the value itself."""


@dataclass(frozen=True)
class Objects:
    """The paths that are read together.

    Attributes:
        paths: these paths; the others go through a list, or share a key with another one that a struct cannot hold.
        tree: the keys of these paths.
    """

    paths: frozenset[Path]
    tree: _Tree

    @classmethod
    def of(cls, paths: Sequence[Path]) -> "Objects":
        """Of ``paths``, as many as fit in one struct. The first of two that do not fit together is in it."""
        tree: _Tree = {}
        return cls(frozenset(path for path in paths if _add(tree, path.steps)), tree)

    @property
    def type_sql(self) -> str:
        """The struct as a type of Spark SQL."""
        return _type(self.tree)

    @staticmethod
    def value_sql(struct: str, path: Path) -> str:
        """SQL of the text at ``path``, given the SQL of the struct."""
        return struct + "".join(f".{_name(str(step))}" for step in path.steps)


def _add(tree: _Tree, steps: Sequence[Step]) -> bool:
    """Adds a path to ``tree``; false if it does not fit, and then ``tree`` is as before."""
    key, *rest = steps
    if not isinstance(key, str):
        return False
    if key not in tree:
        # Spark ignores case in the names of a struct's fields.
        if key.lower() in map(str.lower, tree) or not all(isinstance(step, str) for step in rest):
            return False
        tree[key] = {} if rest else None
    below = tree[key]
    if below is None or not rest:
        return below is None and not rest
    return _add(below, rest)


def _type(tree: _Tree) -> str:
    fields = (f"{_name(key)}: {'string' if below is None else _type(below)}" for key, below in tree.items())
    return f"struct<{', '.join(fields)}>"


def _name(key: str) -> str:
    return "`" + key.replace("`", "``") + "`"
