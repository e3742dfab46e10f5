"""What the world of a walk has to be. No machines in here: the same seed gives the same walk.

Two hosts, one target, two volumes. The baton is wanted by both hosts for writing: one holds it. The books are written by the
first host, published, and read by the second, which also stages them.
"""
from dataclasses import dataclass, field

HOSTS = (0, 1)
WRITER, READER = HOSTS  # of the books
TARGET = "target"
BATON, BOOKS = "baton", "books"
VOLUMES = (BATON, BOOKS)

# While a volume's target can't be reached. Not `ready`: that is seen, and not `refused`: there is nothing to decide.
AWAY = {"stalled", "lost", "waiting", "connecting", "mounting", "recovering"}


@dataclass(frozen=True)
class Fault:
    kind: str  # of a machine: cable out, frozen, off; of a volume: unlinked, disabled, replaced
    place: int | str  # a host, the target or a volume

    def __str__(self):
        return f"{name_of(self.place)} {self.kind}"


@dataclass
class Model:
    has_reservations: bool
    fault: Fault | None = None
    down: set = field(default_factory=set)  # (host, volume), by an operator
    holder: int | None = 0  # of the baton; stays it while it is off
    generation: int = 1  # of the books, as published
    content: int = 1  # the number in the books, flushed
    is_writing: bool = False  # the books are open for writing
    staged: int | None = None  # content of the reader's copy
    leases: list = field(default_factory=list)  # content of each leased copy
    is_full: bool = False  # the drive of the reader's cache

    def answers(self, host):
        return self.fault not in (Fault("off", host), Fault("frozen", host))

    def is_reached(self, host):
        """The host is up and on the wire, and so is the target."""
        return self.fault is None or self.fault.place not in (host, TARGET)

    def works(self, host, volume):
        """Nothing stands between this host and the volume."""
        return self.is_reached(host) and (self.fault is None or self.fault.place != volume)

    def is_up(self, host, volume):
        return (host, volume) not in self.down

    def may_serve(self, host, volume):
        """It has the volume mounted, when nothing is wrong."""
        return self.is_up(host, volume) and (volume == BOOKS or self.holder == host)

    def serves(self, host, volume):
        return self.works(host, volume) and self.may_serve(host, volume)

    def is_writable(self, host, volume):
        return volume == BATON or (host == WRITER and self.is_writing)

    def states(self, host, volume):
        """Any of these, as `status` of this host says, when things have settled."""
        if not self.is_up(host, volume):
            return {"down"}
        if self.fault == Fault("replaced", volume):
            return {"refused"}
        if not self.may_serve(host, volume):
            return {"refused"} if self.works(host, volume) else AWAY | {"refused"}
        if not self.works(host, volume):
            return AWAY | ({"refused"} if self.is_torn(host, volume) else set())
        return {"ready", "refused"} if self.is_torn(host, volume) else {"ready"}

    def is_torn(self, host, volume):
        """A reader whose volume is being written: an old mount stays, with a warning; a new one is refused."""
        return volume == BOOKS and host == READER and self.is_writing

    def settle(self):
        """A baton that is free goes to the host that wants it and reaches it: there is never more than one such host."""
        if self.holder is not None and not self.is_up(self.holder, BATON):
            self.holder = None
        if self.holder is None:
            waiting = [host for host in HOSTS if self.is_up(host, BATON) and self.works(host, BATON)]
            assert len(waiting) <= 1, self
            self.holder = waiting[0] if waiting else None


def name_of(place):
    return f"host{place + 1}" if place in HOSTS else place
