#include "bench/measure/live_rate.hpp"

#include <sys/mman.h>

#include <new>

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

}  // namespace spark::bench
