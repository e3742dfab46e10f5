"""A random walk of faults, reproducible by its seed: `make soak SEED=… STEPS=…`. The parts are in tests/vm/soak."""
import os
from collections import Counter

import pytest

from soak import walk
from soak.invariants import check_records
from soak.model import Model

SEED = int(os.environ.get("SPARK_SOAK_SEED", "3"))
STEPS = int(os.environ.get("SPARK_SOAK_STEPS", "15"))


def test_a_seed_replays_its_walk():
    walks = [[str(action) for action, _, _ in walk.plan(Model(True), 4711, 200)] for _ in range(2)]
    assert walks[0] == walks[1]


@pytest.mark.parametrize("has_reservations", (False, True))
def test_a_long_walk_has_every_kind_of_action(has_reservations):
    done = Counter(type(action) for action, _, _ in walk.plan(Model(has_reservations), 1, 3000))
    assert set(done) == set(walk.KINDS), done


def log(*records):
    return "".join(f"{number:010} {writer:04}\n" for number, writer in records)


def test_a_log_of_successive_writers_is_accepted():
    check_records(log((1, 1), (2, 1), (3, 2)), {1: 2, 2: 3, 3: 0})


@pytest.mark.parametrize("text, acked", [
    (log((1, 1), (3, 1)), {}), (log((1, 1), (1, 2)), {}), (log((1, 1), (2, 1)), {1: 3}), (log((1, 1), (2, 2)), {1: 2}),
    (log((1, 1))[:-1], {})], ids=["a gap", "two at once", "lost", "lost and written by another", "torn"])
def test_a_log_with_two_writers_or_a_lost_record_is_rejected(text, acked):
    with pytest.raises(AssertionError):
        check_records(text, acked)


def test_a_random_walk_of_faults_breaks_no_promise(soak_world):
    walk.run(soak_world, SEED, STEPS)
