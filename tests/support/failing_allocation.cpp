#include "tests/support/failing_allocation.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace spark::test {
namespace {

std::atomic<bool> is_armed{false};
std::atomic<unsigned> allocations{0}, refusing{0};
pthread_t maker{};

}  // namespace

FailingAllocation::FailingAllocation(unsigned nth) {
  maker = ::pthread_self();
  allocations = 0;
  refusing = nth;
  is_armed = true;
}
FailingAllocation::~FailingAllocation() {
  is_armed = false;
}
bool FailingAllocation::is_possible() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}
unsigned FailingAllocation::counted() const {
  return allocations;
}

}  // namespace spark::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Replaces the C++ library's operator; all other forms of new and delete call these. Not inlined, since the
// compiler would see free() on memory from new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  using namespace spark::test;
  const bool counts = is_armed && ::pthread_equal(::pthread_self(), maker) == 0;
  if (counts && ++allocations == refusing) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
#endif
