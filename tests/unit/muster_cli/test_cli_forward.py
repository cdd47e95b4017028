import pytest

from muster.errors import Unavailable
from muster_cli.forward import forwarded


def kubectl(tmp_path, body):
    """A program that behaves as kubectl would."""
    script = tmp_path / "kubectl"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n{body}\n')
    script.chmod(0o755)
    return str(script)


def test_the_port_is_the_one_that_kubectl_chose(tmp_path):
    program = kubectl(tmp_path, "echo 'Forwarding from 127.0.0.1:4711 -> 8080'; exec sleep 60")

    with forwarded(["--context", "far"], kubectl=program) as url:
        assert "http://127.0.0.1:4711" == url

    asked = (tmp_path / "arguments").read_text().strip()
    assert "--context far port-forward -n muster-system svc/muster-api :80" == asked


def test_what_kubectl_says_is_passed_on(tmp_path):
    program = kubectl(tmp_path, 'echo "services muster-api not found" >&2; exit 1')

    with (
        pytest.raises(Unavailable, match="services muster-api not found; is Muster installed"),
        forwarded([], kubectl=program),
    ):
        pass


def test_without_kubectl_it_says_what_else_there_is(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with (
        pytest.raises(Unavailable, match="takes kubectl; install it, or set MUSTER_API_URL"),
        forwarded([]),
    ):
        pass
