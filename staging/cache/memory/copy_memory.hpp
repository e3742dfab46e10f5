// The memory that a staged copy's files hold in the page cache.
//
// The work for a look is bounded: the largest files of a copy are looked at one by one, the rest of a copy
// with more files by a sample of them. Only if that shows much memory, its files are all looked at, to free
// it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

inline constexpr std::size_t kMostKnownFiles = 4096, kSampledFiles = 256;

class CopyMemory {
 public:
  using FileId = std::pair<dev_t, ino_t>;

  struct Look {
    Bytes held = 0;
    bool is_estimate = false;
    Bytes freed = 0;
    std::chrono::nanoseconds freeing{0};  // the time that this took
  };

  // Reads its manifest.
  static Result<CopyMemory> open(const Destination& place);

  const std::string& dataset() const { return dataset_; }
  const Destination& place() const { return place_; }

  struct Request {
    const Clock& clock;
    // Takes a file out of memory if no program has it open or mapped, and none has read more of it into
    // memory since the last look.
    bool frees = false;
    // Whether the files that are not looked at one by one stay in memory.
    std::function<bool()> keeps_rest = [] { return true; };
    std::set<FileId>* counted = nullptr;  // files of other copies, which may share theirs with this one
  };
  Look look(const Request& request);

  // Takes all files out of memory, also those that programs have open; what is mapped stays. Returns the
  // bytes freed.
  Bytes drop(const StopFlag& stop);

 private:
  struct File {
    RawPath path;
    Bytes size = 0;
    Bytes held = 0;  // at the last look
  };

  Destination place_;
  std::string dataset_;
  std::vector<File> known_, sample_;
  Bytes rest_ = 0;          // of the files that are not known one by one
  Bytes largest_rest_ = 0;  // of one of them
  Bytes sampled_ = 0;       // of the sample
  Bytes rest_held_ = 0;     // at the last look
  std::optional<SteadyTime> swept_;

  void look_at_known(const Tree& tree, const Request& request, Look& look);
  void look_at_rest(const Tree& tree, const Request& request, Look& look);
};

}  // namespace spark::staging
