#!/usr/bin/env bash
# Makes `.venv`: the locked environment with this checkout in it.
#
# PyPI's torch brings CUDA (5 GB), so packages are downloaded once into MUSTER_CACHE and hard-linked from there: a second
# clone's environment takes seconds and no space. The environment lies in the cache too, since links need one file system;
# `.venv` points at it. Environments of clones that are gone are removed.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CLONE=$PWD
readonly CACHE=${MUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster}
readonly UV_VERSION=0.13.9

fail() { # CODE MESSAGE
    echo "setup: $2" >&2
    exit "$1"
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local each
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" || fail 3 "PYTHON=$PYTHON is not there, or older than 3.11"
        echo "$PYTHON"
        return
    fi
    for each in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_new_enough "$each"; then
            echo "$each"
            return
        fi
    done
    fail 3 "there is no Python 3.11 or newer on PATH; set PYTHON to one"
}

python=$(find_python)
readonly python
# What needs all packages anew, and what only this project's own scripts.
key=$({ cat requirements.lock; "$python" -VV; echo "$CLONE"; } | sha256sum | cut -c1-16)
project=$(sha256sum <pyproject.toml | cut -c1-16)
readonly project
readonly environment=$CACHE/environments/$key

if [ -d .venv ] && [ ! -L .venv ]; then
    fail 2 ".venv is a directory of your own; move it away and run this again"
fi
if [ "$(readlink .venv 2>/dev/null)" = "$environment" ] &&
    [ "$(cat "$environment/project" 2>/dev/null)" = "$project" ]; then
    exit 0
fi

mkdir -p "$CACHE/environments"
exec 9>"$CACHE/setup.lock"
flock 9
for other in "$CACHE"/environments/*/clone; do
    # Removed with its clone, or replaced: this clone's own earlier lock.
    [ -f "$other" ] || continue
    of=$(cat "$other")
    if [ ! -d "$of" ] || { [ "$of" = "$CLONE" ] && [ "$(dirname "$other")" != "$environment" ]; }; then
        rm -rf "$(dirname "$other")"
    fi
done

uv=$CACHE/uv-$UV_VERSION/bin/uv
if [ ! -x "$uv" ]; then
    echo "setup: fetching uv $UV_VERSION" >&2
    "$python" -m venv --clear "$CACHE/uv-$UV_VERSION" >&2 ||
        fail 3 "$python cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)"
    "$CACHE/uv-$UV_VERSION/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"
fi
export UV_CACHE_DIR=$CACHE/packages UV_LINK_MODE=hardlink UV_PYTHON_DOWNLOADS=never UV_HTTP_TIMEOUT=300
export VIRTUAL_ENV=$environment

if [ ! -f "$environment/ready" ]; then
    echo "setup: installing the locked packages (the first time downloads about 3 GB, most of it CUDA for torch)" >&2
    rm -rf "$environment"
    "$uv" venv --quiet --python "$python" "$environment"
    echo "$CLONE" >"$environment/clone"
    # Compiled at once: where Python may not write, torch takes seconds more at each import.
    "$uv" pip install --quiet --require-hashes --compile-bytecode -r requirements.lock
    touch "$environment/ready"
fi
"$uv" pip install --quiet --no-deps -e .
echo "$project" >"$environment/project"
ln -sfn "$environment" .venv
