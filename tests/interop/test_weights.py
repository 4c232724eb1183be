"""Weights files: round trips, and one clear line for everything hostile."""

import copy
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from attngeom.errors import AttnGeomError, DomainError, FormatError, InputError, SizeError
from attngeom.exact import GF, QQ, RR
from attngeom.files import parse_json
from attngeom.interop import read_weights, write_weights
from attngeom.interop.arrays import read_array, write_array
from attngeom.interop.weights import weights_from_json, weights_to_json
from attngeom.network import Architecture, random_weights
from tests.effort import examples

from ..network.strategies import architectures

SMALL = Architecture((2, 3), 2)


@examples(25)
@given(architectures(kinds=("lightning", "softmax")), st.sampled_from([(QQ, "w.json"), (RR, "w.safetensors")]))
def test_round_trip_is_exact(tmp_path_factory, architecture, target):
    domain, name = target
    weights = random_weights(architecture, domain, 3)
    path = tmp_path_factory.mktemp("weights") / name
    write_weights(weights, path)
    assert read_weights(path).equals(weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_lower_precisions_are_read_exactly(tmp_path, dtype):
    weights = random_weights(SMALL, RR, 0)
    tensors = {name: array.astype(dtype) for name, array in weights.tensors()}
    path = tmp_path / "w.safetensors"
    path.write_bytes(save(tensors, metadata={"attngeom": json.dumps(SMALL.to_json())}))
    back = dict(read_weights(path).tensors())
    assert all(np.array_equal(back[name], tensors[name].astype(np.float64)) for name in tensors)


def test_wrong_combinations_are_refused(tmp_path):
    with pytest.raises(DomainError, match=r"\.json"):
        write_weights(random_weights(SMALL, QQ, 0), tmp_path / "w.safetensors")
    with pytest.raises(DomainError):
        write_weights(random_weights(SMALL, RR, 0), tmp_path / "w.json")
    with pytest.raises(DomainError):
        write_weights(random_weights(SMALL, GF(7), 0), tmp_path / "w.json")
    with pytest.raises(InputError, match=r"\.safetensors"):
        write_weights(random_weights(SMALL, RR, 0), tmp_path / "w.npz")
    assert list(tmp_path.iterdir()) == []


def tensors_of(weights):
    return {name: np.ascontiguousarray(array) for name, array in weights.tensors()}


def hostile_files():
    weights = random_weights(SMALL, RR, 0)
    meta = {"attngeom": json.dumps(SMALL.to_json())}
    good = save(tensors_of(weights), metadata=meta)
    tensors = tensors_of(weights)
    yield "empty", b""
    yield "truncated header", good[:20]
    yield "truncated data", good[:-8]
    yield "huge header length", struct.pack("<Q", 2**63) + good[8:]
    yield "not a header", struct.pack("<Q", 4) + b"[[[["
    yield "json instead", b'{"format": "attngeom/weights"}'
    yield "no metadata", save(tensors)
    yield "metadata of another kind", save(tensors, metadata={"attngeom": "[1, 2]"})
    yield "metadata nested deeply", save(tensors, metadata={"attngeom": "[" * 50_000})
    yield "metadata twice", save(tensors, metadata={"attngeom": '{"widths": [2, 3], "widths": [2, 3]}'})
    absurd = {**SMALL.to_json(), "widths": [10**6, 10**6], "attention": [10**6]}
    yield "absurd sizes", save(tensors, metadata={"attngeom": json.dumps(absurd)})
    yield "extra tensor", save({**tensors, "other": np.zeros((1, 1))}, metadata=meta)
    yield "missing tensor", save({"layers.0.Q": tensors["layers.0.Q"]}, metadata=meta)
    yield "wrong shape", save({**tensors, "layers.0.Q": np.zeros((2, 3))}, metadata=meta)
    yield "integers", save({**tensors, "layers.0.Q": np.zeros((2, 2), dtype=np.int32)}, metadata=meta)
    yield "not a number", save({**tensors, "layers.0.Q": np.full((2, 2), np.nan)}, metadata=meta)
    yield "infinite", save({**tensors, "layers.0.Q": np.full((2, 2), np.inf)}, metadata=meta)


@pytest.mark.parametrize("name, content", list(hostile_files()), ids=lambda x: x if isinstance(x, str) else "")
def test_hostile_safetensors_are_refused_in_one_line(tmp_path, name, content):
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(AttnGeomError) as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)


