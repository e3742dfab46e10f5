#include "staging/cache/folder/cache_folder.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/access/locks.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr char kIdFile[] = ".spark-stage-cache";

// Sorted.
Result<std::vector<std::string>> names_of(UniqueFd folder, const std::filesystem::path& shown) {
  if (!folder) return fail_errno(errno, "listing " + printable(shown.native()));
  auto names = names_in(std::move(folder), printable(shown.native()));
  if (names) std::ranges::sort(*names);
  return names;
}

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  return names_of(UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), folder);
}

Result<> make_folder(const std::filesystem::path& folder, unsigned mode) {
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), mode) != 0 && errno != EEXIST) {
    return fail_errno(errno, "making the cache folder " + printable(folder.native()));
  }
  return {};
}

std::filesystem::path link_target(const std::string& dataset, std::uint64_t generation) {
  return std::filesystem::path("data") / folder_name(dataset) / std::to_string(generation);
}

// Not the root of a drive that users have folders on.
bool holds_the_cache_alone(const CacheFolder& cache) {
  const auto names = names_of(cache.path());
  return names && std::ranges::all_of(*names, [&](const std::string& name) {
           struct stat info {};
           const bool is_link = ::lstat((cache.path() / name).c_str(), &info) == 0 && S_ISLNK(info.st_mode);
           return is_link || name == cache.data().filename() || name.starts_with('.') || name == "lost+found";
         });
}

}  // namespace

std::filesystem::path CacheFolder::partial(const std::string& dataset) const {
  return partials() / folder_name(dataset);
}

std::filesystem::path CacheFolder::link(const std::string& dataset) const {
  return path_ / folder_name(dataset);
}

Destination CacheFolder::place(const std::string& dataset, std::uint64_t generation) const {
  return {data() / folder_name(dataset), std::to_string(generation)};
}

Result<> CacheFolder::make() const {
  const std::pair<std::filesystem::path, unsigned> folders[] = {
      {path_, kEntered}, {data(), kEntered}, {named(), kEntered}, {partials(), 0700}, {trash(), 0700}};
  for (const auto& [folder, mode] : folders) {
    if (auto made = make_folder(folder, mode); !made) return made;
    // Earlier versions left some open. On a full drive the copies are still served.
    if (folder != path_ || holds_the_cache_alone(*this)) static_cast<void>(restrict_to(folder, mode));
  }
  return {};
}

Result<std::string> CacheFolder::id() const {
  auto id = read_line_file(path_ / kIdFile);
  if (!id && id.error().kind == Errc::NotFound) return std::string();
  return id;
}

Result<std::string> CacheFolder::make_id() const {
  Digest random;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    return fail_errno(errno, "making a cache identity");
  const std::string id = to_hex(random);
  if (auto written = write_cache_id(path_, id); !written) return written.take_error();
  return id;
}

