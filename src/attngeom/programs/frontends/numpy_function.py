"""The NumPy front door: a function of named weights and inputs is run once on arrays that write down what happens.

Ufuncs and array functions are rows of two tables. Index work has no rows of its own: the function of NumPy is run on
the numbers 1 … n. Everything that is not in a table is refused by name.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.sizes import TRACED_WEIGHTS
from attngeom.programs.builder import Builder
from attngeom.programs.frontends import Reference, flatten, rebuild
from attngeom.programs.frontends.maxima import Shift
from attngeom.programs.frontends.numpy_functions import FUNCTIONS, INDEX_FUNCTIONS, maximum_over
from attngeom.programs.frontends.numpy_ufuncs import UFUNCS
from attngeom.programs.program import Program

PACKAGE = Path(__file__).parents[2]
METHODS = (
    "sum",
    "mean",
    "max",
    "min",
    "var",
    "std",
    "cumsum",
    "prod",
    "dot",
    "clip",
    "trace",
    "round",
    "argmax",
    "sort",
)
"""Methods of arrays that are functions of NumPy; those that no table has are refused by name."""


def accepts(network: Any, weights: Any) -> bool:
    """Every function."""
    return callable(network)


def read(network: Callable[..., Any], inputs: Any, weights: Any, output: Any) -> tuple[Program, Reference]:
    """The program of f(weights, *inputs), and f again for arrays."""
    if weights is None:
        raise InputError("a function without its weights given; name them: weights={'V': (2, 3)}, shapes or arrays")
    builder = Builder()
    shapes = {name: shape_of(leaf, f"weights {name!r}") for name, leaf in flatten(weights).items()}
    total = sum(int(np.prod(shape, dtype=object)) for shape in shapes.values())
    if not total:
        raise InputError(
            "a network without weights given; name them, weights={'V': (2, 3)}, or give a module that has some"
        )
    if total > TRACED_WEIGHTS:
        raise SizeError(f"a network of {total:,} weights given; at most {TRACED_WEIGHTS:,} are read: shrink the widths")
    leaves = {name: Traced(builder, builder.parameter(name, shape)) for name, shape in shapes.items()}
    arguments: list[Any] = []
    free: dict[int, str] = {}
    for place, given in enumerate(inputs):
        array = None if isinstance(given, (tuple, list)) else np.asarray(given)
        if array is not None and array.dtype.kind in "iub" and array.ndim:
            arguments.append(array)
            continue
        name = "x" if len(inputs) == 1 else f"x{place}"
        free[place] = name if name not in shapes else f"input {name}"
        arguments.append(Traced(builder, builder.input(free[place], shape_of(given, f"input {place}"))))
    result = _call(network, rebuild(weights, leaves), arguments, output)
    node = as_node(builder, result)

    def reference(tensors: dict[str, Array]) -> Array:
        values = [tensors[free[k]] if k in free else argument for k, argument in enumerate(arguments)]
        given = network(rebuild(weights, {name: tensors[name].copy() for name in shapes}), *values)
        return _join(given if output is None else output(given))

    return builder.build(node), reference


def _join(result: Any) -> Array:
    """Several outputs are one vector."""
    if isinstance(result, (tuple, list)):
        return np.concatenate([np.ravel(part) for part in result])
    return np.asarray(result)


def shape_of(given: Any, what: str) -> tuple[int, ...]:
    """The shape that a user gave, or that of an array; InputError for what is neither."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        given = (int(given),)
    if isinstance(given, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in given):
        if any(n < 1 for n in given):
            raise InputError(f"{what} of shape {tuple(given)} given; positive sizes are required")
        return tuple(int(n) for n in given)
    array = np.asarray(given)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} of dtype {array.dtype} given; a shape or an array of real numbers is required")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise InputError(f"{what} with NaN or infinite entries given; finite numbers are required")
    return array.shape


