// What is known of checkpoints, on this host and on a volume. Workers report it to the daemon as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/described.hpp"
#include "base/units.hpp"

namespace spark::staging {

// A state of each checkpoint, by name: Checkpoint::written, or in records of version 0.2.0 changed_ns.
using KnownStates = std::map<std::string, std::int64_t>;

// In a job's folder.
struct Checkpoint {
  std::string name;
  std::int64_t mtime_ns = 0;     // of the entry itself: when the job last added something to it
  std::int64_t changed_ns = 0;   // the newest change of anything in it, also of its permissions
  std::int64_t modified_ns = 0;  // when something in it was last written
  std::int64_t written = 0;      // identifies its state, whatever its permissions: TreeTotals::written
  Bytes bytes = 0;
  std::uint64_t inode = 0;    // of the entry itself
  std::int64_t birth_ns = 0;  // the same; 0: its file system has no such time
  // Of one that is complete or settling: the files in it that belong to the save (is_lasting), by their
  // number and, unless there are too many, by a hash of each path below it, sorted.
  std::uint64_t file_count = 0;
  std::vector<std::int64_t> files{};
  std::string incomplete{};  // why it is not complete; empty means complete
  bool is_settling = false;  // complete by its rule, but changed a moment ago
  bool is_unproven = false;  // it may be complete, but that can't be known
  // Until it is written again, as a later look may find no sign of it: see mark_unproven, or a clock was set
  // back after its proof was written, and before something else in it was (a file was changed before it was
  // made, or the proof is in the future). Data that an interrupted save has written again look older than the
  // proof then.
  bool stays_unproven = false;
  bool is_in_future = false;  // it changed clearly later than now, by the clock
  std::int64_t proof_ns = 0;  // when its proof was written (proofs_in); 0: it has none of its own
  std::optional<std::uint64_t> newer_than{};  // EntryKind::Alias: the highest step, which is older than it
};
SPARK_MESSAGE(Checkpoint,
              (name, mtime_ns, changed_ns, modified_ns, written, bytes, inode, birth_ns, file_count, files,
               incomplete, is_settling, is_unproven, stays_unproven, is_in_future, proof_ns, newer_than));

// On a volume, complete and with its manifest.
struct PublishedCopy {
  std::string name;
  std::int64_t mtime_ns = 0;                  // of its source's root: when the job finished writing it
  std::string source_name{};                  // of the file or folder that was sent
  std::int64_t proof_ns = 0;                  // as that of a Checkpoint
  std::optional<std::uint64_t> newer_than{};  // the same
  std::int64_t written =
      0;  // Checkpoint::written of what was sent, if the copy was found whole (check_whole)
  // The same copy; the others follow from it.
  bool operator==(const PublishedCopy& other) const {
    return name == other.name && mtime_ns == other.mtime_ns;
  }
};
SPARK_MESSAGE(PublishedCopy, (name, mtime_ns, source_name, proof_ns, newer_than, written));

// On a volume, with a manifest that can't be read: neither counted nor deleted.
struct UnreadableCopy {
  std::string name, reason;
};
SPARK_MESSAGE(UnreadableCopy, (name, reason));

// Of several hosts, of which some have sent their shards to the volume.
struct BegunCheckpoint {
  std::string name;
  std::int64_t own_written = 0;  // Checkpoint::written when this host's shard was sent; 0: it is not there
  bool has_others = false;       // another host's shard is there
  // Changes while other hosts send, or will: their shards and unfinished copies, the bytes of these copies'
  // journals, and their signs (announce_shard).
  std::uint64_t others_progress = 0;
  bool is_stuck = false;  // nothing of this has changed for some time, as far as the daemon knows
  bool operator==(const BegunCheckpoint&) const = default;
};
SPARK_MESSAGE(BegunCheckpoint, (name, own_written, has_others, others_progress, is_stuck));

// {NAME: STATE}
inline json::object states_to_json(const KnownStates& states) {
  json::object object;
  for (const auto& [name, state] : states) object[name] = state;
  return object;
}
inline KnownStates states_from_json(const json::object& from, std::string_view key) {
  KnownStates states;
  const json::object* object = get_object(from, key);
  for (const auto& member : object == nullptr ? json::object() : *object) {
    if (const auto state = get_int(*object, member.key())) states[std::string(member.key())] = *state;
  }
  return states;
}

template <Described Row>
json::array rows_to_json(const std::vector<Row>& rows) {
  return described::to_value(rows).as_array();
}

// The rows of this array of an answer. What is missing in one keeps its default.
template <Described Row>
std::vector<Row> rows_from_json(const json::object& answer, std::string_view key) {
  std::vector<Row> rows;
  for (const json::value& row : get_list(answer, key)) read_present(row.as_object(), rows.emplace_back());
  return rows;
}

}  // namespace spark::staging
