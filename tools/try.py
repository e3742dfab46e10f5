"""spark-staged on a simulated host, and `spark-stage status` as it changes, until ^C: make try. Needs no root."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(sys.argv[1]).resolve()
EXAMPLE = ROOT / "configs/examples/try.yaml"
EXAMPLES_FOLDER = "/tmp/spark-stage-try"  # the path in the file
START_S = 20
LEAVES_S = 2
FILES, FILE_BYTES = 200, 256 * 1024


def set_up(folder):
    """Adapts the example's folders, and creates a dataset that can be staged."""
    (folder / "try.yaml").write_text(EXAMPLE.read_text().replace(EXAMPLES_FOLDER, str(folder)))
    dataset = folder / "imagenet"
    dataset.mkdir(parents=True)
    for number in range(FILES):
        (dataset / f"{number:03}.bin").write_bytes(os.urandom(FILE_BYTES))


def start(folder, log):
    daemon = subprocess.Popen(
        [BUILD / "daemon/spark-staged", "--sim", folder / "try.yaml", "--socket", folder / "api.sock",
         "--state-dir", folder / "state"], stdout=log, stderr=log, start_new_session=True)
    end = time.monotonic() + START_S
    while not (folder / "api.sock").exists():
        if daemon.poll() is not None or time.monotonic() > end:
            daemon.terminate()
            sys.exit(f"spark-staged did not start:\n{(folder / 'log').read_text()}")
        time.sleep(0.05)
    return daemon


def invite(folder):
    client = BUILD / "cli/spark-stage"
    print(f"""spark-staged runs on a simulated host; what happens there is in {folder}/try.yaml. In a second terminal:

  export SPARK_STAGE_SOCKET={folder}/api.sock
  {client} stage imagenet
  {client} volumes down home
  tail -f {folder}/log

^C ends it and removes the folder.
""", flush=True)


def watch(folder):
    """Runs until ^C, which both processes get; the client ends on its own."""
    environment = os.environ | {"SPARK_STAGE_SOCKET": str(folder / "api.sock")}
    if sys.stdout.isatty():
        time.sleep(4)  # time to read the text above before the screen is redrawn
    client = subprocess.Popen([BUILD / "cli/spark-stage", "status", "--watch=1"], env=environment)
    try:
        client.wait()
    except KeyboardInterrupt:
        pass
    try:
        client.wait(LEAVES_S)
    except subprocess.TimeoutExpired:  # it ignores ^C, like processes that a script starts in the background
        client.terminate()
        client.wait()


def main():
    # A closed terminal or `kill` has the same effect as ^C, even if ^C is ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="try-") as name:
        folder = Path(name)
        set_up(folder)
        with open(folder / "log", "wb") as log:
            daemon = start(folder, log)
            try:
                invite(folder)
                watch(folder)
            except KeyboardInterrupt:
                pass
            finally:
                daemon.terminate()
                daemon.wait()


if __name__ == "__main__":
    main()
