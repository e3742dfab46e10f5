#include "bench/measure/live_rate.hpp"

#include <sys/mman.h>

#include <new>

#include "base/text.hpp"
#include "bench/measure/bench.hpp"

namespace spark::bench {

double RateMeter::rate_after(double seconds, Bytes bytes) {
  const double passed = seconds - seconds_;
  const double moved = static_cast<double>(bytes) - static_cast<double>(bytes_);
  seconds_ = seconds;
  bytes_ = bytes;
  return passed > 0 && moved > 0 ? moved / passed : 0;
}

SharedCounter::SharedCounter() {
  void* memory = ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) counter_ = new (memory) std::atomic<std::uint64_t>(0);
}

SharedCounter::~SharedCounter() {
  if (counter_ != nullptr) ::munmap(counter_, sizeof *counter_);
}

void Teller::operator()() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (seconds - told_ < 1 || counter_.get() == nullptr) return;
  told_ = seconds;
  tell_(meter_.rate_after(seconds, counter_.get()->load()));
}

FioEnd run_and_tell(FioRun fio, Direction direction, const StopFlag& stop, const RateSink& tell) {
  RateMeter meter;
  fio.stop = &stop;
  fio.on_status = [&](const json::object& status) {
    const Measured now = counters_of(status, direction);
    tell(meter.rate_after(now.seconds, now.bytes));
  };
  auto end = run_fio(fio);
  if (end) return std::move(*end);
  FioEnd failed;
  failed.exit_status = 1;
  failed.words = end.error().message();
  return failed;
}

std::string progress_line(const Progress& progress) {
  std::string line;
  if (progress.cell > 0) {
    line = "[" + std::to_string(progress.cell) + "/" + std::to_string(progress.cells) + "] ";
  }
  line += progress.path + ": " + progress.doing;
  if (progress.bytes_per_second > 0) line += "  " + format_rate(progress.bytes_per_second);
  const std::string left = "  " + format_duration(progress.left) + " left";
  return cut_short(line, 79 - display_width(left)) + left;
}

}  // namespace spark::bench
