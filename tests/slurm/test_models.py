"""Tasks load a staged model by its name, offline, as `spark-stage run` lets a command do."""
import json
import os
import struct
from pathlib import Path

import pytest

from cluster import ALICE, PROJECT

COMMIT = "c" * 40
SHOW = ('test -w "$HF_HUB_CACHE" && cat "$HF_HUB_CACHE"/models--org--tiny/refs/main && echo; '
        'stat -c "folder %a %U %n" "$HF_HUB_CACHE"; cat "$HF_HUB_CACHE"/models--org--tiny/snapshots/*/one.safetensors | wc -c; '
        'mkdir -p "$HF_HUB_CACHE"/.locks/models--org--tiny; echo "offline $HF_HUB_OFFLINE home ${HF_HOME-none}"')


@pytest.fixture
def model(cluster):
    """A dataset of each node: a model in a cache of Hugging Face."""
    header = json.dumps({"a": {"dtype": "U8", "shape": [5000], "data_offsets": [0, 5000]}}).encode()
    weights = struct.pack("<Q", len(header)) + header + b"x" * 5000
    hub = cluster.source / "hub"
    for name, content in (("refs/main", COMMIT.encode()), (f"snapshots/{COMMIT}/config.json", b"{}"),
                          (f"snapshots/{COMMIT}/one.safetensors", weights)):
        path = hub / "models--org--tiny" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    texts = {node: node.daemon.config.read_text() for node in cluster.nodes.values()}
    for node, text in texts.items():
        node.daemon.config.write_text(f"{text}  tiny: {{path: {hub}, model: org/tiny}}\n")
        assert node.daemon.ask("POST", "/v1/reload")[0] == 200
    yield len(weights)
    for node, text in texts.items():
        node.daemon.evict_all()
        node.daemon.config.write_text(text)
        assert node.daemon.ask("POST", "/v1/reload")[0] == 200


def folders_in(output):
    return [line.split()[3] for line in output.splitlines() if line.startswith("folder ")]


def test_each_task_has_a_private_cache_that_leads_to_the_model_and_is_gone_afterwards(cluster, model):
    done = cluster.slurm("srun", "-N2", "--ntasks-per-node=2", "--stage=tiny", "sh", "-c", SHOW)
    assert done.returncode == 0, done.stderr
    folders = folders_in(done.stdout)
    assert len(set(folders)) == 4 and all(f"folder 700 {ALICE} /tmp/spark-stage-hub-" in done.stdout for _ in folders), done.stdout
    assert done.stdout.count(COMMIT) == 4 and done.stdout.split().count(str(model)) == 4, done.stdout
    assert done.stdout.count("offline 1 home none") == 4, done.stdout
    assert not [folder for folder in folders if Path(folder).exists()], "they are deleted"


def test_a_step_has_its_own_cache_and_not_that_of_its_batch_script(cluster, model):
    script = cluster.work / "model.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH --stage=tiny -N2\n{SHOW}\nsrun sh -c '{SHOW}'\n")
    done = cluster.slurm("sbatch", "--wait", "-o", "model.out", script)
    output = (cluster.work / "model.out").read_text()
    assert done.returncode == 0, done.stderr + output
    assert len(set(folders_in(output))) == 3 and output.split().count(str(model)) == 3, output


ASK = 'echo "${HF_HUB_CACHE-none} ${HF_HUB_OFFLINE-none} ${SPARK_HUB_OFFLINE_IS_OURS-none}"'


def told_in_a_batch_script(cluster, *lines):
    """What each step says that the script starts with its last line."""
    script = cluster.work / "ask.sh"
    script.write_text("\n".join(("#!/bin/sh", "#SBATCH --stage=tiny -N2", *lines)) + f" sh -c '{ASK}'\n")
    done = cluster.slurm("sbatch", "--wait", "-o", "ask.out", script)
    assert done.returncode == 0, done.stderr
    return (cluster.work / "ask.out").read_text().splitlines()


@pytest.mark.parametrize("said", ["SPARK_STAGE_HUB_CACHE=off", "SLURM_CONTAINER=/images/pytorch"])
def test_a_step_that_does_without_has_none_of_its_batch_script(cluster, model, said):
    assert model
    assert told_in_a_batch_script(cluster, f"srun -N2 --export=ALL,{said}") == ["none none none"] * 2


def test_what_the_script_has_said_itself_stays(cluster, model):
    assert model
    assert told_in_a_batch_script(cluster, "export HF_HUB_CACHE=/mine", "srun -N1") == ["/mine none none"]
    [told] = told_in_a_batch_script(cluster, "export HF_HUB_OFFLINE=0", "srun -N1")
    assert told.startswith("/tmp/spark-stage-hub-") and told.split()[1] == "0", told


def test_what_the_task_has_left_in_its_cache_is_named(cluster, model):
    assert model
    done = cluster.slurm("srun", "-N1", "--stage=tiny", "sh", "-c", 'mkdir "$HF_HUB_CACHE/models--org--mine"; echo "$HF_HUB_CACHE"')
    folder = done.stdout.strip()
    assert done.returncode == 0 and f"the task has left files in {folder}, its HF_HUB_CACHE; delete them" in done.stderr, done.stderr
    (Path(folder) / "models--org--mine").rmdir()
    Path(folder).rmdir()


def test_a_cache_that_the_job_has_chosen_stays(cluster, model):
    assert model
    done = cluster.slurm("srun", "-N1", "--export=ALL,HF_HUB_CACHE=/mine", "--stage=tiny", "sh", "-c",
                         'echo "$HF_HUB_CACHE ${HF_HUB_OFFLINE-none}"; ls "$SPARK_STAGE_TINY"')
    assert (done.returncode, done.stdout.split()) == (0, ["/mine", "none", "config.json", "one.safetensors"]), done.stderr + done.stdout


def test_the_temporary_folder_of_the_job_is_used(cluster, model):
    assert model
    mine = cluster.work / "tmp"
    mine.mkdir(mode=0o777, exist_ok=True)
    mine.chmod(0o777)
    done = cluster.slurm("srun", "-N1", f"--export=ALL,TMPDIR={mine}", "--stage=tiny", "sh", "-c", SHOW)
    assert done.returncode == 0 and folders_in(done.stdout)[0].startswith(f"{mine}/spark-stage-hub-"), done.stdout + done.stderr
    assert not list(mine.iterdir())


def test_a_temporary_folder_that_a_project_shares_is_left_as_it_was(cluster, model):
    assert model
    shared = cluster.work / "project"
    shared.mkdir()
    os.chown(shared, 0, PROJECT[1])
    shared.chmod(0o2770)
    done = cluster.slurm("srun", "-N1", f"--export=ALL,TMPDIR={shared}", "--stage=tiny", "sh", "-c", SHOW)
    assert done.returncode == 0 and folders_in(done.stdout)[0].startswith(f"{shared}/spark-stage-hub-"), done.stdout + done.stderr
    assert not list(shared.iterdir())


@pytest.mark.parametrize("said", ["SPARK_STAGE_HUB_CACHE=off", "SLURM_CONTAINER=/images/pytorch",
                                  "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image=pytorch.sqsh"])
def test_a_job_may_do_without_and_a_container_does(cluster, model, said):
    assert model
    done = cluster.slurm("srun", "-N1", f"--export=ALL,{said}", "--stage=tiny", "sh", "-c",
                         'echo "${HF_HUB_CACHE-none} ${HF_HUB_OFFLINE-none}"; ls "$SPARK_STAGE_TINY"')
    assert (done.returncode, done.stdout.split()) == (0, ["none", "none", "config.json", "one.safetensors"]), done.stderr + done.stdout
