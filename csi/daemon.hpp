// Requests from the driver to this host's spark-staged. Every call has the client's deadlines.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "cli/client/client.hpp"
#include "csi/publication.hpp"

namespace spark::csi {

struct Copy {
  std::string path;
  std::string unchecked;  // why it was not compared with its source; empty: it was
};

class Daemon {
 public:
  explicit Daemon(cli::Client& client) : client_(client) {}

  bool is_healthy();
  // The folder of an output; empty for a dataset. NotFound: the configuration has no such dataset or output;
  // Denied: pods of that namespace may not use it.
  Result<std::filesystem::path> check_allowed(const Publication& publication);
  // All configured outputs: name and folder.
  Result<std::map<std::string, std::filesystem::path>> outputs();
  // Reports that a pod which wrote to an output has ended, so that complete checkpoints are sent now.
  Result<> job_ended(const std::string& output);
  // Stages the dataset, or joins the staging for the volume, and waits for its source as long as it takes.
  // From then on the volume has a lease on the dataset. Returns the copy; nothing, and the staging goes on,
  // if `on`, which gets the progress, returns false or nothing was heard for `silence`. Unavailable: the
  // daemon is away, or was restarted.
  Result<std::optional<Copy>> stage(const Publication& publication, Duration silence,
                                    const std::function<bool(const json::object&)>& on);
  // The generation of the dataset whose path is `wanted`; NotFound if there is none.
  Result<std::int64_t> generation_of(const std::string& dataset,
                                     const std::function<bool(const std::string& path)>& wanted);
  // Ends the volume's leases and its stagings; no error if there are none.
  Result<> release(const std::string& volume);
  // Volumes with a lease, and their datasets.
  Result<std::multimap<std::string, std::string>> leased_volumes();

 private:
  Result<json::object> ask(const std::string& method, const std::string& target, json::object body = {});

  cli::Client& client_;
};

}  // namespace spark::csi
