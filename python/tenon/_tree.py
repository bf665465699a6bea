"""Nested containers of arrays: dicts, lists, tuples, named tuples and dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

# A structure says how to put leaves back together; it can be compared and hashed.
Structure = tuple[Any, ...]
_LEAF: Structure = ("leaf",)
# Named tuples that are not to be taken apart.
LEAF_TYPES: set[type] = set()


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a tree from left to right, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    kind = type(tree)
    if kind is list or kind is tuple:
        return (kind, None, tuple([_flatten(item, leaves) for item in tree]))
    if kind is dict:
        keys = tuple(tree)
        return (dict, keys, tuple([_flatten(tree[key], leaves) for key in keys]))
    if tree is None:
        return ("none",)
    if isinstance(tree, tuple) and hasattr(kind, "_fields") and kind not in LEAF_TYPES:
        return ("named", kind, tuple([_flatten(item, leaves) for item in tree]))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(field.name for field in dataclasses.fields(tree))
        return ("dataclass", (kind, names), tuple([_flatten(getattr(tree, name), leaves) for name in names]))
    leaves.append(tree)
    return _LEAF


def leaf_paths(structure: Structure, name: str) -> list[str]:
    """Where each leaf is: "batch_x_0" for batch["x"][0]."""
    kind = structure[0]
    if kind == "leaf":
        return [name]
    if kind == "none":
        return []
    keys: Any = range(len(structure[2]))
    if kind is dict:
        keys = structure[1]
    elif kind == "named":
        keys = structure[1]._fields
    elif kind == "dataclass":
        keys = structure[1][1]
    return [path for key, child in zip(keys, structure[2]) for path in leaf_paths(child, f"{name}_{key}")]


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The tree of this structure with these leaves."""
    remaining = iter(leaves)
    return _unflatten(structure, remaining.__next__)


def _unflatten(structure: Structure, take: Callable[[], Any]) -> Any:
    kind = structure[0]
    if kind == "leaf":
        return take()
    if kind == "none":
        return None
    items = [_unflatten(child, take) for child in structure[2]]
    if kind is list:
        return items
    if kind is tuple:
        return tuple(items)
    if kind is dict:
        return dict(zip(structure[1], items))
    if kind == "named":
        return structure[1](*items)
    cls, names = structure[1]
    return cls(**dict(zip(names, items)))
