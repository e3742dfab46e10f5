#include "migration/undo.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "migration/steps.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestFile = 1 << 20;

bool is_unit(const fs::path& file) {
  const std::string ending = file.extension();
  return ending == ".service" || ending == ".mount" || ending == ".automount";
}

// The steps copy nothing else.
bool is_of_import(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return file == "etc/fstab" ||
         (is_unit(file) && (folder == "etc/systemd/system" || folder == "usr/local/lib/systemd/system"));
}

Result<std::vector<fs::path>> copies_in(const fs::path& kept) {
  std::error_code error;
  std::vector<fs::path> copies;
  fs::recursive_directory_iterator entry(kept, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path file = entry->path().lexically_relative(kept);
    const bool is_file = entry->is_symlink(error) || entry->is_regular_file(error);
    if (is_file && is_of_import(file)) copies.push_back(file);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), "reading the copies in " + kept.native());
  if (copies.empty())
    return fail(Errc::NotFound, "there are no copies in /" + std::string(kKept),
                "the steps at the end of an imported configuration make them");
  std::ranges::sort(copies);
  return copies;
}

Result<> write_link(const fs::path& target, const fs::path& file) {
  std::error_code error;
  const fs::path fresh = file.native() + ".undo";
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, file, error);
  if (error) return fail_errno(error.value(), "writing the link " + file.native());
  return flush_folder(file.parent_path());
}

Result<> restore(const fs::path& copy, const fs::path& file, const std::string& shown, Undone& undone) {
  std::error_code error;
  const bool is_link = fs::is_symlink(copy, error);
  const auto text = is_link ? Result<std::string>("") : read_file(copy, kLongestFile);
  if (!text) return fail(text.error());
  struct stat info {};
  // A copy may have lost what the umask took.
  if (::stat(file.c_str(), &info) != 0 && ::lstat(copy.c_str(), &info) != 0)
    return fail_errno(errno, "looking at " + copy.native());
  const auto current = read_file(file, kLongestFile);
  if (!current && current.error().kind != Errc::NotFound) return fail(current.error());
  const bool stays = is_link ? fs::is_symlink(file, error) : current && *current == *text;
  if (current && !stays) {
    if (auto aside = write_file_atomically(file.native() + ".before-undo", *current, info.st_mode & 0777);
        !aside)
      return aside;
    undone.set_aside.push_back(shown);
  }
  fs::create_directories(file.parent_path(), error);
  auto written = is_link ? write_link(fs::read_symlink(copy, error), file)
                         : write_file_atomically(file, *text, info.st_mode & 0777);
  if (!written) return written;
  undone.files.push_back(shown);
  if (is_unit(file)) undone.units.push_back(file.filename());
  return {};
}

}  // namespace

Result<Undone> undo_import(const SystemRoot& root) {
  const fs::path kept = root / kKept;
  const auto copies = copies_in(kept);
  if (!copies) return copies.take_error();
  Undone undone;
  for (const fs::path& file : *copies) {
    if (auto restored = restore(kept / file, root / file.native(), "/" + file.native(), undone); !restored)
      return restored.take_error();
  }
  std::error_code error;
  fs::remove_all(kept, error);
  if (error) return fail_errno(error.value(), "removing " + kept.native());
  return undone;
}

}  // namespace spark::host
