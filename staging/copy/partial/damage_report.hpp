// Damage was found in a copy of the dataset whose copy in progress is in this folder: the two may share
// files. Reported without the folder's lock, and known until it is dropped, also after PartialArea::clear().
#pragma once

#include <filesystem>

namespace spark::staging {

inline constexpr char kDamageReport[] = "suspect";

void report_damage(const std::filesystem::path& folder);  // does nothing if the folder does not exist
bool has_damage_report(const std::filesystem::path& folder);
void drop_damage_report(const std::filesystem::path& folder);

}  // namespace spark::staging
