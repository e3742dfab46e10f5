#include "bench/demand/job_watch.hpp"

#include <algorithm>
#include <utility>

namespace spark::bench {
namespace {

constexpr double kShortest = 5;  // seconds
constexpr std::size_t kSlices = 10;
constexpr Bytes kLeastMapped = kMiB;  // from storage, of a job that maps its data

Bytes less(Bytes a, Bytes b) {
  return a > b ? a - b : 0;
}

}  // namespace

void JobWatch::take_over_ended(const std::map<pid_t, ProcessReads>& processes) {
  for (auto entry = processes_.begin(); entry != processes_.end();) {
    if (processes.contains(entry->first)) {
      ++entry;
      continue;
    }
    const ProcessReads& ended = entry->second.last;
    if (const auto parent = processes_.find(ended.parent); parent != processes_.end()) {
      parent->second.inherited_called += ended.called;
      parent->second.inherited_storage += ended.from_storage;
    }
    entry = processes_.erase(entry);
  }
}

// A file that is read within a millisecond is rarely seen open. So all processes with the parent and name of
// a known reader count as readers, including later ones.
void JobWatch::recognise_workers() {
  for (const auto& [pid, process] : processes_) {
    if (process.is_reader) readers_.emplace(process.last.parent, process.last.name);
  }
  for (auto& [pid, process] : processes_) {
    process.is_reader |= readers_.contains({process.last.parent, process.last.name});
  }
}

void JobWatch::look(double seconds, const std::map<pid_t, ProcessReads>& processes) {
  take_over_ended(processes);
  const bool had_reader = has_reader_;
  for (const auto& [pid, reads] : processes) {
    Process& process = processes_[pid];
    const Bytes called = less(reads.called, process.last.called + process.inherited_called);
    const Bytes from_storage =
        less(reads.from_storage, process.last.from_storage + process.inherited_storage);
    process.inherited_called = process.inherited_storage = 0;
    process.is_reader |= files_.see(reads, called);
    process.last = reads;
    has_reader_ |= process.is_reader;
    if (!had_reader) continue;
    process.unclaimed_called += called;
    process.unclaimed_storage += from_storage;
  }
  if (!has_reader_) return;
  recognise_workers();
  for (auto& [pid, process] : processes_) {
    if (!process.is_reader) continue;
    called_ += std::exchange(process.unclaimed_called, 0);
    from_storage_ += std::exchange(process.unclaimed_storage, 0);
  }
  points_.push_back({seconds, called_, from_storage_});
}

Result<JobReads> JobWatch::result() const {
  const char* const hint = "let it run longer, and say where its data is: --dataset NAME or --dataset FOLDER";
  if (points_.empty())
    return fail(Errc::Invalid, "the command was not seen to read a file of the dataset", hint);
  JobReads reads;
  const Point& first = points_.front();
  const Bytes called = points_.back().called - first.called;
  const Bytes from_storage = points_.back().from_storage - first.from_storage;
  const Bytes mapped = files_.mapped_bytes();
  reads.may_lack_reads = mapped > 0 || files_.is_asynchronous_cached();
  reads.counted_at_storage = (mapped > 0 || files_.is_asynchronous()) && from_storage > called;
  // A few pages of an index change nothing; all of the data, read from the page cache, is invisible.
  const bool is_much = files_.is_asynchronous_cached() || mapped > called;
  if (is_much && reads.may_lack_reads && from_storage < called / 2 + kLeastMapped)
    return fail(Errc::Invalid,
                "the command " +
                    std::string(mapped > called ? "maps its files" : "reads with io_uring or libaio") +
                    ", and the page cache had them: what it read can't be counted",
                "measure it on a copy that is not cached: spark-stage drop, or as root "
                "echo 1 > /proc/sys/vm/drop_caches");
  const auto bytes_at = [&](const Point& point) {
    return reads.counted_at_storage ? point.from_storage : point.called;
  };
  // The last sample in which the counters had grown.
  std::size_t end = points_.size() - 1;
  while (end > 0 && bytes_at(points_[end]) <= bytes_at(points_[end - 1])) --end;
  // Once the page cache has all of the data, storage gives no more than a library or a log now and then.
  const std::size_t last = end;
  const Bytes nearly_all = less(bytes_at(points_[last]), bytes_at(first)) / 100 * 99;
  while (reads.counted_at_storage && end > 0 &&
         less(bytes_at(points_[end - 1]), bytes_at(first)) >= nearly_all)
    --end;
  if (points_[end].seconds - first.seconds < kShortest && points_[last].seconds - first.seconds >= kShortest)
    return fail(Errc::Invalid,
                "the page cache had the job's data after less than 5 s, and what it read from there can't be "
                "counted",
                "measure it with a larger dataset");
  reads.seconds = points_[end].seconds - first.seconds;
  reads.bytes = less(bytes_at(points_[end]), bytes_at(first));
  if (reads.seconds < kShortest || reads.bytes == 0) {
    return fail(Errc::Invalid, "the command read its data for less than 5 s, which is too short to measure",
                hint);
  }
  reads.before = first.seconds;
  std::vector<double> slices;
  const Point* begin = &first;
  for (std::size_t slice = 1, at = 0; slice <= kSlices; ++slice) {
    const double until = first.seconds + reads.seconds * static_cast<double>(slice) / kSlices;
    while (at < end && points_[at].seconds < until) ++at;
    const double took = points_[at].seconds - begin->seconds;
    if (took <= 0) continue;
    slices.push_back(static_cast<double>(less(bytes_at(points_[at]), bytes_at(*begin))) / took);
    begin = &points_[at];
  }
  const double rate = static_cast<double>(reads.bytes) / reads.seconds;
  reads.rate = {rate, {rate, rate}};
  if (const auto interval = interval_of_mean(slices)) {
    reads.rate.range = {std::clamp(interval->low, 0.0, rate), std::max(interval->high, rate)};
  }
  reads.files = files_.count();
  reads.mean_file = files_.mean_size();
  reads.order = files_.order();
  reads.folders.assign(files_.used_folders().begin(), files_.used_folders().end());
  return reads;
}

}  // namespace spark::bench
