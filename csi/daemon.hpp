// Requests from the driver to this host's spark-staged. Every call has the client's deadlines.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "cli/client/client.hpp"
#include "csi/publication.hpp"

namespace spark::csi {

// A job of the daemon. Job numbers restart with the daemon, so its identity includes the daemon's start.
struct StagingJob {
  std::string id, started;
};

struct StagingLook {
  bool is_gone = false;  // the daemon was restarted in the meantime
  json::object progress;
  std::optional<Result<std::string>> ended;  // the path of the copy, kept by the volume's lease
};

class Daemon {
 public:
  explicit Daemon(cli::Client& client) : client_(client) {}

  bool is_healthy();
  // NotFound: the dataset is not configured; Denied: pods of that namespace may not use it.
  Result<> check_allowed(const Publication& publication);
  // The folder of the output for a pod; the same errors as check_allowed().
  Result<std::filesystem::path> output_folder(const Publication& publication);
  // All configured outputs: name and folder.
  Result<std::map<std::string, std::filesystem::path>> outputs();
  // Reports that a pod which wrote to an output has ended, so that complete checkpoints are sent now.
  Result<> job_ended(const std::string& output);
  // Stages the dataset, or joins a staging in progress. From then on the volume has a lease on the dataset.
  Result<StagingJob> stage(const Publication& publication);
  Result<StagingLook> look_at(const StagingJob& job);
  // Ends the volume's leases and its stagings; no error if there are none.
  Result<> release(const std::string& volume);
  // Volumes with a lease, and the datasets leased by one of them.
  Result<std::set<std::string>> leased_volumes();
  Result<std::set<std::string>> datasets_of(const std::string& volume);

 private:
  Result<json::object> ask(const std::string& method, const std::string& target, json::object body = {});

  cli::Client& client_;
};

}  // namespace spark::csi
