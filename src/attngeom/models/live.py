"""Logits of two folders by transformers, for those who ask for it: a check of written models by foreign code.

Nobody gets another answer because a library is installed: the check is made if it is asked for, and then the library is
required. It says nothing of its own, neither bars nor warnings.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from attngeom import digits
from attngeom.errors import InputError
from attngeom.exact.arrays import Array
from attngeom.limits.trials import LIVE_TOKENS
from attngeom.limits.work import LOADED_TWICE
from attngeom.models.model import Model


@dataclass(frozen=True)
class LiveCheck:
    """What transformers found: how far the logits of two folders are apart, or why it was not asked."""

    gap: float | None = None
    reason: str = "not asked for (--live-check)"

    @property
    def words(self) -> str:
        return self.reason if self.gap is None else f"logits differ by {digits.error(self.gap)}"


def require_live() -> None:
    """Refuse a live check before any work where torch or transformers are not installed."""
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"a live check without {' and '.join(missing)} asked for; pip install 'attngeom[models-test]', or"
            " give --no-live-check"
        )


def live_check(model: Model, one: Path, other: Path) -> LiveCheck:
    """Largest difference of the outputs of two folders over the largest output; a reason where that is not possible.

    That is where transformers has no such model class, or does not run the first folder; the difference is infinite
    where it runs the first and not the second.
    """
    require_live()
    if model.spec.parameters > LOADED_TWICE:
        return LiveCheck(None, f"not possible: more than {LOADED_TWICE:,} parameters")
    with _silence():
        cls = _model_class(model.config.get("architectures"))
        if cls is None:
            return LiveCheck(None, "not possible: config.json names no architecture that transformers knows")
        try:
            left = _outputs(cls, one, model)
        except Exception:  # foreign code may fail in any way, and then says nothing about the written folder
            return LiveCheck(None, "not possible: transformers does not run the given folder")
        try:
            right = _outputs(cls, other, model)
        except Exception:  # the given folder runs and the written one does not: that is a difference
            return LiveCheck(float("inf"))
    if left.shape != right.shape:
        return LiveCheck(float("inf"))
    return LiveCheck(float(np.abs(left - right).max() / max(float(np.abs(left).max()), 1e-300)))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No bars, no warnings, no lines of a logger."""
    before = logging.root.manager.disable
    sink = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stderr(sink), contextlib.redirect_stdout(sink):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def _model_class(names: Any) -> Any:
    """The class that config.json names, if it is a model of transformers: nothing else of the library is called."""
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    library: Any = import_module("transformers")
    kind = getattr(library, name, None) if name.isidentifier() else None
    if not isinstance(kind, type) or not issubclass(kind, library.PreTrainedModel):
        return None
    return kind if kind.__name__ == name else None


def _outputs(cls: Any, folder: Path, model: Model) -> Array:
    torch: Any = import_module("torch")
    loaded = cls.from_pretrained(str(folder), dtype=torch.float64, attn_implementation="eager", local_files_only=True)
    loaded.config._experts_implementation = "eager"
    with torch.no_grad():
        outputs = loaded.eval()(**_inputs(torch, model))
    # States of an encoder are read by a decoder, and a norm between them may move.
    tensors = [value for name, value in outputs.items() if isinstance(value, torch.Tensor) and "encoder" not in name]
    return np.concatenate([value.double().numpy().reshape(-1) for value in tensors if value.is_floating_point()])


def _inputs(torch: Any, model: Model) -> dict[str, Any]:
    """One short random input of the kind that the family reads."""
    rng = np.random.default_rng(0)
    spec, config = model.spec, model.config
    if model.places.front == "patches":
        size = int(config.get("image_size", 224))
        image = rng.normal(size=(1, int(config.get("num_channels", 3)), size, size))
        return {"pixel_values": torch.from_numpy(image)}
    tokens = torch.from_numpy(rng.integers(0, spec.vocabulary, (1, LIVE_TOKENS)))
    if model.places.front == "audio":
        frames = 2 * spec.stacks[0].positions
        mel = rng.normal(size=(1, int(config.get("num_mel_bins", 80)), frames))
        return {"input_features": torch.from_numpy(mel), "decoder_input_ids": tokens}
    if len(spec.stacks) > 1:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
    return {"input_ids": tokens}