def _call(network: Callable[..., Any], weights: Any, arguments: list[Any], output: Any) -> Any:
    try:
        result = network(weights, *arguments)
        return result if output is None else output(result)
    except (InputError, SizeError) as error:
        raise type(error)(f"{error}{_where(error)}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, AssertionError) and not _is_own(traceback.extract_tb(error.__traceback__)[-1]):
            raise
        ours = error.__cause__ or error.__context__
        what = (
            str(ours) if isinstance(ours, InputError) else f"the network raised {type(error).__name__}: {error}"[:130]
        )
        raise InputError(f"{what}{_where(error)}") from None


def _where(error: BaseException) -> str:
    """The line of the user's file from which an error came."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _is_own(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is of the user's code: neither of this package nor of NumPy."""
    # Folders above may have any name, also that of the package.
    return not {PACKAGE, Path(np.__file__).parent} & set(Path(frame.filename).parents)


class Traced(NDArrayOperatorsMixin):
    """An array whose entries are a node of a program.

    ``lost``: entries that are −∞, as masks make them. ``shift``: a maximum that was subtracted from the scores, or by
    whose exponential everything was divided; it cancels in a softmax, and is looked at only there.
    """

    __array_priority__ = 1000
    lost: Array | None
    shift: Shift | None

    def __init__(self, builder: Builder, node: int, lost: Array | None = None, shift: Shift | None = None) -> None:
        self.builder, self.node, self.shift = builder, node, shift
        self.lost = lost if lost is not None and lost.any() else None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.builder.shape(self.node)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.builder.nodes[self.node].size

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float64)

    @property
    def T(self) -> Traced:
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"Traced(shape={self.shape})"

    def _refuse(self, what: str, instead: str) -> Any:
        raise InputError(f"{what} met while tracing; {instead}")

    def __bool__(self) -> bool:
        self._refuse("a branch on data (if, while, and, or)", "use np.where or np.maximum")
        return False

    def __float__(self) -> Any:
        return self._refuse(
            "a number made from data (float(x), a write into an array)", "use np.stack, or functions of NumPy"
        )

    __int__ = __index__ = __complex__ = __float__

    def __setitem__(self, key: Any, item: Any) -> None:
        self._refuse("a write in place", "build the array with np.stack, np.concatenate or np.where")

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        self._refuse("a traced array put into a plain one", "use np.stack or np.concatenate, or np.where for writes")
        return np.zeros(0)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, Traced) for k in keys):
            self._refuse("an index made from data", "give a dense form or a fixed choice")
        return self.move(lambda numbers: numbers[key])

    def move(self, function: Callable[[Array], Any]) -> Traced:
        """Index work on this array alone, by what it does with numbers."""
        numbers = self.builder.numbers([self.node])[0]
        moved = np.asarray(function(numbers))
        lost = None if self.lost is None else np.append(False, self.lost.ravel())[moved]
        shift = None if self.shift is None else self.shift.moved(moved)
        return Traced(self.builder, self.builder.move([self.node], moved), lost, shift)

    def plain(self) -> Traced:
        """This array without the marks of a softmax: masked entries are refused, a maximum is subtracted in earnest."""
        if self.lost is not None:
            self._refuse("−∞ outside of a softmax", "mask with np.where(mask, weights, 0) after the exponential")
        return self.unshifted()

    def unshifted(self) -> Traced:
        """This array with its maximum subtracted in earnest; masked entries stay so."""
        if self.shift is None:
            return self
        (scores, gone, axes), kind, scale = self.shift.what
        lost = np.isin(np.arange(self.builder.nodes[scores].size), gone).reshape(self.builder.shape(scores))
        largest: Any = maximum_over(Traced(self.builder, scores, lost), axes, keepdims=True)
        places = self.shift.places + 1
        largest = largest.move(lambda numbers: np.append(0, numbers.ravel())[places])
        if scale != 1:
            largest = scale * largest
        if kind != "maximum":
            own: Any = Traced(self.builder, self.node)
            largest = own - largest if kind == "subtracted" else own * np.exp(-1 * largest)
        return Traced(self.builder, largest.node, self.lost)

    def transpose(self, *axes: Any) -> Traced:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self.move(lambda numbers: numbers.transpose(order))

    def reshape(self, *shape: Any, **options: Any) -> Traced:
        return self.move(lambda numbers: numbers.reshape(*shape, **options))

    def swapaxes(self, a: int, b: int) -> Traced:
        return self.move(lambda numbers: numbers.swapaxes(a, b))

    def ravel(self) -> Traced:
        return self.move(np.ravel)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Traced:
        return self.move(lambda numbers: numbers.squeeze(axis))

    def repeat(self, repeats: Any, axis: Any = None) -> Traced:
        return self.move(lambda numbers: numbers.repeat(repeats, axis))

    def diagonal(self, *args: Any) -> Traced:
        return self.move(lambda numbers: numbers.diagonal(*args))

    def astype(self, dtype: Any, **options: Any) -> Traced:
        if np.dtype(dtype).kind != "f":
            self._refuse(f"a conversion of data to {np.dtype(dtype)}", "keep floats")
        return self

    def copy(self) -> Traced:
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a traced array has no attribute {name!r}; use functions of NumPy")
        return partial(getattr(np, name), self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        rule = UFUNCS.get(ufunc.__name__)
        if method == "reduce" and ufunc.__name__ in ("add", "multiply", "maximum", "minimum"):
            functions: dict[str, Any] = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}
            options.setdefault("axis", 0)
            return functions[ufunc.__name__](
                operands[0], **{k: v for k, v in options.items() if v is not None or k == "axis"}
            )
        if method != "__call__" or rule is None:
            return self._refuse(f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else ""), known_words())
        if set(options) - {"dtype", "casting", "order"}:
            self._refuse(f"np.{ufunc.__name__} with {', '.join(options)}", "leave these options out")
        return rule([as_traced(self.builder, operand) for operand in operands])

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name in FUNCTIONS:
            return FUNCTIONS[name](partial(as_traced, self.builder), *args, **kwargs)
        if name in INDEX_FUNCTIONS:
            return index_work(self.builder, function, args, kwargs)
        return self._refuse(f"np.{name}", known_words())


