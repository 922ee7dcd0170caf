"""Serves a directory on a free port of the loopback interface, and writes the port to a file."""

import functools
import http.server
import sys

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    with open(sys.argv[2], "w") as file:
        file.write(str(server.server_address[1]))
    server.serve_forever()
