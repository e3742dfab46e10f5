// Requests to stage out that have not ended, in the state folder: a restarted daemon resumes them.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "daemon/jobs.hpp"
#include "daemon/outputs/context.hpp"

namespace spark::outputs {

struct StageOutRequest {
  std::string id;      // of its record
  std::string source;  // absolute: a file or a folder of this host
  std::string volume, path;
  unsigned keep = 0;                // copies in the destination's folder; 0: all
  unsigned keep_every = 0;          // checkpoints whose number is a multiple stay beside those; 0: none
  std::vector<std::string> spared;  // names in that folder that stay as well: a lease holds them
  unsigned nodes = 0;               // hosts whose shards are published together; 0 or 1: this one alone
  bool waits = true;                // for the shards of the other hosts; if not, its own being there ends it
  std::string latest;               // what leads to the newest copy there: "link", "file"; empty: nothing
  Bytes max_rate = 0;               // bytes per second; 0: no limit
  Asker asker;                      // its uid is whose rights the copy is made with

  std::string destination() const { return volume + ":" + path; }
  bool is_same(const StageOutRequest& other) const;  // asks for the same copy
};

// Of a worker's answer: this host's shard is on the volume, and some of the others' are not.
bool lacks_shards(const json::object& answer);
std::string missing_shards(const json::object& answer, unsigned nodes);

json::object to_json(const StageOutRequest& request);
// Invalid: something is missing, or is of another type.
Result<StageOutRequest> request_from_json(const json::object& object);

class Store {
 public:
  explicit Store(const Context& context) : context_(context) {}

  // Durable when it returns.
  asio::awaitable<Result<>> save(StageOutRequest request);
  asio::awaitable<void> forget(std::string id);
  // All that were saved and not forgotten. What can't be understood is logged and left alone.
  asio::awaitable<Result<std::vector<StageOutRequest>>> load();

 private:
  std::string file_of(const std::string& id) const;

  const Context& context_;
};

}  // namespace spark::outputs
