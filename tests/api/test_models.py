"""Datasets that are models: what is copied, what is refused, and whether programs find them in the copy."""
import os
import struct
import subprocess

import pytest

from made_models import COMMIT, FILES, NEXT, SHARD, Hub, find_cached, flip, is_whole_offline, safetensors
from openapi_file import OpenApi
from simulated import CLIENT
from staged import Daemon

NAME, OTHER = "org/tiny", "org/other"
OPENAPI = OpenApi()
DATASETS = """  tiny: {{path: {folder}/hub, model: org/tiny}}
  other: {{path: {folder}/hub, model: org/other}}
  pinned: {{path: {folder}/hub, model: org/tiny, revision: {commit}}}
  whole: {{path: {folder}/hub, model: org/tiny, check: complete}}
  small: {{path: {folder}/hub, model: org/tiny, include: ["*.json"], check: none}}
  parts: {{path: {folder}/parts, model: org/parts}}
"""


@pytest.fixture
def hub(tmp_path):
    return Hub(tmp_path / "hub")


@pytest.fixture
def daemon(tmp_path, hub):
    hub.folder.mkdir()
    running = Daemon(tmp_path, datasets=DATASETS.format(folder=tmp_path, commit=COMMIT))
    yield running
    running.stop()


def stage(daemon, *names):
    job = daemon.finish("/v1/stagings", {"datasets": list(names), "lease_s": 3600})
    assert job["state"] == "done", job
    assert not OPENAPI.problems({"$ref": "#/components/schemas/Staged"}, job["result"])
    return job["result"]["datasets"]


def refused(daemon, name, kind="mismatch"):
    job = daemon.finish("/v1/stagings", {"datasets": [name]})
    assert job["state"] == "failed" and job["error"]["kind"] == kind, job
    rows = daemon.ask("GET", "/v1/datasets")[1]["datasets"]
    assert next(row for row in rows if row["name"] == name)["path"] is None
    return job["error"]["what"] + "; " + job["error"]["hint"]


def links_below(folder):
    return [os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files
            if os.path.islink(os.path.join(at, name))]


@pytest.mark.parametrize("layout", ["old", "shared", "plain"])
def test_a_program_finds_a_model_in_its_copy_by_name_and_by_commit(daemon, hub, layout):
    hub.add(NAME, layout)
    (hub.folder / "token").write_text("secret")
    hub.write(hub.model(NAME) / "blobs/half.incomplete", b"half")
    [model] = stage(daemon, "tiny")
    cache = model["hub_cache"]
    assert model["path"] == f"{cache}/models--org--tiny/snapshots/{COMMIT}" and model["revision"] == COMMIT
    for revision in ("main", COMMIT):
        assert is_whole_offline(cache, NAME, revision)
        for file, content in FILES.items():
            assert find_cached(cache, NAME, file, revision).read_bytes() == content
    assert not links_below(cache)
    assert sorted(os.listdir(cache)) == ["models--org--tiny"]
    assert model["checked"] == ({"sha256": 0, "git_sha1": 0, "none": 4} if layout == "plain" else
                                {"sha256": 2, "git_sha1": 2, "none": 0})


def test_two_models_that_share_payloads_are_complete_copies(daemon, hub):
    hub.add(NAME, "shared").add(OTHER, "shared")
    for model in stage(daemon, "tiny", "other"):
        assert not links_below(model["hub_cache"])
        assert {name: open(f"{model['path']}/{name}", "rb").read() for name in os.listdir(model["path"])} == FILES


def test_one_cache_holds_models_of_all_layouts(daemon, hub):
    hub.add(NAME, "old").add(OTHER, "shared")
    assert len({model["hash"] for model in stage(daemon, "tiny", "other")}) == 2


def remove_payload(hub):
    os.remove(os.path.realpath(hub.snapshot(NAME) / SHARD))


def leave_incomplete(hub):
    payload = os.path.realpath(hub.snapshot(NAME) / SHARD)
    os.rename(payload, payload + ".incomplete")


def remove_link(hub):
    (hub.snapshot(NAME) / SHARD).unlink()


def link_elsewhere(hub):
    remove_link(hub)
    hub.write(hub.folder.parent / "elsewhere", FILES[SHARD])
    (hub.snapshot(NAME) / SHARD).symlink_to(hub.folder.parent / "elsewhere")


def damage_shard(hub):
    flip(hub.snapshot(NAME) / SHARD)


def damage_config(hub):
    flip(hub.snapshot(NAME) / "config.json")


@pytest.mark.parametrize("layout", ["old", "shared"])
@pytest.mark.parametrize("harm, named", [
    (remove_payload, SHARD), (leave_incomplete, SHARD), (remove_link, SHARD), (link_elsewhere, SHARD),
    (damage_shard, SHARD), (damage_config, "config.json")])
