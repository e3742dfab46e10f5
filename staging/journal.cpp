#include "staging/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/text.hpp"
#include "staging/entry_line.hpp"

namespace spark::staging {
namespace {

constexpr std::string_view kHeader = "spark-stage journal 1\n";
constexpr std::size_t kLargest = std::size_t{8} << 30;
constexpr std::size_t kHashDigits = 32;

// "<hash of the entry's line> <entry's line>\n"
std::string journal_line(const Entry& entry) {
  const std::string line = to_line(entry);
  Hasher hasher;
  hasher.add(line);
  return to_hex(hasher.digest()) + " " + line + "\n";
}

std::optional<Entry> parse_journal_line(std::string_view line) {
  if (line.size() <= kHashDigits || line[kHashDigits] != ' ') return std::nullopt;
  const std::string_view text = line.substr(kHashDigits + 1);
  Hasher hasher;
  hasher.add(text);
  if (digest_from_hex(line.substr(0, kHashDigits)) != hasher.digest()) return std::nullopt;
  auto entry = parse_entry(text);
  if (!entry) return std::nullopt;
  return std::move(*entry);
}

}  // namespace

std::vector<Entry> parse_journal(std::string_view text) {
  std::vector<Entry> entries;
  if (!text.starts_with(kHeader)) return entries;
  text.remove_prefix(kHeader.size());
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    auto entry = parse_journal_line(text.substr(0, end));
    if (!entry) break;
    entries.push_back(std::move(*entry));
    text.remove_prefix(end + 1);
  }
  return entries;
}

std::vector<Entry> read_journal(const std::filesystem::path& path) {
  const auto text = read_file(path, kLargest);
  return text ? parse_journal(*text) : std::vector<Entry>();
}

Result<std::unique_ptr<Journal>> Journal::start(const std::filesystem::path& path,
                                                std::span<const Entry> kept, int file_system,
                                                std::atomic<bool>& failed) {
  std::string text(kHeader);
  for (const Entry& entry : kept) text += journal_line(entry);
  if (auto written = write_file_atomically(path, text, 0600); !written) {
    return tl::unexpected<Error>(std::move(written.error()));
  }
  const std::string shown = printable(path.native());
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return fail_errno(errno, "opening " + shown);
  return std::unique_ptr<Journal>(new Journal(std::move(file), shown, file_system, failed));
}

Journal::Journal(UniqueFd file, std::string shown, int file_system, std::atomic<bool>& failed)
    : file_(std::move(file)),
      shown_(std::move(shown)),
      file_system_(file_system),
      failed_(failed),
      thread_([this] { work(); }) {}

Journal::~Journal() {
  [[maybe_unused]] const Result<> closed = close();
}

void Journal::add(const Entry& entry) {
  const std::string line = journal_line(entry);
  const std::scoped_lock lock(mutex_);
  waiting_ += line;
}

Result<> Journal::close() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (error_) return tl::unexpected<Error>(*error_);
  return {};
}

void Journal::work() {
  for (bool is_last = false; !is_last;) {
    {
      std::unique_lock lock(mutex_);
      is_last = wake_.wait_for(lock, std::chrono::seconds(1), [&] { return closing_; });
    }
    flush_waiting();
  }
}

void Journal::flush_waiting() {
  std::string lines;
  {
    const std::scoped_lock lock(mutex_);
    if (error_) return;
    lines.swap(waiting_);
  }
  if (lines.empty()) return;
  if (auto written = write_down(lines); !written) {
    const std::scoped_lock lock(mutex_);
    error_ = std::move(written.error());
    failed_ = true;
  }
}

Result<> Journal::write_down(std::string_view lines) {
  if (::syncfs(file_system_) != 0) return fail_errno(errno, "flushing the file system of " + shown_);
  while (!lines.empty()) {
    const ssize_t wrote = ::write(file_.get(), lines.data(), lines.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(errno, "writing " + shown_);
    lines.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::fdatasync(file_.get()) != 0) return fail_errno(errno, "flushing " + shown_);
  return {};
}

}  // namespace spark::staging
