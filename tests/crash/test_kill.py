"""kill -9 at random moments: what has the name of the copy is whole, and the next run goes on."""
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import trees
from copier import PATIENCE_S, Copier

KILLS = 25  # for each way of reading and writing: 50
MIB = 1 << 20


def new_random():
    seed = int(os.environ.get("SPARK_CRASH_SEED", time.time_ns() % 1_000_000))
    print(f"SPARK_CRASH_SEED={seed}")
    return Random(seed)


class Watch:
    """What may have the name of the copy: the source as it is now, or what had it before."""

    def __init__(self, copier, before):
        self.copier, self.before = copier, before

    def check(self):
        """Returns whether it is the source as it is now."""
        if not self.copier.copy.exists():
            assert not self.before.exists(), "what had the name before is gone"
            return False
        difference = trees.differences(self.copier.source, self.copier.copy)
        if not difference:
            trees.clone(self.copier.source, self.before)
        elif not self.before.exists() or trees.differences(self.before, self.copier.copy):
            raise AssertionError(f"what has the name is neither the new copy nor the one before:\n{difference}\n"
                                 f"and the one before:\n{trees.differences(self.before, self.copier.copy)}")
        return not difference


def seconds_of_a_copy(copier):
    began = time.monotonic()
    trial = Copier(copier.source, copier.copy.parent / "trial")
    trial.finish()
    return time.monotonic() - began


def test_after_a_kill_at_any_moment_the_copy_is_absent_or_complete(copier, place):
    """Also while the source changes from one run to the next, and while an earlier copy is replaced."""
    random = new_random()
    trees.make(copier.source, random)
    watch = Watch(copier, place / "before")
    whole = seconds_of_a_copy(copier)
    killed = in_publishing = finished = replaced = 0
    end = time.monotonic() + PATIENCE_S
    # On a busy computer a kill that aims at the publishing often comes too late: then more of them.
    while killed < KILLS or (in_publishing == 0 and time.monotonic() < end):
        late = random.random() < 0.4 or killed >= KILLS
        if late:
            was_killed = copier.kill_after(random.uniform(0, 0.02), copier.is_publishing)
        else:
            was_killed = copier.kill_after(random.uniform(0, whole))
        killed += was_killed
        in_publishing += was_killed and copier.is_publishing()
        is_new = watch.check()
        assert was_killed or is_new, "it said that it was done"
        finished += not was_killed
        replaced += was_killed and is_new
        if is_new or random.random() < 0.3:
            trees.change(copier.source, random)
    print(f"{killed} killed, {in_publishing} of them while publishing, {replaced} after the rename; {finished} ended")
    assert in_publishing > 0
    copier.finish("--verify")
    assert watch.check()
    assert not copier.partial.exists()


RATE = 16 * MIB  # slow enough for the journal to be written several times in the middle of a copy
UNDER_WAY = 32 * MIB  # at most: pieces that are begun and not finished, which no journal names


def copied_and_taken_over(copier, times):
    """Kills a slow copy when its journal was written so many times. Returns the bytes that were on the drive the time
    before, all of which this journal names but what was under way, and those that the next run used."""
    process = copier.start(f"--max-rate={RATE}B/s")
    size = copied = 0
    while times and process.poll() is None:
        if len(copier.journal()) > size:
            size, times = len(copier.journal()), times - 1
            copied = copied if times == 0 else trees.bytes_on_disk(copier.partial / "data")
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode < 0, "the copy has ended before its journal was written so often"
    resumed = copier.finish()["resumed_bytes"]
    assert not trees.differences(copier.source, copier.copy)
    print(f"killed at {copied / MIB:.1f} MiB and a turn of the journal more, taken over {resumed / MIB:.1f}")
    return copied, resumed


def test_a_kill_loses_at_most_the_part_not_yet_in_the_journal(copier, place):
    """Copies side by side, each killed once."""
    trees.make(copier.source, new_random(), large=(21 * MIB + 1,) * 4, holes=False)
    trials = [(Copier(copier.source, place / f"trial-{i}", *copier.options), 1 + i) for i in range(4)]
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda trial: copied_and_taken_over(*trial), trials))
    assert all(copied - resumed <= UNDER_WAY for copied, resumed in results)
    assert any(resumed > 0 for _, resumed in results)


def kill_before_the_rename(copier):
    """Leaves a partial copy that is complete, with its manifest."""
    for _ in range(20):
        if copier.kill_after(0, copier.is_publishing) and not copier.copy.exists():
            return
        for left in (copier.copy, copier.partial):
            shutil.rmtree(left, ignore_errors=True)
    raise AssertionError("it was never killed between the manifest and the rename")


def test_after_a_kill_while_publishing_nothing_is_copied_again(copier):
    trees.make(copier.source, new_random())
    kill_before_the_rename(copier)
    report = copier.finish()
    assert report["resumed_bytes"] == report["bytes"]
    assert not copier.partial.exists()


def test_after_a_kill_while_publishing_a_source_that_grew_is_journaled_again(copier):
    """The manifest that was left knows nothing of the new file."""
    trees.make(copier.source, new_random(), small=20, large=[MIB], holes=False)
    kill_before_the_rename(copier)
    trees.write(os.fsencode(copier.source) + b"/new", os.urandom(64 * MIB))
    copied, resumed = copied_and_taken_over(copier, 3)
    assert copied - resumed <= UNDER_WAY
