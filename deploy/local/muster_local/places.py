"""Where this machine keeps what is Muster's: programs in the cache, clusters in the state."""

import os
import platform
from pathlib import Path


def cache_directory() -> Path:
    """What can be fetched again: `MUSTER_CACHE`, else `$XDG_CACHE_HOME/muster`."""
    return _directory("MUSTER_CACHE", "XDG_CACHE_HOME", ".cache")


def home_directory() -> Path:
    """The local clusters, one directory each: `MUSTER_HOME`, else `$XDG_STATE_HOME/muster`."""
    return _directory("MUSTER_HOME", "XDG_STATE_HOME", ".local/state")


def machine() -> tuple[str, str]:
    """Operating system and processor, in Go's words, which downloads use in their names."""
    processor = platform.machine().lower()
    return platform.system().lower(), {"x86_64": "amd64", "aarch64": "arm64"}.get(
        processor, processor
    )


def _directory(own: str, base: str, fallback: str) -> Path:
    if named := os.environ.get(own):
        return Path(named).expanduser().absolute()
    root = os.environ.get(base)
    return (Path(root) if root else Path.home() / fallback).absolute() / "muster"
