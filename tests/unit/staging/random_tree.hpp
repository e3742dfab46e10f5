// Random trees with all cases that are difficult to copy, and random changes to them.
#pragma once

#include <cstdint>
#include <filesystem>

namespace spark::staging::test {

// Files at the edges of blocks, chunks and pieces, holes, symlinks, hard links, attributes, ACLs, hostile
// names, odd modes, owners and times; the same for the same seed.
void make_random_tree(const std::filesystem::path& root, std::uint64_t seed);

// Writes to some of its files, and replaces, truncates, renames, deletes, links, creates some, or changes
// their attributes.
void change_random_tree(const std::filesystem::path& root, std::uint64_t seed);

}  // namespace spark::staging::test
