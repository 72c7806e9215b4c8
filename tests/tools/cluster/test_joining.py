"""What stands in the way of joining a cluster is a line, and an open dashboard is told of."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.ray_nodes import free_port
from tools.cluster import address_of, demand_ray, join
from tools.cluster.calibration import deviating
from tools.cluster.dashboard import dashboard_warning
from tools.cluster.joining import refusal, same_sigterm
from tools.cluster.opening import kind_of
from tools.errors import UserError


@pytest.mark.parametrize(("word", "address"), [("ray", ""), ("ray:gpu1:6379", "gpu1:6379"), ("local", None), ("spool:ray", None)])
def test_an_evaluator_names_its_cluster(word: str, address: str | None) -> None:
    """The word alone is a job's own cluster, or one of this machine."""
    assert address_of(word) == address


def test_where_ray_is_missing_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""

    def hide(name: str, *_: object) -> None:
        if name == "ray":
            raise ModuleNotFoundError(name)

    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(sys, "meta_path", [SimpleNamespace(find_spec=hide), *sys.meta_path])
    with pytest.raises(UserError, match=r"Ray is not installed here. Install it: pip install 'kernelwright\[ray\]'"):
        demand_ray()


@pytest.mark.parametrize("where", ["nobody", "client", "word"])
def test_an_address_that_does_not_answer_is_refused_at_once(where: str) -> None:
    """Nobody listens there, it is of Ray Client, or it is no address."""
    address = {"nobody": f"127.0.0.1:{free_port()}", "client": "ray://127.0.0.1:10001", "word": "127.0.0.1:port"}[where]
    with pytest.raises(UserError, match=r"No Ray cluster answers at|an address of Ray Client"):
        join(address)


def test_other_versions_on_the_cluster_are_named_in_a_line() -> None:
    """Ray's own message, of several lines, becomes one with both versions."""
    import ray
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as raised:
        check_version_info({"ray_version": "2.9.0", "python_version": "3.8.1"}, "node 127.0.0.1:6379")
    said = refusal("127.0.0.1:6379", raised.value)
    assert said.what.startswith("The cluster at 127.0.0.1:6379 has Ray 2.9.0 and Python 3.8.1, and this machine")
    assert f"Ray {ray.__version__}" in said.what
    assert "\n" not in said.what


@contextmanager
def _answering(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_open_dashboard_is_warned_of() -> None:
    """One that answers without a token is told of, one that asks for it or that this machine alone sees is not."""
    with _answering(200) as url:
        assert "answers without a token" in dashboard_warning(url, loopback_too=True)
        assert not dashboard_warning(url)
    with _answering(401) as url:
        assert not dashboard_warning(url, loopback_too=True)
    assert not dashboard_warning("")


def test_evaluators_that_agree_within_three_percent_are_not_told_of() -> None:
    """Who differs by more from the median of its siblings is; of two both are, since either may be odd."""
    assert deviating({"a": 100.0, "b": 101.0, "c": 102.9}) == {}
    assert list(deviating({"a": 100.0, "b": 101.0, "c": 104.5})) == ["c"]
    assert set(deviating({"a": 100.0, "b": 103.5})) == {"a", "b"}
    assert deviating({"a": 100.0}) == {}


def test_a_kind_of_gpu_is_found_in_its_title() -> None:
    """Every word of Ray's kind is in the driver's title; a shorter word that fits less goes behind."""
    there = ("A100", "A100-40G", "GeForce-RTX-4090", "H100", "H200")
    assert kind_of("NVIDIA H100 80GB HBM3", there) == "H100"
    assert kind_of("NVIDIA A100-SXM4-80GB", there) == "A100"
    assert kind_of("NVIDIA GeForce RTX 4090", there) == "GeForce-RTX-4090"
    assert not kind_of("NVIDIA B200", there)


def test_joining_a_cluster_leaves_sigterm_as_it_was() -> None:
    """Ray has SIGTERM end a process at once; commands clear up first, so theirs is put back."""
    before = signal.getsignal(signal.SIGTERM)
    with same_sigterm():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is before
