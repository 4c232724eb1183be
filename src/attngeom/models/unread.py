"""Tensors of a checkpoint that its description does not read: buffers, copies, and what is compared entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from attngeom.models.families import Places
from attngeom.models.reading import Header, Tensors

Kind = Literal["buffer", "copy", "outside", "unknown"]
REASONS: dict[Kind, str] = {
    "buffer": "a buffer, no weight",
    "copy": "a copy of a tensor that is read",
    "outside": "outside the transformer; compared entry by entry, never moved",
    "unknown": "not known to this family or class; compared entry by entry",
}


USERS: dict[str, tuple[str, ...]] = {
    "score.": ("Classification",),
    "classifier.": ("Classification", "MultipleChoice", "ModernBertForQuestion"),
    "qa_outputs.": ("QuestionAnswering",),
    "multiple_choice_head.": ("DoubleHeads",),
    "cls.predictions.": ("MaskedLM", "LMHead", "PreTraining"),
    "cls.seq_relationship.": ("NextSentence", "PreTraining"),
    "bert.pooler.": ("SequenceClassification", "MultipleChoice", "NextSentence", "PreTraining", "Model"),
    "vit.pooler.": ("ViTModel",),
    "vit.embeddings.mask_token": ("MaskedImage", "ViTModel"),
    "deit.pooler.": ("DeiTModel",),
    "deit.embeddings.mask_token": ("MaskedImage", "DeiTModel"),
    "cls_classifier.": ("WithTeacher",),
    "distillation_classifier.": ("WithTeacher",),
    "decoder.": ("MaskedImage", "MaskedLM"),
}
"""Modules behind the hidden states, and parts of the names of the classes that use them."""


def is_used(name: str, owner: str) -> bool:
    """Whether the class that wrote a checkpoint uses a tensor behind the hidden states; no name of a class says yes.

    >>> is_used("bert.pooler.dense.weight", "BertForMaskedLM"), is_used("score.weight", "")
    (False, True)
    """
    words = next((users for prefix, users in USERS.items() if name.startswith(prefix)), None)
    return not owner or words is None or any(word in owner for word in words)


@dataclass(frozen=True)
class Unread:
    """Why a tensor is not read."""

    kind: Kind

    @property
    def reason(self) -> str:
        return REASONS[self.kind]

    @property
    def is_compared(self) -> bool:
        """Whether its entries are compared one by one, and are part of the fingerprint."""
        return self.kind in ("outside", "unknown")


def is_copy(tensors: Tensors, name: str, original: str) -> bool:
    """Whether one tensor repeats another one, entry by entry."""
    if name not in tensors or original not in tensors:
        return False
    same = tensors.headers[name].shape == tensors.headers[original].shape
    return same and np.array_equal(tensors.raw(name), tensors.raw(original))


def kind_of(name: str, header: Header, places: Places, prefixes: tuple[str, ...], owner: str) -> Kind:
    """The kind of a tensor that is neither read nor a copy; ``prefixes`` are those of known tensors outside.

    Whole numbers, truth values and single numbers are no weights.
    """
    is_weight = header.dtype.upper().startswith(("F", "BF")) and header.shape
    if not is_weight or any(part in name for part in places.ignored):
        return "buffer"
    modules = tuple(f"{reader.module}." for reader in places.readers)
    is_known = name.startswith((*prefixes, *modules, *places.copies))
    return "outside" if is_known and is_used(name, owner) else "unknown"
