"""Named tuples without the typing module, which takes longer to import than all of Tenon. For type checkers they are typing's."""

from __future__ import annotations

from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTuple(tuple):
        __slots__ = ()
        _fields: tuple[str, ...] = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            for i, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(i)))

        def __new__(cls, *values, **named):
            values += tuple(named.pop(name) for name in cls._fields[len(values) :] if name in named)
            if named or len(values) != len(cls._fields):
                raise TypeError(f"{cls.__name__} takes {', '.join(cls._fields)}")
            return tuple.__new__(cls, values)

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
            return f"{type(self).__name__}({fields})"


__all__ = ["NamedTuple"]
