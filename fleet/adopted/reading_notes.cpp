#include "fleet/adopted/reading_notes.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/lines.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::seconds kWriteEvery{1};
constexpr std::string_view kNone = "-";

// A line is cut off, or has zeros in it, after a crash of the host: each one has its own hash.
std::string sealed(const std::string& line) {
  staging::Hasher hasher;
  hasher.add(line);
  return staging::to_hex(hasher.digest()) + " " + line + "\n";
}

std::optional<std::string_view> unsealed(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  staging::Hasher hasher;
  hasher.add(line.substr(space + 1));
  if (staging::to_hex(hasher.digest()) != line.substr(0, space)) return std::nullopt;
  return line.substr(space + 1);
}

std::string_view first_word(std::string_view& line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return word == kNone ? std::string_view() : word;
}

std::string line_of(const ReadingNote& note) {
  const auto word = [](const std::string& text) { return text.empty() ? std::string(kNone) : text; };
  return word(note.sha256) + " " + word(note.published) + " " + staging::to_line(note.entry);
}

}  // namespace

void read_notes(const std::filesystem::path& path, const std::string& of,
                const std::function<void(const ReadingNote&)>& sink) {
  auto lines = staging::LineReader::open(path);
  if (!lines) return;
  const auto head = lines->next();
  if (!head || unsealed(*head) != of) return;
  while (const auto sealed_line = lines->next()) {
    auto line = unsealed(*sealed_line);
    if (!line) return;
    ReadingNote note;
    note.sha256 = first_word(*line);
    note.published = first_word(*line);
    auto entry = staging::parse_entry(*line);
    if (!entry) return;
    note.entry = std::move(*entry);
    sink(note);
  }
}

ReadingNotes::~ReadingNotes() {
  write_waiting();
}

// What a crash has cut off would take the next line with it: such notes are begun again.
void ReadingNotes::open() {
  const std::string head = sealed(of_);
  std::error_code none;
  std::filesystem::create_directories(path_.parent_path(), none);
  ::chmod(path_.parent_path().c_str(), 0700);  // the names of all files are in there
  file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info {};
  if (!file_ || ::fstat(file_.get(), &info) != 0) return;
  std::string first(head.size(), '\0');
  char last = '\n';
  const bool continues = ::pread(file_.get(), first.data(), first.size(), 0) == ssize_t(first.size()) &&
                         first == head && ::pread(file_.get(), &last, 1, info.st_size - 1) == 1 &&
                         last == '\n';
  if (continues) return;
  if (::ftruncate(file_.get(), 0) != 0 || write_all(file_.get(), head) != 0) file_.reset();
}

void ReadingNotes::add(const ReadingNote& note) {
  if (note.entry.size < kSmallest) return;
  const std::string line = sealed(line_of(note));
  const std::scoped_lock lock(mutex_);
  if (has_failed_) return;
  waiting_ += line;
  if (std::chrono::steady_clock::now() - written_at_ >= kWriteEvery) write_waiting();
}

void ReadingNotes::replace(
    const std::filesystem::path& path, const std::string& of,
    const std::function<void(const std::function<void(const ReadingNote&)>& add)>& all) {
  const std::filesystem::path other = path.native() + ".new";
  std::error_code failed;  // then the former ones stay, which are right too
  std::filesystem::remove(other, failed);
  {
    ReadingNotes notes(other, of);
    all([&](const ReadingNote& note) { notes.add(note); });
    notes.write_waiting();
    if (notes.has_failed_) return;
  }
  if (std::filesystem::exists(other, failed))
    std::filesystem::rename(other, path, failed);
  else
    std::filesystem::remove(path, failed);  // there are none
}

void ReadingNotes::write_waiting() {
  if (waiting_.empty()) return;
  if (!file_) open();
  has_failed_ = !file_ || write_all(file_.get(), waiting_) != 0;
  waiting_.clear();
  written_at_ = std::chrono::steady_clock::now();
}

}  // namespace spark::fleet
