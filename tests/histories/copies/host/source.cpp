#include "tests/histories/copies/host/source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <random>

#include "tests/histories/copies/host/files.hpp"
#include "tests/histories/copies/worker/simulated_system.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

struct stat look_at(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) throw_errno("looking at " + path.native());
  return info;
}

std::int64_t to_ns(const timespec& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

Content new_content(std::uint64_t number, Bytes size) {
  std::mt19937_64 random(number);
  std::string bytes;
  bytes.reserve(size + sizeof number);
  while (bytes.size() < size) {
    const std::uint64_t word = random();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  bytes.resize(size);
  return std::make_shared<const std::string>(std::move(bytes));
}

std::vector<std::string> Source::files() const {
  std::vector<std::string> names;
  for (const auto& [path, spans] : timeline_) {
    if (spans.back().file) names.push_back(path);
  }
  return names;
}

// Two changes never have the same time, except on a file system that rounds its times.
std::int64_t Source::stamp(WallTime wall) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(wall.time_since_epoch()).count();
  last_ns_ = std::max<std::int64_t>(now, last_ns_ + 1);
  return last_ns_ / place_.granularity_ns * place_.granularity_ns;
}

void Source::note(const std::string& path, std::optional<SourceFile> file, SteadyTime at) {
  ++version_;
  timeline_[path].push_back({at, std::move(file)});
}

void Source::write(const std::string& path, const SourceFile& file) const {
  const fs::path real = place_.real / path;
  fs::create_directories(real.parent_path());
  std::ofstream(real, std::ios::binary | std::ios::trunc) << *file.content;
  if (!file.note.empty() && ::setxattr(real.c_str(), "user.note", file.note.data(), file.note.size(), 0) != 0)
    throw_errno("setting an attribute of " + real.native());
}

void Source::date(const fs::path& file, std::int64_t mtime_ns, std::int64_t ctime_ns) const {
  const timespec time{mtime_ns / 1'000'000'000, mtime_ns % 1'000'000'000};
  const timespec times[2] = {time, time};
  if (::utimensat(AT_FDCWD, file.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    throw_errno("dating " + file.native());
  const struct stat info = look_at(file);
  simulated().changed_ns[{info.st_dev, info.st_ino}] = ctime_ns;
}

// Of all folders down to the file's: some may be new.
void Source::date_folder(const std::string& path, std::int64_t ns) const {
  fs::path folder = place_.real;
  date(folder, ns, ns);
  for (const fs::path& part : fs::path(path).parent_path()) date(folder /= part, ns, ns);
}

void Source::add(const std::string& path, SourceFile file, SteadyTime at, WallTime wall) {
  const std::int64_t ns = stamp(wall);
  write(path, file);
  date(place_.real / path, ns, ns);
  date_folder(path, ns);
  note(path, std::move(file), at);
}

void Source::remove(const std::string& path, SteadyTime at, WallTime wall) {
  fs::remove(place_.real / path);
  date_folder(path, stamp(wall));
  note(path, std::nullopt, at);
}

void Source::rewrite(const std::string& path, Content content, bool keeps_mtime, SteadyTime at,
                     WallTime wall) {
  SourceFile file = now(path);
  const std::int64_t mtime = to_ns(look_at(place_.real / path).st_mtim), ns = stamp(wall);
  file.content = std::move(content);
  write(path, file);
  date(place_.real / path, keeps_mtime ? mtime : ns, ns);
  note(path, std::move(file), at);
}

void Source::replace(const std::string& path, Content content, SteadyTime at, WallTime wall) {
  SourceFile file = now(path);
  const std::int64_t ns = stamp(wall);
  file.content = std::move(content);
  const std::string fresh = path + ".new";
  write(fresh, file);
  fs::rename(place_.real / fresh, place_.real / path);
  date(place_.real / path, ns, ns);
  date_folder(path, ns);
  note(path, std::move(file), at);
}

void Source::touch(const std::string& path, WallTime wall) {
  const std::int64_t ns = stamp(wall);
  date(place_.real / path, ns, ns);
  ++version_;
}

void Source::change_mode(const std::string& path, unsigned mode, WallTime wall) {
  const fs::path real = place_.real / path;
  const std::int64_t mtime = to_ns(look_at(real).st_mtim);
  if (::chmod(real.c_str(), mode) != 0) throw_errno("changing the mode of " + real.native());
  date(real, mtime, stamp(wall));
  ++version_;
}

void Source::change_note(const std::string& path, const std::string& value, SteadyTime at, WallTime wall) {
  const fs::path real = place_.real / path;
  SourceFile file = now(path);
  file.note = value;
  const int done = value.empty() ? ::removexattr(real.c_str(), "user.note")
                                 : ::setxattr(real.c_str(), "user.note", value.data(), value.size(), 0);
  if (done != 0 && errno != ENODATA) throw_errno("changing an attribute of " + real.native());
  date(real, to_ns(look_at(real).st_mtim), stamp(wall));
  note(path, std::move(file), at);
}

void Source::pass_through(WallTime wall) {
  date_folder("", stamp(wall));
}

std::vector<SourceFile> Source::between(const std::string& path, SteadyTime from, SteadyTime to) const {
  std::vector<SourceFile> found;
  const auto spans = timeline_.find(path);
  if (spans == timeline_.end()) return found;
  for (std::size_t i = 0; i < spans->second.size(); ++i) {
    const Span& span = spans->second[i];
    const bool is_last = i + 1 == spans->second.size();
    if (span.file && span.since <= to && (is_last || spans->second[i + 1].since >= from))
      found.push_back(*span.file);
  }
  return found;
}

bool Source::was_absent(const std::string& path, SteadyTime from, SteadyTime to) const {
  const auto spans = timeline_.find(path);
  if (spans == timeline_.end() || spans->second.front().since >= from) return true;
  for (std::size_t i = 0; i < spans->second.size(); ++i) {
    const Span& span = spans->second[i];
    const bool is_last = i + 1 == spans->second.size();
    if (!span.file && span.since <= to && (is_last || spans->second[i + 1].since >= from)) return true;
  }
  return false;
}

std::vector<SourceFile> Source::ever(const std::string& path) const {
  std::vector<SourceFile> found;
  const auto spans = timeline_.find(path);
  if (spans == timeline_.end()) return found;
  for (const Span& span : spans->second) {
    if (span.file) found.push_back(*span.file);
  }
  return found;
}

std::set<std::string> Source::paths_ever() const {
  std::set<std::string> paths;
  for (const auto& [path, spans] : timeline_) paths.insert(path);
  return paths;
}

}  // namespace spark::histories::copies
