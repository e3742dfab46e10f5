// Folders of all that a copier can get wrong, and what can happen to them.
#pragma once

#include <cstdint>
#include <filesystem>

namespace spark::staging::test {

// Files at the edges of blocks, chunks and pieces, holes, symlinks, hard links, attributes, ACLs, hostile
// names, odd modes, owners and times; the same for the same seed.
void make_random_tree(const std::filesystem::path& root, std::uint64_t seed);

// Some of it is written to, replaced, cut, renamed, deleted, linked, dressed otherwise, or new.
void change_random_tree(const std::filesystem::path& root, std::uint64_t seed);

}  // namespace spark::staging::test
