"""`bench --with` inside an allocation: srun starts the other nodes' runs."""
import json

from node import BUILD


def test_a_benchmark_in_an_allocation_measures_on_its_nodes_simultaneously(cluster):
    folder = cluster.work
    for name in ("shared", "local"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    run = (f"PATH={BUILD}/cli:$PATH spark-stage bench shared={folder}/shared local={folder}/local --scenario shards --rounds 3 --size 16MiB "
           f"--runtime 1s --runs {folder}/runs --json {folder}/record.json --with n2")
    done = cluster.slurm("sbatch", "--wait", "-N2", "-w", "n1,n2", "-o", f"{folder}/said", "--wrap", run)
    said = (folder / "said").read_text()
    assert done.returncode == 0, said + done.stderr
    record = json.loads((folder / "record.json").read_text())
    assert record["hosts"] == ["n1", "n2"], said
    assert [cell["status"] for cell in record["cells"] if cell["round"] > 0] == ["valid"] * 6, said
    assert not list((folder / "shared").iterdir()) and not list((folder / "local").iterdir())


def test_a_node_outside_the_allocation_is_refused_by_name(cluster):
    run = f"PATH={BUILD}/cli:$PATH spark-stage bench work={cluster.work} --scenario shards --size 16MiB --runs {cluster.work}/runs --with n3"
    done = cluster.slurm("sbatch", "--wait", "-N2", "-w", "n1,n2", "-o", f"{cluster.work}/refused", "--wrap", run)
    assert done.returncode == 1
    assert "the benchmark on n3 ended with status" in (cluster.work / "refused").read_text()
