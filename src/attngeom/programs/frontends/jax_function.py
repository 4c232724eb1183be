"""The JAX front door: a function of named weights and inputs becomes a jaxpr, whose equations are run on traced arrays.

Index work is done by the primitive itself, on the numbers 1 … n; everything else is a row of a table, in terms of
NumPy. Scans are unrolled, calls are entered. What depends on neither weights nor inputs stays a plain array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from attngeom.errors import InputError, SizeError
from attngeom.exact.arrays import Array
from attngeom.limits.sizes import TRACED_WEIGHTS
from attngeom.limits.work import UNROLLED_STEPS
from attngeom.programs.builder import Builder
from attngeom.programs.frontends import Reference, flatten, rebuild
from attngeom.programs.frontends.aten import CASTS, DataIndex
from attngeom.programs.frontends.jax_layers import LAYERS
from attngeom.programs.frontends.numpy_function import Traced, as_node, as_traced, index_work, shape_of
from attngeom.programs.program import Program

_MOVES = """
reshape transpose broadcast_in_dim squeeze expand_dims concatenate stack unstack slice dynamic_slice
dynamic_update_slice rev pad gather split copy_p copy device_put tile
"""
INDEX_WORK = frozenset(_MOVES.split())


def accepts(network: Any, weights: Any) -> bool:
    """A function whose weights are arrays of JAX, or their shapes as JAX writes them."""
    jax = sys.modules.get("jax")
    if jax is None or not callable(network):
        return False
    return any(isinstance(x, (jax.Array, jax.ShapeDtypeStruct)) for x in _leaves(weights))


def _leaves(weights: Any) -> list[Any]:
    return [] if weights is None else list(flatten(weights).values())


def read(network: Callable[..., Any], inputs: Any, weights: Any, output: Any) -> tuple[Program, Reference]:
    """The program of f(weights, *inputs), and f again for arrays."""
    import jax

    shapes = {
        name: tuple(leaf.shape) if hasattr(leaf, "shape") else shape_of(leaf, f"weights {name!r}")
        for name, leaf in flatten(weights).items()
    }
    total = sum(prod(shape) for shape in shapes.values())
    if total > TRACED_WEIGHTS:
        raise SizeError(f"a network of {total:,} weights given; at most {TRACED_WEIGHTS:,} are read: shrink the widths")
    leaves = {name: jax.ShapeDtypeStruct(shape, np.float64) for name, shape in shapes.items()}
    builder = Builder()
    examples: list[Array] = []
    free: dict[int, str] = {}
    for place, given in enumerate(inputs):
        array = np.zeros(given) if isinstance(given, (tuple, list)) else np.asarray(given)
        if array.dtype.kind not in "iub" or not array.ndim:
            free[place] = "x" if len(inputs) == 1 else f"x{place}"
            array = np.zeros(shape_of(given, f"input {place}"))
        examples.append(array)

    def whole(tensors: dict[str, Any], *arguments: Any) -> Any:
        answer = network(rebuild(weights, tensors), *arguments)
        answer = answer if output is None else output(answer)
        parts = jax.tree_util.tree_leaves(answer)
        if not parts:
            raise InputError("a network that returns nothing given; return its output")
        return parts[0] if len(parts) == 1 else jax.numpy.concatenate([x.ravel() for x in parts])

    with _double_precision():
        fixed = {k: jax.numpy.asarray(x) for k, x in enumerate(examples) if k not in free}

        def varying(tensors: dict[str, Any], *given: Any) -> Any:
            rest = iter(given)
            return whole(tensors, *(fixed[k] if k in fixed else next(rest) for k in range(len(examples))))

        try:
            closed = jax.make_jaxpr(varying)(leaves, *(examples[k] for k in free))
        except jax.errors.JAXTypeError as error:
            words = str(error).strip().splitlines()[0][:110]
            raise InputError(f"JAX cannot trace the function ({words}); branches on data are not traced") from None
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:  # whatever the function raises
            words = (str(error).strip().splitlines() or [""])[0][:110]
            raise InputError(f"the network raised {type(error).__name__}: {words}; give inputs that it takes") from None
        order = sorted(leaves)
        values = [Traced(builder, builder.parameter(name, leaves[name].shape)) for name in order]
        values += [Traced(builder, builder.input(free[k], examples[k].shape)) for k in free]
        (result,) = JaxInterpreter(builder).run(closed.jaxpr, closed.consts, values)

    def reference(tensors: dict[str, Array]) -> Array:
        with _double_precision():
            given = [jax.numpy.asarray(tensors[free[k]] if k in free else x) for k, x in enumerate(examples)]
            return np.asarray(whole({name: jax.numpy.asarray(tensors[name]) for name in leaves}, *given))

    return builder.build(as_node(builder, result)), reference


def _double_precision() -> Any:
    """A context in which JAX computes in float64; the name moved."""
    import jax

    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


class JaxInterpreter:
    """Runs the equations of a jaxpr on plain and traced arrays."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def run(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """The outputs of a jaxpr for these arguments."""
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_plain, constants)))
        values |= dict(zip(jaxpr.invars, arguments))

        def get(atom: Any) -> Any:
            return _plain(atom.val) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            results = self.evaluate(equation, [get(atom) for atom in equation.invars])
            values |= dict(zip(equation.outvars, results))
        return [get(atom) for atom in jaxpr.outvars]

    def evaluate(self, equation: Any, args: list[Any]) -> list[Any]:
        """One equation: calls are entered, scans unrolled, plain arrays left to JAX, index work done on numbers."""
        name, params = equation.primitive.name, equation.params
        if name == "scan":
            return self.scan(params, args)
        if name == "while":
            return self.loop(params, args)
        if name == "cond" and not isinstance(args[0], Traced):
            # An index that no data reach: one of the branches is taken.
            branch = params["branches"][min(max(int(args[0]), 0), len(params["branches"]) - 1)]
            return self.run(branch.jaxpr, branch.consts, args[1:])
        if name in CALLS:
            inner = params.get("call_jaxpr", params.get("jaxpr", params.get("fun_jaxpr")))
            constants = getattr(inner, "consts", ())
            return self.run(getattr(inner, "jaxpr", inner), constants, args)
        if name == "custom_linear_solve":
            return self.solve(params, args)
        if any(isinstance(x, DataIndex) for x in args):
            raise InputError(f"an index made from data met in {name}; give a dense form or a fixed choice")
        if name not in ("cos", "sin") and not any(isinstance(x, Traced) for x in args):
            return _bind(equation)(*args)
        try:
            if name in INDEX_WORK:
                # Truth values beside those of data are numbers as these are.
                plain = [x.astype(float) if getattr(x, "dtype", None) == np.bool_ else x for x in args]
                results = index_work(self.builder, lambda *x: _bind(equation)(*x), plain, {})
                return list(results)
            if name in LAYERS:
                result = LAYERS[name](self.builder, _bind(equation), *args, **params)
                return result if isinstance(result, list) else [result]
            if name in PRIMITIVES:
                return [PRIMITIVES[name](self.builder, *args, **params)]
        except (InputError, SizeError):
            raise
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(f"{name} as it is called here is not known ({str(error)[:60]})") from None
        if name in ADVICE:
            raise InputError(f"the primitive {name} met; {ADVICE[name]}")
        raise InputError(f"the primitive {name} met; write it with sums, products, exp, sqrt, maximum and indexing")

    def loop(self, params: dict[str, Any], args: list[Any]) -> list[Any]:
        """A loop whose length no data reach, with its steps written out."""
        ends, body = params["cond_jaxpr"], params["body_jaxpr"]
        first, state = params["cond_nconsts"], args[params["cond_nconsts"] + params["body_nconsts"] :]
        for _ in range(UNROLLED_STEPS + 1):
            (goes_on,) = self.run(ends.jaxpr, ends.consts, [*args[:first], *state])
            if isinstance(goes_on, Traced):
                raise InputError(f"the primitive while met; {ADVICE['while']}")
            if not goes_on:
                return state
            state = self.run(body.jaxpr, body.consts, [*args[first : len(args) - len(state)], *state])
        raise InputError(f"a loop of more than {UNROLLED_STEPS} steps met; at most {UNROLLED_STEPS} are unrolled")

    def solve(self, params: dict[str, Any], args: list[Any]) -> list[Any]:
        """A linear system by the steps that solve it, which a caller of JAX gives with it."""
        lengths, way = params["const_lengths"], params["jaxprs"].solve
        before = lengths.matvec + lengths.vecmat
        given = args[sum(lengths) :]
        return self.run(way.jaxpr, way.consts, [*args[before : before + lengths.solve], *given])

    def scan(self, params: dict[str, Any], args: list[Any]) -> list[Any]:
        """A scan with its steps written out."""
        length, consts, carried = params["length"], params["num_consts"], params["num_carry"]
        if length > UNROLLED_STEPS:
            raise InputError(f"a scan of {length:,} steps met; at most {UNROLLED_STEPS} are unrolled: take fewer")
        body = params["jaxpr"]
        fixed, state, rows = args[:consts], args[consts : consts + carried], args[consts + carried :]
        outputs: list[list[Any]] = []
        steps = range(length - 1, -1, -1) if params["reverse"] else range(length)
        for step in steps:
            results = self.run(body.jaxpr, body.consts, [*fixed, *state, *(row[step] for row in rows)])
            state = results[:carried]
            outputs.append(results[carried:])
        if params["reverse"]:
            outputs.reverse()
        if not length:
            return [*state, *(np.zeros((0, *variable.aval.shape)) for variable in body.jaxpr.outvars[carried:])]
        stacked = [np.stack([as_traced(self.builder, x) for x in column]) for column in zip(*outputs)]
        return [*state, *stacked]


def _plain(value: Any) -> Any:
    try:
        array = np.asarray(value)
    except TypeError:
        raise InputError("keys of random numbers met; a network without random numbers is required") from None
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _bind(equation: Any) -> Callable[..., list[Any]]:
    """The primitive itself on arrays of NumPy."""

    def call(*args: Any) -> list[Any]:
        import jax

        arrays = [jax.numpy.asarray(x) for x in args]
        params = dict(equation.params)
        if any(x.dtype.kind == "i" for x in arrays):
            # Numbers of entries: what is read out of bounds has none, and empty arrays are those of any kind.
            beyond = 1 + max(int(x.max()) for x in arrays if x.size)
            params |= {"fill_value": beyond} if "fill_value" in params else {}
            arrays = [x.astype(np.int64) if not x.size else x for x in arrays]
        try:
            results = equation.primitive.bind(*arrays, **params)
        except (RuntimeError, MemoryError) as error:
            words = str(error).splitlines()[0][:90]
            raise InputError(f"{equation.primitive.name} as it is called here does not run ({words})") from None
        return [_plain(x) for x in (results if equation.primitive.multiple_results else [results])]

    return call


def _dot(builder: Builder, a: Any, b: Any, *, dimension_numbers: Any, **options: Any) -> Any:
    """A sum of products over some axes of both, with common axes in front."""
    (left, right), (common_a, common_b) = dimension_numbers
    letters = iter(ascii_letters)
    first = [next(letters) for _ in a.shape]
    second = [next(letters) for _ in b.shape]
    for i, j in (*zip(left, right), *zip(common_a, common_b)):
        second[j] = first[i]
    shared = [first[i] for i in common_a]
    rest = [x for k, x in enumerate(first) if k not in (*left, *common_a)]
    rest += [x for k, x in enumerate(second) if k not in (*right, *common_b)]
    return np.einsum(f"{''.join(first)},{''.join(second)}->{''.join(shared + rest)}", a, b)


def _circle(part: int) -> Callable[..., Any]:
    def function(builder: Builder, x: Any, **options: Any) -> Any:
        if isinstance(x, Traced):
            return (np.cos, np.sin)[part](x)
        return Traced(builder, builder.circle(x)[part])

    return function


def _convert(builder: Builder, x: Any, *, new_dtype: Any, **options: Any) -> Any:
    if np.dtype(new_dtype).kind != "f":
        use = "use jnp.where for choices" if np.dtype(new_dtype).kind in "iub" else "take real numbers"
        raise InputError(f"data converted to {np.dtype(new_dtype)} met; keep float32 or float64, {use}")
    if np.dtype(new_dtype) != np.float64:
        builder.notes.append(CASTS)
    return x


def _select(builder: Builder, which: Any, *cases: Any) -> Any:
    if len(cases) != 2:
        raise InputError(f"a choice among {len(cases)} cases met; two are known: use jnp.where")
    if isinstance(which, Traced):
        return np.where(which, cases[1], cases[0])
    # Of plain choices, what is not taken may be NaN.
    chosen = np.broadcast_to(np.asarray(which, dtype=bool), np.shape(cases[0]))
    if chosen.all() or not chosen.any():
        return cases[int(bool(chosen.all()))]
    taken = [x if isinstance(x, Traced) else np.where(chosen == side, x, 0.0) for side, x in enumerate(cases)]
    return np.where(chosen, taken[1], taken[0])


def _compare_to_itself(is_equal: bool) -> Callable[..., Any]:
    """x == x is true, x == ∞ is false, where x exists: how JAX asks for NaN and infinity."""

    def compare(builder: Builder, a: Any, b: Any) -> Any:
        if any(not isinstance(x, Traced) and np.isinf(x).all() for x in (a, b)):
            return np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), not is_equal)  # Data are finite.
        if a is not b:
            raise InputError("data compared with == or != met; use > or <")
        return np.full(a.shape, is_equal)

    return compare


def _largest(builder: Builder, x: Any, *, axes: Any, **options: Any) -> Any:
    """A maximum, which a softmax may subtract: it waits for that in the shape with all axes."""
    largest = np.max(x, axis=tuple(axes), keepdims=True)
    return largest.reshape([n for k, n in enumerate(x.shape) if k not in axes])


def _maximum(builder: Builder, a: Any, b: Any) -> Any:
    """The larger one; −∞ is what a maximum starts from."""
    for low, other in ((a, b), (b, a)):
        if not isinstance(low, Traced) and np.all(np.asarray(low) == -np.inf):
            return other
    return np.maximum(a, b)


def _erf(x: Any) -> Any:
    from scipy.special import erf

    return erf(x)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the arrays alone."""
    return lambda builder, *args, **params: function(*args)


