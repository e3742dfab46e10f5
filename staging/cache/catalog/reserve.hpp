// Space on the state folder's drive for changes of the catalog that free some, once that drive is full.
#pragma once

#include <filesystem>

namespace spark::staging {

// A file of 1 MiB, made while there is much space. Without one everything goes on.
void make_reserve(const std::filesystem::path& state_dir);
// Before an eviction that was asked for, or by a staging that can't go on, if there is no space for it. Not
// before each staging: what fills the drive would take this too. Returns whether there is now.
bool give_up_reserve(const std::filesystem::path& state_dir);
// Of as much as there is again, also while there is little.
void take_back_reserve(const std::filesystem::path& state_dir);

}  // namespace spark::staging
