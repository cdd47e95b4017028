"""Log lines: one a decision, as `what key=value …`, so that people and machines can read them."""

import json
import logging


def line(what: str, **facts: object) -> str:
    """One line; values that are not plain words are quoted."""
    return " ".join([what, *(f"{key}={_shown(value)}" for key, value in facts.items())])


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    is_plain = text.isprintable() and bool(text) and not set(text) & set(' "=')
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def set_up(level: str) -> None:
    """Write log lines to standard error, with the time in UTC."""
    logging.basicConfig(
        level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s", force=True
    )
    # Kopf says of each event of each object that its handler succeeded.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # What it warns of, we say ourselves.
    logging.getLogger("kubernetes").setLevel(logging.ERROR)
