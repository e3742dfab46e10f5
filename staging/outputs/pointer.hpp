// The pointer to the highest checkpoint that is published in an output's folder of a volume: `latest`, and
// the file by which Megatron-LM finds one.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.hpp"
#include "staging/checkpoints/completeness.hpp"

namespace spark::staging {

// What `latest` in the folder names: a symbolic link; with the rule `deepspeed` the file that DeepSpeed
// reads. Empty if there is none of that kind, or if the file of Megatron-LM names another iteration.
std::string pointer_in(const std::filesystem::path& folder, const Completeness& rule);

// All names to which `latest`, of either kind, and the file of Megatron-LM lead, no matter which user made
// them. An error if one can't be read now.
Result<std::set<std::string>> names_pointed_at(const std::filesystem::path& folder);

// Points `latest` at the highest checkpoint there, by one rename, durably. An empty folder is left as it is.
// Refused if there is a `latest` of another kind, which belongs to the job. Unavailable if one that can't be
// read may be newer.
Result<> point_at_highest(const std::filesystem::path& folder, const Completeness& rule);

}  // namespace spark::staging
