"""Machines of one module: started for it, and reported when they or a test fail."""
from rig import image
from rig.topology import Topology


def made_of(kind, tell=lambda made: None):
    """Yields a `kind` on machines with the product, started. `tell` adds to the report of a failure."""
    yield from made_on(Topology(install_tree=image.install_product()), kind, tell)


def made_on(topology, kind, tell=lambda made: None):
    with topology as rig:
        made = kind(rig)
        try:
            made.start()
            yield made
        except BaseException:
            print(rig.report())
            tell(made)
            raise
