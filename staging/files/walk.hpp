// What a source holds: every entry with its metadata, nothing opened but folders.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/outside_links.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// What a person should know of a source beside its entries; see CopyReport.
struct WalkNotes {
  std::vector<std::string> skipped;
  std::vector<std::string> warnings;
  std::uint64_t outside_links = 0, copied_links = 0;
};

struct Walked : WalkNotes {
  Entries entries;  // sorted by path, the root first; hashes are not known yet
};

// `exclude`: shell patterns (fnmatch) against the path inside the tree and against its last name; an excluded
// folder is excluded with all it holds. Refused when another file system is mounted inside: a copy without it
// would be called whole, one with it would hold what is not the dataset's.
Result<Walked> walk(const Tree& tree, std::span<const std::string> exclude, const StopFlag& stop);

// The same of a source to copy: with what its links that lead out of it ask for. Those that are followed
// become entries of what they lead to, and the tree's grafts. Refused if the links may not be there.
Result<Walked> walk_source(Tree& tree, std::span<const std::string> exclude, OutsideLinks links,
                           const StopFlag& stop);

// Between processes and hosts, and in the catalog.
std::string to_text(const WalkNotes& notes);
std::optional<WalkNotes> parse_walk_notes(std::string_view text);

// What deleting all below would give back: without files that have names elsewhere. No entry is kept in
// memory.
Result<Footprint> footprint_below(const Tree& tree, const StopFlag& stop);

}  // namespace spark::staging
