"""A volume in each of its states as users see it: through the API and the CLI, on a simulated host, without root."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulated import AS_NOBODY, CLIENT, CONFIG, copied, give_away
from staged import BUILD, PATIENCE_S, PROGRAM, ROOT, Daemon

# Two volumes are written by this host alone; one has both fences, the other none.
EXCLUSIVE = CONFIG.replace("datasets: {{target", "checkpoints: {{target: rose, subsystem: ckpt, mount: {folder}/ckpt, "
                           "access: exclusive}}\n  open: {{target: rose, subsystem: open, mount: {folder}/open, "
                           "access: exclusive}}\n  datasets: {{target", 1)
STATES = """  targets:
    rose: {state: down}
  volumes:
    datasets: {connect: hangs, mount: hangs}
  events:
    - {after: signal, target: rose, state: up}
    - {after: signal, volume: datasets, connect: works}
    - {after: signal, volume: datasets, mount: works}
    - {after: signal, target: rose, state: down}
    - {after: signal, target: rose, state: up}
    - {after: signal, volume: datasets, connect: hangs}
    - {after: signal, target: rose, controllers: removed}
    - {after: signal, volume: datasets, connect: works}
    - {after: signal, volume: datasets, mount: hangs}
    - {after: signal, volume: datasets, mount: gone}
    - {after: signal, volume: datasets, mount: works}
"""


def seen_by_the_client(simulation, name="datasets"):
    """The state in the table of `spark-stage status`, which must equal the one in its JSON and in `volumes`."""
    code, screen, complaint = simulation.client("status")
    assert (code, complaint) == (0, "")
    assert screen.startswith("SIMULATED HOST\n")
    row = next(line for line in screen.splitlines() if line.startswith(name + " "))
    code, content, _ = simulation.client("status", "--json")
    assert code == 0
    assert json.loads(content)["simulated"] is True
    volume = next(one for one in json.loads(content)["volumes"] if one["name"] == name)
    assert row.split()[1] == volume["state"]
    return volume["state"]


def comes_to(simulation, state):
    volume = simulation.becomes(state)
    assert seen_by_the_client(simulation) == state
    return volume


def test_the_api_and_the_client_agree_on_every_state_of_a_volume(simulate):
    simulation = simulate(STATES)
    waiting = comes_to(simulation, "waiting")
    simulation.wait_until(lambda: "10.0.0.5:4420 does not answer" in simulation.reason(),
                          "says why it waits")
    assert waiting["paths"] == []
    assert simulation.client("wait", "datasets", "--timeout", "1s")[0] == 124
    simulation.step()
    comes_to(simulation, "connecting")
    simulation.step()
    assert comes_to(simulation, "mounting")["device"] == "/dev/nvme-sim1n1"
    simulation.step()
    ready = comes_to(simulation, "ready")
    assert [(path["address"], path["state"]) for path in ready["paths"]] == [("10.0.0.5:4420", "live")]
    assert simulation.client("wait", "datasets")[0] == 0
    simulation.step()
    assert comes_to(simulation, "stalled")["paths"][0]["state"] == "connecting"
    simulation.step()
    comes_to(simulation, "ready")
    simulation.step()
    simulation.step()
    comes_to(simulation, "lost")
    simulation.wait_until(lambda: simulation.volume()["paths"] == [], "has no path left")
    simulation.step()
    again = comes_to(simulation, "ready")
    assert again["device"] != ready["device"]
    assert again["recoveries"] > ready["recoveries"]
    simulation.step()
    simulation.step()
    comes_to(simulation, "recovering")
    simulation.step()
    comes_to(simulation, "ready")


def test_a_volume_is_taken_down_refused_and_brought_up(simulate):
    simulation = simulate("""  events:
    - {after: signal, volume: datasets, users: "python3 (pid 4711)"}
    - {after: signal, volume: datasets, users: none}
    - {after: signal, volume: datasets, writer: spark2}
    - {after: signal, volume: datasets, writer: none}
""")
    comes_to(simulation, "ready")
    simulation.step()
    code, _, complaint = simulation.client("volumes", "down", "datasets")
    assert code == 7 and "python3 (pid 4711)" in complaint
    simulation.step()
    assert simulation.client("volumes", "down", "datasets")[0] == 0
    assert comes_to(simulation, "down")["paths"] == []
    simulation.step()
    simulation.client("volumes", "up", "datasets")
    assert "being written by another host" in comes_to(simulation, "refused")["reason"]
    assert simulation.client("wait", "datasets", "--timeout", "1s")[0] != 0
    simulation.step()
    assert simulation.client("volumes", "up", "datasets")[0] == 0
    comes_to(simulation, "ready")


def test_a_volume_taken_down_stays_down_across_a_restart(simulate):
    simulation = simulate()
    simulation.becomes("ready")
    simulation.client("volumes", "down", "datasets")
    simulation.becomes("down")
    assert simulation.stop() == 0
    assert simulate().becomes("down")["down"]["by"]


def test_a_reader_names_another_hosts_writes_and_is_remounted(simulate):
    simulation = simulate("""  events:
    - {after: signal, volume: datasets, writer: spark2}
    - {after: signal, volume: datasets, writer: none}
