"""A cache that can't be used is reported wherever a person or a monitor looks, before a staging fails. One command moves
the cache to another drive, one begins again after its drive was replaced."""
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from simulated import CLIENT
from staged import PATIENCE_S, PROGRAM, Daemon

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may reload")


def set_path(daemon, old, new):
    text = daemon.config.read_text()
    assert f"{old}," in text
    daemon.config.write_text(text.replace(f"{old},", f"{new},"))
    assert daemon.ask("POST", "/v1/reload")[0] == 200


def problem(daemon):
    return daemon.ask("GET", "/v1/status")[1]["cache_problem"]


def rows(daemon):
    """The datasets that have a copy."""
    return {row["name"]: row for row in daemon.ask("GET", "/v1/datasets")[1]["datasets"] if row["path"]}


def client(daemon, *arguments):
    """(exit status, stdout, stderr)"""
    done = subprocess.run([CLIENT, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env=os.environ | {"SPARK_STAGE_SOCKET": str(daemon.socket)})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def drive(tmp_path):
    """An empty file system of its own."""
    place = tmp_path / "drive"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--recursive", "--lazy", place], check=True)


def test_a_cache_in_another_place_than_its_catalog_knows_is_reported_until_it_is_back(daemon):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert problem(daemon) is None and daemon.ask("GET", "/readyz")[1]["cache_problem"] is None
    cache, other = f"{daemon.folder}/cache", f"{daemon.folder}/other"
    wanted = daemon.config.read_text().replace(f"{cache},", f"{other},")
    assert (f"cache.path: {cache} -> {other}; the copies are there once `sudo spark-stage cache move {other}` has run"
            in daemon.ask("POST", "/v1/plan", {"yaml": wanted})[1]["settings"])
    set_path(daemon, cache, other)
    daemon.wait_until(lambda: problem(daemon), "reports the cache")
    said = problem(daemon)
    assert other in said and f"{daemon.folder}/state/catalog.sqlite" in said, said
    status, ready = daemon.ask("GET", "/readyz")
    assert status == 503 and ready["ready"] is False and ready["cache_problem"] == said
    assert "spark_stage_cache_up 0" in daemon.metrics()
    set_path(daemon, other, cache)
    daemon.wait_until(lambda: problem(daemon) is None, "uses the cache again")
    assert rows(daemon)


def test_a_catalog_that_is_lost_below_a_running_daemon_is_made_again_by_its_restart_alone(daemon):
    stage = lambda name: daemon.finish("/v1/stagings", {"datasets": [name]})
    staged = stage("imagenet")["result"]["datasets"][0]["path"]
    catalog = daemon.folder / "state/catalog.sqlite"
    catalog.rename(daemon.folder / "aside")
    (daemon.folder / "imagenet/more").write_text("more")
    for name in ("models", "imagenet"):
        job = stage(name)
        assert job["state"] == "failed" and "restart spark-staged" in job["error"]["hint"], job
    daemon.wait_until(lambda: "is gone" in (problem(daemon) or ""), "reports the catalog")
    assert not catalog.exists(), "an empty one would know none of the copies, and no lease"
    daemon.restart()
    assert stage("models")["state"] == stage("imagenet")["state"] == "done"
    assert sorted(rows(daemon)) == ["imagenet", "models"] and rows(daemon)["imagenet"]["generation"] == 2, rows(daemon)
    assert not os.path.exists(staged)


def test_a_repaired_catalog_serves_the_next_request_whatever_that_is(daemon):
    catalog, aside = daemon.folder / "state/catalog.sqlite", daemon.folder / "aside"
    for request in (lambda: rows(daemon), lambda: daemon.finish("/v1/datasets/imagenet/verify")["state"] == "done",
                    lambda: daemon.finish("/v1/datasets/imagenet/evict")["state"] == "done"):
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
        catalog.rename(aside)
        assert daemon.ask("POST", "/v1/reload")[0] == 200
        daemon.wait_until(lambda: "is gone" in (problem(daemon) or ""), "reports the catalog")
        aside.rename(catalog)
        assert request()


def test_another_limit_of_the_cache_is_shown_after_the_reload(daemon):
    limit = lambda: daemon.ask("GET", "/v1/status")[1]["cache"]["capacity_bytes"]
    assert limit() == 1 << 30
    daemon.config.write_text(daemon.config.read_text().replace("capacity: 1GiB", "capacity: 2GiB"))
    assert daemon.ask("POST", "/v1/reload")[0] == 200
    daemon.wait_until(lambda: limit() == 2 << 30, "shows the other limit")


def test_a_cache_is_moved_to_another_drive_without_a_moment_without_one(daemon, drive):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"]})
    old, new = daemon.folder / "cache", drive / "cache"
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 0, err
    assert out.startswith(f"2 datasets in {new}, each compared with its manifest; ") and f"{old} is still in use." in out, out
    assert f"set `cache: {{path: {new}}}`" in out and f"sudo spark-stage cache move {new}" in out, out
    assert rows(daemon)["imagenet"]["path"].startswith(str(old)) and problem(daemon) is None
    daemon.finish("/v1/datasets/models/evict")
    daemon.finish("/v1/stagings", {"datasets": ["models"]})  # this copy is only in the old folder
    set_path(daemon, old, new)
    daemon.wait_until(lambda: rows(daemon) and all(row["path"].startswith(str(new)) and os.path.isdir(row["path"])
                                                   for row in rows(daemon).values()), "has the copies of the new folder")
    staged = daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"], "lease_s": 600})["result"]["datasets"]
    assert [one["served_from"] for one in staged] == ["cache", "cache"]
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 7 and "leased by" in err and old.exists(), err
    for one in staged:
        assert daemon.ask("DELETE", f"/v1/leases/{one['lease']}")[0] == 200
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 0 and f"the copies in {old} are deleted" in out, err
    assert not old.exists()
    assert client(daemon, "cache", "move", str(new))[1] == f"The cache is in {new} already.\n"
    assert client(daemon, "verify", "imagenet")[0] == 0


def test_on_one_file_system_the_cache_is_renamed_and_its_old_path_goes_on_working(daemon):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    old, new = daemon.folder / "cache", daemon.folder / "elsewhere/cache"
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 0, err
    assert out.startswith(f"The cache is in {new}; {old} is a link to it") and f"sudo rm {old}" in out, out
    assert old.readlink() == new
    assert daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})["result"]["datasets"][0]["served_from"] == "cache"
    assert daemon.finish("/v1/stagings", {"datasets": ["models"]})["state"] == "done"
    set_path(daemon, old, new)
    old.unlink()
    daemon.restart()
    assert sorted(rows(daemon)) == ["imagenet", "models"] and problem(daemon) is None


