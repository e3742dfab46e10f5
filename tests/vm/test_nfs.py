"""A dataset on an NFS export that other hosts write."""
import json

from rig.house import NAS_EXPORT, TARGET_ADDRESS

FILE = f"{NAS_EXPORT}/moving/file"
STAGE_WORKERS = "'worker [s]tage'"  # does not match the shell that runs pgrep


def test_a_file_changed_by_another_host_during_the_copy_is_never_published_mixed(house):
    """This host has no sign of the change: it may cache the file's size and times for ten minutes, has no delegation that
    the server would recall, and does not request the access time. Only a request to the server reveals it."""
    server, product = house.target_machine, house.product
    write = f"head -c 16M /dev/urandom | dd of={FILE} conv=notrunc bs=1M iflag=fullblock status=none && sync -f {FILE}"
    server.sh(f"echo 0 >/proc/sys/fs/leases-enable; mkdir {NAS_EXPORT}/moving && {write}")
    remembering = {"remembering": {"nfs": f"{TARGET_ADDRESS}:{NAS_EXPORT}", "mount": "/mnt/remembering",
                                   "options": ["vers=4.2", "actimeo=600", "noatime"]}}
    try:
        with house.configured(volumes=remembering, cache={"chunk": "256KiB", "depth": 1}):
            product.wait_volume("remembering", "ready")
            with house.slow_copy("remembering:moving", "2MB/s") as client:
                house.host.sh(f"pkill -STOP -f {STAGE_WORKERS}")
                half = product.dataset("remembering:moving")["progress"]["bytes_done"]
                server.sh(write)
                house.host.sh(f"pkill -CONT -f {STAGE_WORKERS}")
                result = client.wait(180)
            assert 0 < half < 16 << 20, "nothing, or all of it, had been read when it changed"
            assert result.rc == 0, result.err
            path = json.loads(result.out)["datasets"][0]["path"]
            assert checksum(house.host, f"{path}/file") == checksum(server, FILE)
            product.sh("evict remembering:moving")
    finally:
        server.sh(f"echo 1 >/proc/sys/fs/leases-enable; rm -r {NAS_EXPORT}/moving")


def checksum(machine, path):
    return machine.sh(f"sha256sum <{path}", 60)
