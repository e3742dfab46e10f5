"""Expensive requests by members of the group do not delay the daemon's other answers."""
import json
import threading

from staged import UnixConnection

MOST_BODY = 1 << 20  # limit for the body of a request, in bytes


def plan(daemon, yaml, answers):
    connection = UnixConnection(daemon.socket, timeout=120)
    try:
        connection.request("POST", "/v1/plan", json.dumps({"yaml": yaml}))
        answer = connection.getresponse()
        answers.append((answer.status, json.loads(answer.read())))
    finally:
        connection.close()


def test_planning_the_longest_configuration_does_not_delay_status(daemon):
    """In 4c67491 it took 47 s on the daemon's thread; the watchdog ends the daemon after 30 s."""
    text = "".join(f"k{number}:\n" for number in range(100_000))  # JSON writes each line end as two characters
    assert 0.8 * MOST_BODY < len(json.dumps({"yaml": text})) < MOST_BODY
    answers = []
    planning = threading.Thread(target=plan, args=(daemon, text, answers))
    planning.start()
    meanwhile = 0
    while planning.is_alive():
        assert daemon.ask("GET", "/v1/status")[0] == 200
        meanwhile += bool(planning.is_alive())
    planning.join()
    status, answer = answers[0]
    assert status == 400 and "unknown key 'k0'" in answer["error"]["what"], answer
    # The request in progress when the plan arrived, and those sent while a worker made the plan.
    assert meanwhile >= 5, f"{meanwhile} answers while a plan was made"


def test_concurrent_plan_requests_are_all_answered(daemon):
    answers = []
    all_at_once = [threading.Thread(target=plan, args=(daemon, "version: 1\n", answers)) for _ in range(8)]
    for one in all_at_once:
        one.start()
    for one in all_at_once:
        one.join()
    assert [status for status, _ in answers] == [200] * 8
    removed = {"name": "datasets", "action": "remove", "changes": [], "refused": None}
    assert all(answer["volumes"] == [removed] for _, answer in answers)


def test_a_request_with_too_many_names_is_refused(daemon):
    names = [f"datasets:{number}" for number in range(1001)]
    status, answer = daemon.ask("POST", "/v1/stagings", {"datasets": names})
    assert status == 400 and "names 1001 datasets; at most 1000" in answer["error"]["what"], answer
    assert daemon.ask("POST", "/v1/stagings", {"datasets": names[:1000]})[0] == 202