def test_the_last_step_of_a_move_brings_what_only_the_old_folder_has(daemon, drive):
    old, new = daemon.folder / "cache", drive / "cache"
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert client(daemon, "cache", "move", str(new))[0] == 0
    daemon.finish("/v1/stagings", {"datasets": ["models"]})
    (daemon.folder / "models").rename(daemon.folder / "gone")
    set_path(daemon, old, new)
    daemon.wait_until(lambda: "imagenet" in rows(daemon) and rows(daemon)["imagenet"]["path"].startswith(str(new)), "uses the new folder")
    assert "models" not in rows(daemon)
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 0 and f"models: only {old} had it, so it is copied too, " in out and not old.exists(), out + err
    assert client(daemon, "verify", "models")[0] == 0


def test_the_last_step_may_follow_the_reload_at_once(daemon, drive):
    old = daemon.folder / "cache"
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    for new in (drive / "a", daemon.folder / "b", drive / "c", daemon.folder / "d"):
        assert client(daemon, "cache", "move", str(new))[0] == 0
        (daemon.folder / "models/word").write_text(str(new))
        daemon.finish("/v1/stagings", {"datasets": ["models"]})
        set_path(daemon, old, new)
        status, out, err = client(daemon, "cache", "move", str(new))
        assert status == 0 and f"models: only {old} had it, so it is copied too, " in out, out + err
        assert client(daemon, "verify", "models")[0] == 0 and not old.exists()
        old = new


def test_a_last_copy_is_brought_into_a_cache_that_jobs_see_read_only(tmp_path, drive):
    daemon = Daemon(tmp_path, within=("unshare", "--mount", "sh", "-c", 'mount --make-rshared / && exec "$@"', "sh"))
    try:
        old, new = daemon.folder / "cache", drive / "cache"
        assert client(daemon, "cache", "move", str(new))[0] == 0
        daemon.finish("/v1/stagings", {"datasets": ["models"]})
        set_path(daemon, old, new)
        daemon.wait_until(lambda: problem(daemon) is None and not rows(daemon), "uses the new folder")
        mounts = Path(f"/proc/{daemon.process.pid}/mountinfo").read_text
        daemon.wait_until(lambda: f"{new}/data ro" in mounts(), "serves it read-only")
        assert f"{old}/data ro" in mounts()
        status, out, err = client(daemon, "cache", "move", str(new))
        assert status == 0 and "models: only" in out, out + err
        assert client(daemon, "verify", "models")[0] == 0 and not old.exists()
        assert f"{new}/data ro" in mounts() and f"{old}/data" not in mounts()
    finally:
        daemon.stop()


