"""Files that come with the package: from their home in a checkout, beside us in the wheel."""

from pathlib import Path

from muster.errors import NotFound

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parents[2]


def chart() -> Path:
    """The Helm chart, whose `crds/` and `files/` a local cluster applies as they are."""
    return _first(_CHECKOUT / "charts" / "muster", _PACKAGE / "charts" / "muster")


def examples() -> Path:
    """The example jobs."""
    return _first(_CHECKOUT / "deploy" / "examples", _PACKAGE / "examples")


def builds() -> Path:
    """The pinned Go modules, a directory a project."""
    return _PACKAGE / "builds"


def _first(*places: Path) -> Path:
    for place in places:
        if place.is_dir():
            return place
    raise NotFound(f"the installation is not whole: there is no {places[-1]}")