""")
    simulation.becomes("ready")
    before = simulation.log_text().count("mounting")
    simulation.step()
    simulation.wait_until(lambda: "being written by another host" in simulation.reason(), "sees the writer")
    assert simulation.volume()["state"] == "ready"
    simulation.step()
    simulation.wait_until(lambda: simulation.log_text().count("mounting") > before
                          and simulation.volume()["state"] == "ready" and not simulation.reason(),
                          "is mounted again")


def test_a_fenced_writer_loses_its_volume_to_another_host_and_takes_it_over(simulate):
    simulation = simulate("""  volumes:
    checkpoints: {reservations: true, mmp: true}
  events:
    - {after: signal, volume: checkpoints, writer: spark3}
""", EXCLUSIVE)
    assert "is not fenced" in simulation.becomes("refused", "open")["reason"]
    fence = simulation.becomes("ready", "checkpoints")["fence"]
    assert fence["reservation"] and fence["mmp"]
    code, _, complaint = simulation.client("volumes", "publish", "checkpoints")
    assert code == 0, complaint
    assert "published as generation 1" in simulation.reason("checkpoints")
    assert simulation.client("volumes", "up", "checkpoints")[0] == 0
    simulation.step()
    assert "'spark3'" in simulation.becomes("refused", "checkpoints")["reason"]
    code, _, complaint = simulation.client("volumes", "take", "checkpoints", "--yes")
    assert code == 0, complaint
    assert simulation.becomes("ready", "checkpoints")["fence"]["reservation"]


def test_a_device_that_does_not_answer_stalls_its_volume(simulate):
    simulation = simulate("""  events:
    - {after: signal, volume: datasets, latency: never}
    - {after: signal, volume: datasets, latency: 20ms}
""")
    simulation.becomes("ready")
    simulation.step()
    assert "does not answer, although its link is up" in simulation.becomes("stalled")["reason"]
    simulation.step()
    assert simulation.becomes("ready")["probe"]["last_us"] == 20000


def test_one_of_two_paths_may_be_down(simulate):
    simulation = simulate("""  events:
    - {after: signal, target: rose, address: 10.0.1.5, state: down}
""", CONFIG.replace("address: 10.0.0.5", "portals: [10.0.0.5, 10.0.1.5]"))
    simulation.becomes("ready")

    def paths():
        return {path["address"]: path["state"] for path in simulation.volume()["paths"]}

    both = {"10.0.0.5:4420": "live", "10.0.1.5:4420": "live"}
    simulation.wait_until(lambda: paths() == both, "has both paths")
    simulation.step()
    simulation.wait_until(lambda: paths() == both | {"10.0.1.5:4420": "connecting"}, "sees that one is down")
    assert simulation.volume()["state"] == "ready"
    assert "stalled" not in simulation.log_text()


def test_an_nfs_server_that_does_not_answer_stalls_its_volume(simulate):
    simulation = simulate("""  events:
    - {after: signal, volume: home, latency: never}
    - {after: signal, volume: home, latency: 3ms}
""", CONFIG.replace("volumes:", "volumes:\n  home: {{nfs: '10.0.3.9:/home', mount: {folder}/home}}", 1))
    assert simulation.becomes("ready", "home")["kind"] == "nfs"
    simulation.step()
    simulation.becomes("stalled", "home")
    simulation.step()
    simulation.becomes("ready", "home")


def test_the_volume_of_a_withdrawn_subsystem_is_lost_until_it_is_offered_again(simulate):
    simulation = simulate("""  events:
    - {after: signal, volume: datasets, offered: false}
    - {after: signal, volume: datasets, offered: true}
""")
    simulation.becomes("ready")

    def offered():
        return [one["subsystem"] for target in simulation.status()["targets"] for one in target["offered"]]

    simulation.wait_until(lambda: offered() == ["raid5-data"], "has read the discovery log")
    simulation.step()
    simulation.becomes("lost")
    simulation.wait_until(lambda: offered() == [], "hears of the change")
    simulation.step()
    simulation.becomes("ready")


def test_a_dataset_is_staged_from_a_simulated_volume(simulate):
    simulation = simulate()
    source = simulation.folder / "mnt/imagenet"
    source.mkdir(parents=True)
    (source / "a.bin").write_bytes(b"content" * 1000)
    simulation.becomes("ready")
    code, path, complaint = simulation.client("stage", "imagenet")
    assert code == 0, complaint
    assert (Path(path.strip()) / "a.bin").read_bytes() == b"content" * 1000


def test_a_reload_changes_volumes_and_does_not_turn_a_simulation_into_a_real_host(simulate):
    simulation = simulate()
    simulation.becomes("ready")
    text = simulation.file.read_text()
    more = "  more: {target: rose, subsystem: more, mount: %s/more}\ncache:" % simulation.folder
    simulation.file.write_text(text.replace("cache:", more, 1))
    simulation.process.send_signal(signal.SIGHUP)
    simulation.wait_until(lambda: len(simulation.status()["volumes"]) == 2, "has the new volume")
    simulation.becomes("ready", "more")
    simulation.file.write_text(text[:text.index("simulation:")])
    status, answer = simulation.ask("POST", "/v1/reload")
    assert status == 400 and "has no section `simulation`" in answer["error"]["what"], answer
    assert simulation.status()["simulated"] is True


@pytest.mark.parametrize("user", [AS_NOBODY, {}], ids=["nobody", "who-runs-this"])
def test_a_simulation_touches_nothing_of_this_computer(simulate, user):
    simulation = simulate("""  events:
    - {after: signal, target: rose, controllers: removed}
