"""What a local user can do to the daemon and to others: with processes of that user, on a real cache."""
import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from staged import PATIENCE_S, Daemon

NOBODY = 65534
CLOSED = "Permission denied"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def daemon():
    """A daemon in a folder that other users may enter, with a staged dataset."""
    with tempfile.TemporaryDirectory(prefix="spark-neighbours-") as folder:
        os.chmod(folder, 0o755)
        running = Daemon(Path(folder))
        running.finish("/v1/stagings", {"datasets": ["imagenet"]})
        yield running
        running.stop()


def as_user(*command):
    done = subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, cwd="/")
    return done.returncode, done.stdout + done.stderr


def open_beyond(path, most):
    """What others may do there, beyond `most`. SQLite removes two of its files when the last process closes it."""
    try:
        return stat.S_IMODE(path.lstat().st_mode) & 0o77 & ~most
    except FileNotFoundError:
        return 0


def private_ones(daemon):
    """Path below the daemon's folder -> the most that others may do there."""
    cache, state = daemon.folder / "cache", daemon.folder / "state"
    folder = next((cache / "data").iterdir())
    return {cache: 0o711, cache / "data": 0o711, folder: 0o711, cache / ".partial": 0o700, cache / ".trash": 0o700,
            next(folder.glob(".*.spark-manifest")): 0o600, state: 0o711, state / "volumes": 0o700, state / "stage-outs": 0o700,
            **{file: 0o600 for file in state.glob("catalog.sqlite*")}}


def test_a_local_user_can_lock_nothing_of_the_cache_and_reads_the_copies(daemon):
    for path, most in private_ones(daemon).items():
        assert open_beyond(path, most) == 0, path
        code, said = as_user("flock", "--shared", "--nonblock", path, "true")
        assert code != 0 and (CLOSED in said or not path.exists()), (path, said)
    assert as_user("cat", daemon.folder / "cache/imagenet/train/SHA256SUMS")[0] == 0, "users read the copies by name"
    assert as_user("ls", daemon.folder / "cache/imagenet")[0] == 0


def test_what_an_earlier_version_left_open_is_closed_at_the_start(daemon):
    paths = private_ones(daemon)
    for path in filter(Path.exists, paths):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    daemon.restart()
    daemon.wait_until(lambda: not any(open_beyond(path, most) for path, most in paths.items()), "closed its folders")


def test_a_lock_that_a_user_has_from_before_is_named(daemon):
    """An earlier version had made the catalog's index readable: a user with a descriptor of it can lock writers out."""
    catalog, index = daemon.folder / "state/catalog.sqlite", daemon.folder / "state/catalog.sqlite-shm"
    holding = "import fcntl, time\nfcntl.lockf(0, fcntl.LOCK_SH, 1, 120)\nprint('holds', flush=True)\ntime.sleep(100)\n"
    with contextlib.closing(sqlite3.connect(catalog)) as kept:  # otherwise the last process to close the catalog removes the index
        kept.execute("SELECT count(*) FROM generations").fetchone()
        os.chmod(index, 0o644)
        # Opened here: the daemon may close the index to others at any moment.
        with index.open("rb") as opened, subprocess.Popen(["/usr/bin/python3", "-c", holding], user=NOBODY, group=NOBODY, extra_groups=[],
                                                          stdin=opened, stdout=subprocess.PIPE) as holder:
            try:
                assert holder.stdout.readline() == b"holds\n"
                job = daemon.finish("/v1/stagings", {"datasets": ["models"]})
            finally:
                holder.kill()
        assert job["state"] == "failed" and f"pid {holder.pid}, uid {NOBODY}" in str(job), job
        assert open_beyond(index, 0o600) == 0, "no other user opens it any more"
        job = daemon.finish("/v1/stagings", {"datasets": ["models"]})
        assert job["state"] == "done", job


def test_a_users_link_gives_nobody_the_files_of_a_closed_folder(daemon):
    """The path of a dataset is in a user's folder: the user makes it a link to a folder that is closed to him."""
    closed, models = daemon.folder / "closed", daemon.folder / "models"
    (closed / "set").mkdir(parents=True)
    (closed / "set/secret").write_text("secret")
    os.chmod(closed, 0o700)
    shutil.rmtree(models)
    models.symlink_to(closed / "set")
    os.lchown(models, NOBODY, NOBODY)
    job = daemon.finish("/v1/stagings", {"datasets": ["models"]})
    assert job["state"] == "failed", job
    assert "is not root's, and uid 65534 may not go where it leads" in str(job), job
    assert not (daemon.folder / "cache/models").exists()
    os.lchown(models, 0, 0)
    job = daemon.finish("/v1/stagings", {"datasets": ["models"]})
    assert job["state"] == "done", "root's own link is root's word"
