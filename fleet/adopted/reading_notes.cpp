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
  return staging::to_hex(staging::digest_of(line)) + " " + line + "\n";
}

std::optional<std::string_view> unsealed(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(space + 1);
  if (staging::to_hex(staging::digest_of(text)) != line.substr(0, space)) return std::nullopt;
  return text;
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

ReadingNotes::ReadingNotes(const std::filesystem::path& path, const std::string& of,
                           const std::function<void(const Add&)>& kept) {
  std::error_code none;
  std::filesystem::create_directories(path.parent_path(), none);
  ::chmod(path.parent_path().c_str(), 0700);  // the names of all files are in there
  auto file = staging::LineWriter::create(path);
  if (!file) return;
  file->add(sealed(of));
  kept([&](const ReadingNote& note) { file->add(sealed(line_of(note))); });
  if (file->commit()) file_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
}

ReadingNotes::~ReadingNotes() {
  write_waiting();
}

void ReadingNotes::add(const ReadingNote& note) {
  if (note.entry.size < kSmallest) return;
  const std::string line = sealed(line_of(note));
  const std::scoped_lock lock(mutex_);
  waiting_ += line;
  if (std::chrono::steady_clock::now() - written_at_ >= kWriteEvery) write_waiting();
}

void ReadingNotes::write_waiting() {
  if (file_ && write_all(file_.get(), waiting_) != 0) file_.reset();
  waiting_.clear();
  written_at_ = std::chrono::steady_clock::now();
}

}  // namespace spark::fleet
