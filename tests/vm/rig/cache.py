"""Caches objects that are slow to make, identified by the hash of their recipe."""
import fcntl
import hashlib
import shutil
import time
from contextlib import contextmanager

from .settings import CACHE


def digest(*parts):
    """A short identifier of a recipe: strings, and paths of files or folders (contents and modes count)."""
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            state.update(b"s" + part.encode() + b"\0")
            continue
        for path in sorted([part, *part.rglob("*")]):
            state.update(f"{path.relative_to(part)} {path.lstat().st_mode:o}\0".encode())
            if path.is_symlink():
                state.update(str(path.readlink()).encode())
            elif path.is_file():
                state.update(path.read_bytes())
    return state.hexdigest()[:16]


@contextmanager
def _locked(path):
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(kind, key, make):
    """Returns the path of `kind`-`key`; if it does not exist, calls make(path) for a temporary path first.

    Removes older objects of the same kind, since their recipe no longer exists.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    made = CACHE / f"{kind}-{key}"
    with _locked(CACHE / f"{kind}.lock"):
        if made.exists():
            return made
        scratch = CACHE / f"{kind}-scratch"
        _remove(scratch)
        began = time.monotonic()
        make(scratch)
        for old in CACHE.glob(f"{kind}-*"):
            if old != scratch:
                _remove(old)
        scratch.rename(made)
        print(f"rig: made {made.name} in {time.monotonic() - began:.1f} s", flush=True)
        return made


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
