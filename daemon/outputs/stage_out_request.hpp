// A request to send a file or folder of this host to a volume, and its record on the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/described.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"
#include "daemon/jobs.hpp"

namespace spark::outputs {

// What the worker gets and the record has, with the user and the holder.
struct SendingRecord {
  std::string id{};      // of its record
  std::string source{};  // absolute: a file or a folder of this host
  std::string volume{}, path{};
  unsigned keep = 0;     // copies in the destination's folder; 0 means all, or as the output's settings say
  unsigned nodes = 0;    // hosts with shards that are published together; 0 or 1: this one alone
  bool waits = true;     // for the other hosts' shards; if false, it ends once this host's shard is there
  std::string marker{};  // file that is the same in all shards of one attempt of the job; empty means none
  std::string rule{};    // of the output that it belongs to (config::to_string); empty means none
  Bytes max_rate = 0;    // bytes per second; 0 means no limit
  bool accept_source = false;  // replaces a copy of another source
  bool hurries = false;        // leaves no share of the drive to other programs: the job replaces it soon
  // TreeTotals::written of the source when the request was accepted, or it was found complete: it is sent
  // only in that state. None means that it is not known yet: nothing is sent before it is.
  std::optional<std::int64_t> written{};
  std::string attempt{};  // text that tells the shards of a job's attempts apart; empty means none
};
SPARK_MESSAGE(SendingRecord, (id, source, volume, path, keep, nodes, waits, marker, rule, max_rate,
                              accept_source, hurries, written, attempt));

struct StageOutRequest : SendingRecord {
  bool is_flushed = false;  // the source is known to be on its drive; not recorded
  // A client repeats it since the daemon was restarted: `written` was accepted then; not recorded.
  bool is_repeated = false;
  Asker asker;  // the copy is made with the permissions of its uid

  std::string destination() const { return volume + ":" + path; }
  std::string doing() const;                         // "sending SOURCE to DESTINATION"
  std::string folder() const;                        // the one of `path`; "." for the volume's root
  bool is_same(const StageOutRequest& other) const;  // requests the same copy
  // Both are a user's, for one source, which has changed in between, or of which another attempt is sent.
  bool is_later_than(const StageOutRequest& earlier) const;
  // The same of a repeated one, which was accepted before `other`: a restarted daemon has no other order.
  bool is_outdated_by(const StageOutRequest& other) const;
};

// How many copies stay in the destination's folder, once one is published.
struct Keep {
  unsigned count = 0;  // 0 means all
  unsigned every = 0;  // checkpoints with a multiple of it as step stay in addition; 0 means none
  bool operator==(const Keep&) const = default;
};
// For an output, its configuration now counts, which may be another than when the copy was requested.
Keep keep_of(const StageOutRequest& request, const config::Config& config);

// The parts of VOLUME:PATH; the path has no "..", "." or empty component.
struct OutputName {
  std::string volume, path;
};
Result<OutputName> read_output_name(const std::string& text);

// The request in the body of POST /v1/stage-outs; it has no ID and no asker yet.
Result<StageOutRequest> request_of(const json::object& body);

// "accepted" of a job (docs/api.md): what a repeated request has in addition, so that it is for no other
// state, nor for another checkpoint of an output. The state is a text, as not all clients keep 64 bits.
json::object accepted_of(const StageOutRequest& request);
struct Accepted {
  std::string checkpoint;  // of an output; otherwise empty
  std::int64_t written = 0;
};
// None in the body of a first request.
Result<std::optional<Accepted>> read_accepted(const json::object& body);

// For a worker's result: this host's shard is on the volume, and some other hosts' are not.
bool lacks_shards(const json::object& answer);
std::string missing_shards(const json::object& answer, unsigned nodes);

// For the worker, and for the record.
json::object to_json(const StageOutRequest& request);
// Invalid if a field is missing, or has another type.
Result<StageOutRequest> request_from_json(const json::object& object);

}  // namespace spark::outputs