def test_a_model_that_is_not_whole_is_refused_by_name(daemon, hub, layout, harm, named):
    hub.add(NAME, layout)
    harm(hub)
    assert named in refused(daemon, "tiny")


def test_a_store_without_its_mark_is_refused(daemon, hub):
    hub.add(NAME, "shared")
    (hub.folder / "blobs/.huggingface-shared-blobs").unlink()
    assert "no store of models" in refused(daemon, "tiny")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_store_on_another_mount_is_refused(daemon, hub):
    hub.add(NAME, "shared")
    store, aside = hub.folder / "blobs", hub.folder.parent / "aside"
    store.rename(aside)
    store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", store], check=True)
    try:
        subprocess.run(["cp", "-a", f"{aside}/.", store], check=True)
        assert find_cached(hub.folder, NAME, SHARD, "main").read_bytes() == FILES[SHARD], "programs find it"
        assert SHARD in refused(daemon, "tiny")
    finally:
        subprocess.run(["umount", store], check=True)


def gguf(part, parts):
    """One tensor of 64 bytes, in one of several files."""
    def text(value):
        return struct.pack("<Q", len(value)) + value

    values = [(b"split.no", 2, struct.pack("<H", part)), (b"split.count", 2, struct.pack("<H", parts)),
              (b"split.tensors.count", 5, struct.pack("<i", parts))]
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(values))
    head += b"".join(text(name) + struct.pack("<I", kind) + value for name, kind, value in values)
    head += text(b"t") + struct.pack("<IQIQ", 1, 16, 0, 0)
    return head + bytes(-len(head) % 32) + bytes(64)


def test_parts_of_gguf_are_whole_and_complete_or_refused(daemon, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    files = [folder / f"tiny-Q4_K_M-{number + 1:05}-of-00002.gguf" for number in range(2)]
    for number, file in enumerate(files):
        file.write_bytes(gguf(number, 2))
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:-1])
    assert files[1].name in refused(daemon, "parts")
    files[1].rename(folder / "elsewhere")
    assert files[1].name in refused(daemon, "parts")
    (folder / "elsewhere").unlink()
    files[1].write_bytes(whole)
    stage(daemon, "parts")


def test_weights_that_are_too_short_are_refused_without_a_digest(daemon, hub):
    hub.add(NAME, "plain")
    os.truncate(hub.snapshot(NAME) / SHARD, len(FILES[SHARD]) - 1)
    assert SHARD in refused(daemon, "tiny")


def test_a_pointer_of_git_lfs_is_no_file(daemon, hub):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"1" * 64 + b"\nsize 5095\n"
    hub.add(NAME, "plain", FILES | {SHARD: pointer})
    assert "git lfs pull" in refused(daemon, "tiny")


def test_a_selective_download_is_staged_unless_all_of_it_is_asked_for(daemon, hub):
    hub.add(NAME, "old")
    hub.list_files(NAME, ["original/weights.pth"])
    [model] = stage(daemon, "tiny")
    assert model["absent_files"] == 1
    assert is_whole_offline(model["hub_cache"], NAME), "the list is not in the copy"
    assert "original/weights.pth" in refused(daemon, "whole")
    hub.list_files(NAME)
    [model] = stage(daemon, "whole")
    assert os.path.exists(f"{model['hub_cache']}/models--org--tiny/trees/{COMMIT}.json")


def test_a_copy_is_of_one_commit_when_main_has_moved(daemon, hub):
    hub.add(NAME, "old")
    [first] = stage(daemon, "tiny")
    hub.add(NAME, "old", FILES | {SHARD: safetensors(3)}, commit=NEXT)
    [now] = stage(daemon, "tiny")
    assert now["revision"] == NEXT and now["generation"] > first["generation"]
    [pinned] = stage(daemon, "pinned")
    assert pinned["revision"] == COMMIT
    assert open(f"{pinned['path']}/{SHARD}", "rb").read() == FILES[SHARD]
    assert os.listdir(f"{now['hub_cache']}/models--org--tiny/snapshots") == [NEXT]


def test_a_model_and_its_revision_survive_a_restart_and_are_verified(daemon, hub):
    hub.add(NAME, "shared")
    [model] = stage(daemon, "tiny")
    daemon.restart()
    rows = daemon.ask("GET", "/v1/datasets")[1]["datasets"]
    row = next(row for row in rows if row["name"] == "tiny")
    assert (row["path"], row["revision"], row["checked"]) == (model["path"], COMMIT, model["checked"])
    [again] = stage(daemon, "tiny")
    assert again["served_from"] == "cache" and again["path"] == model["path"]
    assert daemon.finish("/v1/datasets/tiny/verify")["state"] == "done"


