#include "bench/fio/fio_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr std::size_t kNoiseLimit = 64 << 10;

const char* key_of(Direction direction) {
  return direction == Direction::Read ? "read" : "write";
}

void add_bins(const json::object& side, Bins& bins) {
  // fio reports the bins in lat_ns with lat_percentiles=1, otherwise in clat_ns.
  for (const char* name : {"lat_ns", "clat_ns"}) {
    const json::object* latency = get_object(side, name);
    const json::object* counts = latency == nullptr ? nullptr : get_object(*latency, "bins");
    if (counts == nullptr) continue;
    for (const auto& [key, value] : *counts) {
      const std::string_view name_of_bin(key.data(), key.size());
      const auto nanoseconds = parse_number<std::uint64_t>(name_of_bin);
      const auto count = get_int(*counts, name_of_bin);
      if (nanoseconds && count && *count > 0) bins[*nanoseconds] += static_cast<std::uint64_t>(*count);
    }
    return;
  }
}

std::int64_t non_negative(std::optional<std::int64_t> number) {
  return std::max<std::int64_t>(0, number.value_or(0));
}

std::string words_of_error(std::int64_t number) {
  if (number == EILSEQ) return "the data read back differs from the data written (verify failed)";
  if (number == EINVAL) return "Invalid argument (does the file system refuse direct I/O?)";
  return std::strerror(static_cast<int>(number));
}

// The first error reported by a job of the object; 0 if there is none.
std::int64_t job_error(const json::object& fio) {
  for (const json::object& job : objects_in(fio, "jobs"))
    if (const std::int64_t error = get_int(job, "error").value_or(0); error != 0) return error;
  return 0;
}

std::string said(const FioEnd& end) {
  const std::string tail = tail_of(end.words);
  return tail.empty() ? " and said nothing" : ": " + tail;
}

std::vector<std::string> faults_of_counters(const Measured& counters, double asked_seconds) {
  std::vector<std::string> faults;
  if (counters.bytes == 0 || counters.ios == 0 || counters.seconds <= 0) {
    faults.emplace_back("fio moved no data");
  } else if (counters.bins.empty()) {
    faults.emplace_back("fio took no latency samples");
  }
  if (counters.seconds < 0.9 * asked_seconds) {
    char text[80];
    std::snprintf(text, sizeof text, "ran %.1f s of the %.1f s asked for", counters.seconds, asked_seconds);
    faults.emplace_back(text);
  }
  return faults;
}

}  // namespace

std::vector<json::object> FioStream::feed(std::string_view bytes) {
  std::vector<json::object> done;
  for (const char c : bytes) take(c, done);
  return done;
}

void FioStream::take(char c, std::vector<json::object>& done) {
  const bool line_starts = noise_.empty() || noise_.back() == '\n';
  if (depth_ == 0 && !(c == '{' && line_starts)) {
    if (noise_.size() < kNoiseLimit && !(c == '\n' && line_starts)) noise_ += c;
    return;
  }
  object_ += c;
  if (in_string_) {
    if (c == '"' && !escaped_) in_string_ = false;
    escaped_ = c == '\\' && !escaped_;
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{') {
    ++depth_;
  } else if (c == '}' && --depth_ == 0) {
    auto object = parse_json_object(object_);
    if (object) {
      done.push_back(std::move(*object));
    } else if (noise_.size() < kNoiseLimit) {
      noise_ += object_ + "\n";
    }
    object_.clear();
  }
}

Measured counters_of(const json::object& fio, Direction direction) {
  Measured counters;
  for (const json::object& fields : objects_in(fio, "jobs")) {
    // job_runtime is the sum over the threads of a group (ms), unlike `runtime`.
    const double thread_seconds = get_double(fields, "job_runtime").value_or(0) / 1000;
    const double cpu_percent =
        get_double(fields, "usr_cpu").value_or(0) + get_double(fields, "sys_cpu").value_or(0);
    counters.cpu_seconds += cpu_percent / 100 * thread_seconds;
    const json::object* side = get_object(fields, key_of(direction));
    if (side == nullptr) continue;
    counters.bytes += static_cast<Bytes>(non_negative(get_int(*side, "io_bytes")));
    counters.ios += static_cast<std::uint64_t>(non_negative(get_int(*side, "total_ios")));
    counters.seconds =
        std::max(counters.seconds, static_cast<double>(non_negative(get_int(*side, "runtime"))) / 1000);
    add_bins(*side, counters.bins);
  }
  return counters;
}

std::vector<std::string> faults_of(const FioEnd& end, Direction direction, double asked_seconds) {
  if (end.stopped) return {"interrupted"};
  if (end.abandoned) return {"fio hangs in the kernel and can't be ended: the path does not answer"};
  if (end.timed_out)
    return {
        "fio did not end in time and was killed: the path does not answer, or is far slower "
        "than this benchmark expects"};
  if (end.exit_status == 128) return {"fio was ended by a signal" + said(end)};
  if (end.exit_status > 128 && end.exit_status < 128 + 65) {
    return {"fio died of signal " + std::to_string(end.exit_status - 128) + said(end)};
  }
  if (end.exit_status != 0) {
    const std::int64_t error = end.last ? job_error(*end.last) : 0;
    const std::string cause = error == 0 ? "" : ", " + words_of_error(error);
    return {"fio failed with status " + std::to_string(end.exit_status) + cause + said(end)};
  }
  if (!end.last || end.cut) return {"fio's output has no complete result" + said(end)};
  if (const std::int64_t error = job_error(*end.last); error != 0) {
    return {"fio reports an error: " + words_of_error(error) + said(end)};
  }
  return faults_of_counters(counters_of(*end.last, direction), asked_seconds);
}

std::string tail_of(std::string_view words) {
  constexpr std::size_t kLimit = 300;
  std::vector<std::string> lines;
  for (const std::string& raw : split(words, '\n')) {
    const std::string line = printable(trim(raw));
    if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  std::size_t first = lines.size();  // of the lines that fit, at least one
  std::size_t length = 0;
  while (first > 0 && (first == lines.size() || length + lines[first - 1].size() <= kLimit)) {
    length += lines[--first].size() + 2;
  }
  const std::string tail = join(std::span(lines).subspan(first), "; ");
  return tail.size() <= kLimit ? tail : "…" + printable(std::string_view(tail).substr(tail.size() - kLimit));
}

}  // namespace spark::bench
