"""kubelet.py of tests/csi on a node, asked by HTTP: pods.py FOLDER SOCKET

GET /               {node, endpoint} of the driver that made itself known
POST /UID/DATASET   a pod that wants this dataset
GET /UID            {target, volume, mounted, gone, events}: events are [code, sentence] of each call that failed
DELETE /UID         the pod is removed: its containers have ended
"""
import json
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler

import grpc

from kubelet import Kubelet

# A quarter of kubelet's two minutes: see Kubelet. The driver answers a twelfth of it early.
DEADLINE_S = 30


def watch(kubelet):
    """As kubelet does: each socket that appears in its folder is asked, also that of a restarted driver."""
    known = None
    while True:
        try:
            for socket in (kubelet.folder / "plugins_registry").glob("*.sock"):
                found = socket.stat().st_ino, socket.stat().st_ctime_ns
                if found != known:
                    kubelet.register(5)
                    known = found
        except (AssertionError, OSError, grpc.RpcError) as error:
            print(f"no driver yet: {error}", flush=True)
        time.sleep(0.2)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path, kubelet):
        super().__init__(path, Handler)
        self.kubelet = kubelet


class Handler(BaseHTTPRequestHandler):
    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def pod(self):
        return next(pod for pod in self.server.kubelet.pods if pod.uid == self.path[1:])

    def do_GET(self):
        if self.path == "/":
            return self.answer({"node": self.server.kubelet.node, "endpoint": self.server.kubelet.endpoint})
        pod = self.pod()
        return self.answer({"target": str(pod.target), "volume": pod.volume, "mounted": pod.mounted.is_set(),
                            "gone": pod.gone.is_set(), "events": [[code.name, sentence] for code, sentence in list(pod.events)]})

    def do_POST(self):
        self.server.kubelet.start_pod(*self.path[1:].split("/"))
        self.answer({})

    def do_DELETE(self):
        self.pod().remove()
        self.answer({})

    def log_message(self, *_):
        """A Unix socket's clients have no address to tell."""


made = Kubelet(sys.argv[1], DEADLINE_S)
threading.Thread(target=watch, args=(made,), daemon=True).start()
Server(sys.argv[2], made).serve_forever()
