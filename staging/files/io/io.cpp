#include "staging/files/io/io.hpp"

#include <unistd.h>

#include <cerrno>

#include "staging/files/io/direct_io.hpp"
#include "staging/files/io/uring_io.hpp"

namespace spark::staging {
namespace {

class BlockingIo final : public Io {
 public:
  explicit BlockingIo(std::size_t buffer) : buffer_(buffer) {}

  unsigned lanes() const override { return 1; }
  std::span<std::byte> buffer(unsigned) override { return {buffer_.data(), buffer_.size()}; }
  void start(Request& request) override { request_ = &request; }

  Request& wait() override {
    Request& r = *request_;
    const auto offset = static_cast<off_t>(r.offset);
    do {
      r.result = r.kind == Request::Kind::Read ? ::pread(r.fd, r.data, r.bytes, offset)
                                               : ::pwrite(r.fd, r.data, r.bytes, offset);
    } while (r.result < 0 && errno == EINTR);
    if (r.result < 0) r.result = -errno;
    return r;
  }

 private:
  IoBuffer buffer_;
  Request* request_ = nullptr;
};

}  // namespace

std::unique_ptr<Io> make_io(IoKind kind, unsigned lanes, std::size_t buffer) {
  if (kind != IoKind::Threads) {
    if (auto uring = make_uring_io(lanes, buffer)) return uring;
  }
  return std::make_unique<BlockingIo>(buffer);
}

bool has_io_uring() {
  return make_uring_io(1, kLargestAlignment) != nullptr;
}

}  // namespace spark::staging
