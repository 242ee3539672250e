"""Atomic writing: the old file or the new one, and nothing left behind."""

import os

import pytest

from invclr_jax.files import write_atomically


def test_text_and_bytes_are_written_and_replaced(tmp_path):
    path = tmp_path / "new" / "folder" / "file.txt"
    write_atomically(path, "Grüße\n")
    assert path.read_bytes() == "Grüße\n".encode()
    write_atomically(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert os.listdir(path.parent) == ["file.txt"]


def test_a_failure_keeps_the_old_file_and_removes_the_temporary_one(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def fail(*names):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    (tmp_path / "ordinary").write_text("")
    write_atomically(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    (tmp_path / "ours").chmod(0o640)
    write_atomically(tmp_path / "ours", "again")
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o640
