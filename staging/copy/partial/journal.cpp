#include "staging/copy/partial/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr std::string_view kHeader = "spark-stage journal 2";
constexpr std::size_t kHashDigits = 32;
constexpr std::chrono::seconds kFlushEvery{1};
constexpr char kFinished = 'F', kStarted = 'S', kPiece = 'P';

// "<hash of the text> <text>\n"; the text is one of
//   F <entry's line>    S <entry's line, its hash unused>    P <piece> <its hash> <encoded path>
std::string line_of(char kind, const std::string& rest) {
  const std::string text = kind + (" " + rest);
  Hasher hasher;
  hasher.add(text);
  return to_hex(hasher.digest()) + " " + text + "\n";
}

std::string piece_text(std::string_view path, std::uint64_t piece, const Digest& digest) {
  return std::to_string(piece) + " " + to_hex(digest) + " " + encode_name(path);
}

std::string text_of(const JournalLine& line) {
  if (line.kind == JournalLine::Kind::Piece)
    return line_of(kPiece, piece_text(line.entry.path, line.piece, line.digest));
  return line_of(line.kind == JournalLine::Kind::Finished ? kFinished : kStarted, to_line(line.entry));
}

std::optional<JournalLine> parse_piece(std::string_view text) {
  JournalLine line{JournalLine::Kind::Piece, {}, 0, {}};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line.piece);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || rest.size() < kHashDigits + 2 || rest[0] != ' ' || rest[kHashDigits + 1] != ' ')
    return std::nullopt;
  const auto digest = digest_from_hex(rest.substr(1, kHashDigits));
  auto path = decode_name(rest.substr(kHashDigits + 2));
  if (!digest || !path) return std::nullopt;
  line.digest = *digest;
  line.entry.path = *path;
  return line;
}

std::optional<JournalLine> parse_line(std::string_view line) {
  if (line.size() < kHashDigits + 3 || line[kHashDigits] != ' ') return std::nullopt;
  const std::string_view text = line.substr(kHashDigits + 1);
  Hasher hasher;
  hasher.add(text);
  if (digest_from_hex(line.substr(0, kHashDigits)) != hasher.digest() || text[1] != ' ') return std::nullopt;
  if (text[0] == kPiece) return parse_piece(text.substr(2));
  if (text[0] != kFinished && text[0] != kStarted) return std::nullopt;
  auto entry = parse_entry(text.substr(2));
  if (!entry || entry->type != EntryType::File) return std::nullopt;
  const auto kind = text[0] == kFinished ? JournalLine::Kind::Finished : JournalLine::Kind::Started;
  return JournalLine{kind, std::move(*entry), 0, {}};
}

void parse(LineReader& lines, const JournalSink& sink) {
  if (lines.next() != kHeader) return;
  while (const auto text = lines.next()) {
    auto line = parse_line(*text);
    if (!line) return;
    sink(std::move(*line));
  }
}

}  // namespace

void parse_journal(std::string_view text, const JournalSink& sink) {
  LineReader lines(text);
  parse(lines, sink);
}

void read_journal(const std::filesystem::path& path, const JournalSink& sink) {
  auto lines = LineReader::open(path);
  if (lines) parse(*lines, sink);
}

Result<std::unique_ptr<Journal>> Journal::start(const std::filesystem::path& path,
                                                const std::function<void(const JournalSink&)>& kept,
                                                int file_system, RunEnd& end) {
  auto writer = LineWriter::create(path);
  if (!writer) return writer.take_error();
  writer->add(kHeader);
  writer->add("\n");
  kept([&](const JournalLine& line) { writer->add(text_of(line)); });
  if (auto written = writer->commit(); !written) return written.take_error();
  const std::string shown = shown_path(path);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return fail_errno(errno, "opening " + shown);
  return std::unique_ptr<Journal>(new Journal(std::move(file), shown, file_system, end));
}

Journal::Journal(UniqueFd file, std::string shown, int file_system, RunEnd& end)
    : file_(std::move(file)),
      shown_(std::move(shown)),
      file_system_(file_system),
      end_(end),
      flush_next_(std::chrono::steady_clock::now() + kFlushEvery),
      thread_(start_thread([this] { work(); })) {}

Journal::~Journal() {
  [[maybe_unused]] const Result<> closed = close();
}

void Journal::finished(const Entry& entry) {
  add({&entry, nullptr});
}

void Journal::started(const Entry& entry) {
  add({nullptr, std::make_unique<std::string>(line_of(kStarted, to_line(entry)))});
}

Result<> Journal::started_now(const Entry& entry) {
  started(entry);
  flush_waiting();
  const std::scoped_lock lock(mutex_);
  return error_ ? fail(*error_) : Result<>();
}

void Journal::piece(const Entry& entry, std::uint64_t piece, const Digest& digest) {
  add({nullptr, std::make_unique<std::string>(line_of(kPiece, piece_text(entry.path, piece, digest)))});
}

void Journal::add(Waiting line) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(line));
  }
  if (!thread_.joinable() && is_due()) flush_waiting();
}

bool Journal::is_due() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now < flush_next_) return false;
  flush_next_ = now + kFlushEvery;
  return true;
}

Result<> Journal::close() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    flush_waiting();
  }
  if (error_) return fail(*error_);
  return {};
}

void Journal::work() {
  for (bool is_last = false; !is_last;) {
    {
      std::unique_lock lock(mutex_);
      is_last = wake_.wait_for(lock, kFlushEvery, [&] { return closing_; });
    }
    flush_waiting();
  }
}

void Journal::flush_waiting() {
  const std::scoped_lock flushing(flushing_);
  std::vector<Waiting> lines;
  {
    const std::scoped_lock lock(mutex_);
    if (error_) return;
    lines.swap(waiting_);
  }
  if (lines.empty()) return;
  if (auto written = no_throw([&] { return write_down(lines); }); !written) {
    {
      const std::scoped_lock lock(mutex_);
      error_ = std::move(written.error());
    }
    end_.fail();
  }
}

Result<> Journal::write_down(const std::vector<Waiting>& lines) {
  if (::syncfs(file_system_) != 0) return fail_errno(errno, "flushing the file system of " + shown_);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i].other ? *lines[i].other : line_of(kFinished, to_line(*lines[i].finished));
    if (text.size() < kMiB && i + 1 < lines.size()) continue;
    if (const int failed = write_all(file_.get(), text); failed != 0) {
      return fail_errno(failed, "writing " + shown_);
    }
    text.clear();
  }
  if (::fdatasync(file_.get()) != 0) return fail_errno(errno, "flushing " + shown_);
  return {};
}

}  // namespace spark::staging
