// Lists a source: every entry with its metadata. Only folders are opened.
#pragma once

#include <filesystem>
#include <functional>
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

// Remarks on a source in addition to its entries; see CopyReport. At most 1,000 names, the last then "and N
// more".
struct WalkNotes {
  std::vector<std::string> skipped;
  std::vector<std::string> warnings;
  std::uint64_t outside_links = 0, copied_links = 0;
};

struct Walked : WalkNotes {
  Entries entries;  // sorted by path, the root first; hashes are not known yet
};

// `exclude`: shell patterns (fnmatch) for the path inside the tree and for its last component; "/a" is only
// for the path, "a/" only for folders. An excluded folder is excluded with its content. Refused if another
// file system is mounted inside: a copy without it would count as complete, a copy with it would hold data
// outside the dataset.
Result<Walked> walk(const Tree& tree, std::span<const std::string> exclude, const StopFlag& stop);

// The same for a source to copy, with links out of it handled as `links` requires. Followed links become
// entries of their targets' type, and grafts of the tree. Refused if there are links that are not allowed.
Result<Walked> walk_source(Tree& tree, std::span<const std::string> exclude, OutsideLinks links,
                           const StopFlag& stop);

// Walks only these folders of a source (paths in the tree, none inside another) and their parent folders.
Result<Walked> walk_folders(const Tree& tree, const std::vector<std::string>& folders, const StopFlag& stop);

// Walks parts of a source and replaces each symlink by the file or folder that it leads to, which has to be
// below `limit`: the source's folder, or one that holds it. The link becomes an entry of its target's type,
// and a graft of the tree. Mismatch if one leads elsewhere, or to nothing.
struct Parts {
  std::vector<std::string> folders;
  std::vector<std::string> files;                           // in none of these folders
  std::function<bool(std::string_view path)> leaves_out{};  // files and symlinks; none means all are walked
};
Result<Walked> walk_without_links(Tree& tree, const Parts& parts, const std::filesystem::path& limit,
                                  const StopFlag& stop);

// For exchange between processes and hosts, and for the catalog.
std::string to_text(const WalkNotes& notes);
std::optional<WalkNotes> parse_walk_notes(std::string_view text);

// The space that deleting the trees one after the other would free, each time without files that still have
// names elsewhere. Keeps no entry in memory.
Result<std::vector<Footprint>> footprints_of(std::span<const Tree> trees, const StopFlag& stop);

}  // namespace spark::staging
