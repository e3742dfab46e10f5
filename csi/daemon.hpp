// What the driver asks of this host's spark-staged. Every call has the client's deadlines.
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

// A job of the daemon. Numbers begin again when the daemon starts: both tell whether it is still the same.
struct StagingJob {
  std::string id, started;
};

struct StagingLook {
  bool is_gone = false;  // the daemon was restarted since
  json::object progress;
  std::optional<Result<std::string>> ended;  // the path of the copy, which the volume's lease keeps
};

class Daemon {
 public:
  explicit Daemon(cli::Client& client) : client_(client) {}

  bool is_healthy();
  // NotFound: the configuration has no such dataset; Denied: pods of that namespace may not use it.
  Result<> check_allowed(const Publication& publication);
  // The folder of the output that a pod wants to write to, with the same errors.
  Result<std::filesystem::path> output_folder(const Publication& publication);
  // All outputs of the configuration: name and folder.
  Result<std::map<std::string, std::filesystem::path>> outputs();
  // A pod that wrote to an output has ended: what is complete is sent now.
  Result<> job_ended(const std::string& output);
  // Stages, or joins a staging under way. The volume has a lease on the dataset from now on.
  Result<StagingJob> stage(const Publication& publication);
  Result<StagingLook> look_at(const StagingJob& job);
  // Ends the volume's leases and its stagings; no error if it has none.
  Result<> release(const std::string& volume);
  // Volumes that have a lease, and the datasets that one of them has.
  Result<std::set<std::string>> leased_volumes();
  Result<std::set<std::string>> datasets_of(const std::string& volume);

 private:
  Result<json::object> ask(const std::string& method, const std::string& target, json::object body = {});

  cli::Client& client_;
};

}  // namespace spark::csi
