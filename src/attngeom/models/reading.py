"""Tensors of a checkpoint, loaded one at a time: a folder of safetensors files, one file, a state dict or a module.

Nothing is unpickled. Headers, the index of shards and every size are checked before a tensor is loaded; a tensor is
refused if its shape, type or entries are not what the configuration needs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from attngeom.errors import FormatError, InputError
from attngeom.exact.arrays import Array
from attngeom.files import read_json, refuse_format
from attngeom.limits.memory import OPEN_FOLDERS, SINGLE_PRECISION
from attngeom.limits.sizes import COMPACT_ENTRIES
from attngeom.models.compact import PLAN, shape_of, unpack

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
COMPACT = "compact.safetensors"
LARGEST = float(np.finfo(np.float32).max)
"""No weight of a model is beyond it."""

DTYPES: Mapping[str, Any] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
CODES: Mapping[str, Any] = {
    **DTYPES, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "I8": np.int8, "U8": np.uint8, "I32": np.int32, "I64": np.int64,
}  # fmt: skip
"""Types whose bytes are read as they lie; beyond the first four they mean something with scales beside them only."""
EXPONENTS = {np.dtype(ml_dtypes.bfloat16): 0x7F80, np.dtype(np.float16): 0x7C00}
"""The bits of the exponent, all ones for what is not finite."""
BLOCK_TYPES: Mapping[str, float] = {
    "Q8_0": 0.013, "Q6_K": 0.045, "Q5_1": 0.091, "Q5_K": 0.091, "Q5_0": 0.102, "Q4_1": 0.187, "Q4_K": 0.187,
    "Q4_0": 0.206,
}  # fmt: skip
"""Types of GGUF with a scale for each 16 or 32 entries, and the roundoff of a float type with the same mean error.