def test_an_old_folder_with_a_last_copy_that_is_damaged_is_deleted_only_on_request(daemon, drive):
    old, new = daemon.folder / "cache", drive / "cache"
    daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"]})
    file = Path(os.path.realpath(old / "models"), "train/3.bin")
    subprocess.run(["umount", "--quiet", old / "data"], check=False)  # where it is served read-only
    file.write_bytes(bytes(len(file.read_bytes())))
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 0 and "not copied: models: " in err, err
    set_path(daemon, old, new)
    daemon.wait_until(lambda: "imagenet" in rows(daemon), "uses the new folder")
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 7 and "these are in no other place: models, " in err and f"cache move {new} --discard" in err, err
    assert file.exists()
    assert client(daemon, "cache", "move", "--discard", str(new))[0] == 0 and not old.exists()
    assert sorted(rows(daemon)) == ["imagenet"]


def test_a_lease_does_not_keep_a_second_call_from_bringing_what_was_staged_meanwhile(daemon, drive):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"]})
    new = drive / "cache"
    assert client(daemon, "cache", "move", str(new))[0] == 0
    (daemon.folder / "imagenet/train/0.bin").write_bytes(b"another")
    daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"], "lease_s": 600})
    status, out, err = client(daemon, "cache", "move", str(new))
    assert status == 0 and "imagenet: an earlier copy in" in out, out + err
    assert (new / "data/imagenet/2/train/0.bin").read_bytes() == b"another"


def test_during_a_move_the_cache_gets_no_other_path(daemon, drive):
    old, new = daemon.folder / "cache", drive / "cache"
    (daemon.folder / "imagenet/large").write_bytes(os.urandom(40 << 20))
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    text = daemon.config.read_text()
    job = daemon.ask("POST", "/v1/cache/move", {"path": str(new)})[1]
    daemon.config.write_text(text.replace(f"{old},", f"{new},"))
    status, answer = daemon.ask("POST", "/v1/reload")
    assert status == 409 and f"job {job['id']} (cache-move) is not done yet" in answer["error"]["what"], answer
    daemon.config.write_text(text + "  # another word\n")
    assert daemon.ask("POST", "/v1/reload")[0] == 200
    daemon.exchange("GET", f"/v1/jobs/{job['id']}/events")
    set_path(daemon, old, new)


def test_an_interrupted_move_leaves_nothing_in_the_new_cache(daemon, drive):
    old, new = daemon.folder / "cache", drive / "cache"
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert client(daemon, "cache", "move", str(new))[0] == 0
    (new / ".moving").mkdir()
    (new / ".moving/models.1").write_text("of a call that was interrupted")
    set_path(daemon, old, new)
    daemon.wait_until(lambda: "imagenet" in rows(daemon) and not (new / ".moving").exists(), "deletes it")


def test_a_cache_is_not_moved_into_a_dataset_or_onto_a_volume(daemon):
    for path, what in ((daemon.folder / "imagenet/cache", "overlaps the path of dataset 'imagenet'"),
                       (daemon.folder, "overlaps the path of dataset 'imagenet'"),
                       (daemon.folder / "mnt/cache", "is on volume 'datasets'")):
        status, _, err = client(daemon, "cache", "move", str(path))
        assert status == 2 and what in err, err
    assert not (daemon.folder / "imagenet/cache").exists()


def test_a_daemon_that_is_killed_during_a_move_has_its_cache_and_the_move_is_repeated(daemon, drive):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet", "models"]})
    old, new = daemon.folder / "cache", drive / "cache"
    for pause in (0, 0.02, 0.05, 0.1, 0.2):
        assert daemon.ask("POST", "/v1/cache/move", {"path": str(new)})[0] == 202
        time.sleep(pause)
        daemon.process.kill()
        daemon.process.wait()
        daemon.start()
        assert sorted(rows(daemon)) == ["imagenet", "models"] and problem(daemon) is None
        assert client(daemon, "verify", "imagenet")[0] == 0
    status, _, err = client(daemon, "cache", "move", str(new))
    assert status == 0, err
    set_path(daemon, old, new)
    assert daemon.ask("POST", "/v1/cache/move", {"path": str(new)})[0] == 202
    daemon.process.kill()
    daemon.process.wait()
    daemon.start()
    assert sorted(rows(daemon)) == ["imagenet", "models"] and problem(daemon) is None
    assert client(daemon, "cache", "move", str(new))[0] == 0 and not old.exists()
    assert client(daemon, "verify", "imagenet")[0] == 0


