// Space on the state folder's drive for changes of the catalog that free some, once that drive is full.
#pragma once

#include <filesystem>

namespace spark::staging {

// A file of 1 MiB, made while there is much space. Without one everything goes on.
void make_reserve(const std::filesystem::path& state_dir);
// Before an eviction that was asked for, if there is no space for it. Not before a staging: what fills the
// drive would take this too.
void give_up_reserve(const std::filesystem::path& state_dir);

}  // namespace spark::staging
