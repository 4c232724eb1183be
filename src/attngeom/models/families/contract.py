"""The contract of a family: a config.json gives a `TransformerSpec` and the places of the tensors.

To add a family, write a `ModelFamily` into the file of its kin, or into one of its own that ``families/__init__.py``
lists: ``describe`` reads every key that changes the function through `Config` and refuses variants it does not know;
``places`` name the tensors. Then add a reference checkpoint to the tests, which check the forward pass against the
outputs of transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from attngeom.errors import InputError
from attngeom.models.configuration import Config
from attngeom.models.layout import BlockLayout
from attngeom.models.specification import (
    MLP,
    Activation,
    Experts,
    GroupedAttention,
    LogitHead,
    Norm,
    Norms,
    Stack,
    TransformerBlock,
    TransformerSpec,
)

Front = Literal["tokens", "patches", "audio"]


@dataclass(frozen=True)
class StateReader:
    """A module whose weight reads the final hidden states, linearly: a classifier, a score, a pooler.

    ``unless`` names a module whose presence says that it reads something else (a classifier behind a pooler);
    ``is_last``: base models hand out what it writes in place of the hidden states (OPT's projection).
    """

    module: str
    unless: str = ""
    is_last: bool = False


HEADS = (StateReader("score"), StateReader("classifier"), StateReader("qa_outputs"))
"""The heads of classifiers, reward models and models that answer questions, as transformers names them."""


@dataclass(frozen=True)
class Places:
    """Names of all tensors. Mappings are keyed by the name of the stack (``decoder``, ``encoder``).

    ``projections``: matrices between the token table and the stream, and between the stream and the head (OPT).
    ``base``: prefix that some files have and others lack (``bert.``). ``head`` is the output matrix, ``head_bias`` its
    bias, ``others`` are prefixes of weights outside the description (front ends, poolers), which are compared entry by
    entry and never moved. ``patches`` is the convolution that makes patches of an image, ``added`` are tokens in front
    of them: their vectors are added to the first rows of the position table, the bias of the patches to the others.
    ``position_offset`` rows of a position table are skipped (OPT: 2), and the first token is at row ``first_position``
    of the others (RoBERTa: 1). ``{}`` in ``embedding_norm`` stands for the name of the stack. ``ignored`` are parts of
    the names of buffers, which are no weights. ``front_shapes`` are those of the weights of a front end; a file may
    lack them. ``written`` names those that write into the stream, each with the axis of its coordinates. ``readers``
    are heads other than ``head``; ``copies`` maps the name of a tensor that files may repeat to that of the original;
    ``distances`` is the table of states of distances, ``distance_norm`` its norm (DeBERTa). ``widening`` is the map
    from narrow tables to the stream (ALBERT). ``otherwise`` maps ends of names to those that a file may have in their
    place; ``rereader`` is a module behind which the token table is read once more, unless it has a copy of its own
    (BERT's decoder). ``pooling`` is the prefix of a head that attends to the final hidden states (SigLIP).
    ``stored_as`` maps names that no file has to those that files have: norms of sums that lie in the next layer.
    """

    blocks: Mapping[str, BlockLayout]
    final_norm: Mapping[str, str]
    tokens: str = ""
    head: str = ""
    head_bias: str = ""
    projections: tuple[str, str] | None = None
    positions: Mapping[str, str] = field(default_factory=dict)
    position_offset: int = 0
    first_position: int = 0
    token_types: str = ""
    embedding_norm: str = ""
    relative: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    patches: str = ""
    ignored: tuple[str, ...] = ()
    base: str = ""
    front: Front = "tokens"
    front_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    readers: tuple[StateReader, ...] = HEADS
    copies: Mapping[str, str] = field(default_factory=dict)
    rereader: str = ""
    distances: str = ""
    distance_norm: str = ""
    widening: str = ""
    otherwise: Mapping[str, str] = field(default_factory=dict)
    pooling: str = ""
    stored_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def patch_bias(self) -> str:
        """The bias of the patches, where they have one."""
        name = f"{self.patches}.bias"
        return name if name in self.front_shapes else ""


@dataclass(frozen=True)
class ModelFamily:
    """One row of the table of families.

    ``describe`` makes the description, which gets the name of the family here; ``places`` are the names of all tensors,
    or say how they follow from a configuration. ``defaults`` are values of keys that are absent or null.
    """

    model_type: str
    describe: Callable[[Config], TransformerSpec]
    places: Places | Callable[[Config], Places]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def specify(self, config: Config) -> TransformerSpec:
        return replace(self.describe(config.with_defaults(self.defaults)), family=self.model_type)

    def locate(self, config: Config) -> Places:
        return self.places if isinstance(self.places, Places) else self.places(config.with_defaults(self.defaults))


def stack_of(blocks: list[TransformerBlock], name: Literal["decoder", "encoder"] = "decoder", **more: Any) -> Stack:
    """A stack of the given layers, equal ones stored once."""
    kinds = tuple(dict.fromkeys(blocks))
    return Stack(name=name, kinds=kinds, order=tuple(kinds.index(block) for block in blocks), **more)


def model_of(config: Config, width: int, *stacks: Stack, head: LogitHead | None, **more: Any) -> TransformerSpec:
    """The stacks over one table of tokens."""
    vocabulary = config.integer("vocab_size")
    return TransformerSpec(width=width, stacks=stacks, vocabulary=vocabulary, head=head, **more)


def head_of(config: Config, *, tied: bool, **more: Any) -> LogitHead:
    """The head of a language model; ``tied`` says whether it is the token table where the configuration does not."""
    return LogitHead(tied=config.flag("tie_word_embeddings", default=tied), **more)


def block_of(
    attention: GroupedAttention, mlp: MLP | Experts, norm: Norm, *, after: bool = False, **more: Any
) -> TransformerBlock:
    """Attention and MLP, each behind a norm; ``after``: norms of the sums in place of these."""
    norms = Norms(stream=norm) if after else Norms(input=norm)
    return TransformerBlock(attention=attention, mlp=mlp, attention_norms=norms, mlp_norms=norms, **more)


def parallel_block(attention: GroupedAttention, mlp: MLP | Experts, norm: Norm) -> TransformerBlock:
    """Attention and MLP beside each other behind one norm."""
    return TransformerBlock(
        attention=attention, mlp=mlp, attention_norms=Norms(input=norm), parallel=True, shared_norm=True
    )


def plain_mlp(width: int, activation: Activation, *, bias: bool = True) -> MLP:
    """down(φ(up x)), with both biases or none."""
    return MLP(width=width, activation=activation, gated=False, up_bias=bias, down_bias=bias)


def biases(given: bool) -> dict[str, Any]:
    """All biases of an attention, or none."""
    return dict.fromkeys(("query_bias", "key_bias", "value_bias", "output_bias"), given)


def head_dim(config: Config, width: int, heads: int) -> int:
    """``head_dim`` if the config has it, else width / heads."""
    given = config.optional_integer("head_dim")
    if given is None and width % heads:
        raise InputError(f"width {width} and {heads} heads given; heads must divide the width, or give head_dim")
    return given or width // heads


def plain_attention(heads: int, width: int, *, scale: float | None = None) -> GroupedAttention:
    """Attention with biases everywhere and no positions, as in GPT-2 and BERT."""
    if width % heads:
        raise InputError(f"width {width} and {heads} heads given; heads must divide the width")
    a = width // heads
    scale = a**-0.5 if scale is None else scale
    return GroupedAttention(heads=heads, groups=heads, head_dim=a, value_dim=a, scale=scale, **biases(True))
