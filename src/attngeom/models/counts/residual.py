"""Redundant dimensions that only a whole model has: rotations of the residual stream, its mean, shifts of tables.

The function is the logits of all token sequences (the final hidden states if there is no head). Counted for tables
of generic vectors that span the stream; a tiny vocabulary can have more (docs/theorems/models.md, section 6). Weights
of front ends (``other_parameters``) are held fixed.
"""

from __future__ import annotations

from attngeom.groups import Orthogonal
from attngeom.models.counts.blocks import block_terms
from attngeom.models.readers import key_bias_is_invisible
from attngeom.models.specification import MLP, GroupedAttention, Norm, Stack, TransformerBlock, TransformerSpec
from attngeom.models.surroundings import Sublayer, sublayers
from attngeom.models.symmetry.factor import RedundantPart


def residual_terms(spec: TransformerSpec) -> list[RedundantPart]:
    """What the whole model loses beyond its layers taken one by one."""
    terms = [_stream_term(spec, stack) for stack in spec.stacks]
    e = spec.embedding_rank
    terms.append(RedundantPart(part="residual", count=e * e, group=f"GL({e}) of projected tokens", lemma="Lemma 2"))
    terms += [*_table_terms(spec), *_unnormed_terms(spec), rotation_term(spec), _scale_term(spec)]
    return [term for term in terms if term.count]


def source_norm(spec: TransformerSpec) -> Norm | None:
    """The norm behind which cross-attention finds the encoder's stream; None without an encoder."""
    return last_norm(spec.stacks[0]) if len(spec.stacks) == 2 else None


def last_norm(stack: Stack) -> Norm | None:
    """The norm whose output leaves the stack: the final one, or the last one of a post-norm block."""
    if stack.final_norm is not None or not stack.order:
        return stack.final_norm
    return sublayers(stack.block(len(stack) - 1))[-1].norms.stream


def _is_post_norm(stack: Stack) -> bool:
    return any(sublayer.norms.stream is not None for block in stack.blocks for sublayer in sublayers(block))


def _reading_norms(stack: Stack) -> list[Norm | None]:
    """The norms through which the stream of a pre-norm stack is read."""
    norms: list[Norm | None] = [stack.final_norm]
    for block in stack.blocks:
        for sublayer in sublayers(block):
            norms.append(sublayer.before)
    return norms


def _mean_unseen(stack: Stack) -> bool:
    """Whether all that reads what blocks write into a pre-norm stream is LayerNorm, and the embedding is behind one."""
    norms = _reading_norms(stack)
    if _reads_embedding(stack):
        norms[1] = stack.embedding_norm
    return not _is_post_norm(stack) and all(norm is not None and norm.kind == "layer" for norm in norms)


def _reads_embedding(stack: Stack) -> bool:
    """Whether the first sublayer has no norm of its own."""
    return bool(stack.order) and sublayers(stack.block(0))[0].before is None


def _input_mean_unseen(stack: Stack) -> bool:
    """Whether the mean of the sum of the tables is never seen."""
    return _mean_unseen(stack) if stack.embedding_norm is None else stack.embedding_norm.kind == "layer"


def _count(
    block: TransformerBlock, width: int, source: Norm | None, incoming: Norm | None = None, mean_seen: bool = True
) -> int:
    terms = block_terms(block, width, incoming=incoming, source=source, mean_seen=mean_seen)
    return sum(term.count for term in terms)


def _stream_term(spec: TransformerSpec, stack: Stack) -> RedundantPart:
    """The blocks of a stack in place, minus the blocks alone; layers that run often read more than one norm."""
    width, source = spec.width, source_norm(spec)
    count, incoming = 0, None if stack.embedding_width else stack.embedding_norm
    if _is_post_norm(stack) and not stack.path and not stack.distances:
        for block in stack.blocks:
            count += _count(block, width, source, incoming) - _count(block, width, source)
            incoming = sublayers(block)[-1].norms.stream
        return RedundantPart(
            part="residual", count=count, group="biases and mean directions between post-norms", lemma="Lemma 4"
        )
    if _mean_unseen(stack):
        for kind, block in enumerate(stack.kinds):
            each = _count(block, width, source, mean_seen=False) - _count(block, width, source)
            count += stack.order.count(kind) * each
        first = stack.embedding_norm
        count += first is not None and first.bias and not _reads_embedding(stack)
    return RedundantPart(part="residual", count=count, group="all that is written along 1", lemma="Lemma 4")


def _free_embedding(spec: TransformerSpec) -> bool:
    """Whether the token table is only written into the stream and not also read by the head."""
    return spec.vocabulary > 0 and (spec.head is None or not spec.head.tied)