Measured on normal weights with scales by extreme entries; a test measures it again. Converters that look for better
scales round less.
"""
SCALED_TYPES: Mapping[str, float] = {"F8_E4M3": 2.0**-4, "F8_E5M2": 2.0**-3, "INT8": 0.022, "INT4": 0.4}
"""Types of quantised safetensors (`attngeom.models.quantised`): floats of eight bits, integers with one scale a row."""
ROUNDOFF: Mapping[str, float] = {
    "F64": 2.0**-53, "F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8, **BLOCK_TYPES, **SCALED_TYPES,
}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """Shape and type of a tensor, known without loading it."""

    shape: tuple[int, ...]
    dtype: str
    home: str


class Tensors:
    """Named tensors: headers of all of them, values on demand."""

    def __init__(
        self, headers: Mapping[str, Header], fetch: Callable[[str], Array], name: str,
        again: tuple[Callable[..., Tensors], tuple[Any, ...]] | None = None,
        beginning: Callable[[str, int], Array | None] | None = None,
    ) -> None:  # fmt: skip
        self.headers = headers
        self.name = name
        self._fetch = fetch
        self._again = again
        self._beginning = beginning
        largest = max((int(np.prod(h.shape, dtype=object)) for h in headers.values()), default=0)
        if largest > COMPACT_ENTRIES:
            raise InputError(f"{name}: a tensor of {largest:,} entries given; at most {COMPACT_ENTRIES:,} are read")

    def __reduce__(self) -> tuple[Callable[..., Tensors], tuple[Any, ...]]:
        """Another process opens the files again; tensors in memory are not sent."""
        if self._again is None:
            raise TypeError("tensors in memory stay in this process")
        return self._again

    def __contains__(self, name: str) -> bool:
        return name in self.headers

    def __iter__(self) -> Iterator[str]:
        return iter(self.headers)

    def check(self, name: str, shape: tuple[int, ...]) -> Header:
        """The header of a tensor that must exist with this shape and a real type."""
        header = self.headers.get(name)
        if header is None:
            raise InputError(f"{self.name}: tensor {name[:80]} is missing; config.json asks for it, give all files")
        if header.shape != shape:
            given, needed = list(header.shape), list(shape)
            raise InputError(f"{self.name}: tensor {name[:80]} has shape {given}; config.json asks for {needed}")
        if header.dtype not in ROUNDOFF:
            raise InputError(
                f"{self.name}: tensor {name[:80]} has type {header.dtype[:20]}; {', '.join(DTYPES)} are read"
            )
        return header

    def raw(self, name: str) -> Array:
        """The tensor in its stored type; entries must be finite."""
        header = self.headers[name]
        try:
            array = self._fetch(name)
        except (SafetensorError, OSError) as error:
            raise FormatError(f"{self.name}: tensor {name[:80]} cannot be read: {str(error)[:80]}") from None
        if array.shape != header.shape:
            raise FormatError(f"{self.name}: tensor {name[:80]} has changed since the file was opened; open it again")
        if header.dtype in ROUNDOFF and not _is_usable(array):
            raise InputError(
                f"{self.name}: tensor {name[:80]} has NaN, infinite or entries beyond float32; |w| ≤ 3.4e38 is required"
            )
        return array

    def beginning(self, name: str, entries: int) -> Array | None:
        """The first entries of a tensor, whatever they are; None where they cannot be read by themselves."""
        return None if self._beginning is None else self._beginning(name, entries)

    def digest(self, name: str) -> str:
        """SHA-256 of the stored bytes, whatever they mean."""
        return hashlib.sha256(np.ascontiguousarray(self._fetch(name)).tobytes()).hexdigest()

    def load(self, name: str, shape: tuple[int, ...]) -> Array:
        """The tensor as float64."""
        self.check(name, shape)
        return _widened(self.raw(name), np.float64)

    def load_large(self, name: str, shape: tuple[int, ...]) -> Array:
        """The tensor as float64, or as float32 if it is large and stored in at most 32 bits."""
        header = self.check(name, shape)
        short = header.dtype != "F64" and int(np.prod(shape)) > SINGLE_PRECISION
        return _widened(self.raw(name), np.float32 if short else np.float64)


def _is_usable(array: Array) -> bool:
    """Whether all entries are finite and none is beyond float32: products of a layer are then within float64.

    For half types no exponent may be all ones; the others are looked at block by block.
    """
    flat, step = array.ravel(order="K"), 2**20
    exponents = EXPONENTS.get(array.dtype)
    if exponents is not None:
        bits, mask = flat.view(np.uint16), np.uint16(exponents)
        return not any(bool(((bits[i : i + step] & mask) == mask).any()) for i in range(0, bits.size, step))
    blocks = (flat[i : i + step] for i in range(0, flat.size, step))
    return all(_is_bounded(block) for block in blocks)


def _is_bounded(block: Array) -> bool:
    """A sum of squares tells at once almost always; it may overflow, so that otherwise each entry is looked at."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(block @ block < LARGEST) or bool((np.abs(block) <= LARGEST).all())


def _widened(array: Array, kind: type[np.floating[Any]]) -> Array:
    """The array in a wider type; bfloat16 by its bits, the upper half of a float32, block by block of the cache."""
    if array.dtype != ml_dtypes.bfloat16:
        return np.asarray(array.astype(kind, copy=False))
    bits, step = np.ascontiguousarray(array).view(np.uint16).ravel(), 2**18
    widened = np.empty(bits.size, kind)
    for i in range(0, bits.size, step):
        widened[i : i + step] = np.left_shift(bits[i : i + step], 16, dtype=np.uint32).view(np.float32)
    return widened.reshape(array.shape)


