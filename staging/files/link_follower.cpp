#include "staging/files/link_follower.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kMostShown = 3;
// Links to folders multiply the entries below them; a set that needs more is a mistake or an attack.
constexpr std::size_t kMostFolders = 1000, kMostRounds = 8;

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : path.substr(0, slash);
}

std::string joined(std::string_view folder, std::string_view name) {
  return folder.empty() || folder == "." ? std::string(name) : std::string(folder) + "/" + std::string(name);
}

// Without its target if its name may not be told.
std::string noted_link(const Tree& tree, const Entry& entry) {
  const std::string name = printable(entry.path), noted = noted_name(tree, entry.path);
  return noted == name ? name + " -> " + printable(entry.target) : noted;
}

}  // namespace

bool leads_out(std::string_view link, std::string_view target) {
  if (target.starts_with('/')) return true;
  auto depth = std::ranges::count(link, '/');
  for (const std::string& part : split(target, '/')) {
    if (part.empty() || part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

Result<LinkFollower::Followed> LinkFollower::follow(Entries& entries, std::size_t first,
                                                    const StopFlag& stop) {
  Followed done;
  for (std::size_t i = first; i < entries.size(); ++i) {
    Entry& entry = entries[i];
    if (entry.type != EntryType::Symlink || entry.path.empty()) continue;
    const std::string_view graft = graft_above(entry.path);
    const std::string_view inside =
        graft.empty() ? entry.path.view() : entry.path.view().substr(graft.size() + 1);
    if (links_ != OutsideLinks::CopyAll && !leads_out(inside, entry.target)) continue;
    if (stop) return fail(Errc::Cancelled, "reading " + tree_.shown("") + ": interrupted");
    if (links_ == OutsideLinks::Keep || links_ == OutsideLinks::Refuse) {
      keep(entry, "");
    } else if (auto limited = find_limit(); !limited) {
      return limited.take_error();
    } else if (follow_one(entry, done)) {
      ++followed_;
    }
  }
  folders_ += done.folders.size();
  if (!done.folders.empty() && (folders_ > kMostFolders || ++rounds_ > kMostRounds)) {
    return fail(Errc::Refused,
                "reading " + tree_.shown("") + ": too many of its symlinks lead to folders outside of it, " +
                    printable(done.folders.front()) + " among them",
                "stage the folder that holds them all, or exclude these");
  }
  return done;
}

// The root of the source's own mount: all targets must lie below it.
Result<> LinkFollower::find_limit() {
  if (tree_.grafts.limit) return {};
  auto root = open_named(mount_root_of(tree_.folder_path), Links::OfRootAlone);
  if (!root) return root.take_error();
  tree_.grafts.limit = std::move(root->fd);
  tree_.grafts.limit_path = std::move(root->path);
  return {};
}

// None: an absolute path to another mount.
std::optional<std::string> LinkFollower::below_limit(const Entry& entry) const {
  const std::string& limit = tree_.grafts.limit_path;
  std::string wanted(entry.target);
  if (!wanted.starts_with('/')) return joined(parent_of(real_path(entry.path)), wanted);
  if (!is_inside(wanted, limit)) return std::nullopt;
  wanted.erase(0, limit.size());
  while (wanted.starts_with('/')) wanted.erase(0, 1);
  return wanted.empty() ? "." : wanted;
}

bool LinkFollower::Weight::add(const struct statx& info) {
  if (!seen.insert(file_id(info)).second) return false;
  ++files;
  if (S_ISREG(info.stx_mode)) bytes += info.stx_size;
  return true;
}

// Only on the source's own mount: another one may not answer.
void LinkFollower::weigh(const Entry& entry, const Weight& own, Weight& behind, const StopFlag& stop) {
  if (!find_limit()) return;
  const auto wanted = below_limit(entry);
  if (!wanted) {
    ++behind.files;
    return;
  }
  const auto found = follow_beneath(tree_.grafts.limit.get(), tree_.grafts.limit_path, *wanted);
  struct statx info {};
  const bool is_there = found.fd && ::statx(found.fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) == 0;
  const int why_not = !is_there ? errno : is_open_to_owner(entry, info) ? 0 : EACCES;
  if (why_not == EACCES) ++behind.closed;
  if (why_not != 0) {
    ++behind.files;
    return;
  }
  if (behind.add(info) && S_ISDIR(info.stx_mode) && !is_in_itself(std::string(entry.path), found.path))
    weigh_folder(found, own, behind, stop);
}

void LinkFollower::weigh_folder(const staging::Followed& folder, const Weight& own, Weight& behind,
                                const StopFlag& stop) {
  Tree tree;
  tree.folder.reset(::openat(folder.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tree.folder) return;
  for (std::vector<std::string> folders{""}; !folders.empty() && !stop && !behind.exceeds(own);) {
    const std::string path = std::move(folders.back());
    folders.pop_back();
    UniqueFd opened = open_beneath(tree, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const UniqueFd kept(opened ? ::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0) : -1);
    const auto add = [&](const std::string& name) -> Result<> {
      struct statx info {};
      if (::statx(kept.get(), name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info) != 0) return {};
      if (S_ISDIR(info.stx_mode) && behind.seen.insert(file_id(info)).second)
        folders.push_back(join_path(path, name));
      if (S_ISREG(info.stx_mode)) behind.add(info);
      return stop || behind.exceeds(own) ? fail(Errc::Cancelled, "") : Result<>();
    };
    if (kept) static_cast<void>(for_each_name(std::move(opened), folder.path, add));
  }
}

// Whether the link's owner may go there; `info`: where follow_beneath() went with this process's rights.
bool LinkFollower::is_open_to_owner(const Entry& entry, const struct statx& info) const {
  const auto named = open_named(tree_.root() + "/" + std::string(entry.path), Links::Followed);
  return named && named->info.st_ino == info.stx_ino &&
         named->info.st_dev == ::makedev(info.stx_dev_major, info.stx_dev_minor);
}

bool LinkFollower::follow_one(Entry& entry, Followed& done) {
  const std::string& limit = tree_.grafts.limit_path;
  const auto wanted = below_limit(entry);
  if (!wanted) {
    keep(entry, "not on the source's mount");
    return false;
  }
  auto found = follow_beneath(tree_.grafts.limit.get(), limit, *wanted);
  struct statx info {};
  if (!found.fd || ::statx(found.fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) != 0) {
    keep(entry, errno == EXDEV ? "not on the source's mount" : std::strerror(errno));
    return false;
  }
  if (!is_open_to_owner(entry, info)) {
    keep(entry, "its owner may not go there, or read it");
    return false;
  }
  const bool is_folder = S_ISDIR(info.stx_mode);
  if (!is_folder && !S_ISREG(info.stx_mode)) {
    keep(entry, "neither file nor folder");
    return false;
  }
  const std::string path(entry.path);
  if (is_folder && is_in_itself(path, found.path)) {
    keep(entry, "a folder that holds the link");
    return false;
  }
  Entry real;
  real.path = path;
  fill(real, info, tree_);
  if (!is_folder)
    real.allocated = real.size;  // the source may store it compressed; its holes are found when it is read
  entry = std::move(real);
  if (is_folder) {
    done.folders.push_back(path);
  } else {
    done.files.push_back({path, file_id(info)});
  }
  tree_.grafts.targets[path] = std::move(found.path);
  return true;
}

// Whether following the link would never end because it leads back into the same folder: the set's own, the
// target of a link above it, or a folder that contains one of them.
bool LinkFollower::is_in_itself(const std::string& link, const std::string& target) const {
  if (target == ".") return true;
  if (is_inside(std::string(parent_of(real_path(link))), target)) return true;
  for (std::string_view at = link;;) {
    at = graft_above(at);
    if (is_inside(real_path(at), target)) return true;
    if (at.empty()) return false;
  }
}

std::string LinkFollower::real_path(std::string_view path) const {
  const auto& targets = tree_.grafts.targets;
  if (const auto own = targets.find(path); own != targets.end()) return own->second;
  const std::string_view graft = graft_above(path);
  if (!graft.empty()) return targets.find(graft)->second + std::string(path.substr(graft.size()));
  const std::string& limit = tree_.grafts.limit_path;
  std::string root = tree_.root();
  root.erase(0, root == limit ? root.size() : limit.ends_with('/') ? limit.size() : limit.size() + 1);
  return path.empty() ? (root.empty() ? "." : root) : joined(root, path);
}

// The nearest folder above that replaces a link; empty means that it belongs to the tree itself.
std::string_view LinkFollower::graft_above(std::string_view path) const {
  for (std::string_view at = parent_of(path); !at.empty(); at = parent_of(at)) {
    if (tree_.grafts.targets.contains(at)) return at;
  }
  return "";
}

void LinkFollower::keep(const Entry& entry, const char* why) {
  if (kept_++ >= kMostShown) return;
  const std::string reason = *why == '\0' ? "" : std::string(" (") + why + ")";
  shown_.push_back(noted_link(tree_, entry) + reason);
}

std::string LinkFollower::names() const {
  const std::uint64_t more = kept_ - shown_.size();
  return join(shown_, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

Result<> LinkFollower::check_allowed(const Entries& entries, const StopFlag& stop) {
  if (kept_ == 0) return {};
  const std::string reading = "reading " + tree_.shown("") + ": ";
  if (links_ == OutsideLinks::Refuse) {
    return fail(Errc::Refused, reading + "symlinks lead out of it: " + names(),
                "'links: copy' copies their targets; or stage the folder that holds both");
  }
  if (links_ == OutsideLinks::CopyAll) {
    return fail(Errc::Mismatch,
                reading + "files are missing, since their symlinks lead to no file: " + names(),
                "download them again");
  }
  if (links_ == OutsideLinks::Copy) {
    return fail(Errc::Mismatch, reading + "the targets of symlinks can't be copied: " + names(),
                "stage the folder that holds both, or exclude these");
  }
  Weight own, behind;
  for (const Entry& entry : entries) {
    if (entry.type != EntryType::File) continue;
    ++own.files;
    own.bytes += entry.size;
  }
  for (const Entry& entry : entries) {
    if (stop) return fail(Errc::Cancelled, reading + "interrupted");
    if (behind.exceeds(own)) break;
    if (entry.type == EntryType::Symlink && !entry.path.empty() && leads_out(entry.path, entry.target))
      weigh(entry, own, behind, stop);
  }
  if (!behind.exceeds(own)) return {};
  return fail(Errc::Mismatch,
              reading + "most of its data is behind symlinks that lead out of it: " + names() +
                  "; a copy would have " + format_bytes(own.bytes) + " of " +
                  (behind.closed == 0
                       ? "at least " + format_bytes(own.bytes + behind.bytes)
                       : "an unknown size: " + std::to_string(behind.closed) +
                             " of its symlinks lead to what this process, or their owner, may not read"),
              behind.closed == 0
                  ? "'links: copy' (copy: --links copy) copies it too, or stage the folder that holds both"
                  : "exclude these symlinks, or let their owner read what they lead to");
}

std::string LinkFollower::warning() const {
  const std::string what = kept_ == 1 ? "1 symlink leads" : std::to_string(kept_) + " symlinks lead";
  return what + " out of the set, to files that the copy does not have: " + names() +
         "; 'links: copy' (copy: --links copy) copies it too, or stage the folder that holds both";
}

namespace {

bool is_above(std::string_view folder, std::string_view path) {
  return folder.empty() ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

// By the text of the links: a target behind another link is not looked for. `last`: a folder that is there;
// neighbouring links often lead to one folder.
bool is_dangling(const Entries& entries, const Entry& link, std::string& last) {
  std::string at(parent_of(link.path));
  for (const std::string& part : split(link.target, '/')) {
    if (part.empty() || part == ".") continue;
    if (!is_above(at, link.path) && at != last && !is_above(at, last)) {
      const Entry* folder = find_entry(entries, at);
      if (folder == nullptr || folder->type == EntryType::Symlink) return folder == nullptr;
      last = at;
    }
    at = part == ".." ? std::string(parent_of(at)) : joined(at, part);
  }
  return find_entry(entries, at) == nullptr;
}

// By its full path.
bool is_model_file(std::string_view path) {
  constexpr std::string_view kSnapshots = "/snapshots/";
  constexpr std::size_t kCommit = 40;
  if (path.ends_with(".safetensors") || path.ends_with(".gguf")) return true;
  for (std::size_t at = path.find(kSnapshots); at != std::string_view::npos;
       at = path.find(kSnapshots, at + 1)) {
    const std::string_view below = path.substr(at + kSnapshots.size());
    const std::size_t digits = std::min(below.find_first_not_of("0123456789abcdef"), below.size());
    if (digits == kCommit && below.substr(digits).starts_with('/')) return true;
  }
  return false;
}

}  // namespace

Result<std::string> check_dangling(const Tree& tree, const Entries& entries, const StopFlag& stop) {
  std::vector<std::string> shown;
  std::string last;
  std::uint64_t all = 0, files = 0;
  bool is_of_model = false;
  for (const Entry& entry : entries) {
    files += entry.type == EntryType::File ? 1 : 0;
    if (entry.type != EntryType::Symlink || entry.path.empty() || leads_out(entry.path, entry.target))
      continue;
    if (stop) return fail(Errc::Cancelled, "reading " + tree.shown("") + ": interrupted");
    if (!is_dangling(entries, entry, last)) continue;
    const bool is_first_of_model = !is_of_model && is_model_file(tree.root() + "/" + std::string(entry.path));
    is_of_model = is_of_model || is_first_of_model;
    ++all;
    if (is_first_of_model) {
      shown.insert(shown.begin(), noted_link(tree, entry));  // it is why the set is refused
    } else if (all <= kMostShown) {
      shown.push_back(noted_link(tree, entry));
    }
  }
  if (all == 0) return std::string();
  shown.resize(std::min(shown.size(), kMostShown));
  const std::string rest = all > shown.size() ? " and " + std::to_string(all - shown.size()) + " more" : "";
  const std::string what = (all == 1 ? "1 symlink leads" : std::to_string(all) + " symlinks lead") +
                           std::string(" to nothing in the set: ") + join(shown, ", ") + rest;
  if (!is_of_model && all <= files) return what;
  return fail(Errc::Mismatch, "reading " + tree.shown("") + ": " + what,
              "download the files again, or exclude these symlinks");
}

}  // namespace spark::staging
