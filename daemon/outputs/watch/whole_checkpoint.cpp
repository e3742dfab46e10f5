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

json::object WholeCheckpoint::to_json() const {
  return {{"inode", inode},
          {"birth_ns", birth_ns},
          {"proof_ns", proof_ns},
          {"file_count", file_count},
          {"files", json::value_from(files)}};
}

// A record of an earlier version, a list of numbers, had entries in place of files: it says nothing of them.
WholeCheckpoint WholeCheckpoint::from_json(const json::value& value) {
  WholeCheckpoint whole;
  const json::object* object = value.if_object();
  if (object == nullptr) return whole;
  const auto number = [&](const char* key) { return get_int(*object, key).value_or(0); };
  whole = {number("inode"), number("birth_ns"), number("proof_ns"), number("file_count")};
  for (const json::value& print : get_list(*object, "files"))
    if (print.is_int64()) whole.files.push_back(print.get_int64());
  return whole;
}

}  // namespace spark::outputs