def known_words() -> str:
    return "write it with sums, products, np.exp, np.sqrt, np.where, np.maximum, np.einsum and indexing"


def as_traced(builder: Builder, item: Any) -> Traced:
    """An operand as a traced array: numbers are exact constants, −∞ and numbers below −10^30 are marked as lost."""
    if isinstance(item, Traced):
        return item
    array = np.asarray(item)
    if array.dtype == object:
        raise InputError("an array of objects met while tracing; stack traced arrays with np.stack")
    if array.dtype.kind == "c":
        raise InputError("complex numbers met while tracing; write real and imaginary parts")
    lost = None
    if array.dtype.kind == "f":
        lost = array <= -1e30
        array = np.where(lost, 0.0, array)
    return Traced(builder, builder.constant(array), lost)


def as_node(builder: Builder, result: Any) -> int:
    """The node of what a network returned; several outputs are one vector."""
    if isinstance(result, (tuple, list)):
        parts = [as_traced(builder, part).plain().ravel() for part in result]
        if parts:
            joined: Any = np.concatenate(parts)
            return int(joined.node)
        result = None
    if result is None:
        raise InputError("a network that returns nothing given; return its output")
    return as_traced(builder, result).plain().node


def _holds_data(item: Any) -> bool:
    """Whether there is something else than integers in nested lists: traced arrays, or floats."""
    if isinstance(item, (list, tuple)):
        return any(map(_holds_data, item))
    return isinstance(item, (Traced, float)) or (isinstance(item, np.ndarray) and item.dtype.kind == "f")


def index_work(builder: Builder, function: Any, args: Any, kwargs: Any) -> Any:
    """Run a function of NumPy that only moves entries on numbers in the place of the entries."""
    arrays: list[Traced] = []

    def collect(item: Any) -> Any:
        if isinstance(item, Traced) or (isinstance(item, np.ndarray) and item.dtype.kind == "f" and item.size):
            arrays.append(as_traced(builder, item))
            return arrays[-1]
        # Arrays of integers in a list without data are places.
        if isinstance(item, (list, tuple)) and _holds_data(item):
            return [collect(x if isinstance(x, (Traced, list, tuple)) else np.asarray(x, dtype=float)) for x in item]
        return item

    args = [collect(item) for item in args]
    kwargs = {key: collect(item) for key, item in kwargs.items()}
    numbers = dict(zip(map(id, arrays), builder.numbers([x.node for x in arrays])))

    def replace(item: Any) -> Any:
        if isinstance(item, Traced):
            return numbers[id(item)]
        return [replace(x) for x in item] if isinstance(item, list) else item

    moved = function(*[replace(x) for x in args], **{key: replace(x) for key, x in kwargs.items()})
    flags = np.concatenate([[False], *(np.zeros(x.size, bool) if x.lost is None else x.lost.ravel() for x in arrays)])
    if len({None if x.shift is None else x.shift.what for x in arrays}) > 1:
        arrays = [x.unshifted() for x in arrays]
    shifts = [x.shift for x in arrays if x.shift is not None]
    shift = shifts[0].at(np.concatenate([x.places.ravel() for x in shifts])) if shifts else None
    nodes = [x.node for x in arrays]

    def wrap(part: Any) -> Any:
        if isinstance(part, (list, tuple)):
            return [wrap(x) for x in part]
        part = np.asarray(part)
        if not part.size:
            return np.zeros(part.shape)
        part = part.astype(np.int64)
        return Traced(builder, builder.move(nodes, part), flags[part], None if shift is None else shift.moved(part))

    return wrap(moved)
