// What a checkpoint had while it was complete: the measure for whether it has lost files since, as in an
// interrupted deletion by the job, which may leave its proof.
#pragma once

#include <cstdint>
#include <vector>

#include "base/described.hpp"
#include "base/json.hpp"
#include "staging/checkpoints/checkpoint.hpp"

namespace spark::outputs {

// Of one save: a job may delete a checkpoint and save it again under its name.
struct WholeCheckpoint {
  std::int64_t inode = 0, birth_ns = 0;  // of the folder; a file system may use a number again
  std::int64_t proof_ns = 0;
  std::int64_t file_count = 0;
  std::vector<std::int64_t> files{};  // staging::Checkpoint::files
  bool operator==(const WholeCheckpoint&) const = default;

  static WholeCheckpoint of(const staging::Checkpoint& one);
  bool is_of(const staging::Checkpoint& one) const;  // the same save
  bool has_lost_files(const staging::Checkpoint& now) const;
  // With what came later: in a folder with a proof, that belongs to the save no more than notes of a person.
  void grow(const staging::Checkpoint& now);

  static WholeCheckpoint from_json(const json::value& value);
};
SPARK_MESSAGE(WholeCheckpoint, (inode, birth_ns, proof_ns, file_count, files));

}  // namespace spark::outputs
