#include "bench/measure/copy_work.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "bench/measure/plan.hpp"
#include "staging/copy/copy.hpp"

namespace spark::bench {

CopyWork copy_work(const BenchTarget& target, const BenchOptions& options, unsigned round) {
  const Bytes at_most = layout_size(options) / kLargeFiles;
  if (has_small_files(options.asked))
    return {target.copy_sample.source, target.copy_sample.of_round(round, at_most), 0};
  std::vector<DataFile> fitting;
  for (const DataFile& file : target.record.files) {
    if (file.bytes <= at_most) fitting.push_back(file);
  }
  // A folder of large files: its smallest one, if that is no more than a writable path gets written.
  if (fitting.empty() && !target.record.files.empty() &&
      target.record.files.back().bytes <= layout_size(options))
    fitting.push_back(target.record.files.back());
  // Existing files are sorted by size; the four largest are enough.
  const std::size_t turns = std::min<std::size_t>(fitting.size(), kLargeFiles);
  if (fitting.empty()) return {};
  const DataFile& chosen = fitting[(round + options.part.offset_in(turns)) % turns];
  return {chosen.path, {}, chosen.bytes};
}

Duration copy_deadline(const CopyWork& work, const BenchOptions& options) {
  const Duration usual = cell_deadline(options);
  return work.bytes > layout_size(options) / kLargeFiles ? std::max(usual, layout_deadline(options)) : usual;
}

Result<Measured> measure_copy(const CopyWork& work, const BenchTarget& local, Bytes rate_limit,
                              std::atomic<std::uint64_t>* done) {
  const std::filesystem::path folder = std::filesystem::path(local.scratch()) / kScratchStaged;
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  std::filesystem::create_directory(folder, error);
  if (error) return fail_errno(error.value(), "making the folder " + printable(folder.string()));
  staging::CopyOptions engine;
  engine.only = work.only;
  engine.has_resting_source = true;  // the wait for coarse times is no part of a path's rate
  engine.rate.most = rate_limit;
  engine.keep_free = local.record.size / 20;
  const auto show = [&](const staging::CopyProgress& now) {
    if (done != nullptr) *done = now.bytes_done;
  };
  const StopFlag never{false};  // a stop kills this process
  auto report = staging::copy(work.source, folder / "copy", engine, show, never);
  std::filesystem::remove_all(folder, error);
  if (!report) return report.take_error();
  Measured copied;
  copied.bytes = report->bytes;
  copied.ios = report->files;
  copied.seconds = report->seconds;
  return copied;
}

}  // namespace spark::bench