def _table_terms(spec: TransformerSpec) -> list[RedundantPart]:
    """Rows of tables along 1, and vectors that one table can hand to another that is always added to it."""
    rows: dict[str, int] = {}
    unseen: dict[str, bool] = {}
    sums = set()
    for index, stack in enumerate(spec.stacks):
        read = stack.positions - stack.unread_positions
        own = {f"positions {index}": read, f"types {index}": stack.token_types}
        if stack.embeds_tokens and _free_embedding(spec):
            own["tokens"] = spec.embedding_rank or spec.vocabulary
        own = {name: size for name, size in own.items() if size}
        rows |= own
        for name in own:
            unseen[name] = unseen.get(name, True) and _input_mean_unseen(stack)
        sums.add(frozenset(own))
    along = sum(size for name, size in rows.items() if unseen[name])
    # Of projected tokens the mean directions are those of the projection; a vector for all of them has no place.
    moved = len(rows) - len(sums - {frozenset()}) - bool(spec.embedding_rank)
    width = spec.stack.embedding_width or spec.width
    each = width - (bool(unseen) and all(unseen.values()))
    unread = width * sum(stack.unread_positions for stack in spec.stacks)
    centred = [stack for stack in spec.stacks if stack.distance_norm and stack.distance_norm.kind == "layer"]
    states = sum(len(stack.read_distances) for stack in centred)
    hidden = spec.width * sum(stack.distances - len(stack.read_distances) for stack in spec.stacks)
    return [
        *_narrow_terms(spec, spec.stack),
        *_normed_token_terms(spec, spec.stack),
        RedundantPart(part="residual", count=states, group="states of distances along 1", lemma="Lemma 4"),
        RedundantPart(part="residual", count=hidden, group="states of no distance", lemma="definition"),
        RedundantPart(part="residual", count=unread, group="rows of positions that no input reads", lemma="definition"),
        RedundantPart(part="residual", count=along, group="rows of the tables along 1", lemma="Lemma 4"),
        RedundantPart(
            part="residual", count=moved * each, group=f"R^{each} between tables that are added", lemma="sum"
        ),
        _tied_shift_term(spec),
    ]


def _narrow_terms(spec: TransformerSpec, stack: Stack) -> list[RedundantPart]:
    """What the map of narrow tables takes up of their norm, and turns of the tables that it follows."""
    e, norm = stack.embedding_width, stack.embedding_norm
    if not e or norm is None:
        return []
    turns, own = Orthogonal(e - 1).dimension * _free_embedding(spec), norm.parameters(e)
    return [
        RedundantPart(part="norm", count=own, group="gain and bias of the norm of tables", lemma="Lemma 4"),
        RedundantPart(part="norm", count=spec.width, group="mean direction behind the tables", lemma="Lemma 4"),
        RedundantPart(part="residual", count=turns, group=f"O({e - 1}) of narrow tables", lemma="Lemma R"),
    ]


def _normed_token_terms(spec: TransformerSpec, stack: Stack) -> list[RedundantPart]:
    """Gains of an RMS norm that reads tokens alone: it maps R^d onto a ball, so that tokens take up any near ones."""
    norm, tables = stack.embedding_norm, (stack.positions, stack.sines, stack.token_types, stack.embedding_width)
    alone = len(spec.stacks) == 1 and stack.embeds_tokens and _free_embedding(spec) and not any(tables)
    if norm is None or not alone or norm.kind != "rms" or not norm.gain or norm.eps == 0:
        return []
    text = "gains of the norm of tokens, into the tokens"
    return [RedundantPart(part="norm", count=spec.width, group=text, lemma="a norm maps onto a ball")]


def _unnormed_terms(spec: TransformerSpec) -> list[RedundantPart]:
    """Post-norm models whose first attention reads the tables themselves (docs/theorems/models.md, section 3)."""
    d, free = spec.width, _free_embedding(spec)
    unnormed = reads_unnormed_tables(spec)
    shifts = unnormed and (free or spec.stack.positions or spec.stack.token_types) and absorbs_shift(spec)
    return [
        RedundantPart(part="residual", count=d * (unnormed and free), group=f"x + 1 wᵀx, w in R^{d}", lemma="P"),
        RedundantPart(part="residual", count=d * bool(shifts), group=f"R^{d} from a table into biases", lemma="P"),
        RedundantPart(
            part="residual", count=int(follows_inner_gain(spec)), group="gains of equal spectrum on 1^⊥", lemma="P"
        ),
    ]


def reads_unnormed_tables(spec: TransformerSpec) -> bool:
    """Whether the first sublayer is attention to the sum of the tables, and a LayerNorm of the sum follows it."""
    stack = spec.stack
    if len(spec.stacks) != 1 or not stack.order or not stack.embeds_tokens or stack.embedding_norm is not None:
        return False
    first = sublayers(stack.block(0))[0]
    after = first.norms.stream
    return isinstance(first.map, GroupedAttention) and after is not None and after.kind == "layer"


