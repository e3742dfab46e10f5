#include "staging/outputs/published_with.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/files/times.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

bool is_small(const Entry& file) {
  return piece_count(file.size) == 1;
}

bool has_content_of(const Tree& tree, const Entry& here, const Entry& there) {
  if (there.type != EntryType::File || there.size != here.size || !is_small(here)) return false;
  const UniqueFd file = open_beneath(tree, here.path, O_RDONLY);
  std::string content(here.size, '\0');
  if (!file || ::pread(file.get(), content.data(), content.size(), 0) != static_cast<ssize_t>(here.size))
    return false;
  return digest_of(content) == there.hash;
}

bool is_same_state(const Entry& here, const Entry& there) {
  return there.size == here.size && there.mtime_ns == here.mtime_ns;
}

struct FileToCompare {
  std::string path;
  Bytes size = 0;
  Digest hash;  // of the published one
};

// Reads them. A file that went away meanwhile is another one.
Result<bool> have_hashes(const Tree& tree, const std::vector<FileToCompare>& files,
                         const Comparing& comparing) {
  if (files.empty()) return true;
  std::atomic<bool> differ{false};
  StopFlag is_enough{false};
  FilesToRead to_read;
  to_read.count = files.size();
  to_read.bytes = 0;
  for (const FileToCompare& one : files) *to_read.bytes += one.size;
  to_read.file = [&](std::size_t index) { return FileToRead{{files[index].path, "", ""}, false}; };
  to_read.on_read = [&](std::size_t index, int /*fd*/, FileSums sums) {
    if (sums.content != files[index].hash) differ = true;
    if (differ || comparing.stop) is_enough = true;
  };
  Monitor monitor(comparing.progress);
  const auto read = read_and_compare(tree, to_read, comparing.options, monitor, is_enough);
  if (differ) return false;
  if (!read && read.error().kind == Errc::Mismatch) return false;
  if (!read) return fail(read.error());
  return true;
}

// `is_same`: of a file that is here and there. If several hosts wrote identical files or links, the
// checkpoint has those of one host, with its times.
Result<bool> has_all(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                     const Comparing& comparing, bool (*is_same)(const Entry& here, const Entry& there)) {
  auto published = earlier_copy({checkpoint.folder, checkpoint.name});
  if (!published) return published.take_error();
  if (!*published) return false;
  const auto tree = open_tree(source);
  if (!tree) return tree.take_error();
  const auto walked = walk(*tree, {}, comparing.stop);
  if (!walked) return walked.take_error();
  std::vector<FileToCompare> small, large;
  auto there = (*published)->next();
  for (const Entry& here : walked->entries) {
    while (there && there->path < here.path) there = (*published)->next();
    if (!there || there->path != here.path || there->type != here.type) return false;
    // A folder with several hosts' files has the mode of one of them.
    if (here.type == EntryType::Folder) continue;
    if (here.type == EntryType::Symlink && there->target != here.target) return false;
    if (here.type == EntryType::Symlink || is_same(here, *there)) continue;
    if (there->size != here.size) return false;
    if (!is_small(here) && comparing.reads == Reads::Small) return false;
    (is_small(here) ? small : large).push_back({std::string(here.path.view()), here.size, there->hash});
  }
  const auto have_small = have_hashes(*tree, small, comparing);
  if (!have_small || !*have_small) return have_small;
  return have_hashes(*tree, large, comparing);
}

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_uuid(const std::string& name) {
  std::string digits = name;
  std::erase(digits, '-');
  return digits.size() == 32 && is_hex(digits) && (name.size() == 32 || name.size() == 36);
}

// Smaller ones, years and dates tell sources apart: fold/3, 2025/best.
bool is_job_number(const std::string& name) {
  const bool is_date =
      (name.size() == 4 || name.size() == 8) && (name.starts_with("19") || name.starts_with("20"));
  return name.size() >= 4 && !is_date && name.find_first_not_of("0123456789") == std::string::npos;
}

// job-12, job-ab12, but not job-a.
bool is_job_id(std::string_view text) {
  const auto digit = text.find_first_of("0123456789"), letter = text.find_first_not_of("0123456789");
  const bool is_number = letter == std::string_view::npos;
  return is_hex(text) && digit != std::string_view::npos && (is_number || text.size() >= 4);
}

// A job's folder has another name each time. Other numbers tell sources apart, as llama-7b and llama-70b.
std::string without_job(const std::string& name) {
  if (is_job_number(name) || is_uuid(name)) return "/";
  for (const char* prefix : {"job-", "job_", "job", "slurm-", "slurm_", "slurm"})
    if (name.starts_with(prefix) && is_job_id(std::string_view(name).substr(std::strlen(prefix))))
      return prefix + std::string("/");
  constexpr std::size_t kOfMktemp = 14;  // tmp.XXXXXXXXXX
  return name.starts_with("tmp.") && name.size() == kOfMktemp ? "tmp./" : name;
}

// Without the name that a folder has while its checkpoints are held.
std::filesystem::path folder_of(const std::filesystem::path& source) {
  const std::filesystem::path folder = source.parent_path();
  const std::string name = folder.filename();
  if (!name.starts_with('.') || !name.ends_with(kHeldSuffix)) return folder;
  return folder.parent_path() / name.substr(1, name.size() - sizeof kHeldSuffix);
}

