"""Checkpoints of real frameworks: a job of two processes that is killed and resumes, and the checkpoint layouts of jobs."""
import json
import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from rig import image, packages
from rig.disks import ext4
from rig.house import LOCAL, TARGET_ADDRESS
from rig.machine import disk
from rig.product import CONFIG, Product, config_text
from rig.settings import patience
from rig.target import stable_uuid

ROUNDS = int(os.environ.get("SPARK_TRAINING_ROUNDS", "10"))
TORCH = "/opt/torch"
LIBRARIES = ":".join(f"{TORCH}/usr/lib{folder}" for folder in (
    "", "/x86_64-linux-gnu", "/x86_64-linux-gnu/blas", "/x86_64-linux-gnu/lapack"))
PYTHON = (f"env LD_LIBRARY_PATH={LIBRARIES} PYTHONPATH={TORCH}/usr/lib/python3/dist-packages OMP_NUM_THREADS=1 "
          "GLOO_SOCKET_IFNAME=lo python3")
OUT, VOLUME = f"{LOCAL}/out", "trained"
THERE = f"/mnt/{VOLUME}"
# The rule for complete checkpoints, by output.
LAYOUTS = {"pt": "rename", "hf": "hf", "deepspeed": "deepspeed"}


class Trainer:
    """A host with PyTorch and a volume written by it alone."""

    def __init__(self, rig, house):
        folder = rig.folder / "trainer-drives"
        folder.mkdir()
        torch = shutil.copyfile(packages.drive("torch", image.userland_folder(), ["python3-torch"]), folder / "torch.raw")
        local = ext4(folder / "local.raw", 2 << 30, stable_uuid("trainer"))
        self.house = house
        self.machine = rig.add_host("trainer", disks=[local, torch], memory="1536M", files={CONFIG: self.config()})
        self.product = Product(self.machine)

    @staticmethod
    def config(**sections):
        return config_text(targets={"rose": {"address": TARGET_ADDRESS}}, cache={"path": f"{LOCAL}/cache", "capacity": "1GiB"}, **sections)

    def start(self):
        self.machine.start()
        self.machine.wait_ready()
        self.machine.wait_until(f"mountpoint -q {LOCAL} && spark-stage status", 60)
        self.machine.sh(f"mkdir -p {TORCH} && mount -o ro,noload {disk(2)} {TORCH}")
        for program in (Path(__file__).parent / "training").glob("*.py"):
            self.machine.put(f"/root/{program.name}", program.read_text())

    @contextmanager
    def outputs(self, **rules):
        """Outputs with these names and rules; afterwards checks that everything on the volume matches its manifests, and
        the file system."""
        target = self.house.target
        device = target.image(VOLUME, "256M")
        target.filesystem(device, name=VOLUME, mmp=True)
        target.export(VOLUME, device)
        volumes = {VOLUME: {"target": "rose", "subsystem": VOLUME, "mount": THERE, "access": "exclusive", "fence": "mmp"}}
        self.machine.sh(f"mkdir -p {' '.join(f'{OUT}/{name}' for name in rules)}")
        try:
            self.product.configure(self.config(volumes=volumes))
            self.product.wait_volume(VOLUME, "ready", 120)
            self.product.configure(self.config(volumes=volumes, outputs={
                name: {"path": f"{OUT}/{name}", "volume": VOLUME, "to": name, **rule} for name, rule in rules.items()}))
            yield
            self.product.configure(self.config(volumes=volumes))
            self.wait(lambda: not self.product.status()["stage_outs"])
            down = self.product.run(f"volumes down {VOLUME}", 120)
            assert down.rc == 0, down.err
            self.product.configure(self.config())
            target.remove(VOLUME)
            checked = target.machine.run(f"e2fsck -fn {device}", 120)
            assert checked.rc == 0, checked.out + checked.err
        finally:
            self.product.run(f"volumes down {VOLUME}", 120)
            self.product.configure(self.config())
            target.remove(VOLUME)
            target.machine.sh(f"rm -f {device}")
            self.machine.sh(f"rm -rf {OUT} /var/lib/spark-stage/volumes/{VOLUME}.*")

    def output(self, name):
        return next(row for row in self.product.status()["outputs"] if row["name"] == name)

    def wait(self, holds, deadline=120):
        end = time.monotonic() + patience(deadline)
        while not holds():
            assert time.monotonic() < end, json.dumps(self.product.status()["outputs"]) + self.machine.sh(f"ls -lA {OUT}/* {THERE}/* || true")
            time.sleep(0.5)


@pytest.fixture(scope="module")
def trainer(product_rig, house):
    made = Trainer(product_rig, house)
    try:
        made.start()
        yield made
    finally:
        made.machine.kill()


def test_a_killed_job_resumes_from_a_whole_checkpoint_and_loses_none_that_was_complete(trainer):
    with trainer.outputs(run7={"complete": "dcp", "keep": 2, "keep_local": 2}):
        ended = trainer.machine.run(f"exec {PYTHON} /root/job.py run7 {OUT}/run7 {THERE}/run7 {ROUNDS}", 60 + 40 * ROUNDS)
        assert ended.rc == 0, ended.out + ended.err
        rounds = [json.loads(line) for line in ended.out.splitlines()]
        print("\n".join(map(json.dumps, rounds)))
        assert len(rounds) == ROUNDS and rounds[-1]["published"] > 0
        trainer.wait(lambda: trainer.output("run7")["latest_published"] == trainer.output("run7")["latest_local"])
        for name in trainer.machine.sh(f"cd {THERE}/run7 && ls -d step-*").split():
            verified = trainer.product.run(f"verify {VOLUME}:run7/{name}", 120)
            assert verified.rc == 0, verified.err


def test_layouts_of_frameworks_are_sent_when_they_are_complete_and_load_from_the_volume(trainer):
    with trainer.outputs(**{name: {"complete": rule, "keep": 1} for name, rule in LAYOUTS.items()}):
        machine = trainer.machine
        machine.sh("rm -f /tmp/orders /tmp/answers; mkfifo /tmp/orders")
        program = machine.spawn(f"exec {PYTHON} /root/layouts.py {OUT} <>/tmp/orders >/tmp/answers")

        def order(text, answer):
            machine.sh(f"echo {text} >/tmp/orders")
            machine.wait_until(f"[ \"$(tail -n 1 /tmp/answers)\" = '{answer}' ]", 120)

        try:
            for step in (1, 2):
                names = {"pt": f"step-{step}.pt", "hf": f"checkpoint-{step}", "deepspeed": f"global_step{step}"}
                order(f"begin {step}", f"begin {step}")
                for name in LAYOUTS:
                    asked = trainer.product.run(f"stage-out {name}", 60)
                    assert asked.rc == (3 if step == 1 else 0), asked  # in the second round the first checkpoint exists
                                                                       # already
                    assert machine.run(f"ls {THERE}/{name}/{names[name]}").rc != 0, asked
                order(f"finish {step}", f"finish {step}")
                for name in LAYOUTS:
                    trainer.wait(lambda name=name: trainer.output(name)["latest_published"] == names[name])
                paths = " ".join(f"{THERE}/{name}/{names[name]}" for name in LAYOUTS)
                order(f"check {step} {paths}", "right")
                for name in LAYOUTS:
                    verified = trainer.product.run(f"verify {VOLUME}:{name}/{names[name]}", 120)
                    assert verified.rc == 0, verified.err
        finally:
            program.signal(9)
            program.wait(30)
