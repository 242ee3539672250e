"""CIFAR of a few random pictures, in every form in which it is found."""

import io
import pickle
import struct
import tarfile

import numpy as np

FOLDERS = {
    ("cifar10", "binary"): "cifar-10-batches-bin",
    ("cifar10", "python"): "cifar-10-batches-py",
    ("cifar100", "binary"): "cifar-100-binary",
    ("cifar100", "python"): "cifar-100-python",
}
FORMS = tuple(FOLDERS)
CLASSES = {"cifar10": 10, "cifar100": 100}


def make(name, seed=0):
    """Splits by part: (images [n, 32, 32, 3], labels [n])."""
    rng, sizes = np.random.default_rng(seed), {"train": 15, "test": 4}
    return {
        part: (
            rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8),
            rng.integers(0, CLASSES[name], n),
        )
        for part, n in sizes.items()
    }


def files(name, version, splits, write=None):
    """File contents by name; `write` turns a dictionary into bytes (default: as Python 2 did)."""
    dump = write or python2_pickle
    contents = {}
    for part, (images, labels) in splits.items():
        pixels = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        for stem, rows in _pieces(name, part, len(images)):
            batch = {"data": pixels[rows], "filenames": ["x.png"] * len(pixels[rows])}
            batch[_key(name)] = labels[rows].tolist()
            raw = binary(name, pixels[rows], labels[rows]) if version == "binary" else dump(batch)
            contents[stem + (".bin" if version == "binary" else "")] = raw
    return contents | _names_file(name, version, dump)


def _key(name):
    return "labels" if name == "cifar10" else "fine_labels"


def _pieces(name, part, n):
    if name == "cifar100" or part == "test":
        yield ("test_batch" if name == "cifar10" else part), slice(None)
        return
    for i in range(5):
        yield f"data_batch_{i + 1}", slice(i * n // 5, (i + 1) * n // 5)


def binary(name, pixels, labels):
    coarse = [] if name == "cifar10" else [np.full((len(labels), 1), 7, np.uint8)]
    return np.hstack([*coarse, labels.astype(np.uint8)[:, None], pixels]).tobytes()


def label_names(name):
    return [f"class_{i}" for i in range(CLASSES[name])]


def _names_file(name, version, dump):
    if version == "python":
        file, key = ("batches.meta", "") if name == "cifar10" else ("meta", "fine_")
        return {file: dump({f"{key}label_names": label_names(name)})}
    file = "batches.meta.txt" if name == "cifar10" else "fine_label_names.txt"
    return {file: ("\n".join(label_names(name)) + "\n\n").encode()}


def write_folder(root, name, version, contents):
    folder = root / FOLDERS[name, version]
    folder.mkdir(parents=True)
    for file, raw in contents.items():
        (folder / file).write_bytes(raw)
    return folder


def write_archive(path, name, version, contents, mode="w:gz", extra=()):
    """A tar archive; `extra` are TarInfo objects to put in front."""
    with tarfile.open(path, mode) as archive:
        for info in extra:
            archive.addfile(info, io.BytesIO(b"\0" * info.size))
        for file, raw in contents.items():
            info = tarfile.TarInfo(f"{FOLDERS[name, version]}/{file}")
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return path


def python2_pickle(value):
    """Protocol 2 as Python 2 with NumPy 1 wrote it: byte strings, and arrays by `_reconstruct`."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value):
    if isinstance(value, dict):
        items = b"".join(_python2(k) + _python2(v) for k, v in value.items())
        return b"}(" + items + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(_python2, value)) + b"e"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, np.ndarray):
        return _python2_array(value)
    raw = value if isinstance(value, bytes) else value.encode("latin1")
    return b"T" + struct.pack("<i", len(raw)) + raw


def _python2_array(array):
    order = array.flags.f_contiguous and not array.flags.c_contiguous
    shape = b"(" + b"".join(map(_python2, array.shape)) + b"t"
    dtype = b"cnumpy\ndtype\n(U\x02" + array.dtype.str[1:].encode() + b"K\x00K\x01tR"
    dtype += b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    flag, raw = (b"\x88" if order else b"\x89"), array.tobytes("A")
    return made + b"(K\x01" + shape + dtype + flag + _python2(raw) + b"tb"


def python3_pickle(protocol):
    return lambda value: pickle.dumps(value, protocol=protocol)
