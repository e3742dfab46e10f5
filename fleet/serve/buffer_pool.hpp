// The buffers that all connections of a server share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "staging/files/io/direct_io.hpp"

namespace spark::fleet {

// Thread-safe. Outlives its loans.
class BufferPool {
 public:
  struct GiveBack {
    BufferPool* pool = nullptr;
    void operator()(staging::IoBuffer* buffer) const { pool->give_back(buffer); }
  };
  using Loan = std::unique_ptr<staging::IoBuffer, GiveBack>;
  using Make = std::function<std::unique_ptr<staging::IoBuffer>()>;

  // Makes each of at most `most` buffers when it is first needed, and keeps it.
  BufferPool(std::size_t most, Make make) : most_(most), make_(std::move(make)) { free_.reserve(most); }

  Loan take();  // waits for a free buffer; throws what `make` throws

 private:
  const std::size_t most_;
  const Make make_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable is_free_;
  std::vector<std::unique_ptr<staging::IoBuffer>> free_;
  std::size_t made_ = 0;

  void give_back(staging::IoBuffer* buffer);
};

}  // namespace spark::fleet
