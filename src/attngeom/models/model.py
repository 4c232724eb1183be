"""A transformer with its weights: `open_model` reads a folder, a state dict or a module, one layer at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.files import refuse_format
from attngeom.models.affine import Affine
from attngeom.models.configuration import Config
from attngeom.models.cuts import evenly_cut
from attngeom.models.families import ModelFamily, Places, family_of
from attngeom.models.layer import LayerWeights, NormWeights
from attngeom.models.layout import read_layer, read_norm
from attngeom.models.layout.tables import read_linear
from attngeom.models.module_names import to_disk_names
from attngeom.models.quantised import restored
from attngeom.models.reading import INDEX, ROUNDOFF, Header, Tensors, open_file, open_folder, read_config, wrap_state
from attngeom.models.specification import LogitHead, Norm, Stack, TransformerBlock, TransformerSpec
from attngeom.models.unread import Unread, is_copy, is_used, reason_of

SPEAKERS = ("CausalLM", "LMHead", "ConditionalGeneration", "DoubleHeads", "MTModel")
"""Parts of the names of classes that have the head of a language model."""
OTHER_BASES = ("transformer.",)
"""What some classes of transformers have in place of the base of their family."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Specification, places and tensors of a transformer; layers are numbered through all stacks, encoder first."""

    spec: TransformerSpec
    places: Places
    tensors: Tensors
    config: Mapping[str, Any]
    path: Path | None = None
    prefix: str | None = None
    """What the checkpoint has in place of the base of the family's table; None: that base."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Name in the family's table of every tensor of the description → name in this checkpoint."""
    read: frozenset[str] = frozenset()
    """Keys of the configuration that took part in the description."""

    def __repr__(self) -> str:
        spec = self.spec
        return f"Model({spec.family}, {spec.layers} layers of width {spec.width}, {spec.parameters:,} parameters)"

    @property
    def layers(self) -> int:
        return self.spec.layers

    @property
    def whereabouts(self) -> str:
        """Its folder, in words."""
        return "a model in memory" if self.path is None else str(self.path)

    def place(self, layer: int) -> tuple[Stack, int]:
        """The stack of a layer and its number in it."""
        for stack in self.spec.stacks:
            if layer < len(stack):
                return stack, layer
            layer -= len(stack)
        raise InputError(f"layer {layer} given; the model has {self.layers} layers")

    def block(self, layer: int) -> TransformerBlock:
        stack, index = self.place(layer)
        return stack.block(index)

    def layer(self, layer: int) -> LayerWeights:
        """The weights of one layer in normal form, float64."""
        stack, index = self.place(layer)
        layout = self.places.blocks[stack.name]
        return read_layer(stack.block(index), layout, index, self.spec.width, self.load, self.load_large)

    def origin(self, layer: int) -> tuple[Model, int]:
        """The model whose checkpoint has the tensors of a layer, and the number of the layer there."""
        return self, layer

    def stored(self, name: str) -> str:
        """The name in the checkpoint of a name of the family's table."""
        name = self.places.stored_as.get(name, name)
        if self.prefix is not None and name.startswith(self.places.base):
            name = self.prefix + name[len(self.places.base) :]
        for end, other in self.places.otherwise.items():
            if name.endswith(end) and name not in self.tensors and name.removesuffix(end) + other in self.tensors:
                return name.removesuffix(end) + other
        return name

    def load(self, name: str, shape: tuple[int, ...]) -> Array:
        return self.tensors.load(self.stored(name), shape)

    def load_large(self, name: str, shape: tuple[int, ...]) -> Array:
        return self.tensors.load_large(self.stored(name), shape)

    def load_any(self, name: str) -> Array:
        """A tensor outside the description, of any shape."""
        stored = self.stored(name)
        if stored not in self.tensors:
            raise InputError(f"tensor {stored[:80]} is missing; the front end of the model is required")
        return self.tensors.load(stored, self.tensors.headers[stored].shape)

    def factors(self) -> tuple[Array, Array, Array]:
        """E, P, P' of projected tokens: vocabulary × e, e × width, e × width."""
        assert self.places.projections is not None
        (tokens, shape), (first, one), (second, other) = _factor_shapes(self)
        return self.load_large(tokens, shape), self.load(first, one).T, self.load(second, other)

    def embedding(self) -> Array:
        """E, vocabulary × width, without the embedding scale; the product if tokens are projected."""
        if self.spec.embedding_rank:
            table, into, _ = self.factors()
            return np.asarray(table @ into)
        return self.load_large(self.places.tokens, (self.spec.vocabulary, self.table_width(self.spec.stack)))

    def table_width(self, stack: Stack) -> int:
        """The width of the tables of a stack."""
        return stack.embedding_width or self.spec.width

    def widening(self, stack: Stack) -> Affine | None:
        """The map from narrow tables to the stream."""
        if not stack.embedding_width:
            return None
        return read_linear(self.load, self.places.widening, self.spec.width, stack.embedding_width, True, False)

    def distances(self, stack: Stack) -> tuple[Array, NormWeights | None] | None:
        """The table of states of distances, and its norm."""
        if not stack.distances:
            return None
        table, norm = self.load(self.places.distances, (stack.distances, self.spec.width)), stack.distance_norm
        return table, None if norm is None else read_norm(norm, self.places.distance_norm, self.spec.width, self.load)

    def embedding_of(self, stack: Stack) -> Array:
        """E of one stack: its own table where the file has one and ties none, else the common one."""
        untied = self.spec.head is not None and not self.spec.head.tied
        own = [x for x in map(self.stored, self.places.copies) if x.endswith(f"{stack.name}.embed_tokens.weight")]
        if untied and own and own[0] in self.tensors:
            return self.tensors.load_large(own[0], (self.spec.vocabulary, self.spec.width))
        return self.embedding()

    def head(self) -> Array:
        """The output matrix, vocabulary × width."""
        assert self.spec.head is not None
        if self.has_product_head:
            table, _, out = self.factors()
            return np.asarray(table @ out)
        return self.embedding() if self.spec.head.tied else self.load_large(self.places.head, self._table)

    @property
    def has_product_head(self) -> bool:
        """Whether the head is the token table times a projection."""
        return bool(self.spec.embedding_rank and self.spec.head is not None and not self.spec.head.outputs)

    def head_bias(self) -> Array:
        return self.load(self.places.head_bias, self.batched(self.places.head_bias, self._table[:1])).reshape(-1)

    @property
    def _table(self) -> tuple[int, int]:
        """Shape of the output matrix."""
        assert self.spec.head is not None
        return self.spec.head.outputs or self.spec.vocabulary, self.spec.width

    def readers(self) -> list[str]:
        """Modules of the checkpoint that read the final hidden states, other than the head of a language model.

        A base model (``BertModel``), whose names lack the prefix of its family, hands out the hidden states as well.
        """

        def is_there(module: str) -> bool:
            name = f"{self.stored(module)}.weight"
            return bool(module) and name in self.tensors and is_used(name, self.owner)

        present = [reader for reader in self.places.readers if is_there(reader.module) and not is_there(reader.unless)]
        return [self.stored(reader.module) for reader in present if reader.is_last or self.prefix != ""]

    @property
    def owner(self) -> str:
        """The class that config.json names, empty if it names none."""
        names = self.config.get("architectures")
        return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""

    @property
    def headed(self) -> Model:
        """The model whose function is what its one reader of the final hidden states says, if it has one."""
        if self.spec.head is not None or len(self.readers()) != 1:
            return self
        module = self.readers()[0]
        bias = f"{module}.bias" in self.tensors
        places = replace(self.places, head=f"{module}.weight", head_bias=f"{module}.bias" if bias else "")
        shape = self.tensors.headers[places.head].shape
        head = LogitHead(tied=False, bias=bias, outputs=shape[0] if shape else 0)
        model = replace(self, spec=replace(self.spec, head=head), places=places)
        for name, shape in _outer(model):
            self.tensors.check(model.stored(name), shape)
        names = {name: model.stored(name) for name, _ in _outer(model)}
        return replace(model, names={**self.names, **names})

    @property
    def keeps_tokens(self) -> bool:
        """Whether the head reads the token table, so that nothing can be added to its rows."""
        if self.spec.head is not None and self.spec.head.tied:
            return True
        places = self.places
        if not places.rereader or not any(name.startswith(places.rereader) for name in self.tensors):
            return False
        own = [copy for copy, name in places.copies.items() if name == places.tokens and copy in self.tensors]
        return all(is_copy(self.tensors, copy, self.stored(places.tokens)) for copy in own)

    def final_norm(self, stack: Stack) -> NormWeights | None:
        if stack.final_norm is None:
            return None
        return read_norm(stack.final_norm, self.places.final_norm[stack.name], self.spec.width, self.load)

    def stream_norm(self, stack: Stack) -> tuple[Norm, NormWeights] | None:
        """The norm of the stream behind the last block, if that is what leaves the stack (post-LN)."""
        norm = stack.block(len(stack) - 1).mlp_norms.stream if len(stack) and stack.final_norm is None else None
        if norm is None:
            return None
        layout = self.places.blocks[stack.name]
        name = layout.prefix.format(len(stack) - 1) + layout.norms["mlp.stream"]
        return norm, read_norm(norm, name, self.spec.width, self.load)

    def embedding_norm(self, stack: Stack) -> NormWeights | None:
        if stack.embedding_norm is None:
            return None
        name = self.places.embedding_norm.format(stack.name)
        return read_norm(stack.embedding_norm, name, self.table_width(stack), self.load)

    def positions(self, stack: Stack) -> Array | None:
        """The position table, rows that the family skips removed; one of sines unless the file has another."""
        name = self.places.positions.get(stack.name, "")
        if stack.sines and self.stored(name) not in self.tensors:
            return sines(stack.sines, self.spec.width)
        if stack.sines:
            return self.load(name, (stack.sines, self.spec.width))
        if not stack.positions:
            return None
        shape = stack.positions, self.table_width(stack)
        table = self.load(name, self.batched(name, shape)).reshape(shape)
        return table[self.places.position_offset :]

    def batched(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape, with an axis of length 1 in front where the file has one (tables of ViT, logits of BART)."""
        header = self.tensors.headers.get(self.stored(name))
        return (1, *shape) if header is not None and len(header.shape) == len(shape) + 1 else shape

    def token_types(self, stack: Stack) -> Array | None:
        """The table of segments."""
        if not stack.token_types:
            return None
        return self.load(self.places.token_types, (stack.token_types, self.table_width(stack)))

    def relative(self, stack: Stack) -> Array | None:
        """The table of relative positions, buckets × heads."""
        if not stack.relative_buckets:
            return None
        return self.load(self.places.relative[stack.name], (stack.relative_buckets, stack.relative_heads))

    @property
    def dtype(self) -> str:
        """The coarsest type of the stored tensors."""
        types = {header.dtype for header in self.tensors.headers.values()}
        return max((name for name in types if name in ROUNDOFF), key=ROUNDOFF.__getitem__, default="F64")

    def outer_names(self) -> dict[str, tuple[int, ...]]:
        """Tensors of the description outside the layers, with their shapes."""
        return dict(_outer(self))

    def layer_names(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Tensors of one layer, names of the family's table, with their shapes."""
        stack, index = self.place(layer)
        asked: dict[str, tuple[int, ...]] = {}

        def note(name: str, shape: tuple[int, ...]) -> Array:
            asked[name] = shape
            return np.broadcast_to(np.float64(0), shape)

        layout = self.places.blocks[stack.name]
        read_layer(stack.block(index), layout, index, self.spec.width, note, note)
        return asked

    def unread(self) -> dict[str, Unread]:
        """Tensors of the checkpoint that the description does not read, each with the reason."""
        known, prefixes = set(self.names.values()), tuple(map(self.stored, self.places.others))
        copies = {copy for copy, _ in self.copied()}
        return {
            name: Unread.COPY if name in copies else reason_of(name, header, self.places, prefixes, self.owner)
            for name, header in self.tensors.headers.items()
            if name not in known
        }

    def copied(self) -> Iterator[tuple[str, str]]:
        """Tensors of the checkpoint that repeat another one, with the name of that one."""
        known, tied = set(self.names.values()), self.spec.head is not None and self.spec.head.tied
        pairs = {**self.places.copies, **({self.places.head: self.places.tokens} if tied else {})}
        for copy, original in pairs.items():
            names = self.stored(copy), self.stored(original)
            if names[0] not in known and is_copy(self.tensors, *names):
                yield names


def sines(rows: int, width: int) -> Array:
    """sin(i θ_k) and, in the second half, cos(i θ_k) with θ_k = 10000^(−2k/width), in single precision.

    >>> sines(2, 4).round(2).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.84, 0.01, 0.54, 1.0]]
    """
    angles = np.arange(rows)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    table = np.concatenate([np.sin(angles), np.cos(angles[:, : width // 2])], axis=1)
    return table.astype(np.float32).astype(np.float64)


def _factor_shapes(model: Model) -> list[tuple[str, tuple[int, int]]]:
    """Names and stored shapes of the token table and its two projections."""
    spec, names = model.spec, model.places.projections
    assert names is not None
    e, d = spec.embedding_rank, spec.width
    return [(model.places.tokens, (spec.vocabulary, e)), (names[0], (d, e)), (names[1], (e, d))]


def _outer(model: Model) -> Iterator[tuple[str, tuple[int, ...]]]:
    spec, places, d = model.spec, model.places, model.spec.width
    if spec.embedding_rank:
        yield from _factor_shapes(model)
    elif spec.vocabulary:
        yield places.tokens, (spec.vocabulary, model.table_width(spec.stack))
    for stack in spec.stacks:
        e = model.table_width(stack)
        if stack.embedding_width:
            yield from ((f"{places.widening}.weight", (d, e)), (f"{places.widening}.bias", (d,)))
        if stack.positions:
            name = places.positions[stack.name]
            yield name, model.batched(name, (stack.positions, e))
        if stack.token_types:
            yield places.token_types, (stack.token_types, e)
        if stack.relative_buckets:
            yield places.relative[stack.name], (stack.relative_buckets, stack.relative_heads)
        if stack.distances:
            yield places.distances, (stack.distances, d)
        norms = [(stack.final_norm, places.final_norm.get(stack.name, ""), d)]
        norms.append((stack.distance_norm, places.distance_norm, d))
        norms.append((stack.embedding_norm, places.embedding_norm.format(stack.name), e))
        for norm, name, size in norms:
            if norm is not None:
                yield from ((f"{name}.{part}", (size,)) for part in ["weight"] * norm.gain + ["bias"] * norm.bias)
    if spec.head is not None:
        if not spec.head.tied and not model.has_product_head:
            yield places.head, model._table
        if spec.head.bias:
            yield places.head_bias, model.batched(places.head_bias, model._table[:1])


def open_model(source: Any, config: Mapping[str, Any] | None = None) -> Model:
    """A transformer from a folder or safetensors file, a state dict with its config, or a module with both.

    A folder needs config.json and safetensors weights, in one file or in shards with an index, or one GGUF file, read
    with the config.json beside it; config.json and the index stand for their folder. A module is
    anything with ``state_dict()`` and ``config`` (torch is not imported). Every tensor that the config asks for is
    checked for its name, shape and type before the function returns; values are loaded later, layer by layer.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise InputError(f"{path} does not exist; give a folder with config.json and safetensors weights")
        path = path.parent if path.name in ("config.json", "adapter_config.json", INDEX) else path
        folder = path if path.is_dir() else path.parent
        path = _only_gguf(path)
        if path.suffix.lower() == ".gguf" and path.is_file():
            from attngeom.models.gguf import open_gguf  # stands on this module

            if config is None and not (folder / "config.json").exists():
                refuse_format(path)
            return open_gguf(path, config or read_config(folder))
        tensors = open_folder(path) if path.is_dir() else open_file(path)
        settings = read_config(folder) if config is None else config
        return assemble(restored(tensors, settings), settings, folder)
    if isinstance(source, Mapping):
        if config is None:
            raise InputError("a state dict without config given; pass the config of the model as well")
        return assemble(wrap_state(to_disk_names(source, config.get("model_type"))), config, None)
    if hasattr(source, "state_dict") and hasattr(source, "config"):
        settings = source.config.to_dict() if hasattr(source.config, "to_dict") else dict(source.config)
        state = to_disk_names(source.state_dict(), settings.get("model_type"))
        return assemble(wrap_state(state), settings, None)
    raise InputError(f"{type(source).__name__} given; a folder, a state dict or a module with a config is required")


def _only_gguf(path: Path) -> Path:
    """The GGUF file of a folder that has one and no other weights; else the path."""
    files = list(path.glob("*.gguf")) if path.is_dir() and not any(path.glob("*.safetensors")) else []
    return files[0] if len(files) == 1 else path


def assemble(
    tensors: Tensors, config: Mapping[str, Any], path: Path | None, family: ModelFamily | None = None
) -> Model:
    """The model of named tensors and a configuration; all that it asks for must be there."""
    family, keys = family or family_of(config), Config(config)
    spec, places = family.specify(keys), family.locate(keys)
    if any(layout.mixer is not None for layout in places.blocks.values()):
        tensors = evenly_cut(tensors, places)
    model = Model(spec, places, tensors, config, path, _prefix(places.base, tensors), read=frozenset(keys.read))
    if _lacks_head(model):
        model = replace(model, spec=replace(spec, head=None))
    elif spec.head is not None and spec.head.tied and _has_own_head(model):
        model = replace(model, spec=replace(spec, head=replace(spec.head, tied=False)))
    if model.has_product_head and _has_own_head(model):
        raise InputError("a head that is not the projected token table given; tie them, or give a model without one")
    names = {name: model.stored(name) for name in _asked(model, lambda n, s: tensors.check(model.stored(n), s))}
    for name, shape in places.front_shapes.items():
        if model.stored(name) in tensors:
            tensors.check(model.stored(name), shape)
    return replace(model, names=names)


def _prefix(base: str, tensors: Tensors) -> str | None:
    """What the names of a checkpoint begin with in place of the base of the family; None if they have it."""
    if not base or any(name.startswith(base) for name in tensors):
        return None
    return next((other for other in OTHER_BASES if any(name.startswith(other) for name in tensors)), "")


def _lacks_head(model: Model) -> bool:
    """Whether a file has no head of a language model: base models, classifiers, reward models.

    A file that a class with such a head wrote is not complete without it.
    """
    head, known = model.spec.head, bool(model.owner)
    if head is None or model.stored(model.places.head) in model.tensors:
        return False
    if any(word in model.owner for word in SPEAKERS):
        return False
    if known or model.spec.embedding_rank:
        return known
    return bool(model.readers()) or (not head.tied and model.prefix == "")


def _has_own_head(model: Model) -> bool:
    """Whether a file whose config ties the head to the embedding has another head all the same, which then counts."""
    head, tokens = (model.stored(name) for name in (model.places.head, model.places.tokens))
    if head not in model.tensors or tokens not in model.tensors:
        return False
    for name in (head, tokens):
        model.tensors.check(name, (model.spec.vocabulary, model.spec.embedding_rank or model.spec.width))
    return not np.array_equal(model.tensors.raw(head), model.tensors.raw(tokens))


def _asked(model: Model, check: Callable[[str, tuple[int, ...]], Header]) -> Iterator[str]:
    """Every tensor that the description asks for, checked; one layer per kind is laid out, the others are renamed."""
    for name, shape in model.outer_names().items():
        check(name, shape)
        yield name
    start = 0
    for stack in model.spec.stacks:
        prefix = model.places.blocks[stack.name].prefix
        kinds: dict[int, dict[str, tuple[int, ...]]] = {}
        for index, kind in enumerate(stack.order):
            own = prefix.format(index)
            if kind not in kinds:
                kinds[kind] = {n[len(own) :]: shape for n, shape in model.layer_names(start + index).items()}
            for name, shape in kinds[kind].items():
                check(own + name, shape)
                yield own + name
        start += len(stack)
