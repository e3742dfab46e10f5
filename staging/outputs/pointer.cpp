#include "staging/outputs/pointer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 4096;
constexpr char kNew[] = ".spark-new";
constexpr int kMostTries = 3;
constexpr std::size_t kIterationDigits = 7;  // of Megatron-LM, at least

// No pointer is there, or one that this user can't follow.
bool is_none(int error) {
  constexpr int kNone[] = {0, EINVAL, ENOENT, ENOTDIR, ELOOP, EACCES, ENXIO, ENAMETOOLONG};
  return std::ranges::find(kNone, error) != std::end(kNone);
}

// That `path` is, or is in. Empty if it is elsewhere.
std::string entry_of(const fs::path& folder, const fs::path& path) {
  const fs::path below = path.lexically_normal().lexically_relative(folder);
  return below.empty() || *below.begin() == ".." ? "" : below.begin()->native();
}

// One by the link's own text, and the one that it leads to over other links. Others may have made the link,
// and have named every copy in its text.
Result<> add_entries(const fs::path& link, std::set<std::string>& names) {
  const fs::path folder = link.lexically_normal().parent_path();
  std::error_code error;
  const fs::path text = fs::read_symlink(link, error);
  if (!error) names.insert(entry_of(folder, folder / text));
  const fs::path real = error ? fs::path() : fs::canonical(folder, error);
  const fs::path target = error ? fs::path() : fs::canonical(link, error);
  if (!error) names.insert(entry_of(real, target));
  return is_none(error.value()) ? Result<>() : fail_errno(error.value(), "reading " + shown_path(link));
}

bool is_file(const Completeness& completeness) {
  return completeness.rule == Completeness::Rule::DeepSpeed;
}

bool is_pointer(const struct stat& info) {
  return S_ISLNK(info.st_mode) ||
         (S_ISREG(info.st_mode) && static_cast<std::size_t>(info.st_size) <= kLongestName);
}

// Others may have given the name to any file, where they may rename; it may also be the job's own.
Result<> check_pointer(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || is_pointer(info)) return {};
  return fail(Errc::Refused, shown_path(path) + " is no pointer to a checkpoint", "rename or delete it");
}

std::string begin_of_new(const fs::path& path) {
  return "." + path.filename().native() + ".";
}

// Of workers that were killed. Who may have given such a name to another file could delete that as well.
void remove_leftovers(const fs::path& path) {
  const auto names = names_of(path.parent_path());
  for (std::size_t i = 0; names && i < names->size(); ++i) {
    const std::string& name = (*names)[i];
    const fs::path left = path.parent_path() / name;
    struct stat info {};
    if (name.starts_with(begin_of_new(path)) && name.ends_with(kNew) && ::lstat(left.c_str(), &info) == 0 &&
        info.st_uid == ::geteuid() && is_pointer(info))
      (void)::unlink(left.c_str());
  }
}

Result<> replace(const fs::path& path, const std::function<int(const fs::path&)>& make) {
  if (auto checked = check_pointer(path); !checked) return checked;
  remove_leftovers(path);
  for (int tries = 1;; ++tries) {
    const fs::path fresh = path.parent_path() / (begin_of_new(path) + random_digits() + kNew);
    if (make(fresh) == 0 && ::rename(fresh.c_str(), path.c_str()) == 0)
      return flush_folder(path.parent_path());
    const int number = errno;
    (void)::unlink(fresh.c_str());
    // ENOENT: another host has taken it for a leftover.
    if (number != ENOENT || tries == kMostTries) return fail_errno(number, "replacing " + shown_path(path));
  }
}

Result<> write(const fs::path& path, const std::string& text) {
  return replace(path, [&](const fs::path& fresh) {
    const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    const auto size = static_cast<ssize_t>(text.size());
    if (!file || ::fchmod(file.get(), 0644) != 0) return -1;  // whatever the umask is
    return ::write(file.get(), text.data(), text.size()) == size ? ::fsync(file.get()) : -1;
  });
}

}  // namespace

std::string pointer_in(const fs::path& folder, const Completeness& rule) {
  const auto text_of = [&](const char* name) {
    const auto text = read_regular_file(folder / name, kLongestName);
    return text ? std::string(trim(*text)) : "";
  };
  std::error_code error;
  const std::string name =
      is_file(rule) ? text_of(kLatest) : fs::read_symlink(folder / kLatest, error).native();
  const auto iteration = megatron_iteration(name);
  return iteration && text_of(kMegatronTracker) != std::to_string(*iteration) ? "" : name;
}

Result<std::set<std::string>> names_pointed_at(const fs::path& folder) {
  std::set<std::string> names;
  if (auto added = add_entries(folder / kLatest, names); !added) return added.take_error();
  for (const char* file : {kLatest, kMegatronTracker}) {
    const auto text = read_regular_file(folder / file, kLongestName);
    if (!text && text.error().kind != Errc::Invalid && !is_none(text.error().number))
      return text.take_error();
    std::string name(text ? trim(*text) : "");
    names.insert(name);
    if (name.size() < kIterationDigits) name.insert(0, kIterationDigits - name.size(), '0');
    if (text) names.insert("iter_" + name);
  }
  return names;
}

Result<> point_at_highest(const fs::path& folder, const Completeness& rule) {
  NotListed not_listed;
  const auto copies = published_checkpoints(folder, rule, &not_listed);
  if (!copies) return copies.take_error();
  if (copies->empty()) return {};
  const std::string& name = copies->front().name;
  if (pointer_in(folder, rule) == name) return {};
  const fs::path latest = folder / kLatest;
  const auto other = std::ranges::find_if(
      not_listed.unreadable, [&](const UnreadableCopy& one) { return may_be_above(one.name, name); });
  if (other != not_listed.unreadable.end()) {
    return fail(Errc::Unavailable, shown_path(latest) + " is not moved to " + name + ": " + other->name +
                                       " may be newer: " + other->reason);
  }
  if (const auto iteration = megatron_iteration(name)) {
    if (auto written = write(folder / kMegatronTracker, std::to_string(*iteration)); !written) return written;
  }
  struct stat info {};
  const bool is_there = ::lstat(latest.c_str(), &info) == 0;
  if (is_there && !(is_file(rule) ? S_ISREG(info.st_mode) : S_ISLNK(info.st_mode))) {
    return fail(Errc::Refused, shown_path(latest) + " is the job's own",
                "`spark-stage latest` prints the newest complete checkpoint");
  }
  if (is_file(rule)) return write(latest, name);
  return replace(latest, [&](const fs::path& fresh) { return ::symlink(name.c_str(), fresh.c_str()); });
}

}  // namespace spark::staging