@examples(120)
@given(st.data())
def test_mutated_safetensors_never_crash(tmp_path_factory, data):
    good = bytearray(save(tensors_of(random_weights(SMALL, RR, 0)), metadata={"attngeom": json.dumps(SMALL.to_json())}))
    for _ in range(data.draw(st.integers(1, 6))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "w.safetensors"
    path.write_bytes(bytes(good[: data.draw(st.integers(0, len(good)))]) if data.draw(st.booleans()) else bytes(good))
    try:
        assert read_weights(path).architecture.num_layers >= 1
    except AttnGeomError as error:
        assert str(error)


BAD_JSON = [
    (["format"], "attngeom/coefficients"),
    (["version"], 3),
    (["architecture"], None),
    (["architecture", "widths"], [2, 0]),
    (["architecture", "extra"], 1),
    (["tensors"], []),
    (["tensors", "layers.0.Q"], "x"),
    (["tensors", "layers.0.Q"], [["1"], ["2"]]),
    (["tensors", "layers.0.Q"], [["1", "2"], ["3", None]]),
    (["tensors", "layers.0.Q"], [["1", "2"], ["3", 0.5]]),
    (["tensors", "layers.0.Q"], [["1", "2"], ["3", "1/0"]]),
    (["tensors", "layers.0.Q"], [["1", "2"], ["3", "1e99999999"]]),
    (["tensors", "layers.0.Q"], [["1", "2"], ["3", "sqrt"]]),
    (["tensors", "layers.7.Q"], [["1", "2"], ["3", "4"]]),
]


@pytest.mark.parametrize("path, value", BAD_JSON, ids=lambda x: str(x)[:30])
def test_bad_exact_files_are_refused_in_one_line(path, value):
    record = copy.deepcopy(weights_to_json(random_weights(SMALL, QQ, 0)))
    target = record
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(AttnGeomError) as caught:
        weights_from_json(record)
    assert "\n" not in str(caught.value)


@examples(120)
@given(st.data())
def test_mutated_exact_files_never_crash(data):
    text = json.dumps(weights_to_json(random_weights(SMALL, QQ, 0)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + data.draw(st.sampled_from(["", "9", "[", "{", '"', "null", "-", ","])) + text[stop:]
    try:
        assert weights_from_json(parse_json(text)).domain == QQ
    except AttnGeomError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", ["w.pt", "w.bin", "w.pkl"])
def test_pickles_are_never_read(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x04.")
    with pytest.raises(FormatError, match="pickled"):
        read_weights(tmp_path / name)


def test_arrays_round_trip(tmp_path):
    exact = QQ.convert([["1/3", 2], [-4, "5/7"]])
    write_array(exact, QQ, tmp_path / "x.json")
    back, domain = read_array(tmp_path / "x.json")
    assert domain == QQ and QQ.equal(back, exact)
    floats = np.array([[0.1, 2.0], [3.5, -1e-9]])
    for name in ("y.json", "y.npy"):
        write_array(floats, RR, tmp_path / name)
        back, domain = read_array(tmp_path / name)
        assert domain == RR and np.array_equal(back, floats)
    with pytest.raises(InputError):
        write_array(exact, QQ, tmp_path / "x.npy")


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.json", b"[[1, 2], [3]]"),
        ("x.json", b"[]"),
        ("x.json", b"[1, 2]"),
        ("x.json", b"[[true, 1]]"),
        ("x.json", b"[[null]]"),
        ("x.json", b'[["1/0"]]'),
        ("x.npy", b""),
        ("x.npy", b"\x93NUMPY\x01\x00"),
        ("x.npy", b"not numpy"),
        ("x.txt", b"1 2"),
    ],
)
def test_bad_arrays_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AttnGeomError) as caught:
        read_array(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_npy_header_larger_than_the_file_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    raw = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(raw.replace(b"(2, 2)", b"(9,99)"))
    with pytest.raises(FormatError):
        read_array(tmp_path / "x.npy")
    np.save(tmp_path / "objects.npy", np.array([[object()]], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError):
        read_array(tmp_path / "objects.npy")


def test_absurd_numbers_of_tensors_are_refused_before_they_are_listed():
    architecture = {"widths": [1] * 9001, "attention": [1], "heads": 10000, "value_width": 1}
    with pytest.raises(SizeError, match="tensors given"):
        weights_from_json({"format": "attngeom/weights", "version": 1, "architecture": architecture, "tensors": {}})
