"""Tensors of a checkpoint that its description does not read: buffers, copies, and what is compared entry by entry."""

from __future__ import annotations

from enum import Enum

import numpy as np

from attngeom.models.families import Places
from attngeom.models.reading import Header, Tensors


class Unread(Enum):
    """Why a tensor is not read."""

    BUFFER = "a buffer, no weight"
    COPY = "a copy of a tensor that is read"
    OUTSIDE = "outside the transformer; compared entry by entry, never moved"
    UNKNOWN = "not known to this family or class; compared entry by entry"

    @property
    def is_compared(self) -> bool:
        """Whether its entries are compared one by one, and are part of the fingerprint."""
        return self in (Unread.OUTSIDE, Unread.UNKNOWN)


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
    "dinov2.embeddings.mask_token": ("Dinov2Model",),
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


def is_copy(tensors: Tensors, name: str, original: str) -> bool:
    """Whether one tensor repeats another one, entry by entry."""
    if name not in tensors or original not in tensors:
        return False
    same = tensors.headers[name].shape == tensors.headers[original].shape
    return same and np.array_equal(tensors.raw(name), tensors.raw(original))


def reason_of(name: str, header: Header, places: Places, prefixes: tuple[str, ...], owner: str) -> Unread:
    """Why a tensor is not read that is no copy; ``prefixes`` are those of known tensors outside.

    Whole numbers, truth values and single numbers are no weights.
    """
    is_weight = header.dtype.upper().startswith(("F", "BF")) and header.shape
    if not is_weight or any(part in name for part in places.ignored):
        return Unread.BUFFER
    modules = tuple(f"{reader.module}." for reader in places.readers)
    is_known = name.startswith((*prefixes, *modules, *places.copies))
    return Unread.OUTSIDE if is_known and is_used(name, owner) else Unread.UNKNOWN
