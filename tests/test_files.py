"""Strict JSON and atomic writes."""

import os

import pytest

from attngeom.errors import AttnGeomError, FormatError, InputError, SizeError
from attngeom.files import parse_json, read_bytes, read_json, write_atomic


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": 1, "a": 2}',
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "[1e400]",
        "[" * 100_000,
        "[" + "9" * 5000 + "]",
        b"\xff\xfe",
        '{"a": 1} x',
    ],
    ids=lambda text: repr(text)[:20],
)
def test_hostile_json_is_refused_in_one_line(text):
    with pytest.raises(FormatError) as caught:
        parse_json(text)
    assert "\n" not in str(caught.value)


def test_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_atomic(path, "old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_and_files_are_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_json(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write"):
        write_atomic(tmp_path / "no" / "a.json", "x")
    with pytest.raises(AttnGeomError):
        read_json(tmp_path)


def test_size_is_checked_before_reading(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 100)
    with pytest.raises(SizeError, match="100 bytes"):
        read_bytes(tmp_path / "big", largest=99)


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '["\\udfff x"]', '{"\\ud800": 1}', '[[["\\uDC00"]]]'])
def test_halves_of_characters_are_refused(text):
    with pytest.raises(FormatError, match="surrogate"):
        parse_json(text)


def test_whole_characters_are_read():
    assert parse_json('["\\ud83d\\ude00", "\\\\ud800"]') == ["😀", "\\ud800"]