_CALLS = "jit pjit closed_call core_call remat remat2 checkpoint custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr"
CALLS = frozenset(_CALLS.split())
"""Primitives that are entered: what they do is that of a jaxpr inside of them."""

ADVICE = {
    "argmax": "a place that data choose is not traced: take the value (jnp.max), or fix the choice",
    "argmin": "a place that data choose is not traced: take the value (jnp.min), or fix the choice",
    "eigh": "eigenvalues are no such formula: write the network with the eigenvectors as weights",
    "eig": "eigenvalues are no such formula: write the network with the eigenvectors as weights",
    "svd": "singular values are no such formula: write the network with the singular vectors as weights",
    "householder_product": "use jnp.linalg.cholesky, or the Gram-Schmidt process written out",
    "geqrf": "use jnp.linalg.cholesky, or the Gram-Schmidt process written out",
    "qr": "use jnp.linalg.cholesky, or the Gram-Schmidt process written out",
    "fft": "write the transform as products with matrices of cosines and sines",
    "floor": "steps have no derivative: leave them out, or fix them",
    "ceil": "steps have no derivative: leave them out, or fix them",
    "round": "steps have no derivative: leave them out, or fix them",
    "rem": "steps have no derivative: leave them out, or fix them",
    "reduce_window": "windows of sums, maxima and minima are known: write others with slices",
    "reduce": "use jnp.sum, jnp.prod, jnp.max or jnp.min",
    "while": "a loop whose length data decide is not traced: use fori_loop with a fixed length",
    "cond": "a branch on data is not traced: use jnp.where",
}
"""What to write instead of primitives that have no row."""