Result<> CacheFolder::hold(const std::string& id) {
  const std::string doing = "opening the cache " + printable(path_.native());
  const UniqueFd root(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd file(root ? ::openat(root.get(), kIdFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1);
  std::string text(id.size() + 1, '\0');
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (got < 0) return fail_errno(errno, doing);
  const bool is_it = static_cast<std::size_t>(got) >= id.size() && text.starts_with(id);
  UniqueFd data(is_it ? ::openat(root.get(), "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
  struct stat at_root {
  }, at_data{};
  if (is_it && (!data || ::fstat(root.get(), &at_root) != 0 || ::fstat(data.get(), &at_data) != 0))
    return fail_errno(errno, doing);
  // Publishing renames a copy into the cache, so both folders must be on one file system.
  if (!is_it || at_root.st_dev != at_data.st_dev)
    return fail(Errc::Unavailable, doing + ": another file system was mounted there meanwhile");
  data_ = std::move(data);
  return {};
}

// Past the page cache, where the file system has that.
Result<> CacheFolder::check_answers() const {
  constexpr std::size_t kPage = 4096;
  alignas(kPage) char page[kPage];
  const std::filesystem::path file = path_ / kIdFile;
  int number = EINVAL;
  for (const int how : {O_DIRECT, 0}) {
    if (number != EINVAL) break;  // EINVAL: not past the page cache, or not in pages of this size
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | how));
    errno = fd ? EIO : errno;
    if (fd && ::pread(fd.get(), page, sizeof page, 0) > 0) return {};
    number = errno;
  }
  auto error = fail_errno(number, "reading " + printable(file.native()),
                          "the cache's drive does not answer, or is not mounted");
  error.value().kind = Errc::Unavailable;
  return error;
}

Result<std::vector<std::filesystem::path>> CacheFolder::partial_areas() const {
  const auto names = names_of(partials());
  if (!names) return names.take_error();
  std::vector<std::filesystem::path> areas;
  for (const std::string& name : *names) areas.push_back(partials() / name);
  return areas;
}

Result<std::vector<std::string>> CacheFolder::keys() const {
  return names_of(UniqueFd(::openat(data_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), data());
}

Result<std::vector<std::uint64_t>> CacheFolder::generations(const std::string& key) const {
  std::vector<std::uint64_t> numbers;
  UniqueFd folder(::openat(data_.get(), key.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == ENOENT) return numbers;
  const auto names = names_of(std::move(folder), data() / key);
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    if (const auto number = parse_number<std::uint64_t>(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

Result<bool> CacheFolder::has_generation(const std::string& key, std::uint64_t generation) const {
  const std::string below = key + "/" + std::to_string(generation);
  struct stat info {};
  if (::fstatat(data_.get(), below.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(errno, "looking for " + printable((data() / below).native()));
}

Result<> CacheFolder::point_link(const std::string& dataset, std::uint64_t generation) const {
  const std::filesystem::path target = link_target(dataset, generation), name = link(dataset);
  std::error_code error;
  if (std::filesystem::read_symlink(name, error) == target) return {};
  const std::filesystem::path fresh = path_ / companion_name(folder_name(dataset), ".link");
  ::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), name.c_str()) != 0) {
    return fail_errno(errno, "pointing the link " + printable(name.native()) + " at generation " +
                                 std::to_string(generation));
  }
  return flush_folder(path_);
}

Result<> CacheFolder::drop_link(const std::string& dataset, std::uint64_t generation) const {
  const std::filesystem::path name = link(dataset);
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(name, error);
  // EINVAL: not a symlink.
  const bool is_other = !error || error.value() == ENOENT || error.value() == EINVAL;
  if (is_other && target != link_target(dataset, generation)) return {};
  if (!is_other || (::unlink(name.c_str()) != 0 && errno != ENOENT)) {
    return fail_errno(is_other ? errno : error.value(), "removing the link " + printable(name.native()));
  }
  return {};
}

bool CacheFolder::has_link_to(const std::string& dataset, std::uint64_t generation) const {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(link(dataset), error);
  return generation == 0 ? error.value() == ENOENT : target == link_target(dataset, generation);
}

Result<> CacheFolder::move_to_trash(const std::string& dataset, std::uint64_t generation) const {
  const Destination from = place(dataset, generation);
  const std::filesystem::path to = trashed(folder_name(dataset), generation);
  if (::rename(from.path().c_str(), to.c_str()) != 0) {
    const int number = errno;
    const auto there = number == ENOENT ? has_generation(folder_name(dataset), generation) : true;
    if (!there) return there.take_error();
    if (*there) return fail_errno(number, "moving away " + printable(from.path().native()));
  }
  // Only after the generation: without its manifest it could not be identified.
  if (::access(from.folder.c_str(), F_OK) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, "looking at " + printable(from.folder.native()));
  }
  if (auto flushed = flush_folder(from.folder); !flushed) return flushed;
  if (::unlink(from.manifest().c_str()) != 0 && errno != ENOENT) {
    return fail_errno(errno, "deleting " + printable(from.manifest().native()));
  }
  if (auto flushed = flush_folder(from.folder); !flushed) return flushed;
  ::rmdir(from.folder.c_str());  // the last generation's folder; "not empty" is no error
  return {};
}

std::filesystem::path CacheFolder::trashed(const std::string& key, std::uint64_t generation) const {
  return trash() / (key + "." + std::to_string(generation));
}

Result<std::vector<std::string>> CacheFolder::keys_in_trash() const {
  auto names = names_of(trash());
  if (!names) return names;
  for (std::string& name : *names) name.resize(std::min(name.size(), name.rfind('.')));
  return names;
}

Result<std::vector<std::uint64_t>> CacheFolder::in_trash(const std::string& key) const {
  const auto names = names_of(trash());
  if (!names) return names.take_error();
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : *names) {
    if (!name.starts_with(key + ".")) continue;
    if (const auto number = parse_number<std::uint64_t>(std::string_view(name).substr(key.size() + 1)))
      numbers.push_back(*number);
  }
  return numbers;
}

Result<> CacheFolder::delete_trashed(const std::string& key, std::uint64_t generation) const {
  return remove_tree(trash(), trashed(key, generation).filename());
}

Result<> write_cache_id(const std::filesystem::path& folder, const std::string& id) {
  return write_file_atomically(folder / kIdFile, id + "\n", 0600);
}

Result<> give_up_cache_id(const std::filesystem::path& folder, const char* name) {
  if (::rename((folder / kIdFile).c_str(), (folder / name).c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "renaming " + printable((folder / kIdFile).native()));
  return flush_folder(folder);
}

Result<> close_to_others(const CacheFolder& cache, const std::string& key) {
  const std::filesystem::path folder = cache.data() / key;
  if (auto closed = restrict_to(folder, kEntered); !closed) return closed;
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  for (const std::string& name : *names) {
    const bool is_of_copies = !name.starts_with('.');
    if (auto closed = is_of_copies ? Result<>() : restrict_to(folder / name, 0600); !closed) return closed;
  }
  return {};
}

}  // namespace spark::staging
