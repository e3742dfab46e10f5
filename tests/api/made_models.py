"""Models as programs leave them on a drive, and how huggingface_hub finds a file of one in a cache, offline."""
import hashlib
import json
import os
import struct
from pathlib import Path

COMMIT, NEXT = "c" * 40, "d" * 40


def safetensors(byte, size=5000):
    header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes([byte]) * size


SHARD = "model-00002-of-00002.safetensors"
FILES = {
    "config.json": b'{"model_type": "tiny"}',
    "model-00001-of-00002.safetensors": safetensors(1),
    SHARD: safetensors(2),
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": SHARD}}).encode(),
}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class Hub:
    """A cache of Hugging Face. Layouts: old, shared (huggingface_hub 1.32 and later), plain (without links)."""

    def __init__(self, folder):
        self.folder = folder

    def model(self, name):
        return self.folder / ("models--" + name.replace("/", "--"))

    def snapshot(self, name, commit=COMMIT):
        return self.model(name) / "snapshots" / commit

    def write(self, path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def add(self, name, layout, files=None, commit=COMMIT, ref="main"):
        if ref:
            self.write(self.model(name) / "refs" / ref, commit.encode())
        for file, content in (files or FILES).items():
            place = self.snapshot(name, commit) / file
            if layout == "plain":
                self.write(place, content)
                continue
            is_large = file.endswith(".safetensors")
            etag = sha256(content) if is_large else git_sha1(content)
            blob = self.model(name) / "blobs" / etag
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(f"../../blobs/{etag}")
            if layout == "old" or not is_large:
                self.write(blob, content)
                continue
            stored = "aa/" + sha256(b"xet" + content)
            self.write(self.folder / "blobs/.huggingface-shared-blobs", b"1\n")
            self.write(self.folder / "blobs" / stored, content)
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.symlink_to(f"../../blobs/{stored}")
        return self

    def list_files(self, name, more=(), files=None):
        files = {file: {"size": len(content), "blob_id": git_sha1(content), "lfs_sha256": None, "lfs_size": None}
                 for file, content in (files or FILES).items()}
        files |= {file: {"size": 1, "blob_id": git_sha1(b"x")} for file in more}
        self.write(self.model(name) / "trees" / f"{COMMIT}.json", json.dumps({"format_version": 1, "files": files}).encode())


def flip(path):
    """Changes a byte in the middle, and keeps the times."""
    path = Path(os.path.realpath(path))
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-1 - len(content) // 4] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def find_cached(cache, name, file, revision="main"):
    """As huggingface_hub's try_to_load_from_cache: the file's path, or None."""
    model = Path(cache) / ("models--" + name.replace("/", "--"))
    if not model.is_dir():
        return None
    ref = model / "refs" / revision
    if ref.is_file():
        revision = ref.read_text()
    snapshots = model / "snapshots"
    if not snapshots.exists() or revision not in os.listdir(snapshots):
        return None
    found = snapshots / revision / file
    return found if found.is_file() else None


def is_whole_offline(cache, name, revision="main"):
    """As an offline snapshot_download: every file of the commit's list is there, if there is a list."""
    model = Path(cache) / ("models--" + name.replace("/", "--"))
    commit = (model / "refs" / revision).read_text() if (model / "refs" / revision).is_file() else revision
    if not (model / "snapshots" / commit).is_dir():
        return False
    listed = model / "trees" / f"{commit}.json"
    names = json.loads(listed.read_text())["files"] if listed.exists() else []
    return all((model / "snapshots" / commit / name).is_file() for name in names)
