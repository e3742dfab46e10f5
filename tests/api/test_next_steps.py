"""Errors of the daemon name the command that helps."""
import pytest


@pytest.fixture
def simulation(simulate):
    running = simulate()
    running.becomes("ready")
    return running


def test_a_dataset_of_a_volume_that_was_taken_down_is_not_waited_for(simulation):
    assert simulation.client("volumes", "down", "datasets")[0] == 0
    code, _, complaint = simulation.client("stage", "imagenet")
    assert code == 4 and "volume datasets was taken down by" in complaint, complaint
    assert "`sudo spark-stage volumes up datasets` brings it up" in complaint and "wait" not in complaint, complaint


def test_a_missing_path_of_a_volume_names_the_nearest_folder(simulation):
    (simulation.folder / "mnt/hub").mkdir(parents=True)
    for verb in ("stage", "verify"):
        code, _, complaint = simulation.client(verb, "datasets:hub/missing")
        assert code == 3 and f"`ls {simulation.folder}/mnt/hub` lists its contents" in complaint, complaint
        assert "in the config" not in complaint
    code, _, complaint = simulation.client("stage", "imagenet")
    assert code == 3 and "check the dataset's path in the config" in complaint, complaint


def test_an_unknown_job_leads_to_the_list_of_jobs(simulation):
    code, _, complaint = simulation.client("cancel", "99")
    assert code == 3 and "`spark-stage jobs` lists" in complaint, complaint


def test_a_reader_is_not_taken_over_in_any_state(simulation):
    for prepare in ("up", "down"):
        assert simulation.client("volumes", prepare, "datasets")[0] == 0
        code, printed, complaint = simulation.client("volumes", "take", "datasets")
        assert code == 7 and not printed and "can't be taken over" in complaint, complaint
        assert "Type" not in complaint


def test_force_on_an_nvme_volume_is_refused_and_not_logged_as_done(simulation):
    code, _, complaint = simulation.client("volumes", "down", "datasets", "--force")
    assert code == 7 and "it is no NFS volume" in complaint, complaint
    assert "by force" not in simulation.log_text()
