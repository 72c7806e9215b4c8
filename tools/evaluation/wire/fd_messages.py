"""Messages with file descriptors over a local socket; both ends are trusted and single-packet."""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Mapping
from typing import Any

MAX_MESSAGE = 1 << 16
MAX_DESCRIPTORS = 16


def pair() -> tuple[socket.socket, socket.socket]:
    """Make two connected ends that keep message borders."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, message: Mapping[str, Any], descriptors: list[int] | None = None) -> None:
    """Send one message, and copies of `descriptors`."""
    data = json.dumps(message).encode()
    if len(data) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(data)} bytes is too long")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    end.sendmsg([data], ancillary)


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive one message and its descriptors; None where the other end is gone."""
    descriptors = array.array("i")
    space = socket.CMSG_SPACE(MAX_DESCRIPTORS * descriptors.itemsize)
    data, ancillary, _, _ = end.recvmsg(MAX_MESSAGE, space, socket.MSG_CMSG_CLOEXEC)
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    if not data:
        return None
    return json.loads(data), list(descriptors)
