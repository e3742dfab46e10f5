#include "tests/support/thread_limit.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <climits>

namespace spark {
namespace {

std::atomic<int> left{INT_MAX}, refusals{0};

}  // namespace

ThreadLimit::ThreadLimit(int more) {
  refusals = 0;
  left = more;
}
ThreadLimit::~ThreadLimit() {
  left = INT_MAX;
}
int ThreadLimit::refused() {
  return refusals;
}

}  // namespace spark

// Replaces the C library's function, also for the C++ library.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (spark::left.load() != INT_MAX && --spark::left < 0) {
    ++spark::refusals;
    return EAGAIN;
  }
  return create(thread, attributes, start, argument);
}
