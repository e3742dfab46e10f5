// Requests whose source is away.
#pragma once

#include <unistd.h>

#include "base/file.hpp"
#include "staging/leases/lease_json.hpp"
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {

class PatienceTest : public DatasetsTest {
 protected:
  static constexpr char kHere[] =
      R"({"result": {"datasets": [{"name": "imagenet", "state": "ready", "path": "/c/2", "bytes": 7, "files": 2,
          "generation": 2, "hash": "h2", "staged_at": "2026-01-02T00:00:00Z", "older":
          [{"name": "imagenet", "state": "ready", "path": "/c/1", "bytes": 5, "files": 1, "generation": 1, "hash": "h1"}]}],
          "usage": {}}})";

  PatienceTest() { worker.on("catalog", "printf '%s\\n' '" + one_line(kHere) + "'"); }

  std::shared_ptr<Job> ask(std::optional<Duration> wait, bool offline = false) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.wait = wait;
    request.offline = offline;
    return *datasets->requests().stage(std::move(request));
  }
  // From a process with these ancestors, in this control group.
  std::shared_ptr<Job> ask_as(std::vector<staging::ProcessId> callers, std::string cgroup) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.callers = std::move(callers);
    request.caller_cgroup.path = std::move(cgroup);
    return *datasets->requests().stage(std::move(request));
  }
  std::shared_ptr<Job> ask_for_job(std::optional<Duration> wait = {}) {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.job.system = staging::kSlurm;
    request.job.id = "7";
    request.wait = wait;
    return *datasets->requests().stage(std::move(request));
  }
  // A lease that an earlier daemon left.
  void lease_of(Lease lease, std::uint64_t generation) {
    lease.id = lease.job.is_set() ? "job:slurm:7:imagenet" : "1f";
    lease.dataset = "imagenet";
    lease.generation = generation;
    lease.holder = "a holder";
    worker.on("lease", note_request("leases.log") + "echo '" +
                           json::serialize(
                               json::object{{"result", {{"leases", json::array{staging::to_json(lease)}}}}}) +
                           "'");
  }
  // Of Slurm's job 7.
  void lease_of_job(std::uint64_t generation) {
    Lease lease;
    lease.job.system = staging::kSlurm;
    lease.job.id = "7";
    lease.job.boot = boot_id(SystemRoot{});
    lease_of(lease, generation);
  }
  bool is_stalled() {
    return run_until(context, [&] {
      return !datasets->stages().empty() &&
             get_string(datasets->stages()[0].as_object(), "phase") == "stalled";
    });
  }
  static std::string what_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* error = get_object(event, "error");
    return error == nullptr ? "" : get_string(*error, "what").value_or("");
  }
  static json::object result_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* result = get_object(event, "result");
    return result == nullptr ? json::object{} : get_array(*result, "datasets")->at(0).as_object();
  }
  const Error gone{Errc::Unavailable, "volume datasets is lost: its device is gone", ""};
};

}  // namespace spark::datasets
