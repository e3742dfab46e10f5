"""The sets of files to copy, made from a fixed seed, so that every run on every machine copies the same."""
import os
import random
from dataclasses import dataclass
from typing import Callable

from machine import GIB, MIB

_SEED = 20240501
_NOISE = os.urandom(4 * MIB)


def _pieces(rng, size):
    """Bytes that neither compress nor repeat within a file: windows of noise, each from a different offset."""
    while size > 0:
        length = min(size, MIB)
        start = rng.randrange(len(_NOISE) - length + 1)
        yield memoryview(_NOISE)[start:start + length]
        size -= length


def _write(path, rng, size):
    with open(path, "wb", buffering=0) as file:
        for piece in _pieces(rng, size):
            file.write(piece)


def _large(folder, rng, scale):
    for number in range(3):
        _write(f"{folder}/shard-{number}.bin", rng, int(GIB * scale))


def _small(folders):
    def make(folder, rng, scale):
        for number in range(int(20_000 * scale)):
            inside = f"{folder}/{number % folders:02}" if folders > 1 else folder
            os.makedirs(inside, exist_ok=True)
            _write(f"{inside}/{number:05}.jpg", rng, rng.randint(8_000, 60_000))
    return make


def _medium(folder, rng, scale):
    for number in range(int(600 * scale)):
        inside = f"{folder}/{number % 20:02}"
        os.makedirs(inside, exist_ok=True)
        _write(f"{inside}/{number:03}.npy", rng, rng.randint(1_100_000, 4_000_000))


def _models(folder, rng, scale):
    """Two repositories in the layout of Hugging Face's cache (blobs, snapshots of relative links), and a folder that shares
    the largest files through hard links."""
    os.makedirs(f"{folder}/merged")
    for name, weights in (("models--lab--large", (700, 450)), ("models--lab--base", (300, 150, 100))):
        blobs, snapshot = f"{folder}/{name}/blobs", f"{folder}/{name}/snapshots/{rng.randbytes(20).hex()}"
        for path in (blobs, f"{snapshot}/tokenizer", f"{folder}/{name}/refs"):
            os.makedirs(path)
        with open(f"{folder}/{name}/refs/main", "w", encoding="ascii") as file:
            file.write(os.path.basename(snapshot))
        files = [(f"model-{number:05}.safetensors", int(size * 1_000_000 * scale))
                 for number, size in enumerate(weights, 1)]
        files += [(f"tokenizer/part-{number:04}.{rng.choice(('json', 'txt'))}", rng.randint(500, 40_000))
                  for number in range(int(1000 * scale))]
        for path, size in files:
            blob = rng.randbytes(32).hex()
            _write(f"{blobs}/{blob}", rng, size)
            os.symlink(os.path.relpath(f"{blobs}/{blob}", os.path.dirname(f"{snapshot}/{path}")), f"{snapshot}/{path}")
            if path.endswith("1.safetensors"):
                os.link(f"{blobs}/{blob}", f"{folder}/merged/{name}.safetensors")


def _sparse(folder, rng, scale):
    for number in range(3):
        size, patch = int(GIB * scale), 4 * MIB
        with open(f"{folder}/image-{number}.raw", "wb", buffering=0) as file:
            file.truncate(size)
            for _ in range(max(1, int(25 * scale))):
                file.seek(rng.randrange(max(1, (size - patch) // 4096)) * 4096)
                for piece in _pieces(rng, patch):
                    file.write(piece)


def _million(folder, rng, scale):
    for outer in range(1000):
        os.mkdir(f"{folder}/{outer:03}")
        for number in range(int(1000 * scale)):
            _write(f"{folder}/{outer:03}/sample-{number:04}.json", rng, 1024)


def _rewrite_one(folder, rng):
    """Replaces the content of one file of the set by other content of the same size."""
    inside = os.path.join(folder, rng.choice(sorted(os.listdir(folder))))
    path = os.path.join(inside, rng.choice(sorted(os.listdir(inside))))
    _write(path, rng, os.path.getsize(path))


@dataclass(frozen=True)
class Set:
    name: str
    title: str
    make: Callable          # (folder, rng, scale)
    bytes: int              # maximum space that a copy takes, holes filled
    restage: bool = False   # an earlier copy exists
    change: Callable = None  # (folder, rng): changes the source after that copy
    mkfs: tuple = ()        # additional mkfs options for the drives

    def fill(self, folder, scale):
        os.mkdir(folder)
        self.make(folder, random.Random(_SEED), scale)
        os.sync()


_SMALL = 760 * MIB   # in blocks of 4 KiB
SETS = {made.name: made for made in (
    Set("large", "3 files of 1 GiB", _large, 3 * GIB),
    Set("small", "20,000 files of 8 to 60 KB in 40 folders", _small(40), _SMALL),
    Set("flat", "20,000 files of 8 to 60 KB in one folder", _small(1), _SMALL),
    Set("medium", "600 files of 1 to 4 MB in 20 folders", _medium, 2 * GIB),
    Set("models", "model repository: 5 files of 100 to 700 MB, 2,000 small ones, links", _models, 3 * GIB),
    Set("sparse", "3 files of 1 GiB, about 300 MiB of data in them", _sparse, 3 * GIB),
    # Twice the space: a copier may keep the earlier copy until the new one is complete.
    Set("unchanged", "20,000 files again, nothing changed", _small(40), 2 * _SMALL, restage=True),
    Set("changed", "20,000 files again, one changed", _small(40), 2 * _SMALL, restage=True, change=_rewrite_one),
)}
MILLION = Set("million", "1,000,000 files of 1 KiB in 1,000 folders", _million, 4200 * MIB, mkfs=("-i", "4096"))


def drive_size(chosen, scale):
    """The size of a drive that can contain any one of the sets, including the file system's overhead."""
    return (int(max(made.bytes for made in chosen) * scale * 1.1) // MIB + 400) * MIB
