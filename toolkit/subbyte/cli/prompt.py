"""What ``subbyte lab`` changes in Jupyter's server: messages from the kernel are sent at once.

A kernel answers a slider with several short messages. The server writes each to its socket, where the operating system
holds the second back until the browser has acknowledged the first, often for 40 ms (Nagle's algorithm and delayed
acknowledgements; Tornado's ``WebSocketHandler.set_nodelay`` describes them). Only that server loads this module.
"""

from __future__ import annotations

import asyncio

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """Jupyter's connection between a kernel and a browser, with a socket that sends without delay."""

    def connect(self) -> asyncio.Future[None] | None:
        """Connect, then disable the socket's delay."""
        self.websocket_handler.set_nodelay(True)
        found: asyncio.Future[None] | None = super().connect()
        return found
