"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from attngeom.errors import InputError
from attngeom.files import check_target
from attngeom.limits.sizes import STORED_SEED

if TYPE_CHECKING:
    from attngeom.network import Architecture

Word = TypeVar("Word", bound=str)

KINDS = (
    "lightning",
    "softmax",
    "sigmoid",
    "retnet",
    "scalar_gate",
    "ssd",
    "gla",
    "deltanet",
    "gated_deltanet",
    "kda",
    "linear",
    "differential",
)
"""The names of :data:`attngeom.network.attention.KINDS`, in its order, for helps that need not load it."""


def flag(name: str, text: str) -> Any:
    """An option that is there or not."""
    return typer.Option(name, metavar="", help=text)


def file_option(name: str, text: str, *others: str) -> Any:
    """An option that names a file to write; what cannot be written is refused before any work."""
    return typer.Option(name, *others, metavar="FILE", callback=_check_file, help=text)


def choice_option(name: str, choices: Collection[str], text: str) -> Any:
    """An option with few values, which the Tab key completes."""
    return typer.Option(name, autocompletion=lambda: list(choices), help=text)


def _check_file(path: Path | None) -> Path | None:
    return None if path is None else check_target(path)


Json = Annotated[bool, flag("--json", "Print one JSON object on stdout and nothing else.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Seed of every random choice; stored with the result.")
]
IgnoredSeed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", hidden=True, help="Accepted; no random choice is made here.")
]
"""Of commands in which nothing is random: not in their helps, but scripts that pass it to all commands go on."""
Tokens = Annotated[int, typer.Option("--tokens", help="Number of tokens t.")]
Kind = Annotated[str, choice_option("--kind", KINDS, f"The kind of attention: {', '.join(KINDS)}.")]
Temperature = Annotated[str, typer.Option("--temperature", help="Scores are divided by it: a positive rational.")]
Heads = Annotated[int, typer.Option("--heads", help="Number of heads of each layer.")]
ValueWidth = Annotated[
    int | None, typer.Option("--value-width", help="Value width of each head; d_out / heads by default.")
]
Widths = Annotated[str, typer.Option("--widths", help="Widths d_0,…,d_l, comma separated.")]
Attention = Annotated[
    str | None,
    typer.Option("--attention", help="Attention widths a_1,…,a_l; one is repeated; by default d_{i-1} / heads."),
]
Residual = Annotated[bool, flag("--residual", "Add the input of each layer to its output.")]
MASK = "--causal"
Masked = Annotated[bool, flag(MASK, "Token i attends to tokens j ≤ i only.")]
MaskedLayers = Annotated[bool, flag(MASK, "With --layers: token i sees tokens j ≤ i only.")]
ImportedMask = Annotated[
    bool | None, typer.Option("--causal/--no-causal", help="A causal mask; default: as config.json says.")
]
ALIBI, DECAY, GATE, FEATURE = (
    ("fixed", "learned"),
    ("fixed", "learned"),
    ("sigmoid", "biased", "mamba"),
    ("identity", "square", "silu"),
)
"""The choices of :data:`attngeom.network.options.OPTIONS`, for helps that need not load it."""
Bias = Annotated[bool, flag("--bias", "Biases of queries, keys, values, gates and outputs.")]
Alibi = Annotated[str | None, choice_option("--alibi", ALIBI, "Slopes times distances in scores: fixed or learned.")]
Rope = Annotated[bool, flag("--rope", "Rotary embeddings of queries and keys.")]
Window = Annotated[int | None, typer.Option("--window", help="Token i sees tokens at a distance below this number.")]
Memory = Annotated[int | None, typer.Option("--memory", help="Cross-attention to so many first tokens.")]
NormalisedKeys = Annotated[bool, flag("--normalised-keys", "Divide queries and keys by their norms.")]
Decay = Annotated[str | None, choice_option("--decay", DECAY, "The decay of retnet: fixed or learned.")]
Gate = Annotated[str | None, choice_option("--gate", GATE, "Scalar gates: sigmoid, biased or mamba.")]
Feature = Annotated[str | None, choice_option("--feature", FEATURE, "Feature map of linear attention.")]
Unnormalised = Annotated[bool, flag("--unnormalised", "Linear attention without division by the sum.")]
CertificateFile = Annotated[
    Path | None, file_option("--certificate", "Prove, and write a certificate for attngeom verify to this file.")
]
INPUT = "Shape of an input such as 3,8; once for each input. By default the name `inputs` of the file."
InputShapes = Annotated[list[str] | None, typer.Option("--input", "--input-shape", metavar="SHAPE", help=INPUT)]
WeightsName = Annotated[
    str, typer.Option("--weights", metavar="NAME", help="The dictionary of shapes or arrays in the file.")
]
LastToken = Annotated[bool, flag("--last-token", "Look at the last row of the output alone.")]
WEIGHTS = "Weights: .safetensors, or .json for exact ones."
WeightsPath = Annotated[Path, typer.Argument(metavar="WEIGHTS", help=WEIGHTS)]
OptionalWeights = Annotated[Path | None, typer.Argument(metavar="[WEIGHTS]", help=WEIGHTS)]


