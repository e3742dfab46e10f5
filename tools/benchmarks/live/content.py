"""What is in the files, so that each byte that a reader gets can be compared without a look at the source.

All files are parts of one random block, each from another place. Its length is odd: a part of another file, or of another place in the
same file, has other bytes, and so have zeros.
"""
import json
import mmap
import os
from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 64 * MIB + 15
MOST = MIB        # of one comparison
STRIDE = 7_654_321
SAMPLE = 128 << 10


class Content:
    """The files of the sets `big` (shards) and `small`, described in the file `shape`."""

    def __init__(self, shape):
        self.shape = shape
        self.sets = json.loads(Path(shape).read_text())
        with open(Path(shape).with_suffix(".block"), "rb") as file:
            self.block = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    @classmethod
    def make(cls, shape, sets):
        block = os.urandom(BLOCK)
        Path(shape).with_suffix(".block").write_bytes(block + block[:MOST])
        Path(shape).write_text(json.dumps(sets))
        return cls(shape)

    def of(self, name, number, offset, count):
        at = (offset + (number + (100_000 if name == "small" else 0)) * STRIDE) % BLOCK
        return self.block[at:at + count]

    def is_right(self, name, number, offset, got, count):
        return len(got) == count and got == self.of(name, number, offset, count)

    @staticmethod
    def path(name, number):
        return f"shard-{number:04}.bin" if name == "big" else f"{number // 500:02}/{number:05}.jpg"

    def write(self, folder, name):
        """All files of a set."""
        files, size = self.sets[name]["files"], self.sets[name]["bytes"]
        for number in range(files):
            path = Path(folder) / self.path(name, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb", buffering=0) as file:
                for at in range(0, size, MOST):
                    file.write(self.of(name, number, at, min(MOST, size - at)))

    def samples(self, name="big"):
        """(file, offset) of each sample, in their order."""
        one = self.sets[name]
        return [(number, at) for number in range(one["files"]) for at in range(0, one["bytes"], SAMPLE)]
