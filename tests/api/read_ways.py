"""Reads the file `b` of a folder in one of the ways of programs, into another file: read_ways.py WAY FOLDER TO. A process of its own, for
it may wait in a way that can't be interrupted."""
import mmap
import os
import random
import sys

MIB = 1 << 20


def _all_of(path, to, move):
    with open(path, "rb", buffering=0) as file, open(to, "wb", buffering=0) as out:
        while move(file.fileno(), out.fileno()):
            pass


def _direct(path, to):
    buffer = mmap.mmap(-1, MIB)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    with open(to, "wb", buffering=0) as out:
        while got := os.readv(file, [buffer]):
            out.write(buffer[:got])


def _splice(path, to):
    source, target = os.pipe()

    def move(file, out):
        got = left = os.splice(file, target, 65536)
        while left:
            left -= os.splice(source, out, left)
        return got

    _all_of(path, to, move)


def _map(path, to, flags):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ) as mapped, open(to, "wb") as out:
        for at in reversed(range(0, len(mapped), MIB)):
            out.seek(at)
            out.write(mapped[at:at + MIB])


def _lmdb(folder):
    import lmdb  # pylint: disable=import-outside-toplevel
    with lmdb.open(f"{folder}/db", readonly=True, subdir=False, lock=False) as opened, opened.begin() as reading:
        for number in random.Random(1).sample(range(3000), 3000):
            assert reading.get(b"%d" % number) == random.Random(number).randbytes(5000), number


def _numpy(path, to):
    import numpy  # pylint: disable=import-outside-toplevel
    numpy.memmap(path, dtype="u1", mode="r").tofile(to)


def main(way, folder, to):
    path = f"{folder}/b"
    if way == "direct":
        _direct(path, to)
    elif way == "sendfile":
        _all_of(path, to, lambda file, out: os.sendfile(out, file, None, MIB))
    elif way == "splice":
        _splice(path, to)
    elif way.startswith("map"):
        _map(path, to, mmap.MAP_SHARED if way == "map shared" else mmap.MAP_PRIVATE)
    elif way == "lmdb":
        _lmdb(folder)
    else:
        _numpy(path, to)


if __name__ == "__main__":
    main(*sys.argv[1:])
