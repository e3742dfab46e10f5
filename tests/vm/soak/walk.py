"""The walk: derives the steps from a seed, and reports the seed and the step of a failure."""
import copy
import random
import time

from . import actions, cache_actions, faults, invariants
from .model import BATON, BOOKS, HOSTS, Model

KINDS = [faults.Begin, faults.End, faults.Renumber, actions.Kill, actions.Restart, actions.Reload, actions.Down,
         actions.DownInUse, actions.Up, actions.Take, actions.Write, actions.Publish, cache_actions.Stage,
         cache_actions.StageForAnHour, cache_actions.Run, cache_actions.Release, cache_actions.Verify, cache_actions.Evict,
         cache_actions.FillDrive, cache_actions.EmptyDrive]


def plan(model, seed, steps):
    """Yields (action, model before, model after). A longer walk starts with the same steps as a shorter one."""
    chance = random.Random(seed)
    for _ in range(steps):
        action = choose(model, chance)
        after = copy.deepcopy(model)
        action.change(after)
        after.settle()
        yield action, model, after
        model = after


def choose(model, chance):
    """Chooses the kind of action by its weight first, then the variant."""
    possible = {kind: choices for kind in KINDS if (choices := kind.choices(model))}
    kind = chance.choices(list(possible), [one.likely for one in possible])[0]
    return chance.choice(possible[kind])


def run(world, seed, steps):
    model = Model(has_reservations=world.has_reservations())
    invariants.check(world, model)
    for step, (action, before, after) in enumerate(plan(model, seed, steps), 1):
        began = time.monotonic()
        print(f"soak: seed {seed}, step {step}: {action}", flush=True)
        try:
            action.perform(world, before)
            acted = time.monotonic() - began
            settled = invariants.check(world, after)
        except Exception as error:
            raise AssertionError(f"seed {seed}, step {step}: {action}: {error}\nrepeat it: make soak SEED={seed} STEPS={step}"
                                 ) from error
        print(f"      done in {acted:.1f} s, all as it should be after {settled:.1f} s, checked in "
              f"{time.monotonic() - began - acted - settled:.1f} s", flush=True)
        model = after
    end(world, model)


def end(world, model):
    """Checks that both file systems are sound after all hosts have released them."""
    if model.fault:
        end_of_fault = faults.End(model.fault)
        end_of_fault.perform(world, model)
        end_of_fault.change(model)
        model.settle()
        invariants.check(world, model)
    for host in HOSTS:
        for volume in (BATON, BOOKS):
            if model.is_up(host, volume):
                world.pause(host, volume)
        actions.expect(world.products[host].run("volumes down", 120), 0)
        model.down |= {(host, volume) for volume in (BATON, BOOKS)}
        look = world.look(host)
        assert [nqn for nqn, _ in look["controllers"] if nqn in (BATON, BOOKS)] == [], look
    for volume in (BATON, BOOKS):
        world.target.remove(volume)
        checked = world.target.machine.run(f"e2fsck -fn /srv/{volume}.img", 120)
        assert checked.rc == 0, f"{volume}: {checked.out}{checked.err}"
    world.target.machine.sh(f"debugfs -R 'dump /log /srv/log' /srv/{BATON}.img")
    invariants.check_records(world.target.machine.get("/srv/log"), world.acked)