def open_folder(folder: Path) -> Tensors:
    """The tensors of a folder: ``model.safetensors``, or the shards of ``model.safetensors.index.json``."""
    if (folder / COMPACT).exists():
        return _unpacked(_open_shards(folder, {COMPACT: None}))
    if (folder / INDEX).exists():
        return _open_shards(folder, _read_index(folder))
    if (folder / SINGLE).exists():
        return _open_shards(folder, {SINGLE: None})
    files = sorted(path.name for path in folder.glob("*.safetensors"))
    if len(files) == 1:
        return _open_shards(folder, {files[0]: None})
    for path in sorted(folder.iterdir()):
        refuse_format(path)
    raise InputError(f"{folder}: {SINGLE} and {INDEX} are missing; a folder with safetensors weights is required")


def open_file(path: Path) -> Tensors:
    """The tensors of one safetensors file."""
    refuse_format(path)
    if path.suffix != ".safetensors":
        raise FormatError(f"{path} has no weights of a model; give a folder with config.json and safetensors weights")
    if (path.parent / INDEX).exists() and path.name in _read_index(path.parent):
        raise InputError(f"{path} is one shard of several; give its folder, {path.parent}")
    return _open_shards(path.parent, {path.name: None})


def is_inside(home: Path, target: Path) -> bool:
    """Whether a resolved file lies in the resolved folder, or in the blobs of the hub cache that the folder is of."""
    homes = [home]
    if home.parent.name == "snapshots":
        homes.append(home.parent.parent / "blobs")
    return target.parent in homes


