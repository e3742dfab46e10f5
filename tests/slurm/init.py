"""The first process of a host of the rig, in namespaces of its own: ends what is orphaned there, and all of it with itself.
Usage: init.py NAME HOSTS, the second being its /etc/hosts"""
import os
import signal
import socket
import subprocess
import sys

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
socket.sethostname(sys.argv[1])
# As systemd has it, but among this host's own processes alone.
subprocess.run(["mount", "--make-rshared", "/"], check=True)
subprocess.run(["mount", "--bind", sys.argv[2], "/etc/hosts"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
print("ready", flush=True)
while True:
    signal.sigwait({signal.SIGCHLD})
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass
