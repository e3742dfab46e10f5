"""A random walk of faults, which a seed replays: `make soak SEED=… STEPS=…`. tests/vm/soak has its parts."""
import os
from collections import Counter

import pytest

from soak import walk
from soak.model import Model

SEED = int(os.environ.get("SPARK_SOAK_SEED", "3"))
STEPS = int(os.environ.get("SPARK_SOAK_STEPS", "15"))


def test_a_seed_replays_its_walk():
    walks = [[str(action) for action, _, _ in walk.plan(Model(True), 4711, 200)] for _ in range(2)]
    assert walks[0] == walks[1]


@pytest.mark.parametrize("has_reservations", (False, True))
def test_a_long_walk_does_everything(has_reservations):
    done = Counter(type(action) for action, _, _ in walk.plan(Model(has_reservations), 1, 3000))
    assert set(done) == set(walk.KINDS), done


def test_a_random_walk_of_faults_breaks_no_promise(soak_world):
    walk.run(soak_world, SEED, STEPS)
