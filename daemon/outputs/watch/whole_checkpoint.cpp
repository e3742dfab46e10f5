#include "daemon/outputs/watch/whole_checkpoint.hpp"

#include <algorithm>

namespace spark::outputs {

WholeCheckpoint WholeCheckpoint::of(const staging::Checkpoint& one) {
  return {static_cast<std::int64_t>(one.inode), one.birth_ns, one.proof_ns,
          static_cast<std::int64_t>(one.file_count), one.files};
}

bool WholeCheckpoint::is_of(const staging::Checkpoint& one) const {
  const bool was_born_then = birth_ns == 0 || one.birth_ns == 0 || birth_ns == one.birth_ns;
  return inode == static_cast<std::int64_t>(one.inode) && was_born_then && proof_ns == one.proof_ns;
}

bool WholeCheckpoint::has_lost_files(const staging::Checkpoint& now) const {
  if (files.empty() || now.files.empty()) return static_cast<std::int64_t>(now.file_count) < file_count;
  return !std::ranges::includes(now.files, files);
}

void WholeCheckpoint::grow(const staging::Checkpoint& now) {
  if (proof_ns == 0 || files.empty()) *this = of(now);
}

// A record of an earlier version, a list of numbers, had entries in place of files: it says nothing of them.
WholeCheckpoint WholeCheckpoint::from_json(const json::value& value) {
  WholeCheckpoint whole;
  if (const json::object* fields = value.if_object()) read_present(*fields, whole);
  return whole;
}

}  // namespace spark::outputs