def parse_list(text: str, name: str) -> list[int]:
    """Comma separated integers.

    >>> parse_list("3, 3,2", "widths")
    [3, 3, 2]
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{name} {text[:40]!r} given; comma separated integers such as 3,3,2 are required") from None


def parse_numbers(text: str, name: str) -> list[float]:
    """Decimal numbers, comma separated.

    >>> parse_numbers("0.7, 0.3", "weights")
    [0.7, 0.3]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{name} {text[:60]!r} given; numbers are required, as in 0.7,0.3") from None


@dataclass(frozen=True, kw_only=True)
class ArchitectureOptions:
    """The options that describe an architecture; a command with other defaults has a subclass."""

    widths: Widths
    attention: Attention = None
    tokens: Tokens = 3
    kind: Kind = "lightning"
    heads: Heads = 1
    value_width: ValueWidth = None
    residual: Residual = False
    causal: Masked = False
    temperature: Temperature = "1"
    bias: Bias = False
    alibi: Alibi = None
    rope: Rope = False
    window: Window = None
    memory: Memory = None
    normalised_keys: NormalisedKeys = False
    decay: Decay = None
    gate: Gate = None
    feature: Feature = None
    unnormalised: Unnormalised = False

    def make(self, widths: list[int], attention: list[int] | None, tokens: int) -> Architecture:
        """The architecture with these sizes, otherwise as the options say."""
        from attngeom.network import Architecture, default_attention
        from attngeom.network.options import OPTIONS

        attention = default_attention(widths, self.heads) if attention is None else attention
        variant = (self.kind, self.heads, self.value_width, self.residual, self.causal, self.temperature)
        return Architecture(widths, attention, tokens, *variant, **{name: getattr(self, name) for name in OPTIONS})

    @property
    def architecture(self) -> Architecture:
        attention = None if self.attention is None else parse_list(self.attention, "attention")
        return self.make(parse_list(self.widths, "widths"), attention, self.tokens)


@dataclass(frozen=True, kw_only=True)
class OptionalArchitecture(ArchitectureOptions):
    """The architecture of a command that takes a file of weights as well."""

    widths: Widths = ""


def check_either(shape: OptionalArchitecture, weights: Path | None) -> None:
    """InputError unless an architecture is given, or a file of weights, which holds its own."""
    if weights is None and not shape.widths:
        raise InputError("no architecture given; give a file of weights, or --widths such as 3,3,3")
    if weights is not None and shape != type(shape)():
        raise InputError("an architecture was given beside a file of weights; the file holds its own, leave it out")


def takes_shape(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options of its ``shape`` in the place of it."""
    given = signature(command, eval_str=True).parameters
    kind = given["shape"].annotation
    hints = get_type_hints(kind, include_extras=True)
    named = {field.name: Parameter.empty if field.default is MISSING else field.default for field in fields(kind)}
    options = [Parameter(x, Parameter.KEYWORD_ONLY, default=named[x], annotation=hints[x]) for x in named]
    others = [x.replace(kind=Parameter.KEYWORD_ONLY) for x in given.values()]

    @wraps(command)
    def run(**values: Any) -> Any:
        return command(shape=kind(**{name: values.pop(name) for name in named}), **values)

    place = list(given).index("shape")
    run.__signature__ = Signature([*others[:place], *options, *others[place + 1 :]])  # type: ignore[attr-defined]
    run.__annotations__ = hints
    return run


def check_choice(value: str, choices: Collection[Word], name: str) -> Word:
    """The value of an option, InputError unless it is one of the choices."""
    for choice in choices:
        if choice == value:
            return choice
    raise InputError(f"--{name} {value[:40]!r} given; one of {', '.join(choices)} is required")


def check_stored_seed(seed: int) -> None:
    """InputError unless a certificate can hold the seed, of which the numbers of a point are drawn again."""
    if seed > STORED_SEED:
        raise InputError(f"--seed {str(seed)[:40]} given; certificates hold seeds of at most {STORED_SEED}")
