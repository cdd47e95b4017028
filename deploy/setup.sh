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
readonly PYTHON=${PYTHON:-python3}
readonly UV_VERSION=0.13.9

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: $PYTHON is older than 3.11; set PYTHON to a newer one" >&2
    exit 3
}
key=$({ cat requirements.lock pyproject.toml; "$PYTHON" -VV; echo "$CLONE"; } | sha256sum | cut -c1-16)
readonly ENVIRONMENT=$CACHE/environments/$key
if [ -f "$ENVIRONMENT/ready" ] && [ "$(readlink .venv 2>/dev/null)" = "$ENVIRONMENT" ]; then
    exit 0
fi

mkdir -p "$CACHE/environments"
for other in "$CACHE"/environments/*/clone; do
    # Removed with its clone, or replaced: this clone's own earlier lock.
    [ -f "$other" ] || continue
    of=$(cat "$other")
    if [ ! -d "$of" ] || { [ "$of" = "$CLONE" ] && [ "$(dirname "$other")" != "$ENVIRONMENT" ]; }; then
        rm -rf "$(dirname "$other")"
    fi
done

uv=$CACHE/uv-$UV_VERSION/bin/uv
if [ ! -x "$uv" ]; then
    echo "setup: fetching uv $UV_VERSION" >&2
    "$PYTHON" -m venv "$CACHE/uv-$UV_VERSION"
    "$CACHE/uv-$UV_VERSION/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"
fi
export UV_CACHE_DIR=$CACHE/packages UV_LINK_MODE=hardlink UV_PYTHON_DOWNLOADS=never UV_HTTP_TIMEOUT=300

echo "setup: installing the locked packages (the first time downloads about 3 GB, most of it CUDA for torch)" >&2
rm -rf "$ENVIRONMENT"
"$uv" venv --quiet --python "$PYTHON" "$ENVIRONMENT"
echo "$CLONE" > "$ENVIRONMENT/clone"
# Compiled at once: where Python may not write, torch takes seconds more at each import.
VIRTUAL_ENV=$ENVIRONMENT "$uv" pip install --require-hashes --compile-bytecode -r requirements.lock
VIRTUAL_ENV=$ENVIRONMENT "$uv" pip install --quiet --no-deps -e .
touch "$ENVIRONMENT/ready"
if [ -d .venv ] && [ ! -L .venv ]; then
    echo "setup: .venv is a directory of your own; move it away and run this again" >&2
    exit 2
fi
ln -sfn "$ENVIRONMENT" .venv
