"""Adopted folders in the status, in each of their states."""
import mmap
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from made_models import SHARD, Hub
from openapi_file import OpenApi
from simulated import CLIENT
from staged import Daemon, free_port

OPENAPI = OpenApi()
DATASETS = """  tiny: {{path: {folder}/hub, model: org/tiny, adopt: true}}
  corpus: {{path: {folder}/corpus, exclude: ["*.tmp"], adopt: true}}
"""


@pytest.fixture
def daemon(tmp_path):
    Hub(tmp_path / "hub").add("org/tiny", "shared")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "text").write_text("words")
    (corpus / "a.tmp").write_text("not these")
    key = tmp_path / "fleet.key"
    subprocess.run([CLIENT, "fleet", "key", "--output", key], check=True)
    running = Daemon(tmp_path, datasets=DATASETS.format(folder=tmp_path),
                     more=f'fleet: {{listen: "127.0.0.1:{free_port()}", key_file: {key}, peers: {{}}}}\n')
    yield running
    running.stop()


def adopted(daemon):
    status = daemon.ask("GET", "/v1/status")[1]
    assert not OPENAPI.problems({"$ref": "#/components/schemas/Status"}, status)
    return {one["name"]: one for one in status["fleet"]["adopted"]}


def wait_for(daemon, name, state):
    daemon.wait_until(lambda: adopted(daemon)[name]["state"] == state, f"{name} is {state}")
    return adopted(daemon)[name]


def test_the_status_tells_what_is_offered_and_why_another_folder_is_not(daemon, tmp_path):
    assert set(adopted(daemon)) == {"tiny", "corpus"}
    corpus = wait_for(daemon, "corpus", "offered")
    assert (corpus["files"], corpus["bytes"], corpus["reason"]) == (1, 5, None), corpus
    assert len(wait_for(daemon, "tiny", "offered")["hash"]) == 32
    shown = subprocess.run([CLIENT, "--socket", daemon.socket, "status"], check=True, capture_output=True, text=True).stdout
    assert "corpus: 5 B offered to peers from its folder" in shown, shown
    next((tmp_path / "hub").rglob(f"snapshots/*/{SHARD}")).unlink()
    tiny = wait_for(daemon, "tiny", "failed")
    assert SHARD not in tiny["reason"] and "hash" not in tiny, tiny
    assert SHARD in (tmp_path / "log").read_text()
    assert wait_for(daemon, "corpus", "offered") == corpus, "the other one stays offered"


def test_the_manifests_are_roots_alone(daemon, tmp_path):
    wait_for(daemon, "corpus", "offered")
    folder = tmp_path / "state/adopted"
    assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "corpus.manifest").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def in_memory(daemon):
    """A third adopted folder, on a file system where a mapped file changes without a trace."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="spark-adopted-"))
    (folder / "text").write_bytes(b"words" * 1000)
    with open(folder / "text", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = ord("W")  # from now on its page is written to without a look at the file's times
        text = daemon.config.read_text()
        daemon.config.write_text(text.replace("  tiny:", f"  memory: {{path: {folder}, adopt: true}}\n  tiny:"))
        assert daemon.ask("POST", "/v1/reload")[0] == 200
        yield folder / "text", mapped
    shutil.rmtree(folder)


def verify(daemon, name, *options):
    return subprocess.run([CLIENT, "--socket", daemon.socket, "verify", name, *options],
                          capture_output=True, text=True, check=False)


def test_a_mount_point_without_its_drive_is_not_offered(daemon, tmp_path):
    before = wait_for(daemon, "corpus", "offered")
    (tmp_path / "corpus").rename(tmp_path / "drive")
    (tmp_path / "corpus").mkdir()
    wait_for(daemon, "corpus", "failed")
    daemon.wait_until(lambda: "corpus has become empty" in (tmp_path / "log").read_text(), "the log has the reason")
    (tmp_path / "corpus").rmdir()
    (tmp_path / "drive").rename(tmp_path / "corpus")
    assert wait_for(daemon, "corpus", "offered") == before


def test_verify_compares_the_published_digests_of_an_adopted_folder(daemon, tmp_path):
    (tmp_path / "corpus/SHA256SUMS").write_text("0" * 64 + "  text\n")
    daemon.wait_until(lambda: adopted(daemon)["corpus"].get("files") == 2, "the new file is offered")
    assert verify(daemon, "corpus").returncode == 0
    wrong = verify(daemon, "corpus", "--sha256")
    assert wrong.returncode == 6 and "text does not match SHA256SUMS" in wrong.stderr, wrong
    right = verify(daemon, "tiny", "--sha256")
    assert right.returncode == 0 and "in its adopted folder, 2 files as published" in right.stdout, right


def test_a_folder_that_peers_would_refuse_is_not_offered(daemon, tmp_path):
    wait_for(daemon, "corpus", "offered")
    os.setxattr(tmp_path / "corpus/text", "user.origin", b"http://example.com")
    wait_for(daemon, "corpus", "failed")
    assert "text has extended attributes" in (tmp_path / "log").read_text()
    os.removexattr(tmp_path / "corpus/text", "user.origin")
    wait_for(daemon, "corpus", "offered")


def test_a_revision_is_offered_until_the_next_one_is_there(daemon, tmp_path):
    before = wait_for(daemon, "tiny", "offered")
    [ref] = (tmp_path / "hub").rglob("refs/main")
    commit = ref.read_text()
    ref.write_text("d" * 40)
    daemon.wait_until(lambda: adopted(daemon)["tiny"]["reason"], "a newer revision is named")
    now = adopted(daemon)["tiny"]
    assert now["state"] == "offered" and now["hash"] == before["hash"] and "newer revision" in now["reason"], now
    ref.write_text(commit + "\n")  # as `echo` writes it
    daemon.wait_until(lambda: adopted(daemon)["tiny"] == before, "it is offered as before")


def test_verify_reads_an_adopted_folder_and_withdraws_what_is_damaged(daemon, tmp_path, in_memory):
    file, mapped = in_memory
    wait_for(daemon, "memory", "offered")
    right = verify(daemon, "memory")
    assert (right.returncode, right.stdout.split(" - ")[0]) == (0, "memory: its adopted folder is as peers get it"), right
    before = file.stat()
    mapped[0] = ord("X")
    assert file.stat() == before, "nothing shows the change"
    wrong = verify(daemon, "memory")
    assert wrong.returncode == 6 and "text" in wrong.stderr and "touch" in wrong.stderr, wrong
    wait_for(daemon, "memory", "failed")
    assert "text" in (tmp_path / "log").read_text(), "the log names the file"
    assert verify(daemon, "memory").returncode == 6, "it is read again, and differs still"
    os.utime(file)
    wait_for(daemon, "memory", "offered")
    assert verify(daemon, "memory").returncode == 0
