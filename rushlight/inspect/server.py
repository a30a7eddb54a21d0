"""The live page of ``watch``, served to this machine only."""

from __future__ import annotations

import http.server
import threading

__all__ = ["Server"]


class Server:
    """Answers every request for ``address`` with ``page``, which the training loop replaces now and then."""

    def __init__(self, page: bytes):
        self.page = page
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                # A page from elsewhere may make a browser ask here, under that page's own name: it gets nothing.
                host = (self.headers.get("Host") or "").rpartition(":")[0]
                found = host in ("127.0.0.1", "localhost") and self.path.partition("#")[0] == "/"
                body = owner.page if found else b""
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                """Nobody wants a line per request between the lines of a training run."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
