// Symlinks that lead out of a set: counted, refused, or replaced by their targets.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/entry_scanner.hpp"
#include "staging/files/outside_links.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct LinkedPath {  // a name of a file that may have others
  RawPath path;
  FileId file;
};

// Whether a symlink at `link` in a tree leads out of that tree, judged by its text alone.
bool leads_out(std::string_view link, std::string_view target);

class LinkFollower {
 public:
  LinkFollower(Tree& tree, OutsideLinks links) : tree_(tree), links_(links) {}

  struct Followed {
    std::vector<LinkedPath> files;
    std::vector<std::string> folders;  // paths in the tree: to be listed
  };
  // Handles the entries from `first` on. A followed link becomes an entry of its target's type, and a graft
  // of the tree. A link to a folder that contains the link, directly or through other links, is kept. Refused
  // if there are more links to folders than any dataset needs.
  Result<Followed> follow(Entries& entries, std::size_t first, const StopFlag& stop);

  // Refused, with their names, if there are links that are not allowed. Mismatch if the copy would not be
  // what the source shows: links that should be copied lead nowhere, or most of its data is behind kept
  // links.
  Result<> check_allowed(const Entries& entries, const StopFlag& stop);
  std::uint64_t kept() const { return kept_; }
  std::uint64_t followed() const { return followed_; }
  std::string warning() const;  // about the kept links

 private:
  Tree& tree_;
  OutsideLinks links_;
  std::uint64_t kept_ = 0, followed_ = 0;
  std::size_t folders_ = 0, rounds_ = 0;
  std::vector<std::string> shown_;  // printable: some of the kept links

  Result<> find_limit();
  bool is_open_to_owner(const Entry& entry, const struct statx& info) const;
  bool follow_one(Entry& entry, Followed& done);
  std::optional<std::string> below_limit(const Entry& entry) const;  // its target
  // The data behind kept links, counted until it is more than the set has itself.
  struct Weight {
    // The assumed size of a target that may not be read: more than the small files of a model, less than most
    // datasets.
    static constexpr Bytes kUnknown = 16 * kMiB;
    Bytes bytes = 0;
    std::uint64_t files = 0, closed = 0;  // closed: to the link's owner, or this process
    std::set<FileId> seen{};              // several links may lead to one file

    bool exceeds(const Weight& other) const {
      return bytes + closed * kUnknown > other.bytes || files > other.files;
    }
    bool add(const struct statx& info);  // false: it was seen before
  };
  void weigh(const Entry& entry, const Weight& own, Weight& behind, const StopFlag& stop);
  static void weigh_folder(const staging::Followed& folder, const Weight& own, Weight& behind,
                           const StopFlag& stop);
  bool is_in_itself(const std::string& link, const std::string& target) const;
  std::string real_path(std::string_view path) const;  // below the limit
  std::string_view graft_above(std::string_view path) const;
  void keep(const Entry& entry, const char* why);
  std::string names() const;
};

// A warning about links inside a set whose targets are not in it; empty if there are none. Mismatch if they
// are data of the set: a file of a snapshot of Hugging Face's cache, weights of a model, or more than the set
// has files. The entries are sorted.
Result<std::string> check_dangling(const Tree& tree, const Entries& entries, const StopFlag& stop);

}  // namespace spark::staging