def safe_path(folder: Path, name: str) -> Path:
    """A file of the folder; links may lead to the blobs of a hub cache, else not out of the folder."""
    path = folder / name
    if Path(name).name != name or name in (".", ".."):
        raise InputError(f"{folder}: file name {name[:60]!r} in the index; a plain name inside the folder is required")
    try:
        target, home = path.resolve(strict=True), folder.resolve(strict=True)
    except (OSError, RuntimeError):
        raise InputError(f"{path} is missing; the checkpoint is not complete") from None
    if not is_inside(home, target):
        raise InputError(f"{path} is a link that leaves the folder; give a folder that holds its own files")
    if not target.is_file():
        raise InputError(f"{path} is not a regular file; a safetensors file is required")
    return path


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a folder."""
    if not (folder / "config.json").exists() and (folder / "adapter_config.json").exists():
        raise InputError(
            f"{folder} is a LoRA adapter, a change of a model and none itself; merge it into its base (peft: "
            "merge_and_unload), save that and give its folder, or give two adapters to compare"
        )
    if not (folder / "config.json").exists():
        raise InputError(f"{folder} has no config.json; a folder with that of its model is required")
    config = read_json(safe_path(folder, "config.json"))
    if not isinstance(config, dict):
        raise InputError(f"{folder / 'config.json'}: a JSON object is required")
    return config


def _read_index(folder: Path) -> dict[str, set[str] | None]:
    index = read_json(safe_path(folder, INDEX))
    table = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(table, dict) or not table or not all(isinstance(name, str) for name in table.values()):
        raise FormatError(f"{folder / INDEX}: weight_map from tensor names to file names is required")
    shards: dict[str, set[str] | None] = {}
    for tensor, shard in table.items():
        names = shards.setdefault(shard, set())
        assert names is not None
        names.add(tensor)
    return shards


Dates = tuple[tuple[str, tuple[int, int]], ...]
"""Shards, with the time of the last change and the size of each."""


def _open_shards(folder: Path, shards: Mapping[str, Set[str] | None], known: Dates = ()) -> Tensors:
    headers: dict[str, Header] = {}
    places: dict[str, int] = {}
    paths: dict[str, Path] = {}
    dates: dict[str, tuple[int, int]] = {}
    for shard, listed in shards.items():
        path = safe_path(folder, shard)
        try:
            dates[shard] = dict(known).get(shard, _date(path))
            stream: Any = safe_open(str(path), framework="numpy")
            # In an order that does not hang on hashes: messages list tensors in this order.
            names = sorted(stream.keys())
            slices = {name: stream.get_slice(name) for name in names}
        except (SafetensorError, OSError) as error:
            raise FormatError(f"{path}: not a whole safetensors file: {str(error)[:80]}; copy it again") from None
        if listed is not None and listed != set(names):
            odd = sorted(listed ^ set(names))[0]
            raise FormatError(f"{path}: the index and the shard disagree about tensor {odd[:80]}; rewrite the index")
        for name, part in slices.items():
            if name in headers:
                raise FormatError(f"{path}: tensor {name[:80]} lies in two shards; each must lie in one")
            headers[name] = Header(tuple(part.get_shape()), str(part.get_dtype()), shard)
        paths[shard] = path
        places |= _places(path)

    def fetch(name: str) -> Array:
        # A file that stays open keeps the pages of all tensors that were read in memory; to open it reads all headers.
        header, path = headers[name], paths[headers[name].home]
        if _date(path) != dates[header.home]:
            raise FormatError(f"{path} has changed since it was opened; open it again")
        if header.dtype not in CODES:
            with safe_open(str(path), framework="numpy") as stream:
                return np.asarray(stream.get_tensor(name))
        flat = np.fromfile(path, CODES[header.dtype], math.prod(header.shape), offset=places[name])
        return flat.reshape(header.shape)

    def beginning(name: str, entries: int) -> Array | None:
        header = headers[name]
        count = min(entries, math.prod(header.shape))
        known = header.dtype in DTYPES
        return np.fromfile(paths[header.home], DTYPES[header.dtype], count, offset=places[name]) if known else None

    again = tuple((shard, None if own is None else frozenset(own)) for shard, own in shards.items())
    return Tensors(headers, fetch, str(folder), (_opened_again, (folder, again, tuple(dates.items()))), beginning)


@lru_cache(maxsize=OPEN_FOLDERS)
def _opened_again(folder: Path, shards: tuple[tuple[str, frozenset[str] | None], ...], dates: Dates) -> Tensors:
    """The tensors of a folder in another process, which opens it once; a file that has changed is refused when read."""
    return _open_shards(folder, dict(shards), dates)


def _date(path: Path) -> tuple[int, int]:
    """What changes when the file is written again: the time of the last change and the size."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _places(path: Path) -> dict[str, int]:
    """Where the entries of each tensor begin in a safetensors file whose header is known to be sound."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        table = json.loads(stream.read(size))
    return {name: 8 + size + entry["data_offsets"][0] for name, entry in table.items() if name != "__metadata__"}


def _unpacked(stored: Tensors) -> Tensors:
    """The tensors of a compact file: those with a plan are restored when they are asked for."""
    headers, plans = {}, {}
    for name, header in stored.headers.items():
        if name.endswith(PLAN):
            continue
        if name + PLAN in stored.headers:
            plans[name] = stored.raw(name + PLAN)
            header = Header(shape_of(plans[name], name), header.dtype, header.home)
        headers[name] = header

    def fetch(name: str) -> Array:
        return unpack(stored.raw(name), plans[name], name) if name in plans else stored.raw(name)

    return Tensors(headers, fetch, stored.name, (_unpacked, (stored,)))


def wrap_state(state: Mapping[str, Any]) -> Tensors:
    """The tensors of a state dict of NumPy arrays or torch tensors; torch is not imported."""
    headers = {}
    for name, tensor in state.items():
        if not isinstance(name, str) or not hasattr(tensor, "shape") or not hasattr(tensor, "dtype"):
            raise InputError(f"state dict entry {str(name)[:60]!r} given; names of arrays or tensors are required")
        headers[name] = Header(tuple(int(n) for n in tensor.shape), _dtype_name(tensor), "")
    return Tensors(headers, lambda name: _to_numpy(state[name]), "state dict")


def _dtype_name(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}.get(name, name)


def _to_numpy(tensor: Any) -> Array:
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if _dtype_name(tensor) == "BF16":
            # NumPy has no bfloat16 of its own; float32 holds it exactly.
            tensor = tensor.float()
        tensor = tensor.numpy()
    return np.asarray(tensor)
