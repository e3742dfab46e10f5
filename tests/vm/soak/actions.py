"""The actions of a walk: when they are possible, their commands, and the state of the world afterwards."""
from dataclasses import dataclass

from .model import BATON, BOOKS, HOSTS, READER, VOLUMES, WRITER, Fault, name_of
from .world import mount_of


def expect(result, *wanted):
    assert result.rc in wanted, f"exit status {result.rc} instead of {' or '.join(map(str, wanted))}:\n{result.out}{result.err}"
    return result


@dataclass(frozen=True)
class Action:
    """One action. `likely` is its weight among the possible actions."""
    likely = 2

    @classmethod
    def choices(cls, model):
        """The variants that are possible now; empty: none."""
        raise NotImplementedError

    def perform(self, world, model):
        """`model` is the state before the action."""
        raise NotImplementedError

    def change(self, model):
        """Updates the model to the state afterwards."""


# --- the daemon ---

@dataclass(frozen=True)
class OnHost(Action):
    host: int

    @classmethod
    def choices(cls, model):
        return [cls(host) for host in HOSTS if model.answers(host)]

    def __str__(self):
        return f"{name_of(self.host)}: {self.__doc__}"


class TouchesNoMount(OnHost):
    """Whatever state the volumes are in."""

    def perform(self, world, model):
        before = world.look(self.host)["mounts"]
        self.disturb(world)
        after = world.look(self.host)["mounts"]
        kept = [volume for volume in VOLUMES if model.serves(self.host, volume)]
        assert all(before[volume] == after[volume] for volume in kept), f"mounts were touched: {before}, then {after}"


class Kill(TouchesNoMount):
    """kill -9 of the daemon"""
    likely = 3

    def disturb(self, world):
        world.products[self.host].kill()
        world.note_daemon(self.host)


class Restart(TouchesNoMount):
    """systemctl restart"""
    likely = 3

    def disturb(self, world):
        world.products[self.host].restart()
        world.note_daemon(self.host)


class Reload(TouchesNoMount):
    """reload with another reconnect_delay"""

    def disturb(self, world):
        world.reconnect_s[self.host] = 5 - world.reconnect_s[self.host]  # 2 or 3
        world.products[self.host].configure(world.config(self.host))


# --- volumes, by their operators ---

@dataclass(frozen=True)
class OnVolume(Action):
    host: int
    volume: str

    def __str__(self):
        return f"{name_of(self.host)}: volumes {type(self).__name__.lower()} {self.volume}"


class Down(OnVolume):

    @classmethod
    def choices(cls, model):
        return [cls(host, volume) for host in HOSTS for volume in VOLUMES
                if model.is_up(host, volume) and model.works(host, volume)
                and not (model.is_writing and (host, volume) == (WRITER, BOOKS))]

    def perform(self, world, model):
        world.pause(self.host, self.volume)
        expect(world.products[self.host].run(f"volumes down {self.volume}", 120), 0)
        world.go_on(self.host, self.volume)

    def change(self, model):
        model.down.add((self.host, self.volume))


class DownInUse(OnVolume):
    """Refused: jobs have files open."""
    likely = 1

    @classmethod
    def choices(cls, model):
        return [cls(model.holder, BATON)] if model.holder is not None and model.serves(model.holder, BATON) else []

    def perform(self, world, model):
        result = expect(world.products[self.host].run(f"volumes down {self.volume}", 120), 7, 1)
        assert "soak-witness" in result.err or "python3" in result.err, result.err

    def __str__(self):
        return f"{name_of(self.host)}: volumes down {self.volume} while a job writes there"


class Up(OnVolume):
    likely = 6

    @classmethod
    def choices(cls, model):
        return [cls(host, volume) for host, volume in sorted(model.down) if model.works(host, volume)]

    def perform(self, world, model):
        if (self.host, self.volume) == (WRITER, BOOKS) and model.answers(READER):
            world.expect_books(READER, None)
        expect(world.products[self.host].run(f"volumes up {self.volume}", 120), 0)

    def change(self, model):
        model.down.discard((self.host, self.volume))
        if (self.host, self.volume) == (WRITER, BOOKS):
            model.is_writing = True


class Take(OnVolume):
    likely = 3

    @classmethod
    def choices(cls, model):
        return [cls(host, BATON) for host in HOSTS if cls._is_possible(model, host)]

    @staticmethod
    def _is_possible(model, host):
        other = 1 - host
        if model.holder != other or not model.is_up(host, BATON) or not model.works(host, BATON):
            return False
        # Without reservations nothing stops the other host when it returns, so it must be switched off.
        return model.has_reservations or model.fault == Fault("off", other)

    def perform(self, world, model):
        result = expect(world.products[self.host].run(f"volumes take {self.volume} --yes", 300), 0)
        assert "taken over from" in result.out, result.out

    def change(self, model):
        model.holder = self.host


@dataclass(frozen=True)
class Write(Action):
    """The writer opens its books and changes all of them."""
    likely = 3

    @classmethod
    def choices(cls, model):
        return [cls()] if model.serves(WRITER, BOOKS) else []

    def perform(self, world, model):
        for host in HOSTS:
            if model.answers(host):
                world.expect_books(host, None)
        if not model.is_writing:
            expect(world.products[WRITER].run(f"volumes up {BOOKS}", 120), 0)
        world.hosts[WRITER].ask("soak-write_books", mount_of(BOOKS), model.content + 1)

    def change(self, model):
        model.is_writing = True
        model.content += 1

    def __str__(self):
        return f"{name_of(WRITER)}: writes the books"


@dataclass(frozen=True)
class Publish(Action):
    likely = 12

    @classmethod
    def choices(cls, model):
        return [cls()] if model.is_writing and model.serves(WRITER, BOOKS) else []

    def perform(self, world, model):
        world.pause(WRITER, BOOKS)  # the jobs create files there
        expect(world.products[WRITER].run(f"volumes publish {BOOKS}", 120), 0)
        world.go_on(WRITER, BOOKS)

    def change(self, model):
        model.is_writing = False
        model.generation += 1

    def __str__(self):
        return f"{name_of(WRITER)}: volumes publish {BOOKS}"
