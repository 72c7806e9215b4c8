"""Whether a cluster's dashboard answers whoever reaches it: by its jobs API that is as good as a shell on every node."""

from __future__ import annotations

import ipaddress
import urllib.error
import urllib.request

_ASK_S = 3.0


def dashboard_warning(url: str, *, loopback_too: bool = False) -> str:
    """Say that the dashboard at `url` (HOST:PORT) is open; empty where there is none, it asks for a token, or only this machine sees it."""
    if not url or (_is_loopback(url) and not loopback_too):
        return ""
    try:
        with urllib.request.urlopen(f"http://{url}/api/version", timeout=_ASK_S) as answer:
            is_open = answer.status == 200
    except (urllib.error.URLError, OSError, ValueError):
        return ""
    if not is_open:
        return ""
    return (
        f"The Ray dashboard at {url} answers without a token: whoever reaches it can run code on every node. "
        "Start the cluster with RAY_AUTH_MODE=token, or with --dashboard-host 127.0.0.1 behind a firewall."
    )


def _is_loopback(url: str) -> bool:
    host = url.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
