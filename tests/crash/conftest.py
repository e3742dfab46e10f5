import pytest

from copier import Copier
from drives import drive, why_none


@pytest.fixture
def place(tmp_path):
    """A folder for source and copy: a drive of its own where there are loop devices, else a plain folder."""
    if why_none():
        yield tmp_path
    else:
        with drive(tmp_path / "drive", 600 << 20) as mounted:
            yield mounted


@pytest.fixture(params=["io_uring", "threads"])
def copier(request, place):
    return Copier(place / "source", place / "copy", f"--io={request.param}")