// Empty if they are the same apart from names of jobs.
std::string difference(const std::filesystem::path& then, const std::filesystem::path& now) {
  const std::filesystem::path had = folder_of(then) / then.filename(), has = folder_of(now) / now.filename();
  auto one = had.begin(), other = has.begin();
  for (; one != had.end() && other != has.end(); ++one, ++other) {
    const bool is_last = std::next(one) == had.end() || std::next(other) == has.end();
    if (*one == *other || (!is_last && without_job(*one) == without_job(*other))) continue;
    return printable(then.native()) + ", with " + printable(one->native()) + " where this one has " +
           printable(other->native());
  }
  return one == had.end() && other == has.end() ? "" : printable(then.native());
}

// What several hosts sent has no source of its own. Names alone don't tell: those of two runs are the same.
// Empty if `source` has all of its files.
Result<std::string> difference_to_joined(ManifestReader& joined, const std::filesystem::path& source) {
  const auto tree = open_tree(source);
  if (!tree) return tree.take_error();
  while (const auto there = joined.next()) {
    if (there->type == EntryType::Folder) continue;
    const std::string name(std::string_view(there->path));
    const std::string shown = "several hosts' shards, with " + printable(name);
    struct stat info {};
    if (::lstat((source / name).c_str(), &info) != 0) return shown + ", which this one lacks";
    if (there->type != EntryType::File) continue;
    Entry here = *there;
    here.size = static_cast<Bytes>(info.st_size);
    const bool is_same_time = here.size == there->size && nanoseconds(info.st_mtim) == there->mtime_ns;
    if (S_ISREG(info.st_mode) && (is_same_time || has_content_of(*tree, here, *there))) continue;
    return shown + ", which is another file here";
  }
  if (const auto ended = joined.error(); !ended) return fail(ended.error());
  return std::string();
}

}  // namespace

Result<bool> is_published_with(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                               const Comparing& comparing) {
  return has_all(checkpoint, source, comparing,
                 [](const Entry& here, const Entry& there) { return is_same_source(there, here); });
}

Result<bool> has_state_of(const ShardedCheckpoint& checkpoint, const std::filesystem::path& source,
                          const StopFlag& stop) {
  const CopyOptions options;
  const ProgressSink silent = [](const CopyProgress&) {};
  return has_all(checkpoint, source, Comparing{Reads::Small, options, silent, stop}, is_same_state);
}

std::optional<CopyReport> published_in_state(const std::filesystem::path& path, std::int64_t written) {
  const auto whole = check_whole(path.parent_path(), {.name = path.filename()});
  if (!whole || whole->copy().written != written) return std::nullopt;
  auto manifest = manifest_of_published({path.parent_path(), path.filename()});
  if (!manifest || !*manifest) return std::nullopt;
  const auto summary = summary_of(**manifest);
  if (!summary) return std::nullopt;
  CopyReport report;
  report.bytes = summary->bytes;
  report.files = summary->files;
  report.hash = summary->hash;
  report.unchanged = true;
  return report;
}

Result<std::string> lost_file(const std::filesystem::path& path, const std::filesystem::path& source) {
  struct stat info {};
  if (::lstat(source.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return std::string();
  auto published = manifest_of_published({path.parent_path(), path.filename()});
  if (!published) return published.take_error();
  if (!*published) return std::string();
  const auto root = (*published)->next();
  // A deletion that left no file has the root alone. A file system gives the numbers of deleted files to new
  // ones, and a held checkpoint has its files alone.
  bool is_same_save =
      root && root->inode == info.st_ino && root->type == EntryType::Folder && totals_of(source).bytes == 0;
  std::string lost;
  while (const auto entry = (*published)->next()) {
    if (entry->type != EntryType::File) continue;
    const std::string name(std::string_view(entry->path));
    const bool is_there = ::lstat((source / name).c_str(), &info) == 0;
    is_same_save = is_same_save ||
                   (is_there && info.st_ino == entry->inode && nanoseconds(info.st_mtim) == entry->mtime_ns);
    if (!is_there && errno == ENOENT && lost.empty()) lost = name;
  }
  return is_same_save ? lost : "";
}

Result<std::string> replaced_source(const std::filesystem::path& path, const std::filesystem::path& source,
                                    bool accepts_another) {
  auto published = manifest_of_published({path.parent_path(), path.filename()});
  if (!published || !*published) return std::string();  // copy() refuses to replace what it can't identify
  const std::string then = (*published)->header().source;
  std::error_code unknown;
  if (accepts_another || std::filesystem::equivalent(then, source, unknown))
    return then == source ? std::string() : then;
  const auto other = then == present_path(path)
                         ? difference_to_joined(**published, source)  // joined from shards
                         : Result<std::string>(difference(then, source));
  if (!other) return other.take_error();
  if (other->empty()) return then == source ? std::string() : then;
  return fail(Errc::Refused, "a copy of another source is there: " + *other,
              "choose another name; --accept-source replaces that copy");
}

}  // namespace spark::staging
