"""Opens a port to serve on."""

from __future__ import annotations

import socket

from tools.errors import UserError


def listen(host: str, port: int) -> socket.socket:
    """Open a port, any free one for 0; raises UserError where that cannot be had."""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise UserError(f"Port {port} of {host} cannot be had ({error.strerror}).", "Give another --port; 0 takes any.") from error
