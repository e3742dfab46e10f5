"""Actions on the reader's copy of the books."""
import json
from dataclasses import dataclass

from rig.house import LOCAL

from .actions import Action, expect
from .model import BOOKS, READER, name_of

EVICT_REFUSED, NOT_THERE, NO_SPACE, UNSAFE, UNAVAILABLE = 7, 3, 5, 7, 4


@dataclass(frozen=True)
class OnReader(Action):

    @classmethod
    def choices(cls, model):
        return [cls()] if model.answers(READER) and cls.is_possible(model) else []

    @classmethod
    def is_possible(cls, model):
        return True

    def __str__(self):
        return f"{name_of(READER)}: {self.__doc__}"


class Stage(OnReader):
    """stage"""
    likely = 5
    how = "stage set --json"

    @classmethod
    def is_possible(cls, model):
        return model.works(READER, BOOKS)

    def perform(self, world, model):
        wanted = self.outcomes(model)
        result = expect(world.products[READER].run(self.how, 180), *wanted)
        if result.rc == 0:
            self.check(world, model, json.loads(result.out)["datasets"][0])

    def check(self, world, model, staged):
        content = model.staged if model.is_torn(READER, BOOKS) else model.content
        assert staged["served_from"] == ("cache" if model.staged == content else "copied"), staged
        wrong = world.difference(READER, staged["path"], content)
        assert not wrong, f"staged, and not what was published as {content}: {wrong}"

    @staticmethod
    def outcomes(model):
        if not model.is_up(READER, BOOKS):
            return {UNAVAILABLE}
        if model.is_torn(READER, BOOKS):
            # The volume may be unmounted, or still mounted: then a copy is served while it matches the old mount.
            return {UNAVAILABLE, UNSAFE} | ({0} if model.staged is not None else set())
        return {NO_SPACE} if model.is_full and model.staged != model.content else {0}

    def change(self, model):
        if self.outcomes(model) == {0}:
            model.staged = model.content


class StageForAnHour(Stage):
    """stage --lease 1h"""
    how = "stage set --lease 1h --json"
    likely = 2

    @classmethod
    def is_possible(cls, model):
        return super().is_possible(model) and len(model.leases) < 2 and not model.is_torn(READER, BOOKS)

    def check(self, world, model, staged):
        super().check(world, model, staged)
        known = {lease for lease, _, _ in world.leases}
        new = [row["id"] for row in world.products[READER].dataset("set")["leases"] if row["id"] not in known]
        assert len(new) == 1, f"{len(new)} new leases: {new}"
        world.leases.append((new[0], staged["path"], model.content))

    def change(self, model):
        super().change(model)
        if self.outcomes(model) == {0}:
            model.leases.append(model.content)


class Run(Stage):
    """run, whose lease ends with its command"""
    how = "run set -- sh -c 'cmp -n 8 $SPARK_STAGE_SET/0 $SPARK_STAGE_SET/1'"
    likely = 2

    def check(self, world, model, staged):
        pass

    def perform(self, world, model):
        expect(world.products[READER].run(self.how, 180), *self.outcomes(model))


class Release(OnReader):
    """release of a lease"""

    @classmethod
    def is_possible(cls, model):
        return bool(model.leases)

    def perform(self, world, model):
        expect(world.products[READER].run(f"release {world.leases.pop(0)[0]}", 60), 0)

    def change(self, model):
        model.leases.pop(0)


class Verify(OnReader):
    """verify"""

    def perform(self, world, model):
        expect(world.products[READER].run("verify set", 120), NOT_THERE if model.staged is None else 0)


class Evict(OnReader):
    """evict"""

    def perform(self, world, model):
        expect(world.products[READER].run("evict set", 120), *self.outcomes(model))

    @staticmethod
    def outcomes(model):
        if model.staged is None:
            return {NOT_THERE, 0}  # a failed attempt may have left files
        return {EVICT_REFUSED} if model.leases else {0}

    def change(self, model):
        if not model.leases:
            model.staged = None


class FillDrive(OnReader):
    """the drive of the cache full"""

    @classmethod
    def is_possible(cls, model):
        return not model.is_full

    def perform(self, world, model):
        world.hosts[READER].sh(f"fallocate -l $(df --output=avail -B1 {LOCAL} | tail -1) {LOCAL}/filler || "
                               f"head -c 1G /dev/zero >{LOCAL}/filler || true; sync -f {LOCAL}", 60)

    def change(self, model):
        model.is_full = True


class EmptyDrive(OnReader):
    """the drive of the cache has room again"""
    likely = 6

    @classmethod
    def is_possible(cls, model):
        return model.is_full

    def perform(self, world, model):
        world.hosts[READER].sh(f"rm {LOCAL}/filler && sync -f {LOCAL}", 60)

    def change(self, model):
        model.is_full = False