PRIMITIVES: dict[str, Callable[..., Any]] = {
    "add": entry(np.add),
    "add_any": entry(np.add),
    "sub": entry(np.subtract),
    "mul": entry(np.multiply),
    "div": entry(np.divide),
    "neg": entry(np.negative),
    "max": _maximum,
    "min": entry(np.minimum),
    "exp": entry(np.exp),
    "exp2": entry(np.exp2),
    "expm1": entry(lambda x: np.exp(x) - 1),
    "log": entry(np.log),
    "log1p": entry(lambda x: np.log(1 + x)),
    "tanh": entry(np.tanh),
    "logistic": entry(lambda x: 1 / (1 + np.exp(-1 * x))),
    "sqrt": entry(np.sqrt),
    "rsqrt": entry(lambda x: 1 / np.sqrt(x)),
    "square": entry(lambda x: x * x),
    "abs": entry(np.abs),
    "sign": entry(np.sign),
    "erf": entry(_erf),
    "erfc": entry(lambda x: 1 - _erf(x)),
    "eq": _compare_to_itself(True),
    "ne": _compare_to_itself(False),
    "is_finite": lambda builder, x: np.ones(x.shape, dtype=bool),
    "tan": entry(lambda x: np.sin(x) / np.cos(x)),
    "sinh": entry(lambda x: (np.exp(x) - np.exp(-1 * x)) / 2),
    "cosh": entry(lambda x: (np.exp(x) + np.exp(-1 * x)) / 2),
    "gt": entry(np.greater),
    "ge": entry(np.greater_equal),
    "lt": entry(np.less),
    "le": entry(np.less_equal),
    "pow": entry(np.power),
    "stop_gradient": entry(lambda x: x),
    "optimization_barrier": entry(lambda x: x),
    "integer_pow": lambda builder, x, *, y: np.power(x, y),
    "reduce_sum": lambda builder, x, *, axes, **options: np.sum(x, axis=tuple(axes)),
    "reduce_max": _largest,
    "reduce_min": lambda builder, x, *, axes, **options: np.min(x, axis=tuple(axes)),
    "reduce_prod": lambda builder, x, *, axes, **options: np.prod(x, axis=tuple(axes)),
    "clamp": entry(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "dot_general": _dot,
    "convert_element_type": _convert,
    "select_n": _select,
    "cos": _circle(0),
    "sin": _circle(1),
}
"""Primitives by name."""