def test_a_cache_is_not_moved_below_a_mount_point_of_fstab_that_is_not_mounted(tmp_path):
    with_fstab = ("unshare", "--mount", "sh", "-c", f'echo "/dev/x {tmp_path}/data ext4 defaults,nofail 0 2" >{tmp_path}/fstab; '
                  f'mount --bind {tmp_path}/fstab /etc/fstab && mount --make-rshared / && exec "$@"', "sh")
    daemon = Daemon(tmp_path, within=with_fstab)
    try:
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
        job = daemon.finish("/v1/cache/move", {"path": f"{tmp_path}/data/cache"})
        assert job["state"] == "failed" and f"nothing is mounted on {tmp_path}/data" in job["error"]["what"], job
        assert not (tmp_path / "data").exists()
    finally:
        daemon.stop()


@pytest.mark.parametrize("wish", [("move", {"path": "/nowhere/cache"}), ("reset", {"delete_copies": True})], ids=["move", "reset"])
def test_a_cache_in_which_something_is_staged_is_neither_moved_nor_reset(daemon, wish):
    verb, body = wish
    status, job = daemon.ask("POST", "/v1/stagings", {"datasets": ["datasets:coco"], "wait_s": None})
    assert status == 202, job
    status, answer = daemon.ask("POST", f"/v1/cache/{verb}", body)
    assert status == 409 and answer["error"]["kind"] == "refused", answer
    assert "datasets:coco is being staged or evicted" in answer["error"]["what"]
    assert daemon.ask("DELETE", f"/v1/jobs/{job['id']}")[0] == 200


def test_an_emptied_drive_is_begun_again_and_what_is_gone_is_named(daemon):
    daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
    assert client(daemon, "cache", "reset")[0] == 7, "nothing is wrong, and its copies would be deleted"
    assert "imagenet" in rows(daemon)
    daemon.end()
    subprocess.run([PROGRAM, "release", "--copies"], check=True)
    shutil.rmtree(daemon.folder / "cache")
    (daemon.folder / "cache").mkdir()
    daemon.process = subprocess.Popen(daemon.command, stdout=daemon.log, stderr=subprocess.STDOUT, **daemon.how)
    daemon.wait_until(lambda: daemon.socket.exists() and problem(daemon), "reports the cache")
    assert "spark-stage cache reset" in problem(daemon)
    status, out, err = client(daemon, "cache", "reset")
    assert status == 7 and "these copies would be forgotten: imagenet" in err, "the drive may only be unmounted"
    status, out, err = client(daemon, "cache", "reset", "--delete-copies")
    assert status == 7 and "these copies would be forgotten: imagenet" in err, "that is another decision"
    status, out, err = client(daemon, "cache", "reset", "--forget")
    assert status == 0 and out.startswith("imagenet: forgotten, "), out + err
    assert problem(daemon) is None and "imagenet" not in rows(daemon)
    assert daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})["state"] == "done"


def test_a_reset_on_request_deletes_the_copies_but_none_that_is_leased(daemon):
    staged = daemon.finish("/v1/stagings", {"datasets": ["imagenet"], "lease_s": 600})["result"]["datasets"][0]
    status, _, err = client(daemon, "cache", "reset", "--delete-copies")
    assert status == 7 and "leased by" in err, err
    assert daemon.ask("DELETE", f"/v1/leases/{staged['lease']}")[0] == 200
    status, out, err = client(daemon, "cache", "reset", "--forget")
    assert status == 7 and os.path.exists(staged["path"]), "its drive was mounted after the owner looked"
    status, answer = daemon.ask("POST", "/v1/cache/reset", {"forget": True, "delete_copies": True})
    assert status == 400 and "both" in answer["error"]["what"], answer
    status, out, err = client(daemon, "cache", "reset", "--delete-copies")
    assert status == 0 and out.startswith("imagenet: deleted, "), out + err
    assert not os.path.exists(staged["path"])


def test_release_copies_ends_the_mounts_that_exist_whatever_the_configuration_says(tmp_path):
    with_own_mounts = ("unshare", "--mount", "sh", "-c", 'mount --make-rshared / && exec "$@"', "sh")  # as under systemd
    daemon = Daemon(tmp_path, within=with_own_mounts)
    try:
        daemon.finish("/v1/stagings", {"datasets": ["imagenet"]})
        table, served = Path(f"/proc/{daemon.process.pid}/mountinfo"), f" {daemon.folder}/cache/data "
        assert served in table.read_text()
        daemon.config.write_text(daemon.config.read_text().replace("/cache,", "/other,"))
        subprocess.run(["nsenter", "--mount", "--target", str(daemon.process.pid), PROGRAM, "--config", daemon.config, "release",
                        "--copies"], check=True)
        assert served not in table.read_text()
    finally:
        daemon.stop()
