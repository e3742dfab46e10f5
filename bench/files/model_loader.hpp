// Loads weights like a program that serves a model. Every call here touches the path and may hang: run it in
// a child (process.hpp).
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "bench/record/measured.hpp"
#include "bench/record/scenario.hpp"

namespace spark::bench {

struct ModelLoading {
  std::vector<DataFile> files;  // `bytes` of each are loaded, from its begin
  LoadWay way = LoadWay::Buffered;
  Bytes block = kMiB;  // a multiple of 4 KiB: the tensor that one thread fills. It is reused, so that a model
                       // larger than the memory can be loaded
  unsigned threads = 1;                            // one block in flight for each
  Bytes rate = 0;                                  // limit in bytes per second; 0: no limit
  std::atomic<std::uint64_t>* progress = nullptr;  // bytes loaded so far, shared with another process
  std::function<Bytes()> free_memory = {};         // of the host
};

// Once, in the order of the files, which are evicted from the page cache before and after. Each byte is
// copied to memory that no file backs. Free memory is that without the page cache's files and with the
// tensors before, and with both after. Failed if a file has become shorter.
Result<Measured> load_model(const ModelLoading& loading);

// The files to load, `at_most` bytes in all, so the last one may be cut: of those given, the weights by their
// names, or all if there are none.
std::vector<DataFile> weights_of(const std::vector<DataFile>& files, Bytes at_most);

}  // namespace spark::bench
