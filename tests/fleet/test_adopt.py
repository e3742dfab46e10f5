"""A folder that is offered to peers as it is: its host has no copy."""
import os

from fleet import wait_until
from test_elsewhere import elsewhere, failure, model, safetensors, stage
from test_exchange import configured, results


def adopted(daemon):
    [one] = daemon.fleet()["adopted"]
    return one


def is_offered(daemon, but=""):
    one = adopted(daemon)
    return one["state"] == "offered" and one["hash"] != but and one


def adopting(fleet, daemon, line):
    source = f"imagenet: {{path: {fleet.drive.mount}/imagenet, peers: true}}\n"
    return configured(daemon, source, source + f"  {line}\n")


def bytes_in(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_peer_gets_the_folder_and_its_host_has_no_second_copy(fleet, model):
    first, second = fleet.daemons[:2]
    with adopting(fleet, first, f"tiny: {{path: {model[0]}, model: org/tiny, adopt: true}}"):
        offer = wait_until(lambda: is_offered(first), lambda: f"it is offered: {adopted(first)}", 60)
        with elsewhere(fleet, second, "other-name: {source: peers, model: org/tiny}"):
            here = stage(second, "other-name")
            assert here["hash"] == offer["hash"] and here["from"] == ["n1"], (here, offer)
            assert here["bytes"] == offer["bytes"] == bytes_in(model[0]), (here, offer)
        assert "tiny" not in first.datasets() or first.datasets()["tiny"]["state"] == "absent", first.datasets()
        assert bytes_in(first.folder / "cache") < 1 << 20


def test_after_a_change_and_after_a_restart_peers_get_the_folder_as_it_is(fleet, model):
    first, second = fleet.daemons[:2]
    with adopting(fleet, first, f"tiny: {{path: {model[0]}, model: org/tiny, adopt: true}}"):
        before = wait_until(lambda: is_offered(first), lambda: f"it is offered: {adopted(first)}", 60)
        first.kill()
        (model[0] / "two.safetensors").write_bytes(safetensors(9, 3))
        first.start()
        after = wait_until(lambda: is_offered(first, before["hash"]), lambda: f"it is offered again: {adopted(first)}", 60)
        with elsewhere(fleet, second, "tiny: {source: peers, model: org/tiny}"):
            assert stage(second, "tiny")["hash"] == after["hash"]


def test_a_file_that_changes_while_a_peer_copies_it_is_never_ready_there(fleet, model):
    first, second = fleet.daemons[:2]
    with adopting(fleet, first, f"tiny: {{path: {model[0]}, model: org/tiny, adopt: true}}"):
        before = wait_until(lambda: is_offered(first), lambda: f"it is offered: {adopted(first)}", 60)
        with elsewhere(fleet, second, "tiny: {source: peers, model: org/tiny}"):
            status, job = second.ask("POST", "/v1/stagings", {"datasets": ["tiny"], "max_rate": 4_000_000})
            assert status == 202, job
            wait_until(lambda: second.progress().get("bytes_done", 0) > 4_000_000, "a part is there", 60)
            shard, times = model[0] / "one.safetensors", (model[0] / "one.safetensors").stat()
            shard.write_bytes(safetensors(20, 7))
            os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))  # as long and as old as before
            after = wait_until(lambda: is_offered(first, before["hash"]), lambda: f"it is offered again: {adopted(first)}", 60)
            ended = second.end_of(job["id"])
            if ended["state"] == "done":
                assert results([ended])[0]["hash"] == after["hash"], ended
            here = stage(second, "tiny")
            assert here["hash"] == after["hash"] != before["hash"], (here, before)


def test_a_mount_point_without_its_drive_replaces_no_copy_of_a_peer(fleet, model):
    first, second = fleet.daemons[:2]
    with adopting(fleet, first, f"tiny: {{path: {model[0]}, adopt: true}}"):
        wait_until(lambda: is_offered(first), lambda: f"it is offered: {adopted(first)}", 60)
        with elsewhere(fleet, second, "tiny: {source: peers, offline: allow}"):
            before = stage(second, "tiny")
            model[0].rename(model[0].with_name("drive"))
            model[0].mkdir()
            wait_until(lambda: adopted(first)["state"] == "failed", lambda: f"it is refused: {adopted(first)}", 60)
            after = stage(second, "tiny")
            assert (after["hash"], after["path"], after["served_from"]) == (before["hash"], before["path"], "cache"), after
            assert "n1: it has adopted" in after["unchecked"], after
        model[0].rmdir()
        model[0].with_name("drive").rename(model[0])


def test_what_is_not_whole_is_not_offered_and_the_log_says_why(fleet, model):
    first, second = fleet.daemons[:2]
    with open(model[0] / "one.safetensors", "r+b") as shard:
        shard.truncate(1000)
    with adopting(fleet, first, f"tiny: {{path: {model[0]}, model: org/tiny, adopt: true}}"):
        wait_until(lambda: adopted(first)["state"] == "failed", lambda: f"it is refused: {adopted(first)}", 60)
        assert "one.safetensors" not in adopted(first)["reason"], "the names of files are not for all"
        assert "tiny is not adopted" in first.log_text() and "one.safetensors" in first.log_text()
        with elsewhere(fleet, second, "tiny: {source: peers, model: org/tiny}"):
            missing = failure(second, "tiny")
            assert missing["kind"] == "unavailable" and "n1" in missing["what"], missing


__all__ = ["model"]
