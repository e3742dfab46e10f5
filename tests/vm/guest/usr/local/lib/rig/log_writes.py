"""Reads the log of dm-log-writes: the writes to a drive, in an order in which they could have reached it."""
import os
import struct
from dataclasses import dataclass

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


@dataclass
class Write:
    flags: int
    offset: int       # bytes, on the drive
    length: int
    data_at: int      # bytes, in the log
    name: str = ""    # name of a mark

    @property
    def is_flush(self):
        """All earlier writes are durable after this one."""
        return self.flags & (FLUSH | FUA)


class Log:
    def __init__(self, path):
        self._file = open(path, "rb")
        magic, version, entries, sector = struct.unpack("<QQQI", os.pread(self._file.fileno(), 28, 0))
        if magic != MAGIC or version != 1:
            raise ValueError(f"{path}: no log of dm-log-writes")
        self.writes, at = [], sector
        for _ in range(entries):
            start, count, flags, length = struct.unpack("<QQQQ", os.pread(self._file.fileno(), 32, at))
            name = os.pread(self._file.fileno(), length, at + 32).decode() if flags & MARK else ""
            self.writes.append(Write(flags, start * sector, count * sector, at + sector, name))
            at += sector + (0 if flags & DISCARD else count * sector)

    def mark(self, name):
        """Returns the index of a mark."""
        return next(i for i, write in enumerate(self.writes) if write.name == name)

    def apply(self, write, image):
        """Replays a write on an open image of the drive. Discarded blocks may read as anything, so they are left unchanged."""
        if write.length and not write.flags & DISCARD:
            os.pwrite(image.fileno(), os.pread(self._file.fileno(), write.length, write.data_at), write.offset)


def cut(log, moments, base, random):
    """Yields (moment, image): the drive after a power cut following that many writes. Flushed writes are present; any part
    of the later ones may be. `base` is the drive before the first write and is modified."""
    trial, done = f"{base}.cut", 0
    for moment in sorted(moments):
        flushed = max((i + 1 for i in range(done, moment) if log.writes[i].is_flush), default=done)
        with open(base, "r+b") as image:
            for write in log.writes[done:flushed]:
                log.apply(write, image)
        done = flushed
        os.system(f"cp --sparse=always {base} {trial}")
        with open(trial, "r+b") as image:
            for write in log.writes[flushed:moment]:
                if random.random() < 0.5:
                    log.apply(write, image)
        yield moment, trial
