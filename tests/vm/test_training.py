"""Checkpoints of real frameworks: a job of two processes that is killed and resumes, and the checkpoint layouts of jobs."""
import json
import os

import pytest

from rig.trainer import OUT, THERE, VOLUME, Trainer, python

ROUNDS = int(os.environ.get("SPARK_TRAINING_ROUNDS", "10"))
PYTHON = python("lo")
# The rule for complete checkpoints, by output.
LAYOUTS = {"pt": "rename", "hf": "hf", "deepspeed": "deepspeed"}


@pytest.fixture(scope="module")
def trainer(product_rig, house):
    made = Trainer(product_rig, house)
    try:
        made.start()
        yield made
    finally:
        made.host.kill()


def test_a_killed_job_resumes_from_a_complete_checkpoint_and_loses_none(trainer):
    with trainer.outputs(run7={"complete": "dcp", "keep": 2, "keep_local": 2}):
        ended = trainer.host.run(f"exec {PYTHON} /root/job.py run7 {OUT}/run7 {THERE}/run7 {ROUNDS}", 60 + 40 * ROUNDS)
        assert ended.rc == 0, ended.out + ended.err
        rounds = [json.loads(line) for line in ended.out.splitlines()]
        print("\n".join(map(json.dumps, rounds)))
        assert len(rounds) == ROUNDS and rounds[-1]["published"] > 0
        trainer.wait(lambda: trainer.output("run7")["latest_published"] == trainer.output("run7")["latest_local"])
        for name in trainer.host.sh(f"cd {THERE}/run7 && ls -d step-*").split():
            verified = trainer.product.run(f"verify {VOLUME}:run7/{name}", 120)
            assert verified.rc == 0, verified.err


def test_checkpoints_of_frameworks_are_sent_when_complete_and_load_from_the_volume(trainer):
    with trainer.outputs(**{name: {"complete": rule, "keep": 1} for name, rule in LAYOUTS.items()}):
        machine = trainer.host
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
