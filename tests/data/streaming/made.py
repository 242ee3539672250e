"""Pictures of several sizes and aspects, made with Pillow, as folders, parquet and tfds."""

import io

import numpy as np
from PIL import Image

SIZES = ((40, 30), (30, 40), (64, 16), (25, 25), (200, 120))
CLASSES = ("cat", "dog", "owl")


def picture(number, label, size=None):
    """A gradient whose colour tells the class and whose corner tells the number."""
    width, height = size or SIZES[number % len(SIZES)]
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    planes = [60 + 40 * label + 0 * x, 200 * x, 200 * y]
    image = np.stack(planes, axis=-1) + number % 7
    return Image.fromarray(image.astype(np.uint8))


def encoded(image, kind="JPEG", **options):
    file = io.BytesIO()
    image.save(file, kind, **({"quality": 95} if kind == "JPEG" else {}) | options)
    return file.getvalue()


def examples(count, first=0):
    """(number, label, contents): every third a PNG."""
    for number in range(first, first + count):
        label = number % len(CLASSES)
        kind = "PNG" if number % 3 == 2 else "JPEG"
        yield number, label, encoded(picture(number, label), kind)


def make_folder(path, train=20, test=8):
    for part, count, first in (("train", train, 0), ("val", test, 100)):
        for number, label, contents in examples(count, first):
            suffix = "png" if contents.startswith(b"\x89PNG") else "jpg"
            file = path / part / CLASSES[label] / f"{number:03d}.{suffix}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
    return path


def make_parquet(path, train=20, test=8, group=3):
    """As Hugging Face writes them: records of bytes and path, and the classes' names noted."""
    import json

    import pyarrow as pa
    import pyarrow.parquet

    noted = {"info": {"features": {"label": {"names": list(CLASSES), "_type": "ClassLabel"}}}}
    (path / "data").mkdir(parents=True)
    for part, count, first in (("train", train, 0), ("test", test, 100)):
        rows = list(examples(count, first))
        for shard, chosen in enumerate((rows[: count // 2], rows[count // 2 :])):
            images = [{"bytes": contents, "path": f"{number}"} for number, _, contents in chosen]
            table = pa.table({"image": images, "label": [label for _, label, _ in chosen]})
            table = table.replace_schema_metadata({"huggingface": json.dumps(noted)})
            file = path / "data" / f"{part}-{shard:05d}-of-00002.parquet"
            pyarrow.parquet.write_table(table, file, row_group_size=group)
    return path


def make_prepared(path, train=20, test=8):
    """A data set prepared by tensorflow-datasets; returns the folder of its version."""
    import tensorflow_datasets as tfds

    class Birds(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = {
                "image": tfds.features.Image(shape=(None, None, 3)),
                "label": tfds.features.ClassLabel(names=list(CLASSES)),
            }
            features = tfds.features.FeaturesDict(features)
            return tfds.core.DatasetInfo(builder=self, features=features, disable_shuffling=True)

        def _split_generators(self, manager):
            return {
                "train": self._generate_examples(train, 0),
                "validation": self._generate_examples(test, 100),
            }

        def _generate_examples(self, count, first):
            for number, label, contents in examples(count, first):
                yield number, {"image": io.BytesIO(contents), "label": label}

    Birds(data_dir=path, file_format="array_record").download_and_prepare()
    return path / "birds" / "1.0.0"
