"""Faults: at most one at a time, until a later step ends it."""
from dataclasses import dataclass

from rig.target import stable_uuid

from .actions import Action
from .model import HOSTS, TARGET, VOLUMES, Fault
from .world import OTHER, image_of


@dataclass(frozen=True)
class Begin(Action):
    fault: Fault
    likely = 12

    @classmethod
    def choices(cls, model):
        if model.fault:
            return []
        return [cls(Fault(kind, place)) for kind in ("cable out", "frozen", "off") for place in (*HOSTS, TARGET)] + [
            cls(Fault(kind, volume)) for kind in ("unlinked", "disabled", "replaced") for volume in VOLUMES]

    def perform(self, world, model):
        kind, place = self.fault.kind, self.fault.place
        if place in VOLUMES:
            {"unlinked": world.target.unlink,
             "disabled": lambda volume: world.target.replace(volume, ""),
             "replaced": lambda volume: world.target.replace(volume, OTHER, stable_uuid("other"))}[kind](place)
            return
        machine = machine_of(world, place)
        if place in HOSTS:
            world.seen(place)  # perhaps for the last time
        {"cable out": lambda: machine.set_link(False), "frozen": machine.freeze, "off": machine.kill}[kind]()
        if kind == "frozen" and place in HOSTS:  # until the target gives up the connection, so that the host returns late
            world.target.machine.wait_until(f"! ss -Htn dst {machine.address} | grep -q ':4420 '", 60)

    def change(self, model):
        model.fault = self.fault

    def __str__(self):
        return str(self.fault)


@dataclass(frozen=True)
class End(Action):
    fault: Fault
    likely = 20

    @classmethod
    def choices(cls, model):
        return [cls(model.fault)] if model.fault else []

    def perform(self, world, model):
        kind, place = self.fault.kind, self.fault.place
        if place in VOLUMES:
            if kind == "unlinked":
                world.target.link(place)
            else:
                world.target.replace(place, image_of(place))
        elif kind == "off":
            self._switch_on(world)
        else:
            machine = machine_of(world, place)
            {"cable out": lambda: machine.set_link(True), "frozen": machine.thaw}[kind]()
            if kind == "frozen" and place in HOSTS:
                world.expect_books(place, None)  # the books may have been written meanwhile

    def _switch_on(self, world):
        if self.fault.place == TARGET:
            world.restart_target()
        else:
            machine_of(world, self.fault.place).start()
            world.settle_in(self.fault.place)

    def change(self, model):
        model.fault = None

    def __str__(self):
        return f"{self.fault}: over"


def machine_of(world, place):
    return world.target.machine if place == TARGET else world.hosts[place]


@dataclass(frozen=True)
class Renumber(Action):
    """The same file system under another identity, and at once under its own again."""
    volume: str
    likely = 1

    @classmethod
    def choices(cls, model):
        return [] if model.fault else [cls(volume) for volume in VOLUMES]

    def perform(self, world, model):
        for identity in (f"{self.volume} renumbered", self.volume):
            world.target.replace(self.volume, image_of(self.volume), stable_uuid(identity))

    def __str__(self):
        return f"{self.volume} with another namespace identity, and its own again"
