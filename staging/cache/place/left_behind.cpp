#include "staging/cache/place/left_behind.hpp"

#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

constexpr char kMark[] = ".moved-from";  // the lines of a Mark
constexpr char kWasInForce[] = "in force";

// The stable links of the datasets.
Result<> delete_links(const fs::path& folder) {
  std::error_code error;
  for (const fs::path& entry : list_folder(folder, error)) {
    std::error_code unread;
    const fs::path target = fs::read_symlink(entry, unread);
    if (unread || target.empty() || *target.begin() != "data") continue;
    if (::unlink(entry.c_str()) != 0) return fail_errno(errno, "deleting " + printable(entry.native()));
  }
  return error ? fail_errno(error.value(), "listing " + printable(folder.native())) : Result<>();
}

// Only what a cache has: other files in the folder stay, and the folder with them.
Result<Bytes> delete_copies(const fs::path& folder, const StopFlag& stop) {
  const std::string doing = "deleting the copies in " + printable(folder.native());
  const auto looked = look_before_deleting(std::vector{folder / "data"}, stop);
  if (!looked) return looked.take_error();
  if (!looked->obstacle.empty())
    return fail(Errc::Refused, doing + ": " + looked->obstacle,
                "repeat this once the program that uses it has ended (`fuser -m` or `lsof` name it)");
  if (auto given_up = give_up_cache_id(folder, kGivenUp); !given_up) return given_up.take_error();
  if (auto gone = delete_links(folder); !gone) return gone.take_error();
  for (const char* name : {"data", ".partial", ".named", ".trash", ".leases", ".reserve", kMark})
    if (auto gone = remove_tree(folder, name); !gone) return gone.take_error();
  return looked->freed;
}

// Once no mark leads there: until then it tells a folder that was emptied from one whose drive is not
// mounted.
void delete_rest(const fs::path& folder) {
  static_cast<void>(remove_tree(folder, kGivenUp));
  ::rmdir((folder / ".live").c_str());  // of live views, which have ended
  ::rmdir(folder.c_str());  // a failure means that it is a mount point, or that something else is in it
}

}  // namespace

Result<Mark> mark_in(const fs::path& folder) {
  const auto text = read_file(folder / kMark);
  if (!text && text.error().kind == Errc::NotFound) return Mark{};
  if (!text) return text.take_error();
  const auto lines = split(*text, '\n');
  if (lines.size() < 2) return Mark{};
  return Mark{lines[0], lines[1], lines.size() > 2 && lines[2] == kWasInForce};
}

Result<> write_mark(const fs::path& folder, const Mark& mark) {
  const std::string last = mark.was_in_force ? std::string(kWasInForce) + "\n" : "";
  return write_file_atomically(folder / kMark, mark.id + "\n" + mark.from.native() + "\n" + last, 0600);
}

Result<LeftBehind> delete_left_behind(const fs::path& cache, const std::string& id, const Clearing& clearing,
                                      const StopFlag& stop) {
  const auto mark = mark_in(cache);
  if (!mark) return mark.take_error();
  LeftBehind left;
  if (mark->id.empty()) return left;
  const auto named = CacheFolder(mark->from).id();
  const auto given_up = read_line_file(mark->from / kGivenUp);
  if (!named) return named.take_error();
  if (!given_up && given_up.error().kind != Errc::NotFound) return given_up.take_error();
  const bool has_nothing = named->empty() && !given_up;
  if (mark->id == id && has_nothing) return LeftBehind{mark->from, 0, true};
  std::error_code error;
  const bool is_it = mark->id == id && (*named == id || (given_up && *given_up == id)) &&
                     !fs::equivalent(mark->from, cache, error);
  if (is_it) {
    if (auto stopped = clearing.stop_serving(mark->from / "data"); !stopped) return stopped.take_error();
    // A deletion that was interrupted has left parts of copies, and was right when it began. With the
    // identity, the name is of an earlier one.
    if (auto brought = named->empty() ? Result<>() : clearing.bring_last(mark->from); !brought)
      return brought.take_error();
    const auto freed = delete_copies(mark->from, stop);
    if (!freed) return freed.take_error();
    left = {mark->from, *freed};
  }
  ::unlink((cache / kMark).c_str());
  if (auto flushed = flush_folder(cache); !flushed) return flushed.take_error();
  if (is_it) delete_rest(mark->from);
  return left;
}

}  // namespace spark::staging
