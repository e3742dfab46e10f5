"""Outputs on a simulated host: checkpoints on their way to a volume, and the exit status of `latest`."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from simulated import AS_NOBODY, CLIENT, FENCED, OUTPUT, copied, give_away
from staged import PATIENCE_S

DONE, WRONG_NAME, NONE_YET, UNAVAILABLE, MISMATCH = 0, 2, 3, 4, 6


@pytest.fixture
def host(simulate, folder):
    """A host with an output that has no folder yet, and its volume."""
    for path in (folder / "ckpt", folder / "out"):
        path.mkdir()
        give_away(path, AS_NOBODY)
    simulation = simulate(FENCED, OUTPUT)
    simulation.becomes("ready", "checkpoints")
    return simulation


def save(host, name):
    path = host.folder / "out" / name
    path.mkdir(parents=True)
    (path / "model").write_bytes(name.encode() * 1000)
    for one in (path.parent, path, path / "model"):
        give_away(one, AS_NOBODY)
    return path


def publish(host, name):
    save(host, f"run7/{name}")
    host.wait_until(lambda: host.status()["outputs"][0]["latest_published"] == name, f"has sent {name}")


def test_latest_ends_with_3_only_if_the_volume_was_read_and_has_none(host):
    code, _, complaint = host.client("latest", "run7")
    assert code == NONE_YET and "there is no complete checkpoint" in complaint, complaint
    code, _, complaint = host.client("latest", "run8")
    assert code == WRONG_NAME and "run8" in complaint, complaint
    publish(host, "step-1")
    (host.folder / "ckpt/run7/.step-1.spark-manifest").write_text("cut short")
    shutil.rmtree(host.folder / "out/run7")
    code, _, complaint = host.client("latest", "run7")
    assert code == UNAVAILABLE and ".step-1.spark-manifest" in complaint, complaint


def test_latest_is_staged_from_the_volume_if_the_folder_of_the_output_is_missing(host):
    publish(host, "step-1")
    shutil.rmtree(host.folder / "out/run7")
    code, path, complaint = host.client("latest", "run7")
    assert code == DONE, complaint
    assert (Path(path.strip()) / "model").read_bytes() == b"run7/step-1" * 1000


def test_latest_is_unavailable_if_a_folder_that_had_checkpoints_is_missing_and_the_volume_has_none(host):
    publish(host, "step-1")
    for name in ("out/run7", "ckpt/run7"):
        shutil.rmtree(host.folder / name)
    code, _, complaint = host.client("latest", "run7")
    assert code == UNAVAILABLE and "it had step-1, which is not on the volume" in complaint, complaint


def send(host, path, destination, *options):
    """As the daemon's user: this daemon can't become another one. (exit status, stdout, stderr)"""
    done = subprocess.run([copied(CLIENT, host.folder), "stage-out", path, destination, *options], capture_output=True, text=True, cwd="/",
                          timeout=PATIENCE_S, check=False, env=os.environ | {"SPARK_STAGE_SOCKET": str(host.socket)}, **AS_NOBODY)
    return done.returncode, done.stdout, done.stderr


def test_a_named_checkpoint_is_flushed_and_sent(host):
    path = save(host, "other/step-1")
    code, there, complaint = send(host, path, "checkpoints:other/step-1")
    assert code == DONE, complaint
    assert (Path(there.strip()) / "model").read_bytes() == b"other/step-1" * 1000
    code, _, complaint = send(host, path.parent / "step-2", "checkpoints:other/step-2")
    assert code == 3 and "step-2" in complaint, complaint


AWAY_ONCE = """  volumes:
    checkpoints: {reservations: true}
  events:
    - {after: signal, target: rose, state: down}
    - {after: signal, target: rose, state: up}
"""


def save_files(path, names):
    """In place: what was there goes away first."""
    path.mkdir(parents=True, exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    for name in names:
        (path / name).write_bytes(b"weights")
        give_away(path / name, AS_NOBODY)
    for one in (path.parent, path):
        give_away(one, AS_NOBODY)
    return path


def test_a_checkpoint_that_is_saved_again_while_its_copy_waits_is_not_published(simulate, folder):
    """The job was killed, and is half way through the same step: `--keep` must not count that."""
    for path in (folder / "ckpt", folder / "out"):
        path.mkdir()
        give_away(path, AS_NOBODY)
    host = simulate(AWAY_ONCE, OUTPUT.split("outputs:", maxsplit=1)[0])
    host.becomes("ready", "checkpoints")
    whole = ["model.pt", "opt.pt", "rng.pt"]
    first, second = folder / "out/step-1000", folder / "out/step-2000"
    assert send(host, save_files(first, whole), "checkpoints:run7/step-1000")[0] == DONE
    host.step()
    host.wait_until(lambda: host.volume("checkpoints")["state"] != "ready", "has lost its target")
    code, job, complaint = send(host, save_files(second, whole), "checkpoints:run7/step-2000", "--keep", "1", "--detach")
    assert code == DONE, complaint
    save_files(second, whole[:1])
    host.step()
    host.becomes("ready", "checkpoints")
    code, _, complaint = host.client("wait", "--job", job.strip())
    assert code == MISMATCH and "changed since" in complaint, complaint
    assert sorted(one.name for one in (folder / "ckpt/run7/step-1000").iterdir()) == whole
    assert not (folder / "ckpt/run7/step-2000").exists()
    code, _, complaint = send(host, save_files(second, whole), "checkpoints:run7/step-2000", "--keep", "1")
    assert code == DONE, complaint
    assert not (folder / "ckpt/run7/step-1000").exists()
