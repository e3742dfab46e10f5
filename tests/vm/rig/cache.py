"""Caches objects that are slow to make, identified by the hash of their recipe."""
import fcntl
import hashlib
import os
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

    Removes older objects of the same kind that no run holds, since their recipe no longer exists.
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
            if old != scratch and not _is_held(old):
                _remove(old)
        scratch.rename(made)
        print(f"rig: made {made.name} in {time.monotonic() - began:.1f} s", flush=True)
        return made


def hold(path):
    """Keeps an object that this run uses, although another run may make a newer one. Returns a descriptor to close."""
    held = os.open(path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def _is_held(path):
    asked = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(asked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(asked)


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
