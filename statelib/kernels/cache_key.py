"""What the compiled code of a kernel is made of, as one text: where it is another, the code kept on disk is of no use.

numba looks only at the file of the kernel itself. But helpers of other modules are compiled into it, and the numbers
that it names are constants of its code.
"""

from __future__ import annotations

import functools
import hashlib
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

import numpy as np

from statelib.kernels.compiled import Instruction, Kernel
from statelib.kernels.signatures import KernelType

_CONSTANTS = (bool, int, float, str, bytes, tuple, np.generic, np.dtype, KernelType, Instruction, type(None))


def cache_key(kernel: Kernel) -> str:
    """Of the function, all helpers that it calls, and all constants that they name, whatever module these are in.

    Raises:
        TypeError: The kernel or a helper names what its text does not tell, such as a list or a closure's variable.
    """
    found = [kernel]
    for one in found:  # which grows
        found += [called for called in _made_of(one)[1] if called not in found]
    return hashlib.sha256("\n".join(_made_of(one)[0] for one in found).encode()).hexdigest()[:16]


@functools.cache
def _made_of(kernel: Kernel) -> tuple[str, list[Kernel]]:
    """The text of a kernel or helper, and the helpers that it calls, whose own text is not in it."""
    function = kernel.function
    code = function.__code__
    if code.co_freevars:
        raise TypeError(f"{function.__qualname__} is a closure: a kernel is a function of a module")
    texts = [f"{function.__module__}.{function.__qualname__}"]
    texts.append(repr((kernel.signatures, kernel.allocates, function.__defaults__)))
    names: set[str] = set()
    for part in _nested(code):
        names.update(part.co_names)
        constants = [constant for constant in part.co_consts if not isinstance(constant, CodeType)]
        texts.append(repr((part.co_code, part.co_names, part.co_varnames, part.co_cellvars, constants)))
    named = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    texts += [f"{name} {_value(name, value)}" for name, value in named.items()]
    return "\n".join(texts), [value for value in named.values() if isinstance(value, Kernel)]


def _nested(code: CodeType) -> list[CodeType]:
    """The code and that of functions and comprehensions inside."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [code, *(part for one in inner for part in _nested(one))]


def _value(name: str, value: Any) -> str:
    if isinstance(value, Kernel):
        return "kernel"  # which tells of itself
    if isinstance(value, type | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, _CONSTANTS):
        return f"{type(value).__qualname__} {value!r}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype!r} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in ("numpy", "math"):
        return value.__name__
    raise TypeError(f"{name} is a {type(value).__qualname__}: kernels name helpers, numbers, arrays and numpy")
