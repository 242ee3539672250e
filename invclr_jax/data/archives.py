"""Reads tar archives in memory: nothing is unpacked, so nothing is written anywhere."""

import gzip
import hashlib
import io
import pathlib
import tarfile
import zlib
from collections.abc import Collection

MD5 = {
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
    "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
    "cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8",
    "cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85",
}
"""Checksums of the official archives, as their authors publish them."""

LARGEST = 2**28
"""Bytes above which a member cannot be CIFAR's; the largest has 155 million."""

_GZIP_START = b"\x1f\x8b"


def check_md5(path: pathlib.Path) -> None:
    """Refuses a file that has the name of an official archive but not its checksum."""
    if path.name not in MD5:
        return
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if checksum != MD5[path.name]:
        raise ValueError(
            f"{path} has the MD5 checksum {checksum}, but the official {path.name} has "
            f"{MD5[path.name]}: "
            "it is damaged, incomplete or another file; fetch it again, or, if you mean this file, "
            "rename it or set config.data.verify=False (verify=False)"
        )


def read_members(path: pathlib.Path, wanted: Collection[str]) -> dict[str, bytes]:
    """Reads members of a tar or tar.gz archive by their base names.

    Args:
      path: the archive.
      wanted: base names to read; other members are checked and skipped.

    Returns:
      Contents by base name, for the wanted members that are present.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP_START
            raw.seek(0)
            return _read(gzip.GzipFile(fileobj=raw) if packed else raw, path, wanted)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path} is not a complete tar archive ({error}): it is truncated, damaged or "
            "something else; fetch it again"
        ) from None


def _read(
    stream: io.BufferedIOBase, path: pathlib.Path, wanted: Collection[str]
) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for member in archive:
            _check_member(member, path)
            name = pathlib.PurePosixPath(member.name).name
            if not member.isfile() or name not in wanted:
                continue
            if name in contents or member.size > LARGEST:
                fault = "occurs twice" if name in contents else f"claims {member.size} bytes"
                raise ValueError(f"member {member.name} of {path} {fault}: this is not CIFAR")
            file = archive.extractfile(member)
            assert file is not None  # a regular file always opens
            contents[name] = file.read()
    while stream.read(2**20):  # to the end, where gzip keeps its checksum
        pass
    return contents


def _check_member(member: tarfile.TarInfo, path: pathlib.Path) -> None:
    """Refuses links, devices and names that point outside; no official archive has any."""
    name = pathlib.PureWindowsPath(member.name)  # knows both separators, and drives
    outside = bool(name.anchor) or ".." in name.parts
    if outside or not (member.isfile() or member.isdir()):
        fault = "points outside" if outside else "is a link or a device"
        raise ValueError(
            f"member {member.name} of {path} {fault}: official archives hold plain files only, so "
            "this one is refused; fetch it from its authors"
        )