def test_a_job_loads_models_from_a_cache_of_its_own(daemon, hub):
    hub.add(NAME, "shared").add(OTHER, "old")
    (hub.folder / "token").write_text("secret")
    script = 'echo $HF_HUB_CACHE; echo $HF_HUB_OFFLINE; echo "$HF_HOME"; touch $HF_HUB_CACHE/.locks; ls $HF_HUB_CACHE; sleep 0'
    script += f'; cat $HF_HUB_CACHE/models--org--tiny/snapshots/{COMMIT}/config.json $SPARK_STAGE_OTHER/config.json'
    free = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run([CLIENT, "run", "tiny", "other", "--", "sh", "-c", script], capture_output=True, text=True, check=True,
                          env=free | {"SPARK_STAGE_SOCKET": str(daemon.socket)})
    folder, offline, home, *rest = done.stdout.splitlines()
    assert (offline, home) == ("1", "")
    assert rest == ["models--org--other", "models--org--tiny", FILES["config.json"].decode() * 2]
    assert not os.path.exists(folder), done.stderr


def run_with(daemon, name, script, **environment):
    free = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.run([CLIENT, "run", name, "--", "sh", "-c", script], capture_output=True, text=True, check=False,
                          env=free | {"SPARK_STAGE_SOCKET": str(daemon.socket)} | environment)


def test_a_run_inside_a_run_finds_the_models_of_both(daemon, hub):
    hub.add(NAME, "shared").add(OTHER, "old")
    ask = 'echo "$HF_HUB_OFFLINE $HF_HUB_CACHE"; ls $HF_HUB_CACHE'
    done = run_with(daemon, "tiny", f"{CLIENT} run other -- sh -c '{ask}'; {ask}")
    inner, *models, outer, still = done.stdout.splitlines()
    assert done.returncode == 0 and models == ["models--org--other", "models--org--tiny"] and still == models[1], done.stdout + done.stderr
    assert inner.startswith("1 ") and outer.startswith("1 ") and inner != outer
    assert not [folder for folder in (inner[2:], outer[2:]) if os.path.exists(folder)]


def test_a_cache_that_the_user_has_chosen_stays_and_that_is_said(daemon, hub):
    hub.add(NAME, "shared")
    done = run_with(daemon, "tiny", 'echo "$HF_HUB_CACHE ${HF_HUB_OFFLINE-none}"', HF_HUB_CACHE="/mine")
    assert (done.returncode, done.stdout) == (0, "/mine none\n") and "HF_HUB_CACHE is /mine already" in done.stderr, done.stderr


def test_a_command_runs_without_the_links_where_no_folder_can_be_made(daemon, hub):
    hub.add(NAME, "shared")
    done = run_with(daemon, "tiny", 'echo "${HF_HUB_CACHE-none} ${HF_HUB_OFFLINE-none}"; ls $SPARK_STAGE_TINY', TMPDIR="/proc")
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["none", "none"]), done.stdout + done.stderr
    assert "config.json" in done.stdout and "no folder for HF_HUB_CACHE could be made in /proc" in done.stderr, done.stderr


def contents(folder):
    """Each file, folder and link below it, with what it holds."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            is_file = os.path.isfile(path) and not os.path.islink(path)
            found[os.path.relpath(path, folder)] = open(path, "rb").read() if is_file else os.path.islink(path) and os.readlink(path)
    return found


def test_a_job_writes_nothing_into_a_copy_and_no_secret_is_in_it(daemon, hub, tmp_path):
    """What huggingface_hub does beside a model: locks, its notes, a further model, and a ref that it finds to have moved."""
    hub.add(NAME, "shared")
    for secret in ("token", "stored_tokens", "models--org--tiny/token"):
        (hub.folder / secret).write_text("hf_secret")
    [model] = stage(daemon, "tiny")
    before = contents(model["hub_cache"])
    assert not any("token" in name or content == b"hf_secret" for name, content in before.items()), before.keys()
    script = ('set -e; cd "$HF_HUB_CACHE"; mkdir -p .locks/models--org--tiny models--org--mine/refs; echo 1 > version.txt; '
              'touch .locks/models--org--tiny/x.lock; echo c > models--org--mine/refs/main; '
              'cat models--org--tiny/refs/main >/dev/null; rm models--org--tiny; mkdir models--org--tiny; echo new > models--org--tiny/x')
    free = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    subprocess.run([CLIENT, "run", "tiny", "--", "sh", "-c", script], check=True, env=free | {"SPARK_STAGE_SOCKET": str(daemon.socket), "TMPDIR": str(tmp_path)})
    assert contents(model["hub_cache"]) == before
    assert daemon.finish("/v1/datasets/tiny/verify")["state"] == "done"


def test_only_chosen_files_are_copied(daemon, hub):
    hub.add(NAME, "old")
    remove_payload(hub)
    [model] = stage(daemon, "small")
    assert sorted(os.listdir(model["path"])) == ["config.json", "model.safetensors.index.json"]


def test_another_model_is_not_found(daemon, hub):
    hub.add(NAME, "old")
    assert "models--org--other" in refused(daemon, "other", "not_found")
