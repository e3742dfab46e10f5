#include "migration/undo.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/text.hpp"
#include "migration/steps.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestFile = 1 << 20;

bool is_unit(const fs::path& file) {
  const std::string ending = file.extension();
  return ending == ".service" || ending == ".mount" || ending == ".automount";
}

// A link that starts a unit.
bool is_wish(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return (folder.extension() == ".wants" || folder.extension() == ".requires") &&
         folder.parent_path() == "etc/systemd/system";
}

// The steps copy nothing else.
bool is_of_import(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return file == "etc/fstab" ||
         (is_unit(file) &&
          (folder == "etc/systemd/system" || folder == "usr/local/lib/systemd/system" || is_wish(file)));
}

// The times of the moves, each the name of a folder; the last one first.
std::vector<std::string> moves_in(const fs::path& kept) {
  std::vector<std::string> times = names_in_folder(kept);
  std::erase_if(times, [](const std::string& name) {
    return name.find_first_not_of("0123456789-T:.Z") != std::string::npos;
  });
  std::ranges::sort(times, std::ranges::greater());
  return times;
}

// Never over a file that an earlier undo has set aside.
Result<std::string> set_aside(const std::string& file, const std::string& text, mode_t mode) {
  std::error_code ignored;
  std::string name = ".before-undo";
  for (int i = 2; fs::exists(fs::symlink_status(file + name, ignored)); ++i)
    name = ".before-undo." + std::to_string(i);
  if (auto written = write_file_atomically(file + name, text, mode); !written) return written.take_error();
  return name;
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
  std::ranges::sort(copies);
  return copies;
}

bool has_only_folders(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink(error) || !entry->is_directory(error)) return false;
  }
  return !error;
}

// Steps that ended between `mkdir` and `cp`, or that only unmounted something. Restores nothing of an earlier
// move, which the next call does.
Error without_copies(const fs::path& kept, std::vector<std::string> moves) {
  const std::string all = "/" + std::string(kKept);
  if (moves.empty())
    return {Errc::NotFound, "there are no copies in " + all,
            "the steps at the end of an imported configuration make them"};
  const std::string last = moves.front();
  moves.erase(moves.begin());
  std::error_code ignored;
  if (has_only_folders(kept / last)) fs::remove_all(kept / last, ignored);
  if (moves.empty()) fs::remove(kept, ignored);
  const std::string changed = "the last move (" + last + ") changed no file";
  if (moves.empty()) return {Errc::NotFound, changed, ""};
  return {Errc::NotFound, changed + "; copies of earlier moves are in " + all + ": " + join(moves, ", "),
          "`sudo spark-stage import --undo` once more undoes the move of " + moves.front()};
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
    const auto name = set_aside(file.native(), *current, info.st_mode & 0777);
    if (!name) return fail(name.error());
    undone.set_aside.push_back(shown + *name);
  }
  fs::create_directories(file.parent_path(), error);
  auto written = is_link ? write_link(fs::read_symlink(copy, error), file)
                         : write_file_atomically(file, *text, info.st_mode & 0777);
  if (!written) return written;
  undone.files.push_back(shown);
  const std::string unit = file.filename();
  // Copies of an older version have no links.
  const bool is_older = copy.native().ends_with(std::string(kKept) + shown) && is_unit(file);
  if ((is_older || is_wish(shown.substr(1))) && std::ranges::find(undone.units, unit) == undone.units.end())
    undone.units.push_back(unit);
  return {};
}

}  // namespace

Result<Undone> undo_import(const SystemRoot& root) {
  std::vector<std::string> moves = moves_in(root / kKept);
  const fs::path kept = moves.empty() ? root / kKept : root / kKept / moves.front();
  const auto copies = copies_in(kept);
  if (!copies) return copies.take_error();
  if (copies->empty()) return fail(without_copies(root / kKept, std::move(moves)));
  Undone undone;
  for (const fs::path& file : *copies) {
    if (auto restored = restore(kept / file, root / file.native(), "/" + file.native(), undone); !restored)
      return restored.take_error();
  }
  std::error_code error;
  fs::remove_all(kept, error);
  if (moves.size() > 1) undone.earlier = moves[1];
  std::error_code ignored;
  fs::remove(root / kKept, ignored);  // the last one
  if (error) return fail_errno(error.value(), "removing " + kept.native());
  return undone;
}

}  // namespace spark::host
