"""The expected state of the world during a walk. Contains no machines: the same seed gives the same walk.

Two hosts, one target, two volumes. Both hosts want to write the baton, and one at a time holds it. The books are written by
the first host, published, and read by the second, which also stages them.
"""
from dataclasses import dataclass, field

HOSTS = (0, 1)
WRITER, READER = HOSTS  # of the books
TARGET = "target"
BATON, BOOKS = "baton", "books"
VOLUMES = (BATON, BOOKS)

# The possible states while a volume's target is unreachable. Not `ready`, since the fault is detected; not `refused`, since
# nothing can be decided.
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
    down: set = field(default_factory=set)  # (host, volume) taken down by an operator
    holder: int | None = 0  # of the baton; remains the holder while it is off
    generation: int = 1  # published generation of the books
    content: int = 1  # number in the books, flushed
    is_writing: bool = False  # the books are open for writing
    staged: int | None = None  # content of the reader's copy
    leases: list = field(default_factory=list)  # content of each leased copy
    is_full: bool = False  # the drive of the reader's cache

    def answers(self, host):
        return self.fault not in (Fault("off", host), Fault("frozen", host))

    def is_reached(self, host):
        """The host and the target are up and connected."""
        return self.fault is None or self.fault.place not in (host, TARGET)

    def works(self, host, volume):
        """No fault affects this host's use of the volume."""
        return self.is_reached(host) and (self.fault is None or self.fault.place != volume)

    def is_up(self, host, volume):
        return (host, volume) not in self.down

    def may_serve(self, host, volume):
        """The host has the volume mounted when there is no fault."""
        return self.is_up(host, volume) and (volume == BOOKS or self.holder == host)

    def serves(self, host, volume):
        return self.works(host, volume) and self.may_serve(host, volume)

    def is_writable(self, host, volume):
        return volume == BATON or (host == WRITER and self.is_writing)

    def states(self, host, volume):
        """The states of `status` on this host that are possible once it has settled."""
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
        """A reader of a volume that is being written: an existing mount stays, with a warning; a new one is refused."""
        return volume == BOOKS and host == READER and self.is_writing

    def settle(self):
        """Gives a free baton to the host that wants it and can reach it; there is never more than one such host."""
        if self.holder is not None and not self.is_up(self.holder, BATON):
            self.holder = None
        if self.holder is None:
            waiting = [host for host in HOSTS if self.is_up(host, BATON) and self.works(host, BATON)]
            assert len(waiting) <= 1, self
            self.holder = waiting[0] if waiting else None


def name_of(place):
    return f"host{place + 1}" if place in HOSTS else place