""", user=user)
    simulation.becomes("ready")
    simulation.step()
    simulation.becomes("ready")
    assert simulation.ask("POST", "/v1/stagings", {"datasets": ["imagenet"]})[0] == 202
    assert simulation.client("volumes", "down", "datasets")[0] == 0
    simulation.becomes("down")
    capabilities = simulation.capabilities()
    assert (capabilities["CapEff"], capabilities["CapPrm"]) == (0, 0)
    children = Path(f"/proc/{simulation.process.pid}/task/{simulation.process.pid}/children").read_text().split()
    assert all(simulation.capabilities(child)["CapEff"] == 0 for child in children)
    assert str(simulation.folder) not in Path("/proc/self/mountinfo").read_text()
    assert not [path for path in Path("/dev").iterdir() if "sim" in path.name and path.name.startswith("nvme")]
    assert not (simulation.folder / "mnt").exists()
    assert not (simulation.folder / "state/mount-points").exists()
    assert sorted(path.name for path in simulation.folder.iterdir()) == [
        "api.sock", "cache", "log", "spark-staged", "state", "try.yaml"]


def start(folder, *arguments):
    done = subprocess.run([copied(PROGRAM, folder), *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, cwd="/", env={"PATH": os.environ["PATH"]})
    return done.returncode, done.stderr


def test_a_simulation_refuses_the_paths_of_a_real_daemon(folder):
    give_away(folder, {})
    file = folder / "try.yaml"
    file.write_text(CONFIG.format(folder=folder) + "simulation: {}\n")
    socket, state = ("--socket", folder / "api.sock"), ("--state-dir", folder / "state")

    code, said = start(folder, "--sim", file, *state)
    assert code == 2 and "must not answer on this host's own socket" in said and "--socket PATH" in said
    code, said = start(folder, "--sim", file, *socket)
    assert code == 2 and "must not use this host's own state folder" in said
    (folder / "state/volumes").mkdir(parents=True)
    code, said = start(folder, "--sim", file, *socket, *state)
    assert code == 2 and "has the state of a real host" in said
    code, said = start(folder, "--config", file, *socket, *state)
    assert code == 2 and "describes a simulated host, not this one" in said
    code, said = start(folder, "--sim", file, "release")
    assert code == 2, said
    file.write_text("version: 1\nsimulation: {events: [{after: 1s, target: rsoe, state: down}]}\ncache: {path: /tmp/x}\n")
    code, said = start(folder, "--sim", file, *socket, "--state-dir", folder / "new")
    assert code == 2 and "try.yaml:2:" in said and "there is no target 'rsoe'" in said


def test_release_is_refused_beside_a_running_daemon(simulate):
    simulation = simulate()
    file = simulation.folder / "real.yaml"
    file.write_text(f"version: 1\ncache: {{path: {simulation.folder}/cache}}\n")
    verb = ("--config", file, "--socket", simulation.socket, "--state-dir", simulation.folder / "other", "release")
    code, said = start(simulation.folder, *verb)
    assert code == 7 and "spark-staged is running, and would bring the volumes up again" in said, said
    simulation.stop()
    code, said = start(simulation.folder, *verb)
    assert code == 0, said


def test_a_real_daemon_does_not_start_on_a_simulations_state(simulate):
    simulation = simulate()
    simulation.stop()
    real = simulation.folder / "real.yaml"
    real.write_text("version: 1\n")
    code, said = start(simulation.folder, "--config", real, "--socket", simulation.folder / "other.sock", "--state-dir",
                       simulation.folder / "state")
    assert code == 2 and "has the state of a simulation" in said


def test_a_real_daemon_does_not_mention_simulations(folder):
    daemon = Daemon(folder)
    try:
        assert "simulated" not in daemon.ask("GET", "/v1/status")[1]
    finally:
        daemon.stop()


def test_make_try_shows_the_example_and_leaves_nothing_behind(folder):
    process = subprocess.Popen([sys.executable, ROOT / "tools/try.py", BUILD], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True,
                               env=os.environ | {"TMPDIR": str(folder)})
    try:
        ready = set()
        for line in process.stdout:
            words = line.split()
            if len(words) > 1 and words[1] == "ready":
                ready.add(words[0])
            if ready == {"datasets", "models", "checkpoints", "home"}:
                break
        assert ready == {"datasets", "models", "checkpoints", "home"}
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert list(folder.iterdir()) == []
    finally:
        process.kill()


def test_the_client_program_was_built():
    assert CLIENT.exists()