def absorbs_shift(spec: TransformerSpec) -> bool:
    """Whether the biases of the first attention can take up a vector that is added to its input."""
    part = spec.stack.block(0).attention
    assert part is not None
    keys = part.key_bias or (not part.rotated and key_bias_is_invisible(part))
    return part.latent is None and part.query_bias and part.value_bias and part.output_bias and keys


def follows_inner_gain(spec: TransformerSpec) -> bool:
    """Whether the stream turns in one post-norm block between free tables and a free head, its inner gain following."""
    if not reads_unnormed_tables(spec) or not _free_embedding(spec) or spec.head is None or len(spec.stack) != 1:
        return False
    parts = sublayers(spec.stack.block(0))
    inner, outer = parts[0].norms.stream, parts[-1].norms.stream
    layers = inner is not None and inner.gain and outer is not None and outer.kind == "layer"
    return len(parts) == 2 and layers and isinstance(parts[1].map, MLP) and spec.stack.final_norm is None


def _tied_shift_term(spec: TransformerSpec) -> RedundantPart:
    """A tied table moved by the one vector that its reader, behind a LayerNorm, sees as a constant at most."""
    norm = last_norm(spec.stack)
    layer = spec.head is not None and spec.head.tied and norm is not None and norm.kind == "layer"
    silent = layer and spec.head is not None and norm is not None and (spec.head.bias or not norm.bias)
    follow = all(stack.positions or stack.token_types for stack in spec.stacks if stack.embeds_tokens)
    group = "1/gain added to all tokens and taken from the other tables"
    return RedundantPart(part="residual", count=int(silent and follow), group=group, lemma="Lemma 4")


def rotation_term(spec: TransformerSpec) -> RedundantPart:
    """O(d) for RMS norms, O(d − 1) for LayerNorm, GL(d) without norms, if head and tables can follow.

    Gains of output norms have to follow as well, which the lengths of what they scale restrict (lemma R).
    """
    none = RedundantPart(part="residual", count=0, group="signed permutations", lemma="Lemma R")
    stacks = [stack for stack in spec.stacks if stack.embeds_tokens]
    if spec.head is None or spec.stack not in stacks or any(stack.embedding_norm is not None for stack in stacks):
        return none
    outputs = [part for stack in stacks for block in stack.blocks for part in sublayers(block) if part.norms.output]
    norms = [norm for stack in stacks for norm in _reading_norms(stack)]
    final = spec.stack.final_norm
    held = spec.head.tied and (final is None or final.gain or final.bias)
    if held or any(_is_post_norm(stack) for stack in stacks):
        return none
    kinds = {norm.kind for norm in (*norms, *(part.norms.output for part in outputs)) if norm is not None}
    d = spec.width
    if not kinds and not spec.head.tied:
        return RedundantPart(part="residual", count=d * d, group=f"GL({d})", lemma="Lemma R")
    size, group = (d - 1, f"O({d - 1}) x O(1)") if "layer" in kinds else (d, f"O({d})")
    lost = sum(_lengths_beyond_gains(part, d) for part in outputs)
    group = f"{group} as far as gains behind narrow maps follow" if lost else group
    return RedundantPart(part="residual", count=max(0, Orthogonal(size).dimension - lost), group=group, lemma="Lemma R")


def _lengths_beyond_gains(part: Sublayer, width: int) -> int:
    """Conditions that the lengths of k columns put on a turn, beyond those that the d gains behind them can meet."""
    norm = part.norms.output
    if norm is None or not norm.gain:
        return 0
    columns = width if part.writer is None else min(width, sum(part.writer))
    return max(0, columns * (columns + 1) // 2 - width)


def _scale_term(spec: TransformerSpec) -> RedundantPart:
    """The scale of the stream, if every norm that reads it has eps = 0."""
    norms = [norm for stack in spec.stacks for norm in _reading_norms(stack)]
    readers_divide = all(norm is not None and norm.eps == 0 for norm in norms)
    begins = all(stack.embeds_tokens and stack.embedding_norm is None for stack in spec.stacks)
    post = any(_is_post_norm(stack) for stack in spec.stacks)
    final = spec.stack.final_norm
    follows = spec.head is None or not spec.head.tied or (final is not None and final.gain and not final.bias)
    outputs = [part.norms.output for stack in spec.stacks for block in stack.kinds for part in sublayers(block)]
    grow = all(norm is None or norm.gain for norm in outputs)
    count = int(readers_divide and begins and not post and follows and grow)
    return RedundantPart(part="residual", count=count, group="R+ scale of the stream", lemma="Lemma 5, eps = 0")
