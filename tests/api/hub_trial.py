"""What the double in made_models.py promises, tried with huggingface_hub itself, where it can be had: Debian has no package of it.

Usage: hub_trial.py, in Python with huggingface_hub; also with safetensors and transformers, if they are there. Reads the programs as the
tests of this folder do. Prints a line for each promise, and ends with 1 if one is broken.
"""
import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from made_models import COMMIT, FILES, Hub
from staged import BUILD, Daemon

NAME = "org/tiny"
JOB = '''
import os, sys
from huggingface_hub import constants, hf_hub_download, snapshot_download, try_to_load_from_cache, scan_cache_dir
from huggingface_hub.errors import LocalEntryNotFoundError
name, path, commit, is_listed, files = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "listed", sys.argv[5:]
def promise(holds, what):
    print("ok " if holds else "BROKEN", what)
    return holds
kept = [promise(constants.HF_HUB_OFFLINE, "huggingface_hub is offline"),
        promise(constants.HF_HUB_CACHE == os.environ["HF_HUB_CACHE"], "its cache is the job's")]
for revision in (None, "main", commit):
    # Of a commit whose list of files is not in the cache, huggingface_hub asks the Hub for it, also while it is offline.
    folder = snapshot_download(name, revision=revision, local_files_only=revision == commit and not is_listed)
    kept.append(promise(os.path.samefile(folder, path), f"snapshot_download of revision {revision} is the copy"))
kept.append(promise(sorted(os.listdir(folder)) == sorted(files), "it has each file"))
for file in files:
    for found in (try_to_load_from_cache(name, file), hf_hub_download(name, file)):
        kept.append(promise(isinstance(found, str) and os.path.samefile(found, os.path.join(path, file)), f"{file} is found by its name"))
try:
    hf_hub_download(name, "not-there.json")
    kept.append(promise(False, "a file that is not there is an error"))
except LocalEntryNotFoundError:
    kept.append(promise(True, "a file that is not there is an error"))
kept.append(promise([repo.repo_id for repo in scan_cache_dir().repos] == [name], "scan_cache_dir finds the model"))
try:
    from safetensors import safe_open
    with safe_open(hf_hub_download(name, files[-1] if files[-1].endswith("safetensors") else "model-00002-of-00002.safetensors"), "np") as weights:
        kept.append(promise(weights.get_tensor("a").shape == (5000,), "safetensors opens a shard"))
except ImportError:
    print("safetensors is not here: not tried")
try:
    from transformers import AutoConfig
    kept.append(promise(AutoConfig.from_pretrained(name).model_type == "bert", "transformers reads the configuration by the model's name"))
except ImportError:
    print("transformers is not here: not tried")
sys.exit(0 if all(kept) else 1)
'''


def attempt(layout, is_listed, folder):
    files = FILES | {"config.json": b'{"model_type": "bert"}'}
    hub = Hub(folder / "hub").add(NAME, layout, files)
    if is_listed:
        hub.list_files(NAME, files=files)
    (hub.folder / "token").write_text("secret")
    daemon = Daemon(folder, datasets=f"  tiny: {{path: {hub.folder}, model: {NAME}}}\n")
    try:
        free = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        script = folder / "job.py"
        script.write_text(JOB)
        path = subprocess.run([BUILD / "cli/spark-stage", "stage", "tiny"], capture_output=True, text=True, check=True,
                              env=free | {"SPARK_STAGE_SOCKET": str(daemon.socket)}).stdout.strip()
        return subprocess.run([BUILD / "cli/spark-stage", "run", "tiny", "--", sys.executable, script, NAME, path, COMMIT,
                               "listed" if is_listed else "unlisted", *files],
                              env=free | {"SPARK_STAGE_SOCKET": str(daemon.socket)}, check=False).returncode
    finally:
        daemon.stop()


def main():
    if importlib.util.find_spec("huggingface_hub") is None:
        print("hub_trial: huggingface_hub is not here", file=sys.stderr)
        return 4
    import huggingface_hub
    status = 0
    for layout, is_listed in itertools.product(("old", "shared", "plain"), (True, False)):
        print(f"huggingface_hub {huggingface_hub.__version__}, layout {layout}, {'with' if is_listed else 'without'} the commit's list", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            status |= attempt(layout, is_listed, Path(folder))
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
