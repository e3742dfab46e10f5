#include "staging/files/io/uring_io.hpp"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "staging/files/io/direct_io.hpp"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace spark::staging {
namespace {

// liburing maps its rings by system calls of its own, which the thread sanitizer does not see. It would take
// a new ring for another thread's memory if that thread's ring was at the same address.
#ifdef __SANITIZE_THREAD__
char ring_order;
void ring_begins() {
  __tsan_acquire(&ring_order);
}
void ring_ends() {
  __tsan_release(&ring_order);
}
#else
void ring_begins() {}
void ring_ends() {}
#endif

constexpr unsigned kMostFailures = 200;
constexpr std::chrono::milliseconds kAfterFailure{10};

class UringIo final : public Io {
 public:
  UringIo(unsigned lanes, std::size_t buffer) : lanes_(lanes), size_(buffer), asked_(lanes) {}

  ~UringIo() override {
    if (!is_open_) return;
    if (!is_broken_) wait_for_all();
    ring_ends();
    io_uring_queue_exit(&ring_);
    // The kernel may still write there.
    if (is_broken_) static_cast<void>(memory_.release());
  }

  bool open() {
    // One thread uses the ring, and its completions are processed when it waits: the cheapest way, since
    // Linux 6.1.
    int failed = io_uring_queue_init(lanes_, &ring_, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (failed == -EINVAL) failed = io_uring_queue_init(lanes_, &ring_, 0);
    if (failed != 0) return false;
    ring_begins();
    is_open_ = true;
    memory_ = std::make_unique<IoBuffer>(lanes_ * size_);
    std::vector<iovec> buffers;
    for (unsigned lane = 0; lane < lanes_; ++lane) buffers.push_back({memory_->data() + lane * size_, size_});
    // Registered memory counts against RLIMIT_MEMLOCK; if that is too small, the kernel maps the memory for
    // each request.
    is_registered_ = io_uring_register_buffers(&ring_, buffers.data(), lanes_) == 0;
    return true;
  }

  unsigned lanes() const override { return lanes_; }
  std::span<std::byte> buffer(unsigned lane) override { return {memory_->data() + lane * size_, size_}; }

  void start(Request& request) override {
    asked_[request.lane] = &request;
    if (is_broken_) return;
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);  // never full: it has an entry for every lane
    const bool reads = request.kind == Request::Kind::Read;
    const auto bytes = static_cast<unsigned>(request.bytes);
    const int lane = static_cast<int>(request.lane);
    if (is_registered_ && reads) {
      io_uring_prep_read_fixed(sqe, request.fd, request.data, bytes, request.offset, lane);
    } else if (is_registered_) {
      io_uring_prep_write_fixed(sqe, request.fd, request.data, bytes, request.offset, lane);
    } else if (reads) {
      io_uring_prep_read(sqe, request.fd, request.data, bytes, request.offset);
    } else {
      io_uring_prep_write(sqe, request.fd, request.data, bytes, request.offset);
    }
    io_uring_sqe_set_data(sqe, &request);
  }

  // Returns completed requests before it submits: one call then submits the requests that follow all of them.
  Request& wait() override {
    io_uring_cqe* cqe = nullptr;
    for (unsigned failures = 0;
         !is_broken_ && (io_uring_cq_ready(&ring_) == 0 || io_uring_peek_cqe(&ring_, &cqe) != 0);) {
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      if (submitted > 0) under_way_ += static_cast<unsigned>(submitted);
      if (submitted >= 0) failures = 0;
      if (submitted >= 0 || submitted == -EINTR) continue;
      is_broken_ = ++failures == kMostFailures;
      std::this_thread::sleep_for(kAfterFailure);  // short of memory, or full: it passes
    }
    if (is_broken_) return lost();
    auto& request = *static_cast<Request*>(io_uring_cqe_get_data(cqe));
    request.result = cqe->res;
    asked_[request.lane] = nullptr;
    io_uring_cqe_seen(&ring_, cqe);
    --under_way_;
    return request;
  }

 private:
  // Its buffer may still be in the kernel's hands, so it is not used again.
  Request& lost() {
    Request*& asked = *std::ranges::find_if(asked_, [](const Request* one) { return one != nullptr; });
    Request& request = *std::exchange(asked, nullptr);
    request.result = kRequestLost;
    return request;
  }

  // After an exception: the kernel writes to the buffers until the requests end. Requests not submitted yet
  // are dropped; their files may be closed, and the descriptor numbers reused.
  void wait_for_all() {
    while (under_way_ > 0) {
      io_uring_cqe* cqe = nullptr;
      const int failed = io_uring_wait_cqe(&ring_, &cqe);
      if (failed != 0 && failed != -EINTR) return;
      if (failed != 0) continue;
      io_uring_cqe_seen(&ring_, cqe);
      --under_way_;
    }
  }

  unsigned lanes_;
  std::size_t size_;
  io_uring ring_{};
  bool is_open_ = false, is_registered_ = false;
  bool is_broken_ = false;            // the system call has failed for seconds
  std::vector<Request*> asked_;       // by lane; null if the lane has no request
  unsigned under_way_ = 0;            // in the kernel
  std::unique_ptr<IoBuffer> memory_;  // freed after the ring, because the kernel may still write to it
};

}  // namespace

std::unique_ptr<Io> make_uring_io(unsigned lanes, std::size_t buffer) {
  auto io = std::make_unique<UringIo>(lanes, buffer);
  if (!io->open()) return nullptr;
  return io;
}

}  // namespace spark::staging
